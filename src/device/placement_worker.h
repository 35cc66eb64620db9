#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "placement.h"

/*
 * Placement in a process of its own. To look at a process's memory is to wait for the lock of its memory
 * map, in the kernel and out of reach of any signal; who must not be late lets another process wait.
 */

struct placement_worker;

/**
 * Start it. To be done before resources are opened that must not outlive this process.
 *
 * @param o       copied; `query` is called in the other process
 * @param stuck_ns a process that takes longer is given up: its answer is -ETIMEDOUT. Longer, but not for ever, where
 *                 it is for want of a CPU
 */
int placement_worker_open(struct placement_worker **ret, const struct placement_options *o, uint64_t stuck_ns,
			  struct err *e);
/** Also while it is stuck: then it ends when it can. NULL: nothing. */
void placement_worker_close(struct placement_worker *w);

/**
 * Ask about a process.
 *
 * @param pages to sample, instead of what the options say
 * @return 0, or -EAGAIN: enough was asked already
 */
int placement_worker_ask(struct placement_worker *w, uint32_t pid, uint64_t tag, uint32_t pages);

/** Questions without an answer so far. */
size_t placement_worker_waiting(const struct placement_worker *w);

/**
 * Take the answers that are there.
 *
 * @param wait_ns how long to wait for the rest; 0: not at all
 * @return 0, or -errno: the other process is gone and no new one could be started
 */
int placement_worker_take(struct placement_worker *w, uint64_t wait_ns,
			  void (*cb)(void *ctx, const struct placement *p), void *ctx);
