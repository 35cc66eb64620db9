/* The fleet's store: hosts, ranges of numbers, counts by the minute. */
#include "fleet/fleet_store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "db.h"
#include "mem.h"

#define SCHEMA 1
#define BUSY_MS 10000
#define MINUTE_NS (60 * NS_PER_SEC)

static const char schema[] =
	"CREATE TABLE host(id INTEGER PRIMARY KEY, name TEXT NOT NULL, boot TEXT NOT NULL, run TEXT NOT NULL,"
	" seq INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, interval_ns INTEGER NOT NULL,"
	" received_ns INTEGER NOT NULL, duplicates INTEGER NOT NULL, snapshot BLOB NOT NULL, UNIQUE(name, boot)) STRICT;"
	"CREATE TABLE run(id INTEGER PRIMARY KEY, host INTEGER NOT NULL, run TEXT NOT NULL, UNIQUE(host, run)) STRICT;"
	"CREATE TABLE taken(run INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,"
	" PRIMARY KEY(run, first)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE part(run INTEGER NOT NULL, seq INTEGER NOT NULL, part INTEGER NOT NULL, received_ns INTEGER NOT NULL,"
	" data BLOB NOT NULL, PRIMARY KEY(run, seq, part)) STRICT;"
	"CREATE TABLE minute(host INTEGER NOT NULL, minute INTEGER NOT NULL, messages INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL, PRIMARY KEY(host, minute)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE total(version INTEGER NOT NULL) STRICT; INSERT INTO total VALUES(0);";

enum statement {
	HOST_FIND, HOST_ADD, HOST_SET, HOST_AGAIN, RUN_FIND, RUN_ADD, RUN_TRIM, TAKEN_AT, TAKEN_ADD, TAKEN_DROP, TAKEN_GROW,
	PART_ADD, PART_COUNT, PART_EACH, PART_DROP, MINUTE_ADD, MINUTE_TRIM, VERSION_UP, STATEMENTS
};

static const char *const sql[STATEMENTS] = {
	[HOST_FIND] = "SELECT id, end_ns FROM host WHERE name = ?1 AND boot = ?2",
	[HOST_ADD] = "INSERT INTO host(name, boot, run, seq, start_ns, end_ns, interval_ns, received_ns, duplicates, snapshot)"
		     " VALUES(?1, ?2, '', 0, 0, 0, 0, ?3, 0, x'')",
	[HOST_SET] = "UPDATE host SET run = ?2, seq = ?3, start_ns = ?4, end_ns = ?5, interval_ns = ?6, received_ns = ?7,"
		     " snapshot = ?8 WHERE id = ?1",
	[HOST_AGAIN] = "UPDATE host SET duplicates = duplicates + 1 WHERE id = ?1",
	[RUN_FIND] = "SELECT id FROM run WHERE host = ?1 AND run = ?2",
	[RUN_ADD] = "INSERT INTO run(host, run) VALUES(?1, ?2)",
	[RUN_TRIM] = "DELETE FROM run WHERE host = ?1 AND id NOT IN"
		     " (SELECT id FROM run WHERE host = ?1 ORDER BY id DESC LIMIT ?2)",
	[TAKEN_AT] = "SELECT first, last FROM taken WHERE run = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
	[TAKEN_ADD] = "INSERT INTO taken VALUES(?1, ?2, ?3)",
	[TAKEN_DROP] = "DELETE FROM taken WHERE run = ?1 AND first = ?2",
	[TAKEN_GROW] = "UPDATE taken SET last = ?3 WHERE run = ?1 AND first = ?2",
	[PART_ADD] = "INSERT OR IGNORE INTO part VALUES(?1, ?2, ?3, ?4, ?5)",
	[PART_COUNT] = "SELECT count(*) FROM part WHERE run = ?1 AND seq = ?2",
	[PART_EACH] = "SELECT data FROM part WHERE run = ?1 AND seq = ?2 ORDER BY part",
	[PART_DROP] = "DELETE FROM part WHERE run = ?1 AND seq = ?2",
	[MINUTE_ADD] = "INSERT INTO minute VALUES(?1, ?2, 1, ?3) ON CONFLICT DO UPDATE SET messages = messages + 1,"
		       " bytes = bytes + excluded.bytes",
	[MINUTE_TRIM] = "DELETE FROM minute WHERE host = ?1 AND minute <= ?2",
	[VERSION_UP] = "UPDATE total SET version = version + 1",
};

