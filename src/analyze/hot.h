#pragma once

#include <math.h>

#include "arena.h"
#include "graph.h"
#include "limit.h"
#include "numa_rows.h"
#include "vec.h"

/*
 * Threads: what each of them did over the window, how hot it is and why.
 *
 * Doubles are NAN when they were not measured; test them with hot_has(). Nothing is a rate that is
 * not a difference over the window: files of openEuler's tool have counters since the thread's
 * start only, and their threads have no rates at all.
 */

#define HOT_NONE UINT32_MAX

static inline bool hot_has(double v)
{
	return !isnan(v);
}

enum thread_class {
	CLASS_OTHER,
	CLASS_COMPUTE,
	CLASS_COMMUNICATION,
	CLASS_DRIVER,
	CLASS_FRAMEWORK,
	CLASS_MIXED,
	CLASS_COUNT
};

/** Of the points; the published scale. */
enum hot_level {
	LEVEL_NORMAL,   /**< 0 */
	LEVEL_LIGHT,    /**< 1–2 */
	LEVEL_MODERATE, /**< 3–4 */
	LEVEL_SEVERE,   /**< 5–6 */
};

/** What holds the thread up, in the first pass: by its own figures. */
enum hot_cause {
	HOT_CAUSE_NONE,    /**< nothing holds it up, or it does next to nothing */
	HOT_CAUSE_UNKNOWN, /**< what would tell was not measured */
	HOT_CAUSE_COMPUTE,
	HOT_CAUSE_MEMORY,
	HOT_CAUSE_CPU_WAIT, /**< runnable without a CPU */
	HOT_CAUSE_COMMUNICATION,
	HOT_CAUSE_SYNCHRONISATION,
	HOT_CAUSE_NUMA,
	HOT_CAUSE_COUNT
};

/** Time blocked by one cause. */
struct hot_wait {
	const char *cause; /**< as in waits_for */
	uint64_t waits, waited_ns, longest_ns;
	uint32_t object; /**< node that most of the time went to */
	uint32_t edge;   /**< its relation to that node */
	bool idle; /**< nobody is late: sleep, poll, child, signal, or one wait without an end */
};

/** Who ends its waits, or whose waits it ends. */
struct hot_party {
	uint32_t node;     /**< thread, or the wait_object that an interrupt stands for */
	const char *cause; /**< that most of the time was for */
	uint64_t wakeups, waited_ns, longest_ns;
	uint64_t idle_ns; /**< part of waited_ns for causes that are idle, see hot_wait */
};

/** Data moved by one kind of path, by this thread's own calls. */
struct hot_bytes {
	const char *kind; /**< "tcp", "udp", "unix", "pipe", "file", "queue", … */
	uint64_t in_bytes, out_bytes, calls;
};

/** A thread that ran on the same CPUs. */
struct hot_rival {
	uint32_t node;
	uint64_t run_ns; /**< on those CPUs */
	uint64_t times;  /**< that it came onto one in place of the thread, at least */
};

/** How well place of CPU time and place of memory agree, and what to do: the section on NUMA
 * affinity. */
struct hot_affinity {
	bool listed;      /**< busy enough (numa.cpu) and both known */
	const char *band; /**< "good", "fair", "warning", "severe"; NULL: not known */
	const char *mode; /**< access mode: "local", "mixed", "cross", "remote"; NULL: not known */
	const char *why;  /**< what is amiss; NULL: nothing */
	const char *advice; /**< what to bind where, with a command; NULL: nothing */
};

/** Switches by kind, their cause and how many are too many: the section on context switches. */
struct hot_switching {
	bool listed; /**< busy enough (switches.cpu), or above switches.notice or switches.runq */
	const char *band;  /**< "normal", "notice", "warning", "severe"; NULL: not known */
	const char *cause; /**< "waiting", "CPU contention", "mixed"; "none": no switches; NULL: not
			      known */
	const char *proof; /**< the waits, or the threads on the same CPUs, that say so; NULL: there
			      are none */
	const char *advice; /**< NULL: nothing */
};

/** A point of the score, a rule that fired, or why something is not known. */
struct hot_reason {
	const char *text;   /**< with value and limit */
	const char *rule;   /**< "P0-1" …; NULL: a metric of the score */
	unsigned points;    /**< of the score, or of the rule in the older tool */
	unsigned pct;       /**< confidence of a rule; 0: a metric of the score */
	const char *advice; /**< rules; else NULL */
};

/** Counters since the thread started, as files of openEuler's tool have them. UINT64_MAX: not
 * known. */
struct hot_since_start {
	uint64_t voluntary, involuntary, run_ns;
};

struct hot_thread {
	uint32_t node;    /**< in the graph */
	uint32_t process; /**< node, HOT_NONE: not known */
	uint64_t run_ns, runq_ns,
	    blocked_ns;       /**< in the window; 0 when not measured, see the shares */
	uint64_t observed_ns; /**< part of the window that it lived; 0: not known */
	uint64_t base_ns;     /**< what the rates are over; 0: there are none */

	double cpu_pct;               /**< of one CPU */
	double user_pct;              /**< user mode, of its CPU time */
	double runq_pct, blocked_pct; /**< of the time */
	double voluntary_s, involuntary_s, switches_s, migrations_s, wakeups_s;
	double minor_faults_s, major_faults_s; /**< page faults */
	double similarity,
	    remote_pct;      /**< CPU time by node against memory by node of its process */
	double llc_miss_pct; /**< misses of references */
	double ipc;	     /**< instructions for each cycle */
	bool remote_measured; /**< remote_pct is of sampled accesses, not what its placement lets expect */
	struct hot_since_start since;

