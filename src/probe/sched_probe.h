#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "probe.h"
#include "sched_abi.h"

/* CPU time, run-queue delay and switches of every thread of the host, idle threads excepted. */

struct sched_cpu_time {
	uint32_t cpu;
	bool has_counts;
	uint64_t run_ns;
	/**
	 * If has_counts: what was counted while it ran there, by number of event. An event with running_ns 0
	 * is not known this time; what it has by then comes with a later reading.
	 */
	struct sched_counts counts;
};

/** So often at least a thread came onto a CPU in place of another that could have gone on. */
struct sched_rival_sample {
	struct task_ident task;
	const char *comm; /**< [TASK_COMM_BYTES], not terminated when it is full; borrowed */
	uint64_t times;
};

/** What a thread did since the reading before (or since open). All numbers are differences. */
struct sched_sample {
	struct task_ident task;
	uint64_t run_ns;  /**< on a CPU; a slice that still goes on is counted up to the reading */
	uint64_t runq_ns; /**< runnable, waiting for a CPU, a delay that still goes on included */
	uint64_t blocked_ns; /**< neither, a wait that still goes on included */
	/**
	 * Time that passed for the thread since it was reported last, or since the start: the sum of
	 * the three. A thread that slept through several readings comes with all of them at once.
	 */
	uint64_t observed_ns;
	uint64_t voluntary, involuntary, migrations, wakeups;
	uint32_t cpu;	/**< last seen on */
	uint32_t flags; /**< SCHED_… of sched_abi.h */
	bool has_usage; /**< `usage` is known: where task storage works */
	/**
	 * As the kernel accounts it: on many kernels the clock tick decides whether its whole length was user
	 * or system time, so that the sum differs from run_ns.
	 */
	struct sched_usage usage;
	bool has_rank; /**< `rank` is known */
	struct sched_rank rank;
	char comm[TASK_COMM_BYTES + 1];
	/** Who came onto a CPU in its place, as far as that is kept. Borrowed for the callback. */
	const struct sched_rival_sample *rivals;
	size_t nrivals;
	/**
	 * run_ns by CPU, ascending. Over several readings the sums agree exactly; in one reading
	 * they may differ by what a thread that moved meanwhile did. Borrowed for the callback.
	 */
	const struct sched_cpu_time *cpus;
	size_t ncpus;
};

/** Waits of a thread for one object. All numbers are differences to the reading before. */
struct wait_sample {
	struct task_ident task;
	struct wait_on on;
	/**
	 * false: what it waited for, waits that still go on included. true: the waits that ended, by
	 * who ended them; the same waits again.
	 */
	bool ended;
	enum waker_class waker_class; /**< valid if ended */
	const struct task_ident *waker; /**< NULL unless a thread that is known; borrowed */
	uint64_t waits;
	uint64_t waited_ns;
	uint64_t longest_ns; /**< of one wait, not a difference */
	/**
	 * The part of the two above that was not looked at one by one, see sched_probe_limit(): spread over what the
	 * thread was seen to wait for, as often.
	 */
	uint64_t estimated_waits, estimated_ns;
};

struct sched_probe;

/** @return 0 and the probe in @p ret (the caller closes it), or -errno: -EPERM, -ENOTSUP, … */
int sched_probe_open(struct sched_probe **ret, const struct probe_options *o, struct err *e);
void sched_probe_close(struct sched_probe *p);

/**
 * Count @p event for threads that run on @p cpu, between open and start.
 *
 * @param event below count_events of the options
 * @param fd    of perf_event_open(2), of that CPU and not inherited; stays the caller's, and may be read
 * @return 0, or -errno: the kernel does not let a program read it
 */
int sched_probe_count(struct sched_probe *p, uint32_t cpu, uint32_t event, int fd, struct err *e);

/** Begin to count: all times are from here on. Before, nothing is. To be called once. */
void sched_probe_start(struct sched_probe *p);

/**
 * Report every thread that ran, waited for a CPU or was switched since the last reading; threads
 * that ended meanwhile too (SCHED_EXITED), each (tid, start_ns) at most once a reading.
 *
 * @param last this reading ends the observation: threads that did nothing since the start come, too,
 *	       and nothing counts any more after it
 * @param ret_window_ns length of the interval that the samples cover, CLOCK_MONOTONIC; may be NULL
 * @param cb return 0 to go on; anything else ends the reading and is returned
 * @return 0, -errno, or what @p cb returned
 */
int sched_probe_read(struct sched_probe *p, bool last,
		     int (*cb)(void *ctx, const struct sched_sample *s), void *ctx,
		     uint64_t *ret_window_ns, struct err *e);

/** @return when it was last read, until then when it was started: CLOCK_MONOTONIC */
uint64_t sched_probe_read_ns(const struct sched_probe *p);

/**
 * Report the waits that the last sched_probe_read() found. Kernel threads have none.
 *
 * @return 0, or what @p cb returned
 */
int sched_probe_waits(struct sched_probe *p, int (*cb)(void *ctx, const struct wait_sample *s),
		      void *ctx);

/** A thread that the last readings found; NULL: not known (any more). Valid until the next one. */
const struct task_ident *sched_probe_find(const struct sched_probe *p, uint32_t tid, uint64_t start_ns);

/**
 * A thread by its id alone: a live one, or else the last one that had it and ended since the reading before.
 * NULL: not known. Valid until the next reading.
 */
const struct task_ident *sched_probe_task(const struct sched_probe *p, uint32_t tid);

/**
 * The newest waits of at least WAIT_SEGMENT_NS, in no order; at least the last 32 of each CPU where
 * there were so many.
 *
 * @param ret_from_ns all waits that ended since then are there, CLOCK_MONOTONIC; 0: since the beginning
 * @return 0, -errno, or what @p cb returned
 */
int sched_probe_segments(struct sched_probe *p, int (*cb)(void *ctx, const struct wait_segment *s),
			 void *ctx, uint64_t *ret_from_ns, struct err *e);

/**
 * Look at what a thread waits for at most @p most times in about a millisecond, 0: always. Times stay exact; beyond
 * that, waits shorter than WAIT_SEGMENT_NS are taken to be for what the others were for.
 *
 * @return 0, -ENOTSUP: not without task storage
 */
int sched_probe_limit(struct sched_probe *p, uint32_t most);

/**
 * Watch wake-ups, as is done from the beginning, or do not. Without, the scheduler's own account tells how long threads
 * were in run queues, so that times stay exact; it is not looked at what short waits are for, as with
 * sched_probe_limit(), and nobody is seen to end one. Who ended waits is then spread by thread.
 *
 * @return 0; -ENOTSUP: not on this kernel, or nothing was read yet; -errno
 */
int sched_probe_watch_wakings(struct sched_probe *p, bool on, struct err *e);

/** Waits that were taken to be like others, since open. */
struct sched_plain {
	uint64_t waits, ns;
};

struct sched_plain sched_probe_plain(const struct sched_probe *p);

/**
 * Switches on each CPU, since the start.
 *
 * @param ret the first of @p n, @p step bytes from one to the next: one for each CPU, or less
 */
void sched_probe_switches(const struct sched_probe *p, uint64_t *ret, size_t step, uint32_t n);

void sched_probe_health(struct sched_probe *p, struct probe_health *ret);