struct fleet_store {
	sqlite3 *db;
	char path[PATH_MAX];
	sqlite3_stmt *st[STATEMENTS];
	bool open; /* a transaction is */
};

static int failed(struct fleet_store *s, const char *what, struct err *e)
{
	return db_fail(s->db, e, what, s->path);
}

static int make(struct fleet_store *s)
{
	char text[96];
	int rc;

	/* Two processes may come here at once: the second finds it done. */
	rc = db_run(s->db, "BEGIN IMMEDIATE");
	if (!rc && db_run(s->db, "SELECT version FROM total")) {
		snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %d", DB_APPLICATION_ID + 1, SCHEMA);
		rc = db_run(s->db, schema) ?: db_run(s->db, text);
	}
	return rc ?: db_run(s->db, "COMMIT");
}

int fleet_store_open(struct fleet_store **ret, const char *path, struct err *e)
{
	struct fleet_store *s = mem_alloc(sizeof(*s));
	int rc;

	snprintf(s->path, sizeof(s->path), "%s", path);
	rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, NULL) == SQLITE_OK
		     ? 0 : -EIO;
	if (!rc) {
		sqlite3_busy_timeout(s->db, BUSY_MS);
		/* FULL: what was committed survives the loss of power, as who acknowledges it has to know. */
		rc = db_run(s->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF;"
				   "PRAGMA cache_size = -16384");
	}
	rc = rc ?: make(s);
	for (int i = 0; !rc && i < STATEMENTS; i++)
		rc = sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->st[i], NULL) == SQLITE_OK ? 0 : -EIO;
	if (rc < 0) {
		rc = failed(s, "open the fleet's store", e);
		fleet_store_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void fleet_store_close(struct fleet_store *s)
{
	if (!s)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->st[i]);
	sqlite3_close(s->db);
	free(s);
}

int fleet_store_begin(struct fleet_store *s, struct err *e)
{
	if (db_run(s->db, "BEGIN IMMEDIATE"))
		return failed(s, "write", e);
	s->open = true;
	return 0;
}

int fleet_store_commit(struct fleet_store *s, struct err *e)
{
	int rc = db_run(s->db, "COMMIT") ? failed(s, "write", e) : 0;

	if (rc < 0)
		fleet_store_rollback(s);
	s->open = false;
	return rc;
}

void fleet_store_rollback(struct fleet_store *s)
{
	if (s->open)
		db_run(s->db, "ROLLBACK");
	s->open = false;
}

static sqlite3_stmt *statement(struct fleet_store *s, enum statement which)
{
	sqlite3_stmt *st = s->st[which];

	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return st;
}

