#pragma once

#include "graph.h"

/*
 * What happened when: single waits and what each interval added to threads. A graph has totals only;
 * who held up whom, and in what order, is here. Empty for graphs that were imported.
 *
 * Times are ns since 1970. Nodes are indexes in the graph that was loaded with it.
 */

/** What a thread waited for, as in waits_for. */
enum wait_cause {
	CAUSE_FUTEX,
	CAUSE_PIPE,
	CAUSE_SOCKET,
	CAUSE_QUEUE,
	CAUSE_SEMAPHORE,
	CAUSE_EVENTFD,
	CAUSE_POLL,
	CAUSE_SLEEP,
	CAUSE_DISK,
	CAUSE_FILE,
	CAUSE_FILE_LOCK,
	CAUSE_PAGE_FAULT,
	CAUSE_DEVICE,
	CAUSE_CHILD,
	CAUSE_SIGNAL,
	CAUSE_OTHER,
	CAUSE_COUNT
};

/** Who ended a wait. */
enum wait_ender {
	ENDER_UNKNOWN, /**< was not seen, or the thread is not in the graph */
	ENDER_THREAD,
	ENDER_TIMER, /**< time was up */
	ENDER_DISK,
	ENDER_NETWORK,
	ENDER_DEVICE,
	ENDER_INTERRUPT, /**< another one */
	ENDER_COUNT
};

/** One wait of some length (50 us or more in recordings): out <= wake <= in. */
struct wait_span {
	uint64_t out_ns;  /**< the thread left the CPU, to wait */
	uint64_t wake_ns; /**< the wait ended: it could run again */
	uint64_t in_ns;	  /**< it did */
	uint32_t waiter;  /**< thread */
	uint32_t waker;	  /**< thread; NODE_NONE unless the ender is ENDER_THREAD */
	uint32_t object;  /**< what was waited for; NODE_NONE: not in the graph */
	uint8_t cause;	  /**< enum wait_cause */
	uint8_t ender;	  /**< enum wait_ender */
};

/** What one interval added to one thread. A thread to which nothing happened has no slice. */
struct thread_slice {
	uint32_t thread;
	uint32_t interval; /**< index in timeline.intervals */
	uint64_t run_ns, runq_ns, blocked_ns;
	uint32_t voluntary, involuntary, migrations, wakeups;
};

struct time_span {
	uint64_t start_ns, end_ns;
};

struct timeline {
	VEC(struct time_span) intervals;
	VEC(struct wait_span) spans;	 /**< by out_ns, then waiter */
	VEC(struct thread_slice) slices; /**< by thread, then interval */
	/**
	 * From when on the spans are all there were: recorders keep the newest. 0: there are none.
	 */
	uint64_t spans_from_ns;
};

void timeline_done(struct timeline *t);

/**
 * Add a wait as its source tells it; timeline_sort() follows. A waker that is not there, or no
 * thread's, or the waiter itself, is none.
 *
 * @return false: it was left out, since its thread or its times cannot be
 */
bool timeline_add_span(struct timeline *t, const struct wait_span *s);

/**
 * Add what an interval added to a thread, if anything; timeline_sort() follows.
 *
 * @param n     the thread, with sums of that interval only
 * @param index of it in the timeline's graph
 * @return the slice, valid until the next one; NULL: nothing happened to it
 */
struct thread_slice *timeline_add_slice(struct timeline *t, uint32_t interval, const struct node *n,
					uint32_t index);

/** Bring spans and slices into order, and find spans_from_ns when it is 0: for who fills one. */
void timeline_sort(struct timeline *t);

/** Slices of one thread. @param ret_n how many @return NULL when there are none */
const struct thread_slice *timeline_slices(const struct timeline *t, uint32_t thread, size_t *ret_n);

/** "futex", as in the registry. */
const char *wait_cause_name(enum wait_cause c);
/** CAUSE_OTHER for texts that are none, and for NULL. */
enum wait_cause wait_cause_find(const char *name);
/** By the kind of wait_object that stands for an interrupt, or "thread"; NULL: ENDER_UNKNOWN. */
enum wait_ender wait_ender_find(const char *kind);
const char *wait_ender_name(enum wait_ender e);
