#pragma once

#include "idmap.h"
#include "waitfor.h"

struct cascade; /* waitfor/cascade.h */

/* Private to the analysis of waits: its steps, in the order in which waitfor_init() takes them. */

/** A thread as the analysis sees it. */
struct wf_thread {
	uint32_t node, role, process; /**< process: NODE_NONE when not known */
	uint64_t run_ns, runq_ns, blocked_ns;
	uint32_t first, n;    /**< its spans, in wf.spans: by time, they do not overlap */
	uint32_t run_permille; /**< of its time between two spans: on a CPU, the rest ready */
	bool kernel;	      /**< a thread of the kernel: works for who caused it */
};

/** A wait, with whom it is charged to: a wake-up without progress counts for the next one's waker. */
struct wf_span {
	uint64_t out_ns, wake_ns, in_ns;
	uint32_t waker;	   /**< thread number; NODE_NONE */
	uint32_t object;   /**< node */
	uint32_t charged;  /**< thread number that it is charged to; NODE_NONE: as ender and cause say */
	uint8_t ender, cause;
	bool goes_on;	   /**< had not ended when the recording did */
	bool merged;	   /**< charged to another than its waker */
};

/** All that the steps share. */
struct wf {
	struct waitfor *w;
	struct graph *g;
	const struct timeline *t; /**< never NULL, may be empty */
	uint64_t from_ns, to_ns;  /**< in which single waits are known; equal: not at all */
	VEC(struct wf_thread) threads; /**< by node */
	uint32_t *no;		       /**< [g->nodes.n] thread number of each node, or NODE_NONE */
	VEC(struct wf_span) spans;     /**< by thread, then time */
	uint8_t *lock;		       /**< [g->nodes.n] the object is a lock */
	struct cascade *c;	       /**< where waits lead to; from wf_add_chains() on */
	uint32_t *beyond; /**< [g->nodes.n] of a socket, the thread of another host that sends to it; NULL: one host */
	uint64_t *burst_ns;	       /**< [threads.n] waits that ended together with others; from wf_add_rounds() on */
	uint32_t steps;
};

/** Formatted text in the arena of the analysis. */
__attribute__((format(printf, 2, 3))) const char *wf_text(struct waitfor *w, const char *fmt, ...);

/** The text of a field, or NULL. */
const char *wf_str(const struct node *n, unsigned field);

/** Threads, roles, spans by thread, locks. */
void wf_add_threads(struct wf *x);
void wf_add_spans(struct wf *x);
/** Other ends of sockets, in a graph of several hosts. */
void wf_add_beyond(struct wf *x);
/** Whom a wait is charged to: for one that the network ended, who sends from another host. NODE_NONE: nobody known */
uint32_t wf_beyond(const struct wf *x, const struct wf_span *s);
/** Chains and roots. */
void wf_add_chains(struct wf *x);
/** Links and knots. */
void wf_add_knots(struct wf *x);
/** Patterns of waits that end at once: barriers, herds. */
void wf_add_rounds(struct wf *x);
/** Patterns that waits between two sides make: producers and consumers; pollers. */
void wf_add_patterns(struct wf *x);
/** Those of threads that run by turns, one at a time. */
void wf_add_turns(struct wf *x);
/** Those, for locks. */
void wf_add_locks(struct wf *x);
void wf_sort_patterns(struct wf *x);

/**
 * Share of the time with any active thread of these in which just one is, in percent; negative: not known.
 *
 * @param threads [n] thread numbers
 * @param ready a thread is active, too, between the end of a wait and its getting a CPU
 * @param ret_top thread (node) that is the one most of the time, NODE_NONE; may be NULL
 */
double wf_one_active_pct(const struct wf *x, const uint32_t *threads, size_t n, bool ready, uint32_t *ret_top);
void wf_add_serial(struct wf *x);
/**
 * Of the time that threads of a role waited for others of it: the parts, 0 to 1, in which that one could run and had
 * no CPU, and in which it let time pass or waited for somebody outside.
 */
void wf_split_waits(const struct wf *x, uint32_t role, double *ret_ready, double *ret_rest);
/** Stragglers among ranks, and with what is known of these, hangs. */
void wf_add_stragglers(struct wf *x);
struct wf_rank_sets;
void wf_add_hangs(struct wf *x, const struct wf_rank_sets *sets);
/** Critical paths, and what would be if parts of them took no time. */
void wf_add_paths(struct wf *x);
void wf_sort_what_ifs(struct wf *x);

/** Walk back from the end; the interval lies within what is known. @param p zeroed but for thread and interval */
void wf_walk_path(const struct wf *x, struct wait_path *p);

/** Find what is known one by one; threads and spans follow. */
void wf_init(struct wf *x, struct waitfor *w, struct graph *g, const struct timeline *t);
void wf_done(struct wf *x);

/** Whether what a wait waits for is what the thread did that it is charged to. */
bool wf_is_followed(const struct wf *x, const struct wf_span *s);

/** Index of the first span of a thread that ends (in_ns) after @p ns. */
uint32_t wf_span_after(const struct wf *x, const struct wf_thread *t, uint64_t ns);

/** Least time that is worth a word: a hundredth of the window. */
static inline uint64_t wf_least_ns(const struct wf *x)
{
	return x->w->window_ns / 100 + 1;
}

/** State of a thread in a wait that no thread ended, or that is not followed. */
enum wait_state wf_wait_state(const struct wf *x, const struct wf_span *s);

/** Files from elsewhere may hold any number: no time is taken to be longer, so that sums stay in 64 bits. 13 days. */
#define WF_TIME_MOST (1ull << 50)
uint64_t wf_time(uint64_t ns);

/** Cause and time of a relation wakes or waits_for; what is not measured is "other" and 0. */
enum wait_cause wf_edge_cause(const struct edge *d);
uint64_t wf_edge_ns(const struct edge *d);

/** Whom a wakes relation comes from: a kind of wait_object, or a thread. */
enum wait_ender wf_edge_ender(const struct graph *g, const struct edge *d);

/** Where a futex word of one process lies, by its key "PID:0xADDRESS". @return false: shared, not known, or no futex */
bool wf_word_place(const struct node *n, uint64_t *ret_pid, uint64_t *ret_address);

/** Whether a process is an interpreter that lets one of its threads run at a time, by the name of its program. */
bool wf_has_interpreter_lock(const struct node *process);

/** "name[tid]", or the printed id. */
const char *wf_thread_text(struct waitfor *w, struct graph *g, uint32_t node);