static void bind_text(sqlite3_stmt *st, int at, const char *text)
{
	sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

/* Run one whose parameters are numbers. */
static int run(struct fleet_store *s, enum statement which, const int64_t *v, int n)
{
	sqlite3_stmt *st = statement(s, which);
	int rc;

	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(st, i + 1, v[i]);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : -EIO;
	sqlite3_reset(st);
	return rc;
}
#define RUN(s, which, ...)                                                                         \
	run(s, which, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* A new one was heard of now, even when its first message is not whole yet: it must not be forgotten with its parts. */
static int find_host(struct fleet_store *s, const struct fleet_message *m, uint64_t now_ns, int64_t *ret, uint64_t *ret_end_ns)
{
	for (int tries = 0; tries < 2; tries++) {
		sqlite3_stmt *st = statement(s, HOST_FIND);
		int rc;

		bind_text(st, 1, m->host);
		bind_text(st, 2, m->boot);
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW) {
			*ret = sqlite3_column_int64(st, 0);
			*ret_end_ns = (uint64_t)sqlite3_column_int64(st, 1);
			sqlite3_reset(st);
			return 0;
		}
		sqlite3_reset(st);
		st = statement(s, HOST_ADD);
		bind_text(st, 1, m->host);
		bind_text(st, 2, m->boot);
		sqlite3_bind_int64(st, 3, (int64_t)now_ns);
		if (rc != SQLITE_DONE || sqlite3_step(st) != SQLITE_DONE)
			break;
		sqlite3_reset(st);
	}
	return -EIO;
}

static int find_run(struct fleet_store *s, int64_t host, const char *name, int64_t *ret)
{
	sqlite3_stmt *st = statement(s, RUN_FIND);
	int rc;

	sqlite3_bind_int64(st, 1, host);
	bind_text(st, 2, name);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (rc == SQLITE_ROW)
		return 0;
	st = statement(s, RUN_ADD);
	sqlite3_bind_int64(st, 1, host);
	bind_text(st, 2, name);
	if (rc != SQLITE_DONE || sqlite3_step(st) != SQLITE_DONE)
		return -EIO;
	sqlite3_reset(st);
	*ret = sqlite3_last_insert_rowid(s->db);
	/* What belongs to runs that are forgotten goes with fleet_store_forget(). */
	return RUN(s, RUN_TRIM, host, FLEET_RUNS_MAX);
}

/* The range that begins at or before a number. @return 1, 0: none, or -EIO */
static int range_at(struct fleet_store *s, int64_t of, int64_t number, int64_t *ret_first, int64_t *ret_last)
{
	sqlite3_stmt *st = statement(s, TAKEN_AT);
	int rc;

	sqlite3_bind_int64(st, 1, of);
	sqlite3_bind_int64(st, 2, number);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*ret_first = sqlite3_column_int64(st, 0);
		*ret_last = sqlite3_column_int64(st, 1);
	}
	sqlite3_reset(st);
	return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -EIO;
}

/* @return 1: it is known, 0: it is new, or -EIO */
static int is_taken(struct fleet_store *s, int64_t of, int64_t number)
{
	int64_t first, last = 0;
	int rc = range_at(s, of, number, &first, &last);

	return rc > 0 ? number <= last : rc;
}

/* A new number, which lengthens what is before it, or joins it with what is behind. */
static int add_number(struct fleet_store *s, int64_t of, int64_t number)
{
	int64_t first = 0, last = 0, next_first = 0, next_last = 0;
	bool before, behind;
	int rc = range_at(s, of, number, &first, &last);

	if (rc < 0)
		return rc;
	before = rc > 0 && last + 1 == number;
	rc = range_at(s, of, number + 1, &next_first, &next_last);
	if (rc < 0)
		return rc;
	behind = rc > 0 && next_first == number + 1;
	rc = behind ? RUN(s, TAKEN_DROP, of, next_first) : 0;
	if (!behind)
		next_last = number;
	if (rc)
		return rc;
	return before ? RUN(s, TAKEN_GROW, of, first, next_last) : RUN(s, TAKEN_ADD, of, number, next_last);
}

