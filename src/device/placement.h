#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On which NUMA nodes the memory of a process lies: by a sample of its pages, or exactly. */

/** What kind of memory a page is. */
enum page_class {
	PAGES_ANON,   /**< private: heaps, stacks, written copies of file pages */
	PAGES_SHARED, /**< tmpfs, memfd, System V, shared anonymous */
	PAGES_FILE,   /**< page cache of files */
	PAGES_HUGE,   /**< of hugetlbfs; transparent huge pages are PAGES_ANON */
	PAGE_CLASSES,
};

/** Nodes that one process's memory may be on; more are counted in `nodes_left_out`. */
#define PLACEMENT_NODES 128

struct placement_node {
	uint32_t node;
	uint64_t bytes[PAGE_CLASSES];
};

#define PLACEMENT_SEGMENTS	16
#define PLACEMENT_SEGMENT_NODES 16

/** Pages of one shared segment that were found in a process: a part of its PAGES_SHARED. */
struct placement_segment {
	uint64_t ino;
	uint32_t dev; /**< MAJOR << 20 | MINOR, as in /proc/PID/maps */
	uint32_t nnodes;
	struct {
		uint32_t node, pages;
	} on[PLACEMENT_SEGMENT_NODES]; /**< [nnodes] */
};

/** One process at one moment. */
struct placement {
	uint32_t pid;
	uint64_t tag;	  /**< what the asker said */
	int error;	  /**< 0, or -errno: nothing else is known. -ETIMEDOUT: its memory map was locked */
	bool exact;	  /**< every page was looked at */
	uint64_t sampled; /**< pages that were found and looked at */
	/**
	 * Half width of the 95 % confidence interval of the least certain node's share of all bytes,
	 * 0 … 1. Class totals come from the kernel's own counters and have no such error.
	 */
	double share_error;
	uint64_t cpu_ns, wall_ns; /**< that it took */
	uint32_t nnodes, nodes_left_out;
	/** Segments beyond the first PLACEMENT_SEGMENTS are not told apart. None when all pages are read (exact). */
	uint32_t nsegments;
	struct placement_node nodes[PLACEMENT_NODES]; /**< [nnodes], ascending */
	struct placement_segment segments[PLACEMENT_SEGMENTS]; /**< [nsegments] */
};

struct placement_options {
	const char *proc;   /**< "/proc", or a folder like it */
	uint32_t pages;	    /**< to sample; 4096 gives an error of 1.5 % */
	uint64_t limit_ns;  /**< of CPU time, to stop after with what there is: some pages of each class */
	bool exact;	    /**< read numa_maps, whatever it costs the process */
	bool one_node;	    /**< all memory is on node `node`: nothing need be asked */
	uint32_t node;
	/**
	 * What move_pages(2) says without a list of nodes: status[i] is the node of pages[i], or
	 * -errno. NULL: the system call. For tests.
	 */
	int (*query)(void *ctx, uint32_t pid, size_t n, void **pages, int *status);
	void *ctx;
};

/**
 * Look at one process, now. It may wait for as long as the process's memory map is locked.
 *
 * The sample is drawn from the mappings in proportion to their sizes, class by class; where most of the
 * address range has no pages, a second sample looks closer where the first one found some. What is
 * random follows from @p tag and the pid. Every page counts by its size: an address is drawn, not a page.
 *
 * @return 0, or -errno, which is in ret->error too
 */
int placement_sample(const struct placement_options *o, uint32_t pid, uint64_t tag, struct placement *ret);

/** Add @p bytes of a class on a node. */
void placement_add(struct placement *p, uint32_t node, enum page_class c, uint64_t bytes);

/** Read numa_maps: the exact part of placement_sample(). */
int placement_numa_maps(const struct placement_options *o, uint32_t pid, struct placement *ret);

/** "anon", "shared", "file", "huge" */
const char *page_class_name(enum page_class c);
