/* Recordings out: one SQLite transaction for each interval. */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db.h"
#include "idmap.h"
#include "recent.h"

/* Readers are waited for: they hold locks for moments, the first one while the file is being made. */
#define BUSY_MS 10000
#define CLOSE_BUSY_MS 1000

struct recording {
	sqlite3 *db;
	char *path;
	struct recent recent; /* totals so far: what the rows of entities and relations show */
	sqlite3_stmt *node_extra, *edge_head, *interval;
	sqlite3_stmt **node_row, **edge_row, **node_series, **edge_series; /* by type, made when needed */
	uint64_t intervals;
	uint64_t *counts;	/* entities by type, then relations by type */
	bool counted;		/* counts changed since they were written */
};

static const char schema[] =
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"CREATE TABLE registry(kind TEXT, type TEXT, old_type TEXT, field TEXT, field_type TEXT,"
	" unit TEXT, merge TEXT, old_name TEXT, doc TEXT) STRICT;"
	"CREATE TABLE interval(n INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER) STRICT;"
	"CREATE TABLE entity(num INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, type TEXT NOT NULL,"
	" namespace TEXT NOT NULL, extra TEXT) STRICT;"
	"CREATE TABLE edge(num INTEGER PRIMARY KEY, type TEXT NOT NULL, source INTEGER NOT NULL,"
	" target INTEGER NOT NULL, weight REAL, extra TEXT) STRICT;"
	"CREATE INDEX edge_source ON edge(source, target);"
	"CREATE INDEX edge_target ON edge(target);"
	"CREATE TABLE type_count(kind TEXT, type TEXT, n INTEGER, PRIMARY KEY(kind, type)) STRICT;"
	"CREATE TABLE status(source TEXT, state TEXT, rung TEXT, reason TEXT) STRICT;"
	"CREATE TABLE lost(source TEXT, cause TEXT, count INTEGER) STRICT;"
	"CREATE TABLE cost(name TEXT, unit TEXT, value REAL) STRICT;";

static const char *column_type(enum field_type t)
{
	return t == T_F64 ? "REAL" : t == T_STR || t == T_JSON ? "TEXT" : "INTEGER";
}

/* What was observed before is found by its keys; so does a user find a process by its pid. */
static void index_keys(struct strbuf *b, const struct type *t)
{
	const char *sep = "(";

	strbuf_addf(b, "CREATE INDEX %s_keys ON ", t->name);
	db_table(b, t);
	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].key != KEY_NONE) {
			strbuf_addf(b, "%s%s", sep, t->fields[i].name);
			sep = ", ";
		}
	strbuf_add(b, ");");
}

static int create_type(sqlite3 *db, const struct type *t)
{
	struct strbuf b = {0};
	int rc;

	strbuf_add(&b, "CREATE TABLE ");
	db_table(&b, t);
	strbuf_add(&b, "(num INTEGER PRIMARY KEY");
	for (int i = 0; i < t->nfields; i++)
		strbuf_addf(&b, ", %s %s", t->fields[i].name, column_type(t->fields[i].type));
	strbuf_add(&b, ") STRICT;");
	if (db_has_series(t)) {
		strbuf_add(&b, "CREATE TABLE ");
		db_series_table(&b, t);
		strbuf_add(&b, "(interval INTEGER, num INTEGER");
		for (int i = 0; i < t->nfields; i++)
			if (db_in_series(&t->fields[i]))
				strbuf_addf(&b, ", %s %s", t->fields[i].name,
					    column_type(t->fields[i].type));
		strbuf_add(&b, ", PRIMARY KEY(interval, num)) STRICT, WITHOUT ROWID;");
	}
	if (t->kind == KIND_ENTITY)
		index_keys(&b, t);
	rc = db_run(db, b.s);
	strbuf_done(&b);
	return rc;
}

