/* Recordings in: whole, or only what a question needs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "db.h"
#include "recording.h"
#include "stored_parts.h"

#define NUM_MAX (64u << 20) /* entities or relations in one recording: a bound for hostile files */

struct stored {
	sqlite3 *db;
	char *path;
	uint32_t max_node, max_edge;
	/* by type: the statement that reads its fields, and which field each column is */
	struct type_query {
		sqlite3_stmt *s;
		bool asked;
		int8_t column[FIELDS_MAX]; /* -1: the file has no such field */
	} *node_query, *edge_query;
	sqlite3_stmt *node_head, *edge_head;
	uint32_t *nodes; /* of the graph that was loaded whole: [max_node + 1] as in struct loading */
};

/* One loading into one graph. */
struct loading {
	struct stored *s;
	struct graph *g;
	uint32_t *nodes; /* [max_node + 1] index in the graph of each number, NODE_NONE: not yet */
	struct err *e;
	uint64_t unknown;
	unsigned depth;
};

static int bad(struct loading *l, const char *what)
{
	return err_msg(l->e, -EBADMSG, "read recording '%s': %s", l->s->path, what);
}

static int64_t ask_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t v = -1;

	if (!sqlite3_prepare_v2(db, sql, -1, &s, NULL) && sqlite3_step(s) == SQLITE_ROW)
		v = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return v;
}

/* SQLite takes what is missing of the last page for zeros. A journal beside it may hold more pages. */
static int check_size(struct stored *s, struct err *e)
{
	int64_t pages = ask_number(s->db, "PRAGMA page_count");
	int64_t page_bytes = ask_number(s->db, "PRAGMA page_size");
	struct strbuf b = {0};
	struct stat st, wal;
	bool has_wal;

	strbuf_addf(&b, "%s-wal", s->path);
	has_wal = !stat(b.s, &wal) && wal.st_size;
	strbuf_done(&b);
	if (pages < 0 || page_bytes < 0)
		return db_fail(s->db, e, "open recording", s->path);
	if (!has_wal && !stat(s->path, &st) && st.st_size / page_bytes < pages)
		return err_msg(e, -EBADMSG, "open recording '%s': the file was cut off", s->path);
	return 0;
}

static int check_file(struct stored *s, struct err *e)
{
	int64_t id = ask_number(s->db, "PRAGMA application_id"), version;
	int64_t nodes, edges;

	if (id < 0)
		return db_fail(s->db, e, "open recording", s->path);
	if (id != DB_APPLICATION_ID)
		return err_msg(e, -EBADMSG, "open recording '%s': an SQLite file, but no recording", s->path);
	version = ask_number(s->db, "PRAGMA user_version");
	if (version != DB_SCHEMA_VERSION) {
		err_msg(e, -EBADMSG, "open recording '%s': schema version %lld, this program reads %d",
			s->path, (long long)version, DB_SCHEMA_VERSION);
		return err_hint(e, "use the version of witty-profiler that wrote it, or a newer one");
	}
	nodes = ask_number(s->db, "SELECT coalesce(max(num), 0) FROM entity");
	edges = ask_number(s->db, "SELECT coalesce(max(num), 0) FROM edge");
	if (nodes < 0 || edges < 0)
		return db_fail(s->db, e, "open recording", s->path);
	if (nodes > NUM_MAX || edges > NUM_MAX)
		return err_msg(e, -EBADMSG, "open recording '%s': more than %u items", s->path, NUM_MAX);
	s->max_node = (uint32_t)nodes;
	s->max_edge = (uint32_t)edges;
	return check_size(s, e);
}

