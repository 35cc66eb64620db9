#pragma once

#include "collect.h"
#include "err.h"
#include "history.h"

/*
 * This host, observed as long as one likes in bounded memory, for views that go on (top, serve); record()
 * is for files.
 *
 * One thread uses it. A tick takes as long as the sources take (tens of milliseconds); signals and
 * terminals are the caller's.
 */

struct live_options {
	struct collect_options collect;
	uint64_t keep_ns;  /**< as in history_new() */
	size_t keep_bytes; /**< likewise */
};

struct live;

/**
 * Open the sources of this host and take the first sample, which is none of the intervals.
 *
 * @param o copied, but not what it points to, which has to live as long
 */
int live_open(struct live **ret, const struct live_options *o, struct err *e);
/** NULL is fine. */
void live_close(struct live *l);

/**
 * Observe what happened since the last call, or since live_open(), as the newest interval. Sources that cannot
 * be read are told by live_describe().
 */
void live_tick(struct live *l);

/** As collect_due_ns() and collect_due(): between two ticks there may be something to do. */
uint64_t live_due_ns(const struct live *l);
void live_due(struct live *l);

/** What was observed so far; borrowed. */
struct history *live_history(struct live *l);

/** Status, losses and costs since live_open() into @p g. */
void live_describe(struct live *l, struct graph *g);

/**
 * Put the single waits of a window into its timeline, as live_save() would write them.
 *
 * @param g    made by history_window(), or that and what was derived from it
 * @param time its slices, made with it
 * @return 0 or -errno; then there are none
 */
int live_waits(struct live *l, struct graph *g, struct timeline *time, struct err *e);

/**
 * Write a recording of the kept intervals that end after @p since_ns (since 1970), with their single waits,
 * as if they had been recorded.
 *
 * @param options text for the recording's meta, as typed by the user
 */
int live_save(struct live *l, uint64_t since_ns, const char *path, bool force, const char *options,
	      struct err *e);
