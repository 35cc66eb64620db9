#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "idrange.h"
#include "sysroot.h"
#include "vec.h"

/* Network interfaces: what /proc/net/dev counts, and what /sys/class/net says of them. */

enum nic_counter {
	NIC_RX_BYTES, NIC_RX_PACKETS, NIC_RX_ERRORS, NIC_RX_DROPS,
	NIC_TX_BYTES, NIC_TX_PACKETS, NIC_TX_ERRORS, NIC_TX_DROPS,
	NIC_COUNTERS,
};

struct nic_stats {
	char name[32];
	uint64_t counters[NIC_COUNTERS]; /**< since the interface was made */
};

struct nic_list {
	VEC(struct nic_stats) v;
};

/** Parse the text of a file like /proc/net/dev; interfaces that never moved anything too. */
void nic_parse(const char *text, struct nic_list *ret);

/** Facts of an interface of the network namespace that /sys shows. */
struct nic_facts {
	char mac[32], state[24], pci[20]; /**< "": not told */
	uint64_t speed_bytes_s, mtu;	  /**< 0: not told */
	int numa_node;			  /**< -1: none, or not told */
	struct idrange irq_cpus;	  /**< CPUs that take its interrupts */
};

/** @return false: /sys has no such interface */
bool nic_facts_read(const struct sysroot *root, const char *name, struct nic_facts *ret);
void nic_facts_done(struct nic_facts *f);
