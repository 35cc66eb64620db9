#pragma once

#include "graph.h"

/*
 * Joining the graphs of several hosts, which lie side by side in one graph, each with a namespace
 * of its own: what is an address outside for one of them is a process of another.
 */

/** What was found. Every end of a connection counts in one of the first three. */
struct stitched {
	size_t joined;      /**< ends whose other end is in the graph: two for each connection */
	size_t alone;       /**< ends whose other end is not */
	size_t ambiguous;   /**< ends that fit several others: addresses that are used twice */
	size_t queue_pairs; /**< RDMA: likewise joined, ends */
	size_t queue_pairs_ambiguous; /**< and those whose numbers fit several others */
	size_t flows; /**< flows between processes of different hosts that came of it */
};

/** Clocks of hosts differ by less than this, in ns, unless somebody knows better. */
#define STITCH_CLOCK_NS 2000000000ull

/**
 * Copy @p from into @p into, which is initialized and empty, with hosts joined.
 *
 * Two ends are of one connection when each has the other's addresses, they are on different hosts,
 * what was moved through them was moved at the same time, and no other end fits as well. Where an
 * end knows what addresses it is seen with (`own_address`), these count. Flows to the address of
 * such an end become flows to its process, with what both ends counted; what else went to that
 * address stays. The other host's socket stands for the external one. Queue pairs are of one
 * connection when each has the other's number as its remote one.
 *
 * O((V + E) log E).
 *
 * @param clock_ns by how much the clocks of the hosts may differ
 */
void stitch(struct graph *into, struct graph *from, uint64_t clock_ns, struct stitched *ret);
