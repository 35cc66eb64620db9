#pragma once

#include "numa_score.h"

/* Processes and threads with where they ran and where their memory lies, the worst first. */

struct numa_row {
	uint32_t node; /**< process or thread */
	uint32_t edge; /**< its relation to the set of NUMA nodes */
	struct by_node cpu;    /**< ns, or shares in files of the older tool; empty: not known */
	struct by_node memory; /**< bytes, or pages; of the thread's process; empty: not known */
	struct numa_score score;
	double measured;  /**< share of sampled accesses that other nodes answered; -1: too few, or none */
	uint64_t samples; /**< accesses that were sampled */
	double run_ns;	  /**< CPU time; 0: not known */
	double remote_ns; /**< part of it that went with memory of other nodes: run_ns * measured, or else remote_share */
	const char *verdict; /**< numa_verdict() */
};

struct numa_rows {
	VEC(struct numa_row) v;
};

/**
 * Rows of @p type: &process_type or &thread_type, by remote_ns, then by expected remote share, then by CPU time.
 * The graph has gone through derive_numa().
 */
void numa_rows_of(struct graph *g, const struct type *type, struct numa_rows *ret);
void numa_rows_done(struct numa_rows *r);

/** Resident memory on a NUMA node, of all processes that were looked at. */
struct numa_sum {
	uint32_t node;
	double private_bytes; /**< that one process has for itself */
	double shared_bytes;  /**< of shared segments, each once, however many processes map it */
};

struct numa_sums {
	VEC(struct numa_sum) v; /**< ascending by node */
	size_t segments;	/**< shared segments whose place is known */
};

/** Sums over processes and segments of host @p ns. Page cache of files is in neither. */
void numa_sums_of(struct graph *g, const char *ns, struct numa_sums *ret);

/** A counter of a NUMA node a second, or -1 when it is not known. */
double numa_rate(const struct graph *g, const struct node *n, int field);

/** What the counters of a node say; -1 and NULL: not counted. */
struct numa_counters {
	double ipc;	     /**< instructions for each cycle */
	double llc_miss_pct; /**< misses of the last level of cache that was counted, of its references */
	const char *rates[5]; /**< JSON objects: memory, home agent, interconnect, L3, links */
	const char *rate_names[5];
	double memory_bytes_s; /**< traffic of its memory, over the window */
	double peak_bytes_s;   /**< the most that it can have */
	double peak_pct;       /**< traffic, of the most */
};

void numa_counters_of(struct graph *g, const struct node *n, struct numa_counters *ret);
