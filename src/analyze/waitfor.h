#pragma once

#include "arena.h"
#include "graph.h"
#include "timeline.h"
#include "vec.h"

/*
 * Who waits for whom, down to the root: what each thread that made others wait was doing meanwhile.
 *
 * Totals are those of the relations wakes and waits_for, which are exact. How a total splits over roots
 * comes from the single waits of the timeline where there are any, else from what each waker did over
 * the whole window. Pure functions of graph and timeline; ties are broken by index. docs/wait-for.md
 *
 * Bounds: at most WAITFOR_STEPS steps of following waits, WAITFOR_PARTS distinct ways; what is beyond
 * is not followed and says so (`cut_ns`).
 */

#define WAITFOR_DEPTH 16       /**< threads from a symptom to its root */
#define WAITFOR_STEPS 3000000u /**< waits looked at in all */
#define WAITFOR_PARTS 20000u   /**< different ways from symptoms to roots that are kept apart */

/** What a thread was doing while others waited for it. */
enum wait_state {
	STATE_RUN,     /**< on a CPU */
	STATE_RUNQ,    /**< could run, and had no CPU */
	STATE_SLEEP,   /**< let time pass: a sleep, or a wait that a time-out ended */
	STATE_DISK,    /**< waits for a disk */
	STATE_NETWORK, /**< waits for what is not on this host, or not known */
	STATE_DEVICE,  /**< waits for a device, accelerators included */
	STATE_FAULT,   /**< waits for memory: a page fault */
	STATE_STOPPED, /**< was stopped by a signal */
	STATE_OUTSIDE, /**< waits for a terminal, an input device or a signal: for a person, or for an event that is nobody's work */
	STATE_CYCLE,   /**< waits for a thread that waits for it */
	STATE_BLOCKED, /**< waits, and nothing tells for what, or it was not followed further */
	STATE_COUNT
};

/**
 * Threads with the same name but for numbers, of one process or of processes with one name and one parent: one
 * line in a report.
 */
struct wait_role {
	uint32_t process;   /**< node; NODE_NONE: several, or not known */
	uint32_t processes; /**< how many */
	VEC(uint32_t)
	threads;	  /**< nodes, by process */
	const char *name; /**< "worker", without numbers; "?" when no thread has a name */
	const char *text; /**< "4 worker of train.py[4710]", "EngineCore[4711] of vllm[4700]" */
	uint64_t run_ns, runq_ns, blocked_ns; /**< sums of all */
};

/** What of the waits of a role ended at one root, by one way. */
struct wait_part {
	VEC(uint32_t)
	via;		       /**< roles between the waiter and the root, nearest first */
	uint32_t role;	       /**< the root; of a wait for a disk or a device the waiter itself */
	uint32_t thread;       /**< of that role, the one that accounts for most */
	uint32_t threads;      /**< of that role that have a share */
	enum wait_state state; /**< of the root meanwhile */
	uint32_t object;       /**< what the root waits for, where it waits; NODE_NONE: none, unknown */
	uint32_t first_object; /**< what the waiter waits for; NODE_NONE: unknown */
	enum wait_cause cause; /**< of the waiter's wait */
	bool held;	       /**< what the waiter waits for is a lock */
	bool idle;	       /**< nobody is late: the root lets time pass and holds no lock */
	uint64_t ns;
};

/** Where the time goes that one role waits: the parts add up to waited_ns exactly. */
struct wait_chain {
	uint32_t role;	    /**< who waits */
	uint64_t waited_ns; /**< ended by threads, disks, devices or the network; sum over its threads */
	uint64_t late_ns;   /**< of that, parts that are not idle */
	uint64_t unknown_ns; /**< of that, parts of which nothing tells for what: STATE_BLOCKED */
	unsigned seen_pct;  /**< share of waited_ns whose order of events is known, 0–100 */
	VEC(struct wait_part) parts; /**< longest first */
};

/** A thread that others wait for, in one state. */
struct wait_root {
	uint32_t thread;
	enum wait_state state;
	uint32_t object; /**< as in wait_part, that of the longest part */
	bool held, idle; /**< likewise */
	uint32_t waiters;   /**< other threads that waited for it */
	uint64_t waited_ns; /**< sum over these; can exceed the window */
	uint64_t own_ns;    /**< what it waited itself, for a disk or a device, and nobody for it */
	uint64_t wall_ns;   /**< time in which anybody did, an estimate: 0: not known */
	VEC(uint32_t) roles; /**< who waits, most first; its own one, too, if it does */
};