static int write_registry_type(sqlite3_stmt *s, const struct type *t)
{
	for (int i = -1; i < t->nfields; i++) {
		const struct field *f = i < 0 ? NULL : &t->fields[i];

		sqlite3_reset(s);
		sqlite3_clear_bindings(s);
		sqlite3_bind_text(s, 1, t->kind == KIND_EDGE ? "edge" : "entity", -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 2, t->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, t->old_name, -1, SQLITE_STATIC);
		if (f) {
			sqlite3_bind_text(s, 4, f->name, -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 5, field_type_name(f->type), -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 6, unit_name(f->unit), -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 7, merge_name(f->merge), -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 8, f->old_name, -1, SQLITE_STATIC);
		}
		sqlite3_bind_text(s, 9, f ? f->doc : t->doc, -1, SQLITE_STATIC);
		if (sqlite3_step(s) != SQLITE_DONE)
			return -EIO;
	}
	return 0;
}

static int create_schema(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int rc = db_run(db, "BEGIN");

	rc = rc ?: db_run(db, schema);
	for (size_t i = 0; !rc && i < n_entity_types; i++)
		rc = create_type(db, entity_types[i]);
	for (size_t i = 0; !rc && i < n_edge_types; i++)
		rc = create_type(db, edge_types[i]);
	if (!rc && sqlite3_prepare_v2(db, "INSERT INTO registry VALUES(?,?,?,?,?,?,?,?,?)", -1, &s, NULL))
		rc = -EIO;
	for (size_t i = 0; !rc && i < n_entity_types; i++)
		rc = write_registry_type(s, entity_types[i]);
	for (size_t i = 0; !rc && i < n_edge_types; i++)
		rc = write_registry_type(s, edge_types[i]);
	sqlite3_finalize(s);
	return rc ?: db_run(db, "COMMIT");
}

/* An existing file is the user's: replaced only when asked, and then with its journal. */
static int make_place(const char *path, bool force, struct err *e)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	struct strbuf b = {0};
	struct stat st;
	int rc = 0;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "create recording '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_msg(e, -EEXIST, "create recording '%s': exists and is no regular file", path);
	if (!force) {
		err_set(e, -EEXIST, "create recording '%s'", path);
		return err_hint(e, "use --force to replace it, or another name with -o");
	}
	for (size_t i = 0; i < 4 && !rc; i++) {
		strbuf_clear(&b);
		strbuf_addf(&b, "%s%s", path, suffixes[i]);
		if (unlink(b.s) < 0 && errno != ENOENT)
			rc = err_set(e, -errno, "replace '%s'", b.s);
	}
	strbuf_done(&b);
	return rc;
}

int recording_create(struct recording **ret, const char *path, bool force, struct err *e)
{
	struct recording *r;
	char pragma[200];
	int fd, rc = make_place(path, force, e);

	if (rc < 0)
		return rc;
	/* SQLite's own message for a missing folder says nothing about it. */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_set(e, -errno, "create recording '%s'", path);
	close(fd);
	r = mem_alloc(sizeof(*r));
	recent_init(&r->recent);
	r->path = mem_strdup(path);
	r->node_row = mem_alloc(n_entity_types * sizeof(void *));
	r->edge_row = mem_alloc(n_edge_types * sizeof(void *));
	r->counts = mem_alloc((n_entity_types + n_edge_types) * sizeof(*r->counts));
	r->node_series = mem_alloc(n_entity_types * sizeof(void *));
	r->edge_series = mem_alloc(n_edge_types * sizeof(void *));
	snprintf(pragma, sizeof(pragma),
		 "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA application_id=%d;"
		 "PRAGMA user_version=%d; PRAGMA cache_size=-4096; PRAGMA wal_autocheckpoint=500",
		 DB_APPLICATION_ID, DB_SCHEMA_VERSION);
	if (sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ||
	    sqlite3_busy_timeout(r->db, BUSY_MS) || db_run(r->db, pragma) || create_schema(r->db)) {
		rc = db_fail(r->db, e, "create recording", path);
		recording_drop(r);
		unlink(path);
		return rc;
	}
	r->recent.db = r->db;
	*ret = r;
	return 0;
}

static sqlite3_stmt *prepare(struct recording *r, const char *sql)
{
	sqlite3_stmt *s = NULL;

	sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL);
	return s;
}

