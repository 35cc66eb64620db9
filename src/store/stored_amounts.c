/* What each interval of a recording added, summed by SQLite so that it is never held one by one. */
#include <errno.h>

#include "db.h"
#include "stored_parts.h"

#define AMOUNTS_MAX   (1u << 20) /* a bound for hostile files: 32 MiB */
#define INTERVALS_MAX (1u << 18) /* likewise: of a second, three days */

struct query {
	enum amount_what what;
	const char *table; /* without it there is nothing to ask */
	const char *sql;   /* interval, id or NULL, kind or NULL, amount */
};

/* The kind of what a thread writes to, as flows have it. */
#define KIND_OF_TARGET                                                                             \
	"CASE t.type WHEN 'pipe_inode' THEN 'pipe' WHEN 'file' THEN 'storage' ELSE t.type END"

/* How accelerators stood; a recording of an older version has no such column. */
#define GAUGES_OF(table)                                                                           \
	{AMOUNT_USE, table,                                                                        \
	 "SELECT s.interval, f.id, NULL, CAST(s.utilization_pct * 100 + 0.5 AS INTEGER) FROM " table \
	 " s JOIN entity f USING(num) WHERE s.utilization_pct BETWEEN 0 AND 100 ORDER BY 1, 2"},    \
	{                                                                                          \
		AMOUNT_HELD, table,                                                                \
		    "SELECT s.interval, f.id, NULL, s.memory_used_bytes FROM " table               \
		    " s JOIN entity f USING(num) WHERE s.memory_used_bytes >= 0 ORDER BY 1, 2"     \
	}

static const struct query queries[] = {
    {AMOUNT_SENT, "series_edge_send_to_socket",
     "SELECT s.interval, f.id, CASE WHEN k.connection_type LIKE 'UNIX%' THEN 'unix' ELSE "
     "lower(k.connection_type) END,"
     " sum(s.data_size) FROM series_edge_send_to_socket s JOIN edge e USING(num)"
     " JOIN edge_send_to_socket k USING(num) JOIN entity f ON f.num=e.source GROUP BY 1, 2, 3"},
    {AMOUNT_SENT, "series_edge_write_to",
     "SELECT s.interval, f.id, " KIND_OF_TARGET
     ", sum(s.bytes) FROM series_edge_write_to s JOIN edge e USING(num)"
     " JOIN entity f ON f.num=e.source JOIN entity t ON t.num=e.target GROUP BY 1, 2, 3"},
    {AMOUNT_READ, "series_edge_read_from",
     "SELECT s.interval, f.id, 'storage', sum(s.bytes) FROM series_edge_read_from s JOIN edge e "
     "USING(num)"
     " JOIN entity f ON f.num=e.target JOIN entity t ON t.num=e.source WHERE t.type='file' GROUP "
     "BY 1, 2"},
    {AMOUNT_MOVED, "series_nic",
     "SELECT s.interval, f.id, NULL, sum(coalesce(s.rx_bytes, 0) + coalesce(s.tx_bytes, 0)) FROM "
     "series_nic s"
     " JOIN entity f USING(num) GROUP BY 1, 2"},
    {AMOUNT_MOVED, "series_block_device",
     "SELECT s.interval, f.id, NULL, sum(coalesce(s.read_bytes, 0) + coalesce(s.written_bytes, 0))"
     " FROM series_block_device s JOIN entity f USING(num) GROUP BY 1, 2"},
    {AMOUNT_BUSY, "series_block_device",
     "SELECT s.interval, f.id, NULL, sum(s.busy_ns) FROM series_block_device s JOIN entity f "
     "USING(num) GROUP BY 1, 2"},
    GAUGES_OF("series_gpu"),
    GAUGES_OF("series_npu"),
};

static bool can_ask(sqlite3 *db, const char *table)
{
	sqlite3_stmt *q = NULL;
	bool found = false;

	if (!sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?", -1,
				&q, NULL)) {
		sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
		found = sqlite3_step(q) == SQLITE_ROW;
	}
	sqlite3_finalize(q);
	return found;
}

/* How something stood, rather than what was added: 0 says something. */
static bool is_gauge(enum amount_what what)
{
	return what == AMOUNT_USE || what == AMOUNT_HELD;
}

static void add_row(struct graph *g, sqlite3_stmt *s, enum amount_what what,
		    struct interval_amounts *ret)
{
	const char *id = (const char *)sqlite3_column_text(s, 1),
		   *kind = (const char *)sqlite3_column_text(s, 2);
	sqlite3_int64 interval = sqlite3_column_int64(s, 0), n = sqlite3_column_int64(s, 3);
	uint32_t node = id ? graph_find(g, id) : NODE_NONE;

