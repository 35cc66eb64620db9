#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "idrange.h"
#include "vec.h"

/* What the machine is made of, as hwloc sees it: nodes, CPUs, caches, PCI devices and where they are. */

#define TOPO_UNKNOWN UINT32_MAX

/** A NUMA node. Numbers are the kernel's and may have gaps. */
struct topo_node {
	uint32_t id;
	uint32_t package;	/**< TOPO_UNKNOWN: of none, or of several */
	struct idrange cpus;	/**< online CPUs of its own; empty: memory only */
	struct idrange near;	/**< online CPUs that are nearest to its memory; as `cpus` where it has some */
	uint64_t memory_bytes;	/**< 0: no memory */
	char *kind;		/**< "DRAM", "HBM", "SPM", "NVM", "GPUMemory"; NULL: not told */
};

/** A logical CPU. */
struct topo_cpu {
	uint32_t id;
	bool online;
	uint32_t node, package, die, core; /**< TOPO_UNKNOWN: not told; cores are counted by the package */
	uint32_t kind;			   /**< rank by efficiency from 0, the least powerful; TOPO_UNKNOWN: all alike */
	uint32_t llc;			   /**< index in topo.caches; TOPO_UNKNOWN: none */
};

struct topo_cache {
	unsigned level; /**< 1 … 5; level 1: of data */
	uint64_t bytes; /**< 0: not told */
	struct idrange cpus;
};

/** A PCI function worth to know of: no bridges. */
struct topo_pci {
	char address[20]; /**< "0000:01:00.0" */
	uint16_t class_id;  /**< class << 8 | subclass */
	uint16_t vendor, device;
	const char *class_name; /**< "network", "storage", "display", "accelerator" …; static */
	char *vendor_name, *model; /**< NULL: no database of names */
	double link_bytes_s;   /**< of its upstream link; 0: not told */
	struct idrange cpus;   /**< online CPUs near it */
	struct idrange nodes;  /**< NUMA nodes near it; empty: the whole machine is as near */
	VEC(char *) os_devices; /**< "eth0", "nvme0n1", "mlx5_0" … */
};

struct topo {
	VEC(struct topo_node) nodes; /**< ascending by id */
	VEC(struct topo_cpu) cpus;   /**< ascending by id */
	VEC(struct topo_cache) caches;
	VEC(struct topo_pci) pci; /**< ascending by address */
	uint32_t packages, dies, cores;
	/** [nodes.n * nodes.n] row by row: from the node to the other, 10: itself; NULL: not told */
	uint64_t *distances;
};

/** Where a topology comes from. Zeroed: this host. */
struct topo_source {
	const char *fsroot; /**< folder with /proc and /sys of another machine */
	const char *xml;    /**< file that lstopo wrote */
};

/**
 * Ask hwloc. Not to be called by two threads at once: hwloc is told by the environment what to read.
 *
 * @param ret empty on failure; topo_done() frees it
 */
int topo_load(struct topo *ret, const struct topo_source *from, struct err *e);
void topo_done(struct topo *t);

/** The node with that number, or NULL. */
const struct topo_node *topo_node(const struct topo *t, uint32_t id);
/** NUMA node of a CPU, or TOPO_UNKNOWN. */
uint32_t topo_cpu_node(const struct topo *t, uint32_t cpu);
/** Add the nodes of @p cpus to @p ret. */
void topo_nodes_of_cpus(const struct topo *t, const struct idrange *cpus, struct idrange *ret);
