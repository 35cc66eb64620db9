#pragma once

#include "amounts.h"
#include "err.h"
#include "graph.h"
#include "timeline.h"

/*
 * The newest intervals of an observation one by one, and what is known of all that is there, in bounded
 * memory. What they come from does not matter: live.h fills one from this host.
 */

/**
 * What one interval added. Fields that are sums (SUM) are parts of totals, and so are here the amounts of
 * flows, which elsewhere are totals so far. Other fields are as they were at its end, and only there when
 * the sources told them anew: what they are otherwise is in history_totals().
 */
struct history_interval {
	uint64_t start_ns, end_ns; /**< since 1970 */
	struct graph part;
};

struct history;

/**
 * @param keep_ns    intervals that ended longer before the newest one are forgotten; 0: only the newest is kept
 * @param keep_bytes memory that the kept intervals may have together, the newest excepted; 0: no limit
 */
struct history *history_new(uint64_t keep_ns, size_t keep_bytes);
void history_free(struct history *h);

/** What was there before the first interval, which begins at @p end_ns, since 1970. @p first is borrowed. */
void history_begin(struct history *h, struct graph *first, uint64_t end_ns);

/** The newest interval, as collect_sample() makes it, from the end of the last one on; @p part is taken over. */
void history_add(struct history *h, struct graph *part, uint64_t end_ns);

/** Number of intervals that are kept; 0 before the first. */
size_t history_intervals(const struct history *h);
/** Memory of the kept intervals, and of what is known of all that is there (history_totals()). */
size_t history_bytes(const struct history *h, size_t *ret_known);
/** One of them, 0 is the oldest. Valid until the next is added. */
const struct history_interval *history_interval(const struct history *h, size_t i);

/**
 * All that is known: facts as they were told last, sums since the beginning. Processes that ended, and
 * threads, relations and objects that were quiet, are forgotten after some minutes. Valid until the next
 * interval; borrowed, and only to be read (graph_out() and graph_node_id() build indexes, which is fine).
 */
struct graph *history_totals(struct history *h);

/**
 * Put into @p ret, which is initialized and empty, the graph of the newest intervals: what a
 * recording of just these would hold. Entities have all facts known of them; sums, extremes and
 * flows are those of the intervals. Its meta has start and length of the window.
 *
 * @param since_ns intervals that end later than this, since 1970; at least the newest is taken
 * @param time     zeroed: gets its intervals and what each added to the threads of @p ret, in
 * order, as graph_load_timed() reads them of such a recording; NULL: not wanted. timeline_done()
 */
void history_window(struct history *h, uint64_t since_ns, struct graph *ret, struct timeline *time);

/**
 * Likewise, with what each interval added, as graph_load_amounts() reads it of a recording of them; what threads gave
 * and took is said of their processes.
 *
 * @param amounts zeroed; the caller frees it with vec_done(&amounts->v). Its kinds are in @p ret
 */
void history_window_amounts(struct history *h, uint64_t since_ns, struct graph *ret, struct timeline *time,
			    struct interval_amounts *amounts);

/**
 * Write a recording of the intervals that history_window() would take, as if they had been recorded.
 *
 * @param about status, losses, costs and meta for it; its start and window are set
 */
int history_save(struct history *h, uint64_t since_ns, const char *path, bool force, struct graph *about,
		 struct err *e);