	if (n < !is_gauge(what) || interval < 0 || interval >= UINT32_MAX || (id && node == NODE_NONE))
		return;
	vec_push(&ret->v, ((struct interval_amount){.node = node,
						    .interval = (uint32_t)interval,
						    .what = what,
						    .kind = kind ? graph_str(g, kind) : NULL,
						    .n = (uint64_t)n}));
}

static int ask(struct stored *s, struct graph *g, const struct query *query,
	       struct interval_amounts *ret, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int step, rc = 0;

	if (!can_ask(stored_db(s), query->table))
		return 0;
	rc = sqlite3_prepare_v2(stored_db(s), query->sql, -1, &q, NULL);
	/* A recording of another version may lack a column: then that is not known. */
	if (rc)
		return rc == SQLITE_ERROR ? 0 : stored_fail(s, e);
	while (!rc && (step = sqlite3_step(q)) != SQLITE_DONE) {
		if (step != SQLITE_ROW)
			rc = stored_fail(s, e);
		else if (ret->v.n >= AMOUNTS_MAX)
			rc = err_msg(e, -EFBIG, "read recording: more than %u amounts of intervals",
				     AMOUNTS_MAX);
		else
			add_row(g, q, query->what, ret);
	}
	sqlite3_finalize(q);
	return rc;
}

static int read_lengths(struct stored *s, struct wait_spread *w, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int step = SQLITE_DONE, rc;

	rc = sqlite3_prepare_v2(stored_db(s), "SELECT max(end_ns - start_ns, 0) FROM interval ORDER BY n", -1, &q, NULL);
	if (rc)
		return rc == SQLITE_ERROR ? 0 : stored_fail(s, e);
	while (w->length_ns.n < INTERVALS_MAX && (step = sqlite3_step(q)) == SQLITE_ROW)
		vec_push(&w->length_ns, (uint64_t)sqlite3_column_int64(q, 0));
	if (step != SQLITE_DONE)
		rc = step == SQLITE_ROW ? err_msg(e, -EFBIG, "read recording: more than %u intervals", INTERVALS_MAX)
					: stored_fail(s, e);
	sqlite3_finalize(q);
	return rc;
}

/* Of each thread and cause; the newest first, as what a wait had too much for its interval was before. */
static int add_waits(struct stored *s, struct wait_spread *w, struct err *e)
{
	static const char sql[] =
	    "SELECT e.source, k.cause, s.interval, sum(s.waited_ns) FROM series_edge_waits_for s JOIN edge e USING(num)"
	    " JOIN edge_waits_for k USING(num) WHERE s.waited_ns > 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 DESC";
	sqlite3_int64 thread = -1;
	sqlite3_stmt *q = NULL;
	int step, rc = 0, cause = -1;

	if (!can_ask(stored_db(s), "series_edge_waits_for"))
		return 0;
	rc = sqlite3_prepare_v2(stored_db(s), sql, -1, &q, NULL);
	if (rc)
		return rc == SQLITE_ERROR ? 0 : stored_fail(s, e);
	while ((step = sqlite3_step(q)) == SQLITE_ROW) {
		sqlite3_int64 t = sqlite3_column_int64(q, 0), i = sqlite3_column_int64(q, 2);
		int c = (int)wait_cause_find((const char *)sqlite3_column_text(q, 1));

		if (t != thread || c != cause)
			wait_spread_next(w, (enum wait_cause)c);
		thread = t;
		cause = c;
		if (i >= 0 && i < UINT32_MAX)
			wait_spread_add(w, (uint32_t)i, (uint64_t)sqlite3_column_int64(q, 3));
	}
	if (step != SQLITE_DONE)
		rc = stored_fail(s, e);
	sqlite3_finalize(q);
	return rc;
}

static int read_waits(struct stored *s, struct graph *g, struct interval_amounts *ret, struct err *e)
{
	struct wait_spread w = {0};
	int rc = read_lengths(s, &w, e);

	wait_spread_begin(&w);
	rc = rc ?: add_waits(s, &w, e);
	wait_spread_end(&w, g, ret);
	return rc;
}

int stored_load_amounts(struct stored *s, struct graph *g, struct interval_amounts *ret,
			struct err *e)
{
	int rc = read_waits(s, g, ret, e);

	for (size_t i = 0; !rc && i < sizeof(queries) / sizeof(queries[0]); i++)
		rc = ask(s, g, &queries[i], ret, e);
	if (rc)
		vec_done(&ret->v);
	return rc;
}
