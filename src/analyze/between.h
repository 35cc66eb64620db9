#pragma once

#include "topology.h"

/** How two entities hang together: relations from one to the next, whatever their direction. */
struct relation_path {
	VEC(uint32_t) nodes; /**< from the one to the other; empty: there is no way */
	VEC(uint32_t) edges; /**< [nodes.n - 1] */
};

/**
 * The shortest way over relations. CPUs, NUMA nodes, namespaces and hosts join everything with
 * everything and are not passed through. O(nodes + edges).
 */
void relations_between(struct graph *g, uint32_t from, uint32_t to, struct relation_path *ret);
void relations_done(struct relation_path *p);

/** Add parent_of relations to a graph that knows parents only as numbers, as those of the older
 * tool. */
void topology_link_parents(struct topology *t);

/**
 * The way of data whose narrowest step is the widest: the most that can have come from one actor to
 * the other. Links of unknown amount are taken where there is nothing else. O(links · log links).
 *
 * @param ret zeroed; without actors when no data can get there. Its lists are the caller's.
 */
void topology_between(const struct topology *t, uint32_t from, uint32_t to, struct topo_path *ret);
