#pragma once

#include <stdint.h>

#include "perf_pmu.h"
#include "strbuf.h"
#include "topo.h"

/*
 * Memory traffic and links of parts of the machine that are outside of its cores: HiSilicon's DDRC, HHA,
 * L3C and PA, Intel's memory controllers, UPI and home agents (CHA), AMD's memory controllers and data fabric. Events go by the names that
 * drivers give them, never by numbers, and a device belongs to the NUMA node of the CPU that it is read on, unless
 * it serves several nodes.
 */

/** What is known of a node, from all devices of one kind on it. */
enum uncore_value {
	DDR_READ_BYTES,
	DDR_WRITE_BYTES,
	DDR_BYTES, /**< both, where they are not told apart */
	HHA_TOTAL, /**< operations, as the next two */
	HHA_CROSS_SOCKET,
	HHA_CROSS_DIE,
	HHA_DDR_READ_BYTES,
	HHA_DDR_WRITE_BYTES,
	L3C_READ_CPIPE, /**< operations, as all of L3C */
	L3C_WRITE_CPIPE,
	L3C_READ_CPIPE_HIT,
	L3C_WRITE_CPIPE_HIT,
	L3C_READ_SPIPE,
	L3C_WRITE_SPIPE,
	L3C_READ_SPIPE_HIT,
	L3C_WRITE_SPIPE_HIT,
	L3C_BACK_INVALID,
	L3C_RETRY,
	PA_RX_FLITS, /**< ring to PA */
	PA_TX_FLITS, /**< PA to ring */
	PA_CYCLES,
	LINK_TX_BYTES, /**< to other sockets, of Intel's UPI and AMD's data fabric */
	UNCORE_VALUES,
};

/** One event of one device. */
struct uncore_event {
	uint32_t pmu; /**< index in pmus.v */
	uint32_t cpu; /**< where it is read */
	uint64_t config[3];
	enum uncore_value value;
	unsigned link;	/**< PA: which of the links */
	double factor;	/**< what one count is worth: bytes, or 1 */
};

struct uncore_events {
	VEC(struct uncore_event) v;
};

/** All events of @p p that are known here. What a driver does not name is left out. */
void uncore_find(const struct pmus *p, struct uncore_events *ret);

/**
 * NUMA node that an event's device is of; TOPO_UNKNOWN: of none, or of several that it does not tell apart. Those of
 * HiSilicon are of one die, which is a node. Others are of the part of a package that none of the other CPUs on which
 * they are read stands for: AMD's and Intel's of a whole socket, which firmware may have made several nodes of (NPS,
 * sub-NUMA clusters). Which of its controllers belong to which of them is told nowhere.
 */
uint32_t uncore_node(const struct pmus *p, const struct uncore_event *x, const struct topo *t);

#define UNCORE_LINKS 4

/** Sums over the devices of a node, counts times their factor. NaN: no such event there. */
struct uncore_sums {
	double v[UNCORE_VALUES];
	double rx[UNCORE_LINKS], tx[UNCORE_LINKS]; /**< PA, by link */
};

void uncore_sums_init(struct uncore_sums *s);
void uncore_sums_add(struct uncore_sums *s, const struct uncore_event *x, uint64_t count);

/** Bytes read from memory and written to it, by the best source there is; NaN: not known. */
double uncore_ddr_bytes(const struct uncore_sums *s);

enum uncore_kind { UNCORE_DDR, UNCORE_HHA, UNCORE_HCCS, UNCORE_L3C, UNCORE_PA, UNCORE_KINDS };

/**
 * Rates of one kind as a JSON object, with the names of the older tool: GB/s (10^9 bytes) and Gops/s. A
 * member that is not known is left out.
 *
 * @param seconds     that the sums are of, > 0
 * @param timestamp_s since 1970
 * @return false: nothing of that kind is known, and nothing was added
 */
bool uncore_rates(const struct uncore_sums *s, enum uncore_kind kind, double seconds, double timestamp_s,
		  struct strbuf *out);