int stored_open(struct stored **ret, const char *path, struct err *e)
{
	struct stored *s;
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open recording '%s'", path);
	close(fd);
	s = mem_alloc(sizeof(*s));
	s->path = mem_strdup(path);
	s->node_query = mem_alloc(n_entity_types * sizeof(*s->node_query));
	s->edge_query = mem_alloc(n_edge_types * sizeof(*s->edge_query));
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL)) {
		rc = db_fail(s->db, e, "open recording", path);
		stored_close(s);
		return rc;
	}
	/* The file may come from anywhere: nothing in its schema may run code. */
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, 64 << 20);
	db_run(s->db, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0");
	rc = check_file(s, e);
	if (rc < 0) {
		stored_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void stored_close(struct stored *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < n_entity_types; i++)
		sqlite3_finalize(s->node_query[i].s);
	for (size_t i = 0; i < n_edge_types; i++)
		sqlite3_finalize(s->edge_query[i].s);
	sqlite3_finalize(s->node_head);
	sqlite3_finalize(s->edge_head);
	sqlite3_close_v2(s->db);
	free(s->node_query);
	free(s->edge_query);
	free(s->nodes);
	free(s->path);
	free(s);
}

static void find_columns(struct type_query *q, const struct type *t)
{
	memset(q->column, -1, sizeof(q->column));
	for (int c = 0; c < sqlite3_column_count(q->s) && c < 127; c++) {
		int f = type_field(t, sqlite3_column_name(q->s, c));

		if (f >= 0)
			q->column[f] = (int8_t)c;
	}
}

static int fail(struct loading *l)
{
	return db_fail(l->s->db, l->e, "read recording", l->s->path);
}

/* An older file may lack the table; whatever else prevents reading it is an error. */
static bool is_missing(struct stored *s, const struct type *t)
{
	struct strbuf b = {0};
	int64_t n;

	strbuf_add(&b, "SELECT count(*) FROM sqlite_schema WHERE name='");
	db_table(&b, t);
	strbuf_addc(&b, '\'');
	n = ask_number(s->db, b.s);
	strbuf_done(&b);
	return !n;
}

/* The fields of a type by number; a NULL statement in *ret: the file has no such table. */
static int type_query(struct loading *l, const struct type *t, struct type_query **ret)
{
	struct stored *s = l->s;
	struct type_query *q = (t->kind == KIND_EDGE ? s->edge_query : s->node_query) + t->number;
	struct strbuf b = {0};
	int rc = 0;

	*ret = q;
	if (q->asked)
		return 0;
	strbuf_add(&b, "SELECT * FROM ");
	db_table(&b, t);
	strbuf_add(&b, " WHERE num=?");
	if (!sqlite3_prepare_v2(s->db, b.s, -1, &q->s, NULL)) {
		find_columns(q, t);
	} else {
		fail(l);
		rc = is_missing(s, t) ? 0 : l->e->code;
	}
	q->asked = !rc;
	strbuf_done(&b);
	return rc;
}

static int load_node(struct loading *l, int64_t num, uint32_t *ret);

/* 1: a value, 0: none, < 0: error */
static int column_value(struct loading *l, sqlite3_stmt *s, int c, const struct field *f, struct value *v)
{
	const char *text;
	int rc;

	if (sqlite3_column_type(s, c) == SQLITE_NULL)
		return 0;
	v->type = f->type;
	switch (f->type) {
	case T_BOOL:
		v->b = sqlite3_column_int(s, c) != 0;
		return 1;
	case T_F64:
		v->f64 = sqlite3_column_double(s, c);
		return 1;
	case T_STR:
	case T_JSON:
		text = (const char *)sqlite3_column_text(s, c);
		if (!text)
			return bad(l, "out of memory");
		v->str = graph_str(l->g, text);
		return 1;
	case T_REF:
		rc = load_node(l, sqlite3_column_int64(s, c), &v->ref);
		if (rc < 0 || v->ref == NODE_NONE)
			return rc;
		return field_refers_to(f, l->g->nodes.v[v->ref]->type)
			       ? 1
			       : bad(l, "reference to an entity of the wrong type");
	default:
		v->i64 = sqlite3_column_int64(s, c);
		return f->type == T_U64 && v->i64 < 0 ? bad(l, "negative number") : 1;
	}
}

static int load_fields(struct loading *l, const struct type *t, int64_t num, uint64_t *data,
		       uint64_t *measured)
{
	struct type_query *q;
	struct value row[FIELDS_MAX];
	int8_t has[FIELDS_MAX] = {0};
	int step, rc = type_query(l, t, &q);

	if (rc < 0 || !q->s)
		return rc;
	sqlite3_bind_int64(q->s, 1, num);
	step = sqlite3_step(q->s);
	if (step == SQLITE_ROW)
		for (int i = 0; rc >= 0 && i < t->nfields; i++) {
			if (q->column[i] < 0)
				continue;
			rc = column_value(l, q->s, q->column[i], &t->fields[i], &row[i]);
			has[i] = rc == 1;
		}
	else if (step != SQLITE_DONE)
		rc = fail(l);
	sqlite3_reset(q->s);
	for (int i = 0; rc >= 0 && i < t->nfields; i++)
		if (has[i]) {
			field_set(&t->fields[i], data, &row[i]);
			*measured |= 1ull << i;
		}
	return rc < 0 ? rc : 0;
}

static const char *column_str(struct loading *l, sqlite3_stmt *s, int c)
{
	const char *text = (const char *)sqlite3_column_text(s, c);

	return text ? graph_str(l->g, text) : NULL;
}

static int load_node(struct loading *l, int64_t num, uint32_t *ret)
{
	sqlite3_stmt *s = l->s->node_head;
	const struct type *t = NULL;
	const char *ns = NULL, *extra = NULL, *name;
	struct node *n;
	int step, rc = 0;

	*ret = NODE_NONE;
	if (num < 1 || num > l->s->max_node)
		return bad(l, "reference to an entity that is not there");
	if (l->nodes[num] != NODE_NONE) {
		*ret = l->nodes[num];
		return 0;
	}
	if (l->depth > 8)
		return bad(l, "entities that refer to each other in a circle");
	sqlite3_bind_int64(s, 1, num);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(s, 0);
		t = name ? type_find(KIND_ENTITY, name) : NULL;
		l->unknown += !t;
		ns = column_str(l, s, 1);
		extra = column_str(l, s, 2);
	} else if (step != SQLITE_DONE) {
		rc = fail(l);
	}
	sqlite3_reset(s);
	if (!t)
		return rc;
	n = graph_new_node(l->g, t);
	n->ns = ns ?: n->ns;
	n->extra = extra;
	l->depth++;
	rc = load_fields(l, t, num, n->data, &n->measured);
	l->depth--;
	if (rc < 0)
		return rc;
	*ret = l->nodes[num] = graph_add_node(l->g, n)->index;
	return 0;
}

