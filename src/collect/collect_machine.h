#pragma once

#include "collect.h"
#include "node_stats.h"
#include "sysroot.h"
#include "topo.h"

/** The machine: its topology, read once, and the counters of its NUMA nodes. */
struct machine {
	struct sysroot root;
	struct topo topo; /**< empty when it could not be read */
	bool has_topo;
	char why[400]; /**< why not */
	struct idrange memory_nodes; /**< nodes that have memory */
	VEC(struct machine_node {
		uint32_t id;
		uint64_t counters[NODE_COUNTERS]; /* at the last look */
	}) nodes; /**< ascending by id */
	uint64_t balancing[BALANCE_COUNTERS];
};

/** @param from where to read; NULL: this host. Never NULL; what failed is in `why`. */
struct machine *machine_new(const struct topo_source *from);
void machine_free(struct machine *m);

/** Into @p g: at the first look all there is; then what changes. @param first this is the first look */
void machine_emit(struct machine *m, struct graph *g, bool first);

/** Node of a set of NUMA nodes, with its members, in @p g. */
uint32_t machine_numa_set(struct graph *g, const struct idrange *nodes);
