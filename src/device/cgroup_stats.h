#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sysroot.h"

/* Limits of a control group, and what its members used and waited for. */

#define CGROUP_UNKNOWN UINT64_MAX

struct cgroup_stats {
	/* CGROUP_UNKNOWN: not told. No limit is told as unknown, too. */
	double cpu_limit_cores; /**< the tightest quota of it and the groups above it; 0: none, or not told */
	uint64_t memory_limit_bytes, memory_bytes;
	uint64_t page_cache_bytes, dirty_bytes, writeback_bytes; /**< parts of its memory */
	uint64_t cpu_ns;	/**< since it was made */
	/** Likewise, by all quotas that hold for it: those of the groups above it are told of each of them. */
	uint64_t throttled_ns, throttled_periods;
	uint64_t cpu_stalled_ns, memory_stalled_ns, io_stalled_ns; /**< time with some task waiting, since it was made */
	char cpuset[256]; /**< CPUs, as ranges; "": not told */
};

/** Whether a control group itself has a CPU quota or a limit of memory. @param path as in /proc/PID/cgroup */
bool cgroup_has_limit(const struct sysroot *root, const char *path);

/** @param path as in /proc/PID/cgroup. Version 2 where the group is there, else version 1. */
void cgroup_stats_read(const struct sysroot *root, const char *path, struct cgroup_stats *ret);
