#pragma once

#include <stddef.h>
#include <stdint.h>

#include "strbuf.h"
#include "sysroot.h"
#include "topo.h"

/*
 * The most that the memory of a NUMA node can give, where the machine tells: its firmware in the table of
 * memory attributes (HMAT), or else by number, speed and width of its memory modules (DMI).
 */

struct peak {
	uint64_t bytes_s;   /**< 0: not told */
	const char *source; /**< "hmat", "dmi"; static */
};

/** @param ret 0 bytes a second when neither tells, or not clearly */
void peak_bandwidth(const struct sysroot *r, const struct topo *t, uint32_t node, struct peak *ret);

/** Time that the node's memory takes to answer a read of the CPUs next to it when idle, by HMAT; 0: not told. */
uint64_t idle_latency_ns(const struct sysroot *r, uint32_t node);

#define PEAK_SOCKETS 64

/** Bytes a second that the modules of each socket can move together, by the socket's number. */
struct peak_sockets {
	uint64_t bytes_s[PEAK_SOCKETS];
	unsigned n; /**< sockets with modules */
};

/**
 * From the tables of SMBIOS (type 17, DSP0134). Two modules on one channel take turns: the faster one counts.
 *
 * @return 0; -ENODATA: no modules, or their places do not say socket and channel
 */
int peak_from_dmi(const uint8_t *table, size_t size, struct peak_sockets *ret);
