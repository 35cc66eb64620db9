#pragma once

#include "collect.h"
#include "err.h"
#include "graph.h"

/*
 * This host, observed as long as one likes in bounded memory: the newest intervals one by one, and what
 * is known of all that is there. For views that go on (top, serve); record() is for files.
 *
 * One thread uses it; a tick takes as long as the sources take (tens of milliseconds), and asks for no
 * signal and no terminal.
 */

struct live_options {
	struct collect_options collect;
	/** Intervals that ended longer before the newest one are forgotten; 0: only the newest is kept. */
	uint64_t keep_ns;
	/** Memory that the kept intervals may have together, the newest one excepted; 0: no limit. */
	size_t keep_bytes;
};

/**
 * What one interval added. Fields that are sums (SUM) are parts of totals, and so are here the amounts of
 * flows, which elsewhere are totals so far. Other fields are as they were at its end, and only there when
 * the sources told them anew: what they are otherwise is in live_totals().
 */
struct live_interval {
	uint64_t start_ns, end_ns; /**< since 1970 */
	struct graph part;
};

struct live;

/**
 * Open the sources of this host and take the first sample, which is none of the intervals.
 *
 * @param o copied, but not what it points to, which has to live as long
 */
int live_open(struct live **ret, const struct live_options *o, struct err *e);
void live_close(struct live *l);

/** Observe what happened since the last call, or since live_open(), as the newest interval. */
int live_tick(struct live *l, struct err *e);

/** Number of intervals that are kept; 0 before the first tick. */
size_t live_intervals(const struct live *l);
/** One of them, 0 is the oldest. Valid until the next tick. */
const struct live_interval *live_interval(const struct live *l, size_t i);

/**
 * All that is known: facts as they were told last, sums since live_open(). Entities that ended, and
 * relations and objects that were quiet, are forgotten after some minutes. Valid until the next tick;
 * borrowed, and only to be read (graph_out() and graph_node_id() build indexes, which is fine).
 */
struct graph *live_totals(struct live *l);

/**
 * Put into @p ret, which is initialized and empty, the graph of the newest intervals: what a recording of
 * just these would hold. Entities have all facts known of them; sums, extremes and flows are those of
 * the intervals. Its meta has start and length of the window.
 *
 * @param since_ns intervals that end later than this, since 1970; at least the newest is taken
 */
void live_window(struct live *l, uint64_t since_ns, struct graph *ret);

/** Status, losses and costs since live_open() into @p g. */
void live_describe(struct live *l, struct graph *g);

/**
 * Write a recording of the kept intervals that end after @p since_ns, as if they had been recorded.
 *
 * @param options text for the recording's meta, as typed by the user
 */
int live_save(struct live *l, uint64_t since_ns, const char *path, bool force, const char *options,
	      struct err *e);
