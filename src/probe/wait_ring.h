#pragma once

#include "ladder.h"
#include "wait_abi.h"

/**
 * Private to the layer: the newest single waits, of which the map "wait_segments" has a ring for each CPU.
 *
 * @param per_cpu elements of each ring
 * @param ret_from_ns, cb as sched_probe_segments() has them
 * @return 0, -errno, or what @p cb returned
 */
int wait_ring_read(const struct ladder *l, uint32_t ncpu, uint32_t per_cpu,
		   int (*cb)(void *ctx, const struct wait_segment *s), void *ctx, uint64_t *ret_from_ns, struct err *e);