static int load_edge(struct loading *l, int64_t num)
{
	sqlite3_stmt *s = l->s->edge_head;
	const struct type *t = NULL;
	int64_t source = 0, target = 0;
	const char *name, *extra = NULL;
	uint32_t from, to;
	bool weighted = false;
	double weight = 0;
	struct edge *d;
	int step, rc = 0;

	sqlite3_bind_int64(s, 1, num);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(s, 0);
		t = name ? type_find(KIND_EDGE, name) : NULL;
		l->unknown += !t;
		source = sqlite3_column_int64(s, 1);
		target = sqlite3_column_int64(s, 2);
		weighted = sqlite3_column_type(s, 3) != SQLITE_NULL;
		weight = sqlite3_column_double(s, 3);
		extra = column_str(l, s, 4);
	} else if (step != SQLITE_DONE) {
		rc = fail(l);
	}
	sqlite3_reset(s);
	if (!t)
		return rc;
	rc = load_node(l, source, &from);
	rc = rc < 0 ? rc : load_node(l, target, &to);
	if (rc < 0 || from == NODE_NONE || to == NODE_NONE)
		return rc;
	d = graph_new_edge(l->g, t, from, to);
	d->has_weight = weighted;
	d->weight = weight;
	d->extra = extra;
	rc = t->nfields ? load_fields(l, t, num, d->data, &d->measured) : 0;
	if (rc < 0)
		return rc;
	graph_add_edge(l->g, d);
	return 0;
}

static int loading_begin(struct loading *l, struct stored *s, struct graph *g, struct err *e)
{
	*l = (struct loading){.s = s, .g = g, .e = e};
	if (!s->node_head &&
	    (sqlite3_prepare_v2(s->db, "SELECT type, namespace, extra FROM entity WHERE num=?", -1,
				&s->node_head, NULL) ||
	     sqlite3_prepare_v2(s->db, "SELECT type, source, target, weight, extra FROM edge WHERE num=?",
				-1, &s->edge_head, NULL)))
		return db_fail(s->db, e, "read recording", s->path);
	l->nodes = mem_alloc((s->max_node + 1) * sizeof(*l->nodes));
	memset(l->nodes, 0xff, (s->max_node + 1) * sizeof(*l->nodes));
	return 0;
}

