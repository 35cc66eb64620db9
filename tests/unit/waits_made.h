#pragma once

/* A recording that is made by hand, wait by wait: what happened is plain, and the analysis has to
 * find it. */
#include "waitfor.h"

#define MS    1000000ull
#define BEGIN (1000 * 1000 * MS)

/* A recording that is made by hand: waits go into the relations and into the timeline alike. */
struct made {
	struct graph g;
	struct timeline t;
	struct waitfor w;
	uint64_t window_ns;
	bool analysed;
};

/** An empty recording that is @p window_ms long; unmake() in the end. */
void make(struct made *m, uint64_t window_ms);
/** Nodes; their numbers are returned. */
uint32_t process(struct made *m, uint64_t pid, uint64_t ppid, const char *name);
uint32_t thread(struct made *m, uint32_t of, uint64_t tid, const char *name);
/** A word that threads wait on; @p lock_waits: so many found it as the C library leaves a contended
 * lock. */
uint32_t word(struct made *m, const char *key, uint64_t lock_waits);
/** Something else to wait for; @p name may be NULL. */
uint32_t object(struct made *m, const char *kind, const char *name);
/** Totals of a wait, without a single one. @p waker a thread or a kind of wait_object, NODE_NONE:
 * nobody ended it */
void put_edges(struct made *m, uint32_t waiter, uint64_t ns, uint32_t waker, const char *cause,
	       uint32_t on);
/** A wait, in totals and one by one. Times in us since the beginning: off the CPU, woken, on a CPU
 * again. */
void waited(struct made *m, uint32_t waiter, uint64_t out, uint64_t wake, uint64_t in,
	    uint32_t waker, const char *cause, uint32_t on);
/** A wait that has not ended. */
void waits_still(struct made *m, uint32_t waiter, uint64_t out_us, const char *cause, uint32_t on);
/** Time on a CPU and ready; the rest of the window it was blocked. */
void ran(struct made *m, uint32_t of, uint64_t run_us, uint64_t runq_us);
/** What must be so of any analysis: parts add up, and all that is named exists. */
void check_sums(struct waitfor *w);
/** Analyse, with check_sums(). */
void analyse(struct made *m);
void unmake(struct made *m);
/** The first pattern of a kind, or NULL. */
const struct wait_pattern *pattern(const struct made *m, enum wait_pattern_kind kind);
/** @slow: who comes last in each round; -1: by turns */
void meet(struct made *m, uint32_t *rank, unsigned n, int slow, uint32_t on);
