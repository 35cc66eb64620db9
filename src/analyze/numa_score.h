#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "graph.h"
#include "vec.h"

/* How well the place where something runs and the place where its memory lies agree. */

struct numa_score {
	bool known; /**< false: no CPU time, or no memory; nothing else is meant then */
	/**
	 * Cosine of the angle between CPU time by node and memory by node: 1 when both are spread alike
	 * over the nodes, 0 when they have no node in common.
	 */
	double similarity;
	/**
	 * Sum over nodes of the node's share of CPU time times its share of memory: the part of the
	 * accesses that stays on the node if all pages are used alike and all CPUs use them alike.
	 */
	double local_share;
	double remote_share; /**< 1 - local_share */
};

/**
 * @param cpu    [n] amounts, >= 0, of any unit
 * @param memory [n] likewise, of the same nodes in the same order
 */
struct numa_score numa_score(const double *cpu, const double *memory, size_t n);

/** "local" above 0.8, "mixed" from 0.5, "cross" from 0.3, else "remote"; NULL when it is not known. */
const char *numa_verdict(const struct numa_score *s);

#define NUMA_SAMPLES_LEAST 100 /* accesses; an error of 10 % */

/**
 * Share of accesses to memory that other nodes answered, as sampled (`record --sample-memory`).
 *
 * @param n a process or thread
 * @return 0–1, or -1: fewer than NUMA_SAMPLES_LEAST were sampled
 */
double numa_measured_share(const struct node *n);

/** Sampled accesses to memory of a process or thread, or 0. */
uint64_t numa_samples(const struct node *n);

/** Amounts by NUMA node. */
struct by_node {
	VEC(struct node_amount {
		uint32_t node;
		double amount;
	}) v; /**< ascending by node */
};

/** The amount of a node, which is added with 0 when it is not there. Valid until the next addition. */
double *by_node_at(struct by_node *b, uint32_t node);

/** As numa_score(), for amounts by node; a node that one of them lacks has 0 there. */
struct numa_score numa_score_by_node(const struct by_node *cpu, const struct by_node *memory);

/** NUMA nodes of each host, ascending: place i of the older tool's lists is the i-th of its host. */
struct numa_places {
	VEC(struct numa_place {
		const char *ns;
		uint32_t node;
	}) v; /**< by host, then number */
};

void numa_places_of(const struct graph *g, struct numa_places *ret); /**< vec_done(&ret->v) frees it */

/**
 * CPU time by node of a thread or process: relation access_with_proc_status or numa_access. From the
 * map of node to time, else from the older tool's list of shares by ascending node.
 *
 * @param ret empty before; the caller frees it with vec_done(&ret->v)
 */
void numa_cpu_of(const struct graph *g, const struct numa_places *p, const struct edge *d, struct by_node *ret);

/**
 * Memory by node of a process: relation numa_access. Private, shared and huge pages count; pages of files
 * do not, as whoever read them first decided where they are.
 */
void numa_memory_of(const struct graph *g, const struct numa_places *p, const struct edge *d, struct by_node *ret);

/** Of that, what it has for itself. */
void numa_private_of(const struct edge *d, struct by_node *ret);

/** Memory by node of a shared segment: entity shared_memory. */
void numa_segment_of(const struct node *n, struct by_node *ret);

/**
 * Complete what a recording or a file tells of placement: CPU time by node from the time on each CPU,
 * CPUs that were used, and the scores from both vectors, which replace what the older tool wrote for
 * them. A pure function of the graph; doing it again changes nothing.
 */
void derive_numa(struct graph *g);

/** Leave out the scores, which derive_numa() finds again: for text that is to be short. */
void numa_forget_scores(struct graph *g);
