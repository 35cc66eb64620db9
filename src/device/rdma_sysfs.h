#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sysroot.h"
#include "vec.h"

/* Ports of RDMA devices and their counters, by /sys/class/infiniband. */

struct rdma_counter {
	char name[48];
	uint64_t value; /**< bytes where the name says data; else packets or events */
	bool hw;	/**< of hw_counters: the driver's own */
};

struct rdma_port {
	char dev[64];
	uint32_t port;
	char state[24], link_layer[24], netdev[32]; /**< "ACTIVE", "Ethernet", "eth0"; "": not told */
	double rate_bytes_s;			    /**< 0: not told */
	bool has_hw_counters;
	VEC(struct rdma_counter) counters;
};

struct rdma_ports {
	VEC(struct rdma_port) v;
};

void rdma_ports_read(const struct sysroot *root, struct rdma_ports *ret);
void rdma_ports_done(struct rdma_ports *p);

/** The first of these names that the port has. @param names NULL-terminated @return false: none */
bool rdma_port_counter(const struct rdma_port *p, const char *const *names, uint64_t *ret);

/** NUMA node and PCI address of a device. @param ret_pci "": not told @return node, -1: none */
int rdma_dev_place(const struct sysroot *root, const char *dev, char ret_pci[20]);