static sqlite3_stmt *row_statement(struct recording *r, const struct type *t, bool series)
{
	sqlite3_stmt **all = t->kind == KIND_EDGE ? (series ? r->edge_series : r->edge_row)
						  : (series ? r->node_series : r->node_row);
	struct strbuf b = {0};

	if (all[t->number])
		return all[t->number];
	strbuf_add(&b, series ? "INSERT OR REPLACE INTO " : "REPLACE INTO ");
	if (series)
		db_series_table(&b, t);
	else
		db_table(&b, t);
	strbuf_add(&b, series ? " VALUES(?,?" : " VALUES(?");
	for (int i = 0; i < t->nfields; i++)
		if (!series || db_in_series(&t->fields[i]))
			strbuf_add(&b, ",?");
	strbuf_addc(&b, ')');
	all[t->number] = prepare(r, b.s);
	strbuf_done(&b);
	return all[t->number];
}

static void bind_value(struct recording *r, sqlite3_stmt *s, int at, const struct field *f,
		       const uint64_t *data)
{
	struct value v = field_get(f, data);

	switch (f->type) {
	case T_BOOL:
		sqlite3_bind_int(s, at, v.b);
		break;
	case T_F64:
		sqlite3_bind_double(s, at, v.f64);
		break;
	case T_STR:
	case T_JSON:
		sqlite3_bind_text(s, at, v.str, -1, SQLITE_STATIC);
		break;
	case T_REF:
		sqlite3_bind_int64(s, at, r->recent.nodes.v[v.ref].num);
		break;
	default:
		sqlite3_bind_int64(s, at, v.i64);
	}
}

static int step(sqlite3_stmt *s)
{
	int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : -EIO;

	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return rc;
}

/* Most of what an interval names is as it was: a row is written again only when it changed. */
static bool is_written(const struct type *t, uint64_t measured, const uint64_t *data, struct row *row)
{
	/* Texts are interned in the graph: equal ones have equal addresses. */
	uint64_t stamp = hash_bytes(data, t->size, measured) | 1;

	if (row->stamp == stamp)
		return true;
	row->stamp = stamp;
	return false;
}

static int write_row(struct recording *r, const struct type *t, uint64_t measured,
		     const uint64_t *data, struct row *row)
{
	sqlite3_stmt *s;

	if (is_written(t, measured, data, row))
		return 0;
	s = row_statement(r, t, false);
	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, row->num);
	for (int i = 0; i < t->nfields; i++)
		if (measured & (1ull << i))
			bind_value(r, s, i + 2, &t->fields[i], data);
	return step(s);
}

/* What this interval added, and how values stood in it; nothing when there is neither. */
static int write_series(struct recording *r, const struct type *t, uint64_t measured,
			const uint64_t *data, uint32_t num)
{
	sqlite3_stmt *s;
	int at = 3;
	bool any = false;

	if (!db_has_series(t))
		return 0;
	s = row_statement(r, t, true);
	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, (int64_t)r->intervals);
	sqlite3_bind_int64(s, 2, num);
	for (int i = 0; i < t->nfields; i++) {
		if (!db_in_series(&t->fields[i]))
			continue;
		if (measured & (1ull << i)) {
			/* That a value was 0 is worth a row; that a sum grew by 0 is not. */
			any |= t->fields[i].merge == GAUGE ||
			       field_get(&t->fields[i], data).u64 != 0;
			bind_value(r, s, at, &t->fields[i], data);
		}
		at++;
	}
	if (any)
		return step(s);
	sqlite3_clear_bindings(s);
	return 0;
}

/* @param at in counts */
static void count_new(struct recording *r, size_t at, struct row *row)
{
	if (!row->is_new)
		return;
	row->is_new = false;
	r->counts[at]++;
	r->counted = true;
}

static int write_node(struct recording *r, uint32_t index)
{
	const struct node *n = r->recent.g.nodes.v[index];
	struct row *row = &r->recent.nodes.v[index];

	count_new(r, n->type->number, row);
	if (n->extra) {
		sqlite3_bind_text(r->node_extra, 1, n->extra, -1, SQLITE_STATIC);
		sqlite3_bind_int64(r->node_extra, 2, row->num);
		if (step(r->node_extra))
			return -EIO;
	}
	return write_row(r, n->type, n->measured, n->data, row);
}

