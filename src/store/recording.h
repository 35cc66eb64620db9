#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "amounts.h"
#include "err.h"
#include "graph.h"
#include "timeline.h"

/*
 * Recordings (.wpdb): one SQLite file. Tables: `meta`, `registry`, `interval`, `entity` and `edge`
 * (what is there), a table for each type with its fields (`process`, `edge_flow`, …), `series_TYPE`
 * with the parts that each interval added to the totals, `status`, `lost`, `cost`, `type_count`.
 */

struct recording;

/**
 * Make a new recording. The file is written as intervals are added.
 *
 * @param force replace an existing file; without it that is -EEXIST
 */
int recording_create(struct recording **ret, const char *path, bool force, struct err *e);

/**
 * Add what was observed since the last call, as one transaction: readable from then on whatever
 * becomes of this process. Sums in @p part are parts of the totals.
 *
 * @param start_ns,end_ns of the interval, ns since 1970
 */
int recording_add(struct recording *r, const struct graph *part, uint64_t start_ns, uint64_t end_ns,
		  struct err *e);

/** Store meta, status, losses and costs of @p about, replacing those stored before. */
int recording_describe(struct recording *r, const struct graph *about, struct err *e);

/**
 * Close in order; @p r is freed whatever happens. NULL is fine. While others go on reading the file, it keeps its
 * journal, PATH-wal, and is whole with it only.
 */
int recording_close(struct recording *r, struct err *e);

/** Give up: what was added stays readable. NULL is fine. */
void recording_drop(struct recording *r);

struct stored;

/** Open for reading. -EBADMSG: no recording, or one of a newer schema. */
int stored_open(struct stored **ret, const char *path, struct err *e);
void stored_close(struct stored *s);

/** Read everything but the series into @p g. */
int stored_load(struct stored *s, struct graph *g, struct err *e);

/**
 * Read single waits and the slices of threads, after stored_load(), whose graph @p g is.
 *
 * Of a recording without them, as of one that was cut off, what is there.
 *
 * @param ret zeroed; the caller's, timeline_done()
 */
int stored_load_timeline(struct stored *s, struct graph *g, struct timeline *ret, struct err *e);

/** Read meta, status, losses and costs only. */
int stored_load_meta(struct stored *s, struct graph *g, struct err *e);

/**
 * Read the entity @p id and all that is within @p hops relations of it, at most @p limit relations
 * a hop and entity.
 *
 * @return 0, -ENOENT when there is no such entity
 */
int stored_load_around(struct stored *s, struct graph *g, const char *id, unsigned hops, size_t limit,
		       struct err *e);

/** Number of items of a type, without reading them. @return < 0 on error */
int64_t stored_count(struct stored *s, const struct type *t);

/**
 * Read what each interval added, for pictures over time. Its entities are found in @p g by their ids:
 * those of this recording, which may have been closed meanwhile.
 *
 * @param ret zeroed; the caller frees it with vec_done(&ret->v)
 */
int stored_load_amounts(struct stored *s, struct graph *g, struct interval_amounts *ret, struct err *e);
