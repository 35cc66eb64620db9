#pragma once

#include "idmap.h"
#include "ipc_probe.h"
#include "vec.h"

/*
 * What went by while calls were watched in turns: how much each thread moved is known, and the looks tell through
 * what. The thread's sum stays exact; its split, and the number of calls, are as in the looks. What the kernel has
 * no sum of (queues, semaphores, copies of memory) is taken to have gone on as in the looks.
 */

/** The newest looks that saw something of a thread. */
struct ipc_looked {
	struct ipc_unwatched thread; /**< seen: what the looks saw */
	size_t from, n;		     /**< in rows */
};

struct ipc_spread {
	VEC(struct ipc_unwatched) threads; /**< to be filled before each ipc_spread_add() */
	VEC(struct ipc_looked) looked[2];
	VEC(struct ipc_sample) rows[2];
	struct idmap by_thread[2];
	int now; /**< which of the two is the newest */
	uint64_t unassigned; /**< bytes, in all, of threads that no look saw anything of */
};

/**
 * Append what went by unwatched to the samples of an interval, marked as estimated, and clear the threads.
 *
 * @param samples of the looks
 * @param n how many of them there are
 * @param unwatched_share time in which calls were not watched, by time in which they were
 * @param add called with each sample that is to be appended
 */
void ipc_spread_add(struct ipc_spread *s, const struct ipc_sample *samples, size_t n, double unwatched_share,
		    void (*add)(void *ctx, const struct ipc_sample *s), void *ctx);

/** The period is over: forget what looks have seen. */
void ipc_spread_clear(struct ipc_spread *s);
void ipc_spread_done(struct ipc_spread *s);