static int write_edge(struct recording *r, uint32_t index)
{
	const struct edge *d = r->recent.g.edges.v[index];
	struct row *row = &r->recent.edges.v[index];
	sqlite3_stmt *s = r->edge_head;

	if (row->is_new || d->extra || d->has_weight) {
		sqlite3_bind_int64(s, 1, row->num);
		sqlite3_bind_text(s, 2, d->type->name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 3, r->recent.nodes.v[d->source].num);
		sqlite3_bind_int64(s, 4, r->recent.nodes.v[d->target].num);
		if (d->has_weight)
			sqlite3_bind_double(s, 5, d->weight);
		sqlite3_bind_text(s, 6, d->extra, -1, SQLITE_STATIC);
		if (step(s))
			return -EIO;
	}
	count_new(r, n_entity_types + d->type->number, row);
	return d->type->nfields ? write_row(r, d->type, d->measured, d->data, row) : 0;
}

static int write_counts(struct recording *r)
{
	sqlite3_stmt *s = prepare(r, "REPLACE INTO type_count VALUES(?,?,?)");
	int rc = s ? 0 : -EIO;

	for (size_t i = 0; !rc && i < n_entity_types + n_edge_types; i++) {
		bool edge = i >= n_entity_types;

		if (!r->counts[i])
			continue;
		sqlite3_bind_text(s, 1, edge ? "edge" : "entity", -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 2, edge ? edge_types[i - n_entity_types]->name : entity_types[i]->name,
				  -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 3, (int64_t)r->counts[i]);
		rc = step(s);
	}
	sqlite3_finalize(s);
	r->counted = false;
	return rc;
}

static int write_part(struct recording *r, const struct graph *part, const uint32_t *nodes,
		      const uint32_t *edges)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < part->nodes.n; i++) {
		const struct node *n = part->nodes.v[i];

		rc = write_node(r, nodes[i]);
		rc = rc ?: write_series(r, n->type, n->measured, n->data, r->recent.nodes.v[nodes[i]].num);
	}
	for (size_t i = 0; !rc && i < part->edges.n; i++) {
		const struct edge *d = part->edges.v[i];

		rc = write_edge(r, edges[i]);
		rc = rc ?: write_series(r, d->type, d->measured, d->data, r->recent.edges.v[edges[i]].num);
	}
	return !rc && r->counted ? write_counts(r) : rc;
}

static int write_interval(struct recording *r, uint64_t start_ns, uint64_t end_ns)
{
	sqlite3_bind_int64(r->interval, 1, (int64_t)r->intervals);
	sqlite3_bind_int64(r->interval, 2, (int64_t)start_ns);
	sqlite3_bind_int64(r->interval, 3, (int64_t)end_ns);
	return step(r->interval);
}

static int prepare_all(struct recording *r)
{
	if (r->interval)
		return 0;
	r->node_extra = prepare(r, "UPDATE entity SET extra=? WHERE num=?");
	r->edge_head = prepare(r, "REPLACE INTO edge VALUES(?,?,?,?,?,?)");
	r->interval = prepare(r, "INSERT INTO interval VALUES(?,?,?)");
	return r->node_extra && r->edge_head && r->interval ? 0 : -EIO;
}

int recording_add(struct recording *r, const struct graph *part, uint64_t start_ns, uint64_t end_ns,
		  struct err *e)
{
	uint32_t *nodes = mem_alloc((part->nodes.n + 1) * sizeof(*nodes));
	uint32_t *edges = mem_alloc((part->edges.n + 1) * sizeof(*edges));
	int rc = prepare_all(r);

	rc = rc ?: db_run(r->db, "BEGIN");
	rc = rc ?: recent_add(&r->recent, part, r->intervals, nodes, edges);
	rc = rc ?: write_part(r, part, nodes, edges);
	rc = rc ?: write_interval(r, start_ns, end_ns);
	rc = rc ?: db_run(r->db, "COMMIT");
	if (rc) {
		rc = db_fail(r->db, e, "write recording", r->path);
		db_run(r->db, "ROLLBACK");
	} else {
		recent_sweep(&r->recent, r->intervals);
	}
	r->intervals++;
	free(nodes);
	free(edges);
	return rc;
}

static int put_meta(sqlite3_stmt *s, const char *key, const char *text, uint64_t number)
{
	sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
	if (text)
		sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_int64(s, 2, (int64_t)number);
	return step(s);
}