/** Waits of one role that another ended, as they were seen. */
struct wait_link {
	uint32_t waiter, waker; /**< roles */
	enum wait_cause cause;
	uint64_t waits, ns;
};

/** Roles that wait for each other in a circle and for nobody else: in there is what holds them up. */
struct wait_knot {
	VEC(uint32_t) roles; /**< ascending */
	VEC(uint32_t) links; /**< within it, longest first */
	uint64_t ns;
};

enum wait_pattern_kind {
	PATTERN_CONVOY,	      /**< threads queue for a lock */
	PATTERN_HANDOVER,     /**< threads hand one word on and run by turns, one at a time: an interpreter lock, or the like */
	PATTERN_SLOW_PRODUCER,/**< a consumer waits for what another makes */
	PATTERN_BACK_PRESSURE,/**< a producer waits until another takes */
	PATTERN_BARRIER,      /**< threads wait until the last one has arrived */
	PATTERN_HERD,	      /**< many are woken for what one can have */
	PATTERN_INVERSION,    /**< who holds the lock has no CPU */
	PATTERN_POLLER,	      /**< busy by design: nobody waits for it */
	PATTERN_COUNT
};

struct wait_pattern {
	enum wait_pattern_kind kind;
	unsigned confidence_pct;
	uint32_t object;       /**< lock, pipe, barrier …; NODE_NONE */
	uint32_t root;	       /**< thread: owner, slow side, last to arrive, poller; NODE_NONE: none stands out */
	VEC(uint32_t) threads; /**< who waits, longest first */
	uint64_t ns;	       /**< that they waited, in the window */
	uint64_t ready_ns;     /**< of it, while who they waited for could run and had no CPU */
	uint64_t rest_ns;      /**< of it, while that one let time pass: nobody is late */
	uint64_t events;       /**< waits, rounds of a barrier, hand-overs */
	double root_pct;       /**< share of the events or the time that is the root's, 0–100 */
	bool asks;	       /**< of two sides: data goes both ways, as questions and answers do */
	bool interpreter;      /**< of a hand-over: by the lock of an interpreter that lets one thread run at a time */
	const char *text;      /**< one line, with names */
	const char *why;       /**< evidence with figures */
};

/** Equal processes that take steps together, and whom the others wait for. */
struct wait_straggler {
	VEC(uint32_t) ranks;  /**< processes, by rank or pid */
	uint64_t period_ns;   /**< of a step; 0: none found */
	double period_pct;    /**< how well it repeats: autocorrelation, 0–100 */
	uint32_t steps;	      /**< that were looked at */
	uint32_t last;	      /**< index in ranks of the one that is last most often */
	VEC(uint32_t) last_count; /**< [ranks.n] steps in which it was last */
	VEC(uint64_t) wait_ns;	  /**< [ranks.n] median wait for others in a step */
	bool fixed;		  /**< the same one every time, else it changes */
	bool uneven;		  /**< somebody is last by more than chance and by 5 % of the period */
	enum wait_state extra;	  /**< where the last one's time is more than its equals' */
	uint64_t extra_ns;	  /**< so much more in a step, against the median of the others */
	double ready_pct;	  /**< of what ranks wait for each other, while that one had no CPU */
	uint32_t thread;	  /**< of the last one: busiest, or NODE_NONE */
	unsigned confidence_pct;
	const char *text, *why;
};

/** A piece of a critical path: what one thread did in a stretch of time, while all that followed hung on it. */
struct path_step {
	uint32_t thread;
	uint32_t object; /**< what it waited for, where it waited; NODE_NONE */
	enum wait_state state;
	uint64_t from_ns, to_ns; /**< since 1970 */
};

/** All pieces of one thread in one state. */
struct path_part {
	uint32_t thread, object;
	enum wait_state state;
	uint64_t ns;
};

/**
 * What the end of an interval hung on, back from its end on one thread: while that waited, on who ended the wait.
 * The pieces follow each other without gaps, so they sum up to the length of the interval.
 */
struct wait_path {
	uint32_t thread;
	uint64_t from_ns, to_ns;
	uint32_t rounds; /**< steps of a job that it is the path of; 0: no steps */
	VEC(struct path_step) steps; /**< by time */
	VEC(struct path_part) parts; /**< longest first; they sum up to the length, too */
	uint64_t cut_ns;	     /**< of it in STATE_BLOCKED, as there were too many pieces */
};

