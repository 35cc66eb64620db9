#pragma once

#include <stdint.h>

#include "sysroot.h"

/* Limits of a control group, and what its members used and waited for. */

#define CGROUP_UNKNOWN UINT64_MAX

struct cgroup_stats {
	/* CGROUP_UNKNOWN: not told. No limit is told as unknown, too. */
	double cpu_limit_cores; /**< 0: none, or not told */
	uint64_t memory_limit_bytes, memory_bytes;
	uint64_t cpu_ns, throttled_ns, throttled_periods;	/**< since it was made */
	uint64_t cpu_stalled_ns, memory_stalled_ns, io_stalled_ns; /**< time with some task waiting, since it was made */
	char cpuset[256]; /**< CPUs, as ranges; "": not told */
};

/** @param path as in /proc/PID/cgroup. Version 2 where the group is there, else version 1. */
void cgroup_stats_read(const struct sysroot *root, const char *path, struct cgroup_stats *ret);