	struct by_node cpu, memory;           /**< as in numa_rows.h; empty: not known */
	uint32_t cpu_node, memory_node;       /**< where most of it is, HOT_NONE: not known */
	double cpu_node_pct, memory_node_pct; /**< how much of it */
	const char *cpus_allowed;             /**< ranges; NULL: not known */
	uint32_t cpus_allowed_n;              /**< 0: not known */
	uint32_t cpus_used_n;                 /**< CPUs that it ran on; 0: not known */

	VEC(struct hot_wait) waits;   /**< longest first, idle ones last */
	VEC(struct hot_party) wakers; /**< who ended its waits, longest first */
	VEC(struct hot_party)
	waiters; /**< who waited until it woke them: most time that is not idle first */
	VEC(struct hot_bytes) bytes; /**< most first */
	VEC(uint32_t) devices;       /**< that its process uses */
	VEC(struct hot_rival)
	rivals;                 /**< at most HOT_RIVALS, by time; only with time in run queues or
				   involuntary switches */
	uint64_t preempted; /**< times that it is known who came in its place; with rivals only */
	uint32_t preempter; /**< who did so most often, HOT_NONE */
	uint64_t preempter_times;
	uint64_t waited_for_ns; /**< sum over waiters without what is idle; may exceed the window */
	uint64_t late_blocked_ns; /**< time blocked without what is idle */
	double bytes_s;           /**< in and out; not measured without a window */

	enum thread_class class;
	enum thread_class mix[2]; /**< CLASS_MIXED: of what */
	const char *class_why;

	unsigned points, possible; /**< score: 0–6 of 0–6 */
	enum hot_level level_most; /**< what it could be if the rest of the 6 points were given */
	enum hot_level level;      /**< of the points, so at least this where possible < 6 */
	VEC(struct hot_reason) reasons; /**< of the score, then others */
	VEC(struct hot_reason) rules;   /**< P0–P2 that fired */
	VEC(const char *) missing;      /**< metrics of the score that were not measured, and why */
	enum hot_cause cause;
	const char *cause_why;
	uint32_t root;        /**< thread that its waits end at, by hot_follow_waits(); HOT_NONE */
	double root_pct;      /**< share of its waits that do */
	const char *root_why; /**< what following the waits says of the cause; NULL: nothing */
	struct hot_affinity affinity;
	struct hot_switching switching;
	uint64_t weight_ns; /**< rank within a score: time on CPU, in run queues, and waited for */
};

struct hot_class_sum {
	uint32_t threads;
	double cpu_pct, switches_s; /**< sums over those where they were measured */
	uint32_t measured;
};

struct hot_node_sum {
	uint32_t numa;    /**< number of the node */
	uint32_t threads; /**< that run there most */
	uint32_t remote;  /**< those of them with a remote share above hot.remote */
	double cpu_pct;   /**< time on its CPUs, of one CPU; NAN: not measured */
};

struct hot {
	struct graph *g;
	struct arena arena; /**< texts */
	struct limits limits;
	VEC(struct hot_thread) threads; /**< hottest first */
	uint32_t *of;                   /**< [g->nodes.n] place in threads of a thread, HOT_NONE */
	size_t n_nodes;                 /**< of g when it was analysed */
	uint64_t window_ns;             /**< 0: not known */
	uint64_t observed_ns;  /**< that threads were observed: in a busy host less than the window;
				  the window where that is not known */
	uint32_t cpus;         /**< online; 0: not known */
	bool has_switches;     /**< how often threads were switched was recorded */
	bool has_waits;        /**< what threads wait for, or who wakes them, was recorded */
	uint64_t since_run_ns; /**< sum over threads of since.run_ns, where there are no rates */
	VEC(const char *) missing; /**< metrics of the score that no thread has, and why */
	size_t numa_nodes;         /**< of the host; 0: not known */
	double demand_pct; /**< running and runnable time of all threads, of all CPUs; NAN */
	struct hot_class_sum classes[CLASS_COUNT];
	VEC(struct hot_node_sum) nodes; /**< by number */
	struct numa_rows processes;     /**< placement of processes, the worst first */
	VEC(uint32_t) affinity;   /**< threads of the section on NUMA affinity, the worst first */
	VEC(uint32_t) switching;  /**< threads of the section on switches, the most first */
	VEC(const char *) unseen; /**< what the graph cannot tell, one sentence each */
};

#define HOT_RIVALS 5

/**
 * Analyse @p g, which must outlive the result. Placement is completed first (derive_numa());
 * nothing else of the graph changes.
 *
 * Cost: O((V + E) log E), and for a thread with time in run queues the threads of its CPUs.
 *
 * @param l copied; NULL: the defaults
 */
void hot_init(struct hot *h, struct graph *g, const struct limits *l);
/** As hot_init(), where derive_numa() was called: nothing of the graph changes. */
void hot_init_completed(struct hot *h, struct graph *g, const struct limits *l);
void hot_done(struct hot *h);

struct waitfor;

/**
 * The second pass: for threads that wait, the root that their waits end at; threads that are busy
 * by design are held up by nothing. It overrides the cause of the first pass, and `root_why` says
 * so.
 *
 * @param w of the same graph
 */
void hot_follow_waits(struct hot *h, const struct waitfor *w);

/** The thread that is node @p node, or NULL. */
const struct hot_thread *hot_of(const struct hot *h, uint32_t node);

/** Part of the time that the thread's rates are over, in percent; NAN when there is none. */
double hot_share_of(const struct hot_thread *t, uint64_t ns);

/** "compute"; of CLASS_MIXED "mixed" */
const char *thread_class_name(enum thread_class c);
const char *hot_level_name(enum hot_level l);
const char *hot_cause_name(enum hot_cause c);

/** A cause of waits that makes nobody late: sleep, poll, child, signal. */
bool hot_idle_cause(const char *cause);
