#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sysroot.h"
#include "vec.h"

/* Disks and partitions: what /proc/diskstats counts, and what /sys/dev/block says of them. */

struct block_stats {
	uint32_t major, minor;
	char name[40];
	/* Since it was made. */
	uint64_t reads, read_bytes, read_ms, writes, written_bytes, write_ms, busy_ms, weighted_ms;
	uint64_t in_flight; /**< now */
};

struct block_list {
	VEC(struct block_stats) v;
};

void block_parse(const char *text, struct block_list *ret);

struct block_facts {
	uint64_t size_bytes; /**< 0: not told */
	int rotational;	     /**< -1: not told */
	int numa_node;	     /**< -1: none */
	char model[64], scheduler[32], pci[20]; /**< "": not told */
	char backing[256]; /**< file behind a loop device */
	uint32_t disk_major, disk_minor; /**< of the disk that it is a partition of; 0, 0: it is whole */
};

void block_facts_read(const struct sysroot *root, uint32_t major, uint32_t minor, struct block_facts *ret);