static void loading_end(struct loading *l)
{
	char reason[96];

	free(l->nodes);
	if (!l->unknown)
		return;
	snprintf(reason, sizeof(reason), "%llu items of types that this version does not know",
		 (unsigned long long)l->unknown);
	graph_add_status(l->g, "reader", "reduced", NULL, reason);
}

static void load_meta_row(struct graph *g, const char *key, sqlite3_stmt *s)
{
	const char *text = (const char *)sqlite3_column_text(s, 1);
	uint64_t number = (uint64_t)sqlite3_column_int64(s, 1);

	if (!strcmp(key, "start_ns"))
		g->meta.start_ns = number;
	else if (!strcmp(key, "window_ns"))
		g->meta.window_ns = number;
	else if (!strcmp(key, "complete"))
		g->meta.complete = number != 0;
	else if (!strcmp(key, "tool") && text)
		g->meta.tool = graph_str(g, text);
	else if (!strcmp(key, "options") && text)
		g->meta.options = graph_str(g, text);
	else if (!strcmp(key, "env") && text)
		g->meta.env = graph_str(g, text);
}

static int each_row(struct stored *s, const char *sql, void (*row)(struct graph *g, sqlite3_stmt *s),
		    struct graph *g, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		row(g, st);
		rc = 0;
	}
	if (rc && rc != SQLITE_DONE)
		rc = db_fail(s->db, e, "read recording", s->path);
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

static const char *text_or(sqlite3_stmt *s, int c, const char *otherwise)
{
	const char *text = (const char *)sqlite3_column_text(s, c);

	return text ?: otherwise;
}

static void meta_row(struct graph *g, sqlite3_stmt *s)
{
	load_meta_row(g, text_or(s, 0, ""), s);
}

static void status_row(struct graph *g, sqlite3_stmt *s)
{
	graph_add_status(g, text_or(s, 0, ""), text_or(s, 1, ""), text_or(s, 2, NULL),
			 text_or(s, 3, NULL));
}

static void lost_row(struct graph *g, sqlite3_stmt *s)
{
	graph_add_loss(g, text_or(s, 0, ""), text_or(s, 1, ""), (uint64_t)sqlite3_column_int64(s, 2));
}

static void cost_row(struct graph *g, sqlite3_stmt *s)
{
	graph_add_cost(g, text_or(s, 0, ""), text_or(s, 1, ""), sqlite3_column_double(s, 2));
}

int stored_load_meta(struct stored *s, struct graph *g, struct err *e)
{
	int64_t begin, end, intervals;
	int rc = each_row(s, "SELECT key, value FROM meta", meta_row, g, e);

	rc = rc ?: each_row(s, "SELECT source, state, rung, reason FROM status", status_row, g, e);
	rc = rc ?: each_row(s, "SELECT source, cause, count FROM lost", lost_row, g, e);
	rc = rc ?: each_row(s, "SELECT name, unit, value FROM cost", cost_row, g, e);
	if (rc)
		return rc;
	intervals = ask_number(s->db, "SELECT count(*) FROM interval");
	if (intervals < 0)
		return db_fail(s->db, e, "read recording", s->path);
	g->meta.intervals = (uint64_t)intervals;
	/* A recording that was cut off has no final window: its intervals tell. */
	begin = ask_number(s->db, "SELECT coalesce(min(start_ns), 0) FROM interval");
	end = ask_number(s->db, "SELECT coalesce(max(end_ns), 0) FROM interval");
	if (!g->meta.complete && begin > 0 && end > begin) {
		g->meta.start_ns = (uint64_t)begin;
		g->meta.window_ns = (uint64_t)(end - begin);
	}
	return 0;
}

int stored_load(struct stored *s, struct graph *g, struct err *e)
{
	struct loading l;
	uint32_t index;
	int rc;

	/* One look at all rows: a recorder that is still at work changes them, and a lock a row costs more than it. */
	db_run(s->db, "BEGIN");
	rc = stored_load_meta(s, g, e);
	rc = rc ?: loading_begin(&l, s, g, e);
	if (rc < 0) {
		db_run(s->db, "ROLLBACK");
		return rc;
	}
	for (uint32_t i = 1; rc >= 0 && i <= s->max_node; i++)
		rc = load_node(&l, i, &index);
	for (uint32_t i = 1; rc >= 0 && i <= s->max_edge; i++)
		rc = load_edge(&l, i);
	free(s->nodes);
	s->nodes = TAKE(l.nodes);
	loading_end(&l);
	db_run(s->db, "ROLLBACK");
	return rc < 0 ? rc : 0;
}

