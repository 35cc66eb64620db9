#pragma once

#include "waitfor/parts.h"

/* Private to the analysis of waits: equal processes that wait for each other. */

/** One of them. */
struct wf_rank {
	uint32_t process;    /**< node */
	uint64_t number;     /**< by which they are ordered: RANK where it is known, else the pid */
	uint32_t thread;     /**< thread number of the one that waits for the other ranks; NODE_NONE: none */
	uint64_t inner_ns;   /**< what that waited for other ranks, in single waits */
};

struct wf_ranks {
	VEC(struct wf_rank) v; /**< by number */
	uint64_t inner_ns;
	uint64_t period_ns; /**< of a step, 0: not known; filled by wf_add_stragglers() */
};

struct wf_rank_sets {
	VEC(struct wf_ranks) v; /**< by their first process */
	uint32_t *set_of, *rank_of; /**< [g->nodes.n] of each process, NODE_NONE */
};

/** Find them; of those, the ones with two ranks or more that wait for each other. */
void wf_ranks_init(struct wf_rank_sets *s, struct wf *x);
void wf_ranks_done(struct wf_rank_sets *s);

/** Whether a wait is for a thread of another rank of the same set. */
bool wf_is_inner(const struct wf_rank_sets *s, const struct wf *x, uint32_t waiter, const struct wf_span *span);