static int write_meta(struct recording *r, const struct snapshot_meta *m)
{
	sqlite3_stmt *s = prepare(r, "REPLACE INTO meta VALUES(?,?)");
	int rc = s ? 0 : -EIO;

	rc = rc ?: put_meta(s, "schema_version", NULL, DB_SCHEMA_VERSION);
	rc = rc ?: put_meta(s, "start_ns", NULL, m->start_ns);
	rc = rc ?: put_meta(s, "window_ns", NULL, m->window_ns);
	rc = rc ?: put_meta(s, "complete", NULL, m->complete);
	if (m->tool)
		rc = rc ?: put_meta(s, "tool", m->tool, 0);
	if (m->options)
		rc = rc ?: put_meta(s, "options", m->options, 0);
	if (m->env)
		rc = rc ?: put_meta(s, "env", m->env, 0);
	sqlite3_finalize(s);
	return rc;
}

static int write_status(struct recording *r, const struct graph *about)
{
	sqlite3_stmt *s = prepare(r, "INSERT INTO status VALUES(?,?,?,?)");
	int rc = s ? 0 : -EIO;

	vec_for(&about->status, it) {
		sqlite3_bind_text(s, 1, it->source, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 2, it->state, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, it->rung, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 4, it->reason, -1, SQLITE_STATIC);
		rc = rc ?: step(s);
	}
	sqlite3_finalize(s);
	return rc;
}

static int write_numbers(struct recording *r, const struct graph *about)
{
	sqlite3_stmt *lost = prepare(r, "INSERT INTO lost VALUES(?,?,?)");
	sqlite3_stmt *cost = prepare(r, "INSERT INTO cost VALUES(?,?,?)");
	int rc = lost && cost ? 0 : -EIO;

	vec_for(&about->losses, it) {
		sqlite3_bind_text(lost, 1, it->source, -1, SQLITE_STATIC);
		sqlite3_bind_text(lost, 2, it->cause, -1, SQLITE_STATIC);
		sqlite3_bind_int64(lost, 3, (int64_t)it->count);
		rc = rc ?: step(lost);
	}
	vec_for(&about->costs, it) {
		sqlite3_bind_text(cost, 1, it->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(cost, 2, it->unit, -1, SQLITE_STATIC);
		sqlite3_bind_double(cost, 3, it->value);
		rc = rc ?: step(cost);
	}
	sqlite3_finalize(lost);
	sqlite3_finalize(cost);
	return rc;
}

int recording_describe(struct recording *r, const struct graph *about, struct err *e)
{
	int rc = db_run(r->db, "BEGIN; DELETE FROM status; DELETE FROM lost; DELETE FROM cost");

	rc = rc ?: write_meta(r, &about->meta);
	rc = rc ?: write_status(r, about);
	rc = rc ?: write_numbers(r, about);
	rc = rc ?: db_run(r->db, "COMMIT");
	if (rc) {
		rc = db_fail(r->db, e, "write recording", r->path);
		db_run(r->db, "ROLLBACK");
	}
	return rc;
}

static void finalize_all(sqlite3_stmt **s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sqlite3_finalize(s[i]);
	free(s);
}

static void finalize(struct recording *r)
{
	sqlite3_finalize(r->node_extra);
	sqlite3_finalize(r->edge_head);
	sqlite3_finalize(r->interval);
	finalize_all(r->node_row, n_entity_types);
	finalize_all(r->edge_row, n_edge_types);
	finalize_all(r->node_series, n_entity_types);
	finalize_all(r->edge_series, n_edge_types);
	r->node_extra = r->edge_head = r->interval = NULL;
	r->node_row = r->edge_row = r->node_series = r->edge_series = NULL;
}

int recording_close(struct recording *r, struct err *e)
{
	int rc = 0;

	if (!r)
		return 0;
	finalize(r);
	/*
	 * One file without a journal beside it, so that it can be copied and mailed. While somebody goes on
	 * reading it that is not to be had: all is there, part of it in the journal.
	 */
	sqlite3_busy_timeout(r->db, CLOSE_BUSY_MS);
	if (db_run(r->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE") &&
	    (sqlite3_errcode(r->db) & 0xff) != SQLITE_BUSY)
		rc = db_fail(r->db, e, "close recording", r->path);
	recording_drop(r);
	return rc;
}

void recording_drop(struct recording *r)
{
	if (!r)
		return;
	if (r->node_row)
		finalize(r);
	recent_done(&r->recent);
	sqlite3_close_v2(r->db);
	free(r->counts);
	free(r->path);
	free(r);
}
