#pragma once

#include "waitfor/parts.h"

/* Private to the analysis of waits: what the following of waits collects. */

/** A way from a wait to what the last thread of it was doing. Kept once for all waits that took it. */
struct wf_way {
	const uint32_t *via; /**< [nvia] thread numbers, nearest to the waiter first */
	uint32_t nvia;
	uint32_t thread; /**< thread number of the root */
	uint32_t object; /**< what the root waits for: of the longest piece */
	uint64_t object_ns;
	enum wait_state state;
};

/** All waits of one thread that one waker, or one kind of interrupt, ended. */
struct wf_account {
	uint32_t waiter; /**< thread number */
	uint32_t source; /**< node of the relation: thread or wait_object; none where the graph lacks it: beyond all nodes */
	enum wait_cause cause;
	bool held;	   /**< for a lock, most of the time */
	uint32_t object;   /**< that was waited for longest */
	uint64_t total_ns; /**< of the relation */
	uint64_t span_ns;  /**< of that, single waits are known for so much */
	uint64_t counted_ns; /**< of span_ns, what is no sleep */
	uint64_t held_ns, object_ns;
};

/** So much of an account goes one way. */
struct wf_piece {
	uint32_t account, way;
	uint64_t ns;
};

/** Time in which somebody waited for a thread in a state. */
struct wf_wall {
	uint64_t until_ns, ns;
};

#define WF_WAKERS 4

/** Who ended most of a thread's waits. */
struct wf_wakers {
	uint32_t edges[WF_WAKERS]; /**< relations wakes, longest first; NODE_NONE */
	uint64_t all_ns;	   /**< of all of them */
};

/** What a thread waits for longest with one cause. */
struct wf_longest {
	uint32_t object; /**< NODE_NONE: nothing is known */
	uint64_t ns;
};

struct cascade {
	struct wf *x;
	VEC(struct wf_way) ways;
	VEC(struct wf_account) accounts;
	VEC(struct wf_piece) pieces; /**< in the end by account, then way, each pair once */
	size_t merge_at; /**< pieces at which those of one account and way are summed up; 0: the default */
	struct idmap way_of, account_of;
	struct idmap longest_of; /**< by thread number and cause */
	VEC(struct wf_longest) longest;
	struct wf_wakers *wakers; /**< [threads.n], for threads of which only totals are known */
	struct wf_wall *wall; /**< [threads.n * STATE_COUNT] */
	uint32_t path[WAITFOR_DEPTH];
	uint32_t now;  /**< account under way */
	bool measures; /**< whether that goes to the wall */
};

/** Follow all waits. The caller's, cascade_done(). */
void cascade_run(struct cascade *c, struct wf *x);
void cascade_done(struct cascade *c);