uint32_t stored_node(const struct stored *s, int64_t num)
{
	return s->nodes && num >= 1 && num <= s->max_node ? s->nodes[num] : NODE_NONE;
}

sqlite3 *stored_db(const struct stored *s)
{
	return s->db;
}

int stored_fail(const struct stored *s, struct err *e)
{
	return db_fail(s->db, e, "read recording", s->path);
}

/* Edges of entity @p num, and the entities at their other ends onto @p next. */
static int load_edges_of(struct loading *l, sqlite3_stmt *q, int64_t num, void (*visit)(void *, int64_t),
			 void *next)
{
	int rc = 0;

	sqlite3_bind_int64(q, 1, num);
	while (rc >= 0 && sqlite3_step(q) == SQLITE_ROW) {
		visit(next, sqlite3_column_int64(q, 1));
		rc = load_edge(l, sqlite3_column_int64(q, 0));
	}
	sqlite3_reset(q);
	return rc;
}

struct num_list {
	VEC(int64_t) v;
};

static void visit(void *list, int64_t num)
{
	struct num_list *to = list;

	vec_push(&to->v, num);
}

static int load_hops(struct loading *l, sqlite3_stmt *q, int64_t num, unsigned hops)
{
	struct num_list now = {0}, next = {0};
	uint8_t *done = mem_alloc(l->s->max_node + 2);
	int rc = 0;

	visit(&now, num);
	for (unsigned h = 0; rc >= 0 && h < hops; h++) {
		vec_for(&now.v, it) {
			if (*it < 1 || *it > l->s->max_node || done[*it])
				continue;
			done[*it] = 1;
			rc = rc < 0 ? rc : load_edges_of(l, q, *it, visit, &next);
		}
		vec_done(&now.v);
		now = next;
		memset(&next, 0, sizeof(next));
	}
	vec_done(&now.v);
	free(done);
	return rc;
}

int stored_load_around(struct stored *s, struct graph *g, const char *id, unsigned hops, size_t limit,
		       struct err *e)
{
	static const char edges_of[] =
		"SELECT num, target FROM edge WHERE source=?1 UNION ALL "
		"SELECT num, source FROM edge WHERE target=?1 AND source<>?1 LIMIT ?2";
	sqlite3_stmt *find = NULL, *q = NULL;
	struct loading l = {0};
	int64_t num = 0;
	uint32_t index;
	int rc = 0;

	if (sqlite3_prepare_v2(s->db, "SELECT num FROM entity WHERE id=?", -1, &find, NULL) ||
	    sqlite3_prepare_v2(s->db, edges_of, -1, &q, NULL))
		rc = db_fail(s->db, e, "read recording", s->path);
	if (!rc) {
		sqlite3_bind_text(find, 1, id, -1, SQLITE_STATIC);
		if (sqlite3_step(find) == SQLITE_ROW)
			num = sqlite3_column_int64(find, 0);
		else
			rc = err_msg(e, -ENOENT, "no entity '%s' in '%s'", id, s->path);
	}
	rc = rc ?: loading_begin(&l, s, g, e);
	rc = rc ?: load_node(&l, num, &index);
	if (rc >= 0) {
		sqlite3_bind_int64(q, 2, (int64_t)limit);
		rc = load_hops(&l, q, num, hops);
	}
	sqlite3_finalize(find);
	sqlite3_finalize(q);
	loading_end(&l);
	return rc < 0 ? rc : 0;
}

int64_t stored_count(struct stored *s, const struct type *t)
{
	sqlite3_stmt *q = NULL;
	int64_t n = -1;

	if (sqlite3_prepare_v2(s->db, "SELECT coalesce(max(n), 0) FROM type_count WHERE kind=? AND type=?",
			       -1, &q, NULL))
		return -1;
	sqlite3_bind_text(q, 1, t->kind == KIND_EDGE ? "edge" : "entity", -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, t->name, -1, SQLITE_STATIC);
	if (sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return n;
}
