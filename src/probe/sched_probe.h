#pragma once

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "probe.h"
#include "sched_abi.h"

/* CPU time, run-queue delay and switches of every thread of the host, idle threads excepted. */

struct sched_cpu_time {
	uint32_t cpu;
	uint64_t run_ns;
};

/** What a thread did since the reading before (or since open). All numbers are differences. */
struct sched_sample {
	struct task_ident task;
	uint64_t run_ns;  /**< on a CPU; a slice that still goes on is counted up to the reading */
	uint64_t runq_ns; /**< runnable, waiting for a CPU; a wait counts when it ends */
	uint64_t voluntary, involuntary, migrations, wakeups;
	uint32_t cpu;	/**< last seen on */
	uint32_t flags; /**< SCHED_… of sched_abi.h */
	char comm[TASK_COMM_BYTES + 1];
	/**
	 * run_ns by CPU, ascending. Over several readings the sums agree exactly; in one reading
	 * they may differ by what a thread that moved meanwhile did. Borrowed for the callback.
	 */
	const struct sched_cpu_time *cpus;
	size_t ncpus;
};

struct sched_probe;

/** @return 0 and the probe in @p ret (the caller closes it), or -errno: -EPERM, -ENOTSUP, … */
int sched_probe_open(struct sched_probe **ret, const struct probe_options *o, struct err *e);
void sched_probe_close(struct sched_probe *p);

/**
 * Report every thread that ran, waited for a CPU or was switched since the last reading; threads
 * that ended meanwhile too (SCHED_EXITED), each (tid, start_ns) at most once a reading.
 *
 * @param ret_window_ns length of the interval that the samples cover, CLOCK_MONOTONIC; may be NULL
 * @param cb return 0 to go on; anything else ends the reading and is returned
 * @return 0, -errno, or what @p cb returned
 */
int sched_probe_read(struct sched_probe *p, int (*cb)(void *ctx, const struct sched_sample *s),
		     void *ctx, uint64_t *ret_window_ns, struct err *e);

void sched_probe_health(struct sched_probe *p, struct probe_health *ret);
