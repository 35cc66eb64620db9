#pragma once

#include "collect.h"

/*
 * What processes ask of devices by system calls, and how long they are blocked in them: into the relation of process
 * and device. Terminals are left out.
 */

/** Never NULL. */
struct device_calls *device_calls_new(void);
void device_calls_free(struct device_calls *d);

/**
 * @param rdev   the device: major << 20 | minor
 * @param name   last component of the path of its file
 * @param ioctls calls of ioctl(2)
 * @param failed those of them that failed
 */
void device_calls_ioctl(struct device_calls *d, const struct proc *by, uint32_t rdev, const char *name, uint64_t ioctls,
			uint64_t failed);
/** Threads of @p by were blocked in calls on the device @p waits times, for @p ns in all. */
void device_calls_blocked(struct device_calls *d, const struct proc *by, uint32_t rdev, uint64_t waits, uint64_t ns);

/**
 * Relations of what was noted since the last time. What is about an accelerator of which no driver has told yet is
 * kept for some seconds, so that it is not taken for a device of its own; likewise of one whose name is not known.
 *
 * @param last nothing is kept
 */
void device_calls_emit(struct collect *c, struct graph *g, bool last);
