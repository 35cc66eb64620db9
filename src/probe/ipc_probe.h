#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "ipc_abi.h"
#include "probe.h"

/*
 * Bytes through pipes, FIFOs, eventfds, queues, semaphores, files and copies of memory, by thread
 * and object. Watching the return of system calls costs every task of the host some tens of
 * nanoseconds a call: it is switched on only while there is something to see.
 */

/** Moved in one interval; what is in which field depends on key.kind: ipc_abi.h. */
struct ipc_sample {
	struct ipc_key key;
	struct ipc_value v;
	bool estimated; /**< went by unwatched, and taken to be like what was seen; never from the probe */
};

/** What did not fit in the tables, by enum ipc_kind and enum ipc_dir: totals stay exact. */
struct ipc_rest {
	uint64_t bytes, calls;
};

enum ipc_watch {
	IPC_WATCH_CALLS = 1 << 0, /**< system calls */
	IPC_WATCH_URING = 1 << 1, /**< what io_uring completes */
};

struct ipc_probe;

/** Opens with nothing watched. Fails when system calls cannot be watched. */
int ipc_probe_open(struct ipc_probe **ret, const struct probe_options *o, struct err *e);
void ipc_probe_close(struct ipc_probe *p);

/** Watch what @p want (enum ipc_watch) says and nothing else. What cannot be watched stays off. */
int ipc_probe_watch(struct ipc_probe *p, unsigned want, struct err *e);

/** While held, calls are not watched, whatever ipc_probe_watch() said. */
int ipc_probe_hold(struct ipc_probe *p, bool hold, struct err *e);
bool ipc_probe_watches_calls(const struct ipc_probe *p);

/** What watching costs those who make calls, measured at open. */
struct ipc_cost {
	double call_ns;	   /**< on every call */
	double counted_ns; /**< and of those on one that is counted */
};

struct ipc_cost ipc_probe_cost(const struct ipc_probe *p);

/** Watched calls of one CPU, since open. */
struct ipc_runs {
	uint64_t calls;
	uint64_t counted; /**< movements; a call may be more than one */
};

/** CPUs that there may be. */
uint32_t ipc_probe_cpus(void);

/**
 * @param ret the first of @p n, @p step bytes from one to the next: one for each CPU, or less
 */
void ipc_probe_runs(const struct ipc_probe *p, struct ipc_runs *ret, size_t step, uint32_t n);

/** Whether what goes by unwatched can be told: ipc_probe_turns() may be used. */
bool ipc_probe_can_turn(const struct ipc_probe *p);

/**
 * A period begins in which calls are watched in turns (ipc_probe_hold()), or it ends. To be begun while calls
 * are watched, and ended after the last ipc_probe_unwatched() that is wanted.
 */
int ipc_probe_turns(struct ipc_probe *p, bool on, struct err *e);

/**
 * Report what each thread read and wrote while nobody watched: exact, but for a call under way. Threads that ended
 * meanwhile are reported, too.
 *
 * @param cb NULL: what there is is of no interest
 * @return as ipc_probe_read()
 */
int ipc_probe_unwatched(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_unwatched *u), void *ctx,
			struct err *e);

/**
 * Process @p tgid is recorded (@p on), or no longer. From the first call on files of processes that
 * are not get half of the room for files at most; children of recorded ones need not be named at
 * once.
 */
int ipc_probe_record(struct ipc_probe *p, uint32_t tgid, bool on, struct err *e);

/**
 * Report what moved since the last reading: exact differences, each movement in exactly one
 * reading.
 *
 * @param cb return 0 to go on; anything else ends the reading (the rest of it is lost) and is
 * returned
 * @return 0, -errno, or what @p cb returned
 */
int ipc_probe_read(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_sample *s), void *ctx,
		   struct err *e);

/** Descriptors passed from process to process since the last call. @return as ipc_probe_read() */
int ipc_probe_passed(struct ipc_probe *p, int (*cb)(void *ctx, const struct ipc_passed *ev),
		     void *ctx, struct err *e);

/** Tells the eventfd that has number @p id now from those that had it before; as ipc_key.space. */
uint32_t ipc_eventfd_generation(const struct ipc_probe *p, uint32_t id);

/** Since open. */
void ipc_probe_rest(struct ipc_probe *p, struct ipc_rest ret[IPC_KINDS][IPC_DIRS]);

void ipc_probe_health(struct ipc_probe *p, struct probe_health *ret);
