/* Puts single waits into a recording, for analyses that need the order of events. */
#include "segments.h"

#include <errno.h>

#include "db.h"

#define BUSY_MS 5000

static const char make_table[] =
	"BEGIN;"
	"CREATE TABLE IF NOT EXISTS wait_segment(out_ns INTEGER NOT NULL, wake_ns INTEGER NOT NULL,"
	" in_ns INTEGER NOT NULL, waiter INTEGER, waker INTEGER, waker_kind TEXT, cause TEXT NOT NULL,"
	" object TEXT NOT NULL) STRICT;"
	"CREATE TEMP TABLE task(tid INTEGER, start_ns INTEGER, num INTEGER, PRIMARY KEY(tid, start_ns));"
	"INSERT OR IGNORE INTO task SELECT tid, start_ns, num FROM thread;";

static const char insert[] =
	"INSERT INTO wait_segment VALUES(?1, ?2, ?3, (SELECT num FROM task WHERE tid = ?4 AND start_ns = ?5),"
	" (SELECT num FROM task WHERE tid = ?6 AND start_ns = ?7), ?8, ?9, ?10)";

static const char make_index[] = "CREATE INDEX IF NOT EXISTS wait_segment_by_waiter"
				 " ON wait_segment(waiter, out_ns); COMMIT";

static int write_row(sqlite3_stmt *s, const struct wait_row *w, uint64_t offset_ns)
{
	const uint64_t numbers[] = {w->out_ns + offset_ns, w->wake_ns + offset_ns, w->in_ns + offset_ns,
				    w->waiter_tid,	   w->waiter_start_ns,	   w->waker_tid,
				    w->waker_start_ns};
	const char *texts[] = {w->waker, w->cause, w->object};
	int at = 1;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sqlite3_bind_int64(s, at++, (sqlite3_int64)numbers[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sqlite3_bind_text(s, at++, texts[i], -1, SQLITE_STATIC);
	if (sqlite3_step(s) != SQLITE_DONE)
		return -EIO;
	sqlite3_reset(s);
	return 0;
}

/* Since when the rows are all there were. */
static int write_from(sqlite3 *db, uint64_t from_ns)
{
	sqlite3_stmt *s = NULL;
	int rc = -EIO;

	if (!sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO meta VALUES('segments_from_ns', ?1)", -1, &s, NULL)) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)from_ns);
		rc = sqlite3_step(s) == SQLITE_DONE ? 0 : -EIO;
	}
	sqlite3_finalize(s);
	return rc;
}

int segments_write(const char *path, const struct wait_row *rows, size_t n, uint64_t from_ns,
		   uint64_t offset_ns, struct err *e)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	int rc = 0;

	/* Somebody may be reading what is there already. */
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(db, BUSY_MS) != SQLITE_OK || db_run(db, make_table) ||
	    sqlite3_prepare_v2(db, insert, -1, &s, NULL) != SQLITE_OK)
		rc = -EIO;
	for (size_t i = 0; !rc && i < n; i++)
		rc = write_row(s, &rows[i], offset_ns);
	rc = rc ?: write_from(db, from_ns + offset_ns);
	rc = rc ?: db_run(db, make_index);
	if (rc)
		rc = db_fail(db, e, "write recording", path);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return rc;
}
