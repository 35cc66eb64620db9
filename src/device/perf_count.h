#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

/* Counting events, read and never sampled. */

/** What a counter said at one time. */
struct count {
	uint64_t raw;
	uint64_t enabled_ns; /**< time that it was wanted */
	uint64_t running_ns; /**< of that, time that it had a register to count in */
};

/**
 * Open a counter, which starts at once.
 *
 * @param type,config of struct perf_event_attr
 * @param pid  a task, or -1: whatever runs on @p cpu
 * @param cpu  -1: wherever the task runs
 * @param inherit also tasks that it makes from now on
 * @return a file descriptor, or -errno: -ENOENT: the machine cannot count that; -EACCES or -EPERM: not
 *         allowed (kernel.perf_event_paranoid)
 */
int count_open(uint32_t type, const uint64_t config[3], pid_t pid, int cpu, bool inherit, struct err *e);

/** @return 0, or -errno */
int count_read(int fd, struct count *ret);

/**
 * What was counted in a part of the time, extrapolated to all of it, rounded.
 *
 * @return false: it never ran, ran longer than it was wanted, or there are more than INT64_MAX; @p ret is
 *	   untouched. Nothing in no time is 0.
 */
bool count_scaled(uint64_t raw, uint64_t enabled_ns, uint64_t running_ns, uint64_t *ret);

/**
 * What happened between two readings. A counter that had a register for a part of the time only is
 * extrapolated from that part. Counters wrap around at 2^64.
 *
 * @return false: it never ran, or the readings do not belong together; @p ret is untouched
 */
bool count_between(const struct count *before, const struct count *after, uint64_t *ret);