/* @return 1: the message is whole and @p ret holds it, 0: parts are missing, or -EIO */
static int add_part(struct fleet_store *s, int64_t of, const struct fleet_message *m, uint64_t now_ns, struct strbuf *ret)
{
	sqlite3_stmt *st = statement(s, PART_ADD);
	int64_t have;
	int rc;

	sqlite3_bind_int64(st, 1, of);
	sqlite3_bind_int64(st, 2, (int64_t)m->seq);
	sqlite3_bind_int64(st, 3, m->part);
	sqlite3_bind_int64(st, 4, (int64_t)now_ns);
	sqlite3_bind_blob64(st, 5, m->payload, m->n, SQLITE_STATIC);
	if (sqlite3_step(st) != SQLITE_DONE)
		return -EIO;
	sqlite3_reset(st);
	st = statement(s, PART_COUNT);
	sqlite3_bind_int64(st, 1, of);
	sqlite3_bind_int64(st, 2, (int64_t)m->seq);
	rc = sqlite3_step(st);
	have = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_reset(st);
	if (rc != SQLITE_ROW || have < m->parts)
		return rc == SQLITE_ROW ? 0 : -EIO;
	st = statement(s, PART_EACH);
	sqlite3_bind_int64(st, 1, of);
	sqlite3_bind_int64(st, 2, (int64_t)m->seq);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		strbuf_addn(ret, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
	sqlite3_reset(st);
	/* Earlier ones may become whole yet: parts come by several processes, and again. */
	return rc == SQLITE_DONE && !RUN(s, PART_DROP, of, (int64_t)m->seq) ? 1 : -EIO;
}

static int set_host(struct fleet_store *s, int64_t host, const struct fleet_message *m, const char *payload, size_t n,
		    uint64_t now_ns)
{
	sqlite3_stmt *st = statement(s, HOST_SET);
	int rc;

	sqlite3_bind_int64(st, 1, host);
	bind_text(st, 2, m->run);
	sqlite3_bind_int64(st, 3, (int64_t)m->seq);
	sqlite3_bind_int64(st, 4, (int64_t)m->start_ns);
	sqlite3_bind_int64(st, 5, (int64_t)m->end_ns);
	sqlite3_bind_int64(st, 6, (int64_t)m->interval_ns);
	sqlite3_bind_int64(st, 7, (int64_t)now_ns);
	sqlite3_bind_blob64(st, 8, payload, n, SQLITE_STATIC);
	rc = sqlite3_step(st) == SQLITE_DONE ? 0 : -EIO;
	sqlite3_reset(st);
	return rc;
}

static int count_minute(struct fleet_store *s, int64_t host, size_t n, uint64_t now_ns)
{
	int64_t minute = (int64_t)(now_ns / MINUTE_NS);

	return RUN(s, MINUTE_ADD, host, minute, (int64_t)n) ?: RUN(s, MINUTE_TRIM, host, minute - FLEET_MINUTES_MAX);
}

int fleet_store_put(struct fleet_store *s, const struct fleet_message *m, uint64_t now_ns, struct err *e)
{
	struct strbuf whole = {0};
	uint64_t end_ns;
	int64_t host, of;
	int known = -EIO, rc;

	if (!find_host(s, m, now_ns, &host, &end_ns) && !find_run(s, host, m->run, &of))
		known = is_taken(s, of, (int64_t)m->seq);
	if (known > 0)
		return RUN(s, HOST_AGAIN, host) ? failed(s, "write", e) : 0;
	rc = known < 0 ? known : m->parts > 1 ? add_part(s, of, m, now_ns, &whole) : 1;
	if (rc > 0) {
		const char *payload = m->parts > 1 ? whole.s : m->payload;
		size_t n = m->parts > 1 ? whole.n : m->n;

		rc = add_number(s, of, (int64_t)m->seq);
		rc = rc ?: count_minute(s, host, n, now_ns);
		if (!rc && m->end_ns >= end_ns)
			rc = set_host(s, host, m, payload, n, now_ns);
		rc = rc ?: RUN(s, VERSION_UP, 0) ?: 1;
	}
	strbuf_done(&whole);
	return rc < 0 ? failed(s, "write", e) : 1;
}

#define EACH                                                                                       \
	"SELECT name, boot, run, seq, start_ns, end_ns, interval_ns, received_ns, duplicates, t.taken, t.missing, t.runs,"   \
	" m.messages, m.bytes, %s FROM host"                                                        \
	" LEFT JOIN (SELECT host AS h, sum(n) AS taken, sum(top - low + 1 - n) AS missing, count(*) AS runs FROM run JOIN"	     \
	"  (SELECT run AS r, sum(last - first + 1) AS n, max(last) AS top, min(first) AS low FROM taken GROUP BY run) ON r = run.id"	     \
	"  GROUP BY host) t ON t.h = host.id"                                                        \
	" LEFT JOIN (SELECT host AS h, sum(messages) AS messages, sum(bytes) AS bytes FROM minute WHERE minute > ?2"	     \
	"  GROUP BY host) m ON m.h = host.id"                                                        \
	" WHERE end_ns > ?1 ORDER BY name, boot"

static void read_host(sqlite3_stmt *st, struct fleet_host *h, bool payload)
{
	uint64_t *const to[] = {&h->seq, &h->start_ns, &h->end_ns, &h->interval_ns, &h->received_ns, &h->duplicates,
				&h->taken, &h->missing, &h->runs, &h->last_hour, &h->bytes_last_hour};

	h->host = (const char *)sqlite3_column_text(st, 0);
	h->boot = (const char *)sqlite3_column_text(st, 1);
	h->run = (const char *)sqlite3_column_text(st, 2);
	for (int i = 0; i < (int)(sizeof(to) / sizeof(to[0])); i++)
		*to[i] = (uint64_t)sqlite3_column_int64(st, i + 3);
	h->payload = payload ? sqlite3_column_blob(st, 14) : NULL;
	h->n = payload ? (size_t)sqlite3_column_bytes(st, 14) : 0;
}

int fleet_store_each(struct fleet_store *s, uint64_t since_ns, bool payload,
		     int (*cb)(void *ctx, const struct fleet_host *h, struct err *e), void *ctx, struct err *e)
{
	struct strbuf text = {0};
	sqlite3_stmt *st = NULL;
	int step = SQLITE_DONE, rc = 0;

	strbuf_addf(&text, EACH, payload ? "snapshot" : "NULL");
	if (sqlite3_prepare_v2(s->db, text.s, -1, &st, NULL) != SQLITE_OK)
		rc = failed(s, "read", e);
	strbuf_done(&text);
	if (rc < 0)
		return rc;
	sqlite3_bind_int64(st, 1, since_ns > INT64_MAX ? INT64_MAX : (int64_t)since_ns);
	sqlite3_bind_int64(st, 2, (int64_t)(clock_real_ns() / MINUTE_NS) - FLEET_MINUTES_MAX);
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
		struct fleet_host h = {0};

		read_host(st, &h, payload);
		rc = cb(ctx, &h, e);
	}
	if (!rc && step != SQLITE_DONE)
		rc = failed(s, "read", e);
	sqlite3_finalize(st);
	return rc;
}