/** What would be if one thing were different. */
struct wait_what_if {
	uint32_t thread;
	enum wait_state state; /**< of the thread, that would take no time, or no more than its equals' */
	uint64_t now_ns, then_ns; /**< length of a step, or of the critical path */
	const char *text;
	const char *assumes;
};

enum hang_kind {
	HANG_STOPPED,	  /**< stopped by a signal */
	HANG_LOST_WAKEUP, /**< all wait on words that nobody will change */
	HANG_CYCLE,	  /**< wait for each other */
	HANG_ODD_ONE,	  /**< equal ones wait, one does something else */
	HANG_COUNT
};

/** No progress for a long time. */
struct wait_hang {
	enum hang_kind kind;
	unsigned confidence_pct;
	uint32_t thread;       /**< whom it is about */
	uint32_t object;       /**< what it waits for; NODE_NONE */
	VEC(uint32_t) threads; /**< who is held up */
	uint64_t since_ns;     /**< length without progress */
	const char *text, *why;
};

/** How parallel a process is. */
struct wait_serial {
	uint32_t process;
	uint32_t threads;	/**< that did something */
	double mean_active;	/**< threads that run or want to, on average */
	double serial_pct;	/**< 1 - mean_active / threads, 0–100 */
	double one_active_pct;	/**< share of its busy time with one active thread; negative: not known */
	uint32_t top;		/**< thread that is that one most; NODE_NONE */
};

struct waitfor {
	struct arena arena;
	const struct graph *g;
	uint64_t window_ns;
	bool recorded; /**< waits were looked at; if not, nothing can be said of them */
	uint64_t seen_from_ns;	      /**< single waits are known from then on, since 1970; 0: not at all */
	uint64_t cut_ns;	      /**< waiting that was not followed because of the bounds */
	uint64_t merged;	      /**< wake-ups without progress that were taken out */
	VEC(struct wait_role) roles;  /**< by process and name */
	uint32_t *role_of;	      /**< [g->nodes.n] of each thread, else NODE_NONE */
	VEC(struct wait_chain) chains; /**< most late first */
	VEC(struct wait_root) roots;  /**< most waited for first, idle ones last */
	VEC(struct wait_link) links;  /**< longest first */
	VEC(struct wait_knot) knots;  /**< likewise */
	VEC(struct wait_pattern) patterns;	/**< by kind, then longest first */
	VEC(struct wait_straggler) stragglers;	/**< one for each set of ranks */
	VEC(struct wait_hang) hangs;
	VEC(struct wait_path) paths; /**< of the role that is late most, and of each set of ranks */
	VEC(struct wait_what_if) what_ifs; /**< largest gain first */
	VEC(struct wait_serial) serial; /**< by process, those with two threads or more */
};

/**
 * Analyse. @p g outlives @p w and stays as it is, @p t may be NULL or empty and is not needed after.
 */
void waitfor_init(struct waitfor *w, struct graph *g, const struct timeline *t);
void waitfor_done(struct waitfor *w);

/**
 * The critical path of an interval that is chosen.
 *
 * @param thread on which the interval ends
 * @param from_ns,to_ns since 1970, cut to what is known one by one; 0: all of that
 * @return 0, -ENOENT: no single waits are known of that time, or the node is no thread; then there is nothing to free
 */
int wait_path_init(struct wait_path *p, struct graph *g, const struct timeline *t, uint32_t thread, uint64_t from_ns,
		   uint64_t to_ns);
void wait_path_done(struct wait_path *p);

/** Whether waits were recorded: there are some, or times blocked, which come from where waits come from. */
bool waits_are_recorded(const struct graph *g);

/** The chain of a thread's role, or NULL. */
const struct wait_chain *waitfor_chain(const struct waitfor *w, uint32_t thread);

/** What others waited for this thread, all states; @p idle: with time that nobody missed. */
uint64_t waitfor_caused_ns(const struct waitfor *w, uint32_t thread, bool idle);

/** "on a CPU", "waiting for a CPU" … */
const char *wait_state_text(enum wait_state s);
/** "run", "runq" … for JSON. */
const char *wait_state_name(enum wait_state s);
const char *wait_pattern_name(enum wait_pattern_kind k);
const char *hang_name(enum hang_kind k);
