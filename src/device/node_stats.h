#pragma once

#include <stdint.h>

#include "strbuf.h"
#include "sysroot.h"
#include "vec.h"

/*
 * What the kernel counts for each NUMA node, and for page migration as a whole. Sources: numastat,
 * meminfo of each node in /sys/devices/system/node, and /proc/vmstat.
 */

/** Counters since boot. UINT64_MAX: this kernel does not have it. */
#define NODE_STAT_UNKNOWN UINT64_MAX

enum node_counter {
	NODE_HIT,	 /**< pages given that were wanted here */
	NODE_MISS,	 /**< pages given here though another node was preferred */
	NODE_FOREIGN,	 /**< pages wanted here and given elsewhere: this node had none */
	NODE_INTERLEAVE, /**< interleaved pages that were given here as wanted */
	NODE_LOCAL,	 /**< pages given to a CPU of the node */
	NODE_OTHER,	 /**< pages given to a CPU of another node */
	NODE_COUNTERS,
};

/** Name in numastat or vmstat. */
const char *node_counter_name(enum node_counter c);

struct node_stats {
	uint64_t counters[NODE_COUNTERS];
	uint64_t total_bytes, free_bytes; /**< NODE_STAT_UNKNOWN likewise */
	struct strbuf meminfo;		  /**< JSON object: each line's name to its text, as the older tool has it */
};

void node_stats_done(struct node_stats *s);

/** @return 0, or -errno when the node is not there; what is not told is NODE_STAT_UNKNOWN */
int node_stats_read(const struct sysroot *r, uint32_t node, struct node_stats *ret);

/** Memory blocks of the node as ranges, "0-1,130-255". @return their number */
size_t node_memory_blocks(const struct sysroot *r, uint32_t node, struct strbuf *out);

/** CPUs of the node as its cpulist says. @return 0, or -errno */
int node_cpulist(const struct sysroot *r, uint32_t node, struct strbuf *out);

/** Distances of the node to all nodes online, in their order. @return how many, or -errno */
int node_distances(const struct sysroot *r, uint32_t node, uint32_t *ret, size_t max);

enum balancing_counter {
	BALANCE_PTE_UPDATES,	  /**< pages made to fault, so that it shows who uses them */
	BALANCE_FAULTS,		  /**< such faults */
	BALANCE_FAULTS_LOCAL,	  /**< by a CPU of the node that has the page */
	BALANCE_PAGES_MOVED,	  /**< pages moved to the node that uses them */
	BALANCE_MOVES,		  /**< pages moved for any reason */
	BALANCE_MOVE_FAILURES,	  /**< that could not be moved */
	BALANCE_RECLAIMS,	  /**< times a node gave up page cache of its own rather than go elsewhere */
	BALANCE_RECLAIM_FAILURES, /**< times that found nothing to give up */
	BALANCE_COUNTERS,
};

const char *balancing_counter_name(enum balancing_counter c);
/** @return 0, or -errno */
int balancing_read(const struct sysroot *r, uint64_t ret[BALANCE_COUNTERS]);