int fleet_store_forget(struct fleet_store *s, uint64_t before_ns, struct err *e)
{
	char text[128];
	int n;

	snprintf(text, sizeof(text), "DELETE FROM host WHERE received_ns < %" PRId64, (int64_t)before_ns);
	if (db_run(s->db, text))
		return failed(s, "write", e);
	n = sqlite3_changes(s->db);
	snprintf(text, sizeof(text), "DELETE FROM part WHERE received_ns < %" PRId64, (int64_t)before_ns);
	if (db_run(s->db, text) || db_run(s->db, "DELETE FROM run WHERE host NOT IN (SELECT id FROM host);"
						 "DELETE FROM minute WHERE host NOT IN (SELECT id FROM host);"
						 "DELETE FROM taken WHERE run NOT IN (SELECT id FROM run);"
						 "DELETE FROM part WHERE run NOT IN (SELECT id FROM run)"))
		return failed(s, "write", e);
	return n;
}

int fleet_store_count(struct fleet_store *s, struct fleet_store_counts *ret, struct err *e)
{
	static const char text[] =
		"SELECT (SELECT count(*) FROM host), (SELECT coalesce(sum(last - first + 1), 0) FROM taken),"
		" (SELECT coalesce(sum(duplicates), 0) FROM host),"
		" (SELECT coalesce(sum(top - low + 1 - n), 0) FROM (SELECT sum(last - first + 1) AS n, max(last) AS top,"
		"  min(first) AS low FROM taken"
		"  GROUP BY run)), (SELECT coalesce(sum(length(snapshot)), 0) FROM host), (SELECT version FROM total)";
	uint64_t *const to[] = {&ret->hosts, &ret->taken, &ret->duplicates, &ret->missing, &ret->payload_bytes, &ret->version};
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	for (int i = 0; rc == SQLITE_ROW && i < 6; i++)
		*to[i] = (uint64_t)sqlite3_column_int64(st, i);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : failed(s, "read", e);
}
