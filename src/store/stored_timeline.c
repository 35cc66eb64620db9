/* Single waits and intervals out of a recording. */
#include <errno.h>
#include <string.h>

#include "stored_parts.h"

#define SPANS_MAX  (4u << 20) /* bounds for hostile files: 192 MiB, 320 MiB */
#define SLICES_MAX (4u << 20)

/* An object is a printed id; most waits of a thread have the one of the wait before. */
struct reading {
	struct stored *s;
	struct graph *g;
	struct timeline *t;
	struct err *e;
	const char *last; /* in the graph */
	uint32_t last_object;
};

static uint64_t column_ns(sqlite3_stmt *q, int c)
{
	sqlite3_int64 v = sqlite3_column_int64(q, c);

	return v > 0 ? (uint64_t)v : 0;
}

static uint32_t column_count(sqlite3_stmt *q, int c)
{
	uint64_t v = column_ns(q, c);

	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* A thread of the graph, or NODE_NONE. */
static uint32_t column_thread(struct reading *r, sqlite3_stmt *q, int c)
{
	uint32_t node = stored_node(r->s, sqlite3_column_int64(q, c));

	return node != NODE_NONE && r->g->nodes.v[node]->type == &thread_type ? node : NODE_NONE;
}

static uint32_t find_object(struct reading *r, const char *id)
{
	if (!id)
		return NODE_NONE;
	if (!r->last || strcmp(r->last, id)) {
		r->last_object = graph_find(r->g, id);
		r->last = r->last_object == NODE_NONE ? NULL : graph_node_id(r->g, r->last_object);
	}
	return r->last_object;
}

static int span_row(struct reading *r, sqlite3_stmt *q)
{
	struct wait_span s = {
		.out_ns = column_ns(q, 0),
		.wake_ns = column_ns(q, 1),
		.in_ns = column_ns(q, 2),
		.waiter = column_thread(r, q, 3),
		.waker = column_thread(r, q, 4),
		.ender = (uint8_t)wait_ender_find((const char *)sqlite3_column_text(q, 5)),
		.cause = (uint8_t)wait_cause_find((const char *)sqlite3_column_text(q, 6)),
		.object = find_object(r, (const char *)sqlite3_column_text(q, 7)),
	};

	if (r->t->spans.n >= SPANS_MAX)
		return err_msg(r->e, -EFBIG, "read recording: more than %u waits", SPANS_MAX);
	timeline_add_span(r->t, &s);
	return 0;
}

static int interval_row(struct reading *r, sqlite3_stmt *q)
{
	struct time_span i = {column_ns(q, 0), column_ns(q, 1)};

	vec_push(&r->t->intervals, i);
	return 0;
}

static int slice_row(struct reading *r, sqlite3_stmt *q)
{
	struct thread_slice s = {
		.thread = column_thread(r, q, 0),
		.interval = column_count(q, 1),
		.run_ns = column_ns(q, 2),
		.runq_ns = column_ns(q, 3),
		.blocked_ns = column_ns(q, 4),
		.voluntary = column_count(q, 5),
		.involuntary = column_count(q, 6),
		.migrations = column_count(q, 7),
		.wakeups = column_count(q, 8),
	};

	if (s.thread == NODE_NONE || s.interval >= r->t->intervals.n)
		return 0;
	if (r->t->slices.n >= SLICES_MAX)
		return err_msg(r->e, -EFBIG, "read recording: more than %u slices of threads", SLICES_MAX);
	vec_push(&r->t->slices, s);
	return 0;
}

static bool has_table(struct stored *s, const char *name)
{
	sqlite3_stmt *q = NULL;
	bool found = false;

	if (!sqlite3_prepare_v2(stored_db(s), "SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?", -1,
				&q, NULL)) {
		sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
		found = sqlite3_step(q) == SQLITE_ROW;
	}
	sqlite3_finalize(q);
	return found;
}

static int each(struct reading *r, const char *table, const char *sql,
		int (*row)(struct reading *r, sqlite3_stmt *q))
{
	sqlite3_stmt *q = NULL;
	int step, rc = 0;

	if (!has_table(r->s, table))
		return 0;
	if (sqlite3_prepare_v2(stored_db(r->s), sql, -1, &q, NULL))
		return stored_fail(r->s, r->e);
	while (!rc && (step = sqlite3_step(q)) != SQLITE_DONE)
		rc = step == SQLITE_ROW ? row(r, q) : stored_fail(r->s, r->e);
	sqlite3_finalize(q);
	return rc;
}

static int from_row(struct reading *r, sqlite3_stmt *q)
{
	r->t->spans_from_ns = column_ns(q, 0);
	return 0;
}

int stored_load_timeline(struct stored *s, struct graph *g, struct timeline *ret, struct err *e)
{
	struct reading r = {.s = s, .g = g, .t = ret, .e = e};
	int rc = each(&r, "interval", "SELECT start_ns, end_ns FROM interval ORDER BY n", interval_row);

	rc = rc ?: each(&r, "meta", "SELECT value FROM meta WHERE key='segments_from_ns'", from_row);
	rc = rc ?: each(&r, "wait_segment",
			"SELECT out_ns, wake_ns, in_ns, waiter, waker, waker_kind, cause, object FROM wait_segment",
			span_row);
	rc = rc ?: each(&r, "series_thread",
			"SELECT num, interval, run_ns, runq_ns, blocked_ns, voluntary_switches,"
			" involuntary_switches, migrations, wakeups FROM series_thread",
			slice_row);
	if (rc)
		timeline_done(ret);
	else
		timeline_sort(ret);
	return rc;
}
