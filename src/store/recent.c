/* The part of a recording's totals that is kept in memory while it is written. */
#include "recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"

#define SWEEP_ABOVE    (4u << 20) /* bytes */
#define KEPT_INTERVALS 10

struct recall {
	sqlite3_stmt *insert, *same_id, *entity, *same_ends;
	sqlite3_stmt **node_row, **edge_row, **node_keys; /* by type */
};

void recent_init(struct recent *r)
{
	memset(r, 0, sizeof(*r));
	r->sweep_above = SWEEP_ABOVE;
	graph_init(&r->g);
}

static void recall_free(struct recall *c)
{
	if (!c)
		return;
	sqlite3_finalize(c->insert);
	sqlite3_finalize(c->same_id);
	sqlite3_finalize(c->entity);
	sqlite3_finalize(c->same_ends);
	for (size_t i = 0; i < n_entity_types; i++) {
		sqlite3_finalize(c->node_row[i]);
		sqlite3_finalize(c->node_keys[i]);
	}
	for (size_t i = 0; i < n_edge_types; i++)
		sqlite3_finalize(c->edge_row[i]);
	free(c->node_row);
	free(c->node_keys);
	free(c->edge_row);
	free(c);
}

void recent_done(struct recent *r)
{
	recall_free(r->recall);
	graph_done(&r->g);
	vec_done(&r->nodes);
	vec_done(&r->edges);
	idmap_done(&r->node_by_num);
}

static sqlite3_stmt *prepare(struct recent *r, const char *sql)
{
	sqlite3_stmt *s = NULL;

	sqlite3_prepare_v3(r->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL);
	return s;
}

static int recall_open(struct recent *r)
{
	struct recall *c = r->recall;

	if (c)
		return 0;
	c = r->recall = mem_alloc(sizeof(*c));
	c->node_keys = mem_alloc(n_entity_types * sizeof(*c->node_keys));
	c->node_row = mem_alloc(n_entity_types * sizeof(*c->node_row));
	c->edge_row = mem_alloc(n_edge_types * sizeof(*c->edge_row));
	c->insert = prepare(r, "INSERT INTO entity VALUES(?,?,?,?,NULL)");
	/* '$' follows '#'. */
	c->same_id = prepare(r, "SELECT count(*) FROM entity"
				" WHERE id=?1 OR (id>?1||'#' AND id<?1||'$')");
	c->entity = prepare(r, "SELECT type, namespace, extra FROM entity WHERE num=?");
	c->same_ends = prepare(r, "SELECT num, extra, weight FROM edge"
				  " WHERE source=? AND target=? AND type=?");
	return c->insert && c->same_id && c->entity && c->same_ends ? 0 : -EIO;
}

static sqlite3_stmt *row_query(struct recent *r, const struct type *t)
{
	sqlite3_stmt **s = (t->kind == KIND_EDGE ? r->recall->edge_row : r->recall->node_row) + t->number;
	struct strbuf b = {0};

	if (!*s) {
		strbuf_add(&b, "SELECT * FROM ");
		db_table(&b, t);
		strbuf_add(&b, " WHERE num=?");
		*s = prepare(r, b.s);
		strbuf_done(&b);
	}
	return *s;
}

static void set_row(struct recent *r, bool edge, uint32_t index, uint32_t num)
{
	struct row *row;

	if (edge) {
		while (r->edges.n <= index)
			vec_add(&r->edges);
		row = &r->edges.v[index];
	} else {
		while (r->nodes.n <= index)
			vec_add(&r->nodes);
		row = &r->nodes.v[index];
		idmap_put(&r->node_by_num, num, 0, index);
	}
	row->num = num;
}

static int recall_node(struct recent *r, uint32_t num, uint32_t *ret);

static int column_value(struct recent *r, sqlite3_stmt *s, int c, const struct field *f, struct value *v)
{
	v->type = f->type;
	switch (f->type) {
	case T_BOOL:
		v->b = sqlite3_column_int(s, c) != 0;
		return 0;
	case T_F64:
		v->f64 = sqlite3_column_double(s, c);
		return 0;
	case T_STR:
	case T_JSON:
		v->str = graph_str(&r->g, (const char *)sqlite3_column_text(s, c) ?: "");
		return 0;
	case T_REF:
		return recall_node(r, (uint32_t)sqlite3_column_int64(s, c), &v->ref);
	default:
		v->i64 = sqlite3_column_int64(s, c);
		return 0;
	}
}

/* The fields of a row of a table that this program made: the number, then the fields in order. */
static int recall_fields(struct recent *r, const struct type *t, uint32_t num, uint64_t *data,
			 uint64_t *measured)
{
	sqlite3_stmt *s = t->nfields ? row_query(r, t) : NULL;
	struct value v[FIELDS_MAX];
	int rc = 0;

	if (!t->nfields)
		return 0;
	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, num);
	if (sqlite3_step(s) == SQLITE_ROW)
		for (int i = 0; !rc && i < t->nfields; i++) {
			if (sqlite3_column_type(s, i + 1) == SQLITE_NULL)
				continue;
			rc = column_value(r, s, i + 1, &t->fields[i], &v[i]);
			*measured |= 1ull << i;
		}
	sqlite3_reset(s);
	for (int i = 0; !rc && i < t->nfields; i++)
		if (*measured & (1ull << i))
			field_set(&t->fields[i], data, &v[i]);
	return rc;
}

/* An entity as the file has it, begun but not added. */
static int recall_draft(struct recent *r, uint32_t num, struct node **ret)
{
	sqlite3_stmt *s = r->recall->entity;
	const struct type *t = NULL;
	const char *ns = NULL, *extra = NULL, *name;

	sqlite3_bind_int64(s, 1, num);
	if (sqlite3_step(s) == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(s, 0);
		t = name ? type_find(KIND_ENTITY, name) : NULL;
		name = (const char *)sqlite3_column_text(s, 1);
		ns = name ? graph_str(&r->g, name) : NULL;
		name = (const char *)sqlite3_column_text(s, 2);
		extra = name ? graph_str(&r->g, name) : NULL;
	}
	sqlite3_reset(s);
	if (!t)
		return -EIO;
	*ret = graph_new_node(&r->g, t);
	(*ret)->ns = ns ?: (*ret)->ns;
	(*ret)->extra = extra;
	return recall_fields(r, t, num, (*ret)->data, &(*ret)->measured);
}

/* What an observation refers to and did not name itself. */
static int recall_node(struct recent *r, uint32_t num, uint32_t *ret)
{
	struct node *n;
	int rc;

	*ret = idmap_get(&r->node_by_num, num, 0);
	if (*ret != IDMAP_NONE)
		return 0;
	rc = recall_draft(r, num, &n);
	if (rc)
		return rc;
	*ret = graph_add_node(&r->g, n)->index;
	set_row(r, false, *ret, num);
	return 0;
}

static bool same_keys(const struct type *t, uint64_t ma, const uint64_t *a, uint64_t mb, const uint64_t *b)
{
	for (int i = 0; i < t->nfields; i++) {
		const struct field *f = &t->fields[i];
		struct value x = {0}, y = {0};

		if (f->key == KEY_NONE)
			continue;
		if ((ma ^ mb) & (1ull << i))
			return false;
		if (!(ma & (1ull << i)))
			continue;
		x = field_get(f, a);
		y = field_get(f, b);
		/* Texts are interned. */
		if (f->type == T_F64 ? x.f64 != y.f64 : f->type == T_BOOL ? x.b != y.b
			  : f->type == T_REF ? x.ref != y.ref : x.u64 != y.u64)
			return false;
	}
	return true;
}

/* The file's values came first: what was just added is the later observation. */
static void merge_older_node(struct recent *r, struct node *n, const struct node *older)
{
	struct node *later = graph_new_node(&r->g, n->type);

	later->ns = n->ns;
	later->extra = n->extra;
	later->measured = n->measured;
	memcpy(later->data, n->data, n->type->size);
	n->extra = older->extra;
	n->measured = older->measured;
	memcpy(n->data, older->data, n->type->size);
	graph_add_node(&r->g, later);
}

static void merge_older_edge(struct recent *r, struct edge *d, const struct edge *older)
{
	struct edge *later = graph_new_edge(&r->g, d->type, d->source, d->target);

	later->extra = d->extra;
	later->measured = d->measured;
	later->has_weight = d->has_weight;
	later->weight = d->weight;
	memcpy(later->data, d->data, d->type->size);
	d->extra = older->extra;
	d->measured = older->measured;
	d->has_weight = older->has_weight;
	d->weight = older->weight;
	memcpy(d->data, older->data, d->type->size);
	graph_add_edge(&r->g, later);
}

/* Entities of a type by their key fields; the file has an index for it. */
static sqlite3_stmt *keys_query(struct recent *r, const struct type *t)
{
	sqlite3_stmt **s = &r->recall->node_keys[t->number];
	struct strbuf b = {0};
	const char *sep = " WHERE ";

	if (*s)
		return *s;
	strbuf_add(&b, "SELECT num FROM ");
	db_table(&b, t);
	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].key != KEY_NONE) {
			strbuf_addf(&b, "%s%s IS ?", sep, t->fields[i].name);
			sep = " AND ";
		}
	*s = prepare(r, b.s);
	strbuf_done(&b);
	return *s;
}

static void bind_key(sqlite3_stmt *s, int at, const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	if (f->type == T_STR || f->type == T_JSON)
		sqlite3_bind_text(s, at, v.str, -1, SQLITE_STATIC);
	else if (f->type == T_F64)
		sqlite3_bind_double(s, at, v.f64);
	else if (f->type == T_BOOL)
		sqlite3_bind_int(s, at, v.b);
	else
		sqlite3_bind_int64(s, at, v.i64);
}

/* @param ret_num of the entity in the file with that type, host and keys; 0: there is none */
static int find_same(struct recent *r, const struct node *n, uint32_t *ret_num, struct node **ret_older)
{
	sqlite3_stmt *s = keys_query(r, n->type);
	int at = 1, step = SQLITE_DONE, rc = s ? 0 : -EIO;

	*ret_num = 0;
	for (int i = 0; !rc && i < n->type->nfields; i++) {
		if (n->type->fields[i].key == KEY_NONE)
			continue;
		if (n->measured & (1ull << i))
			bind_key(s, at, &n->type->fields[i], n->data);
		at++;
	}
	while (!rc && !*ret_num && (step = sqlite3_step(s)) == SQLITE_ROW) {
		uint32_t num = (uint32_t)sqlite3_column_int64(s, 0);

		rc = recall_draft(r, num, ret_older);
		if (!rc && (*ret_older)->ns == n->ns)
			*ret_num = num;
	}
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	if (!rc && !*ret_num && step != SQLITE_DONE)
		rc = -EIO;
	return rc;
}

/* @return 1: the file has it, and it was merged; 0: it has not */
static int find_node(struct recent *r, uint32_t index)
{
	struct node *n = r->g.nodes.v[index], *older;
	uint32_t num;
	int rc = find_same(r, n, &num, &older);

	if (rc || !num)
		return rc;
	merge_older_node(r, n, older);
	set_row(r, false, index, num);
	return 1;
}

/* The id that reading the file gives it: those that would be equal are numbered. */
static int make_id(struct recent *r, uint32_t index, struct strbuf *b)
{
	sqlite3_stmt *s = r->recall->same_id;
	int64_t n = -1;

	if (!r->partial) {
		strbuf_add(b, graph_node_id(&r->g, index));
		return 0;
	}
	graph_id_base(b, r->g.nodes.v[index]);
	sqlite3_bind_text(s, 1, b->s, -1, SQLITE_TRANSIENT);
	if (sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	if (n > 0)
		strbuf_addf(b, "#%lld", (long long)n + 1);
	return n < 0 ? -EIO : 0;
}

/* At once: the next one of the same interval may have the same id. */
static int insert(struct recent *r, uint32_t index, const char *id)
{
	const struct node *n = r->g.nodes.v[index];
	sqlite3_stmt *s = r->recall->insert;
	int rc;

	sqlite3_bind_int64(s, 1, r->nodes.v[index].num);
	sqlite3_bind_text(s, 2, id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, n->type->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 4, n->ns, -1, SQLITE_STATIC);
	rc = sqlite3_step(s) == SQLITE_DONE ? 0 : -EIO;
	sqlite3_reset(s);
	return rc;
}

static int number_node(struct recent *r, uint32_t index)
{
	struct strbuf b = {0};
	int rc = r->partial ? find_node(r, index) : 0;

	if (!rc)
		rc = make_id(r, index, &b);
	else if (rc > 0)
		return 0;
	if (!rc) {
		set_row(r, false, index, ++r->last_node);
		r->nodes.v[index].is_new = true;
		rc = insert(r, index, b.s);
	}
	strbuf_done(&b);
	return rc;
}

/* @return 1: the file has it, and it was merged; 0: it has not */
static int find_edge(struct recent *r, struct edge *d)
{
	sqlite3_stmt *s = r->recall->same_ends;
	int step, found = 0;

	sqlite3_bind_int64(s, 1, r->nodes.v[d->source].num);
	sqlite3_bind_int64(s, 2, r->nodes.v[d->target].num);
	sqlite3_bind_text(s, 3, d->type->name, -1, SQLITE_STATIC);
	while (!found && (step = sqlite3_step(s)) == SQLITE_ROW) {
		struct edge *older = graph_new_edge(&r->g, d->type, d->source, d->target);
		uint32_t num = (uint32_t)sqlite3_column_int64(s, 0);
		const char *extra = (const char *)sqlite3_column_text(s, 1);

		older->extra = extra ? graph_str(&r->g, extra) : NULL;
		older->has_weight = sqlite3_column_type(s, 2) != SQLITE_NULL;
		older->weight = sqlite3_column_double(s, 2);
		found = recall_fields(r, d->type, num, older->data, &older->measured);
		if (found < 0 ||
		    !same_keys(d->type, d->measured, d->data, older->measured, older->data))
			continue;
		merge_older_edge(r, d, older);
		set_row(r, true, d->index, num);
		found = 1;
	}
	sqlite3_reset(s);
	return found || step == SQLITE_DONE ? found : -EIO;
}

static int number_edge(struct recent *r, uint32_t index)
{
	struct edge *d = r->g.edges.v[index];
	int rc = 0;

	if (r->partial && !r->nodes.v[d->source].is_new && !r->nodes.v[d->target].is_new)
		rc = find_edge(r, d);
	if (!rc) {
		set_row(r, true, index, ++r->last_edge);
		r->edges.v[index].is_new = true;
	}
	return rc < 0 ? rc : 0;
}

int recent_add(struct recent *r, const struct graph *part, uint64_t interval, uint32_t *ret_nodes,
	       uint32_t *ret_edges)
{
	size_t old_nodes = r->g.nodes.n, old_edges = r->g.edges.n;
	int rc = recall_open(r);

	graph_merge(&r->g, part, ret_nodes, ret_edges);
	for (size_t i = old_nodes; !rc && i < r->g.nodes.n; i++)
		if (i >= r->nodes.n || !r->nodes.v[i].num)
			rc = number_node(r, (uint32_t)i);
	for (size_t i = old_edges; !rc && i < r->g.edges.n; i++)
		rc = number_edge(r, (uint32_t)i);
	for (size_t i = 0; !rc && i < part->nodes.n; i++)
		r->nodes.v[ret_nodes[i]].touched = interval;
	for (size_t i = 0; !rc && i < part->edges.n; i++)
		r->edges.v[ret_edges[i]].touched = interval;
	return rc;
}

static void sweep(struct recent *r, uint64_t since)
{
	size_t n = r->g.nodes.n, m = r->g.edges.n;
	bool *keep_nodes = mem_alloc(n + 1), *keep_edges = mem_alloc(m + 1);
	uint32_t *nodes = mem_alloc((n + 1) * sizeof(*nodes)), *edges = mem_alloc((m + 1) * sizeof(*edges));
	struct recent kept = {.db = r->db, .recall = r->recall, .last_node = r->last_node,
			      .last_edge = r->last_edge, .partial = true};

	for (size_t i = 0; i < n; i++)
		keep_nodes[i] = r->nodes.v[i].touched >= since;
	for (size_t i = 0; i < m; i++)
		keep_edges[i] = r->edges.v[i].touched >= since;
	graph_init(&kept.g);
	graph_merge_some(&kept.g, &r->g, keep_nodes, keep_edges, nodes, edges);
	for (size_t i = 0; i < n; i++)
		if (nodes[i] != NODE_NONE) {
			set_row(&kept, false, nodes[i], r->nodes.v[i].num);
			kept.nodes.v[nodes[i]].touched = r->nodes.v[i].touched;
		}
	for (size_t i = 0; i < m; i++)
		if (edges[i] != NODE_NONE) {
			set_row(&kept, true, edges[i], r->edges.v[i].num);
			kept.edges.v[edges[i]].touched = r->edges.v[i].touched;
		}
	kept.sweep_above = kept.g.arena.used_bytes / 2 * 3 + SWEEP_ABOVE;
	r->recall = NULL;
	recent_done(r);
	*r = kept;
	free(keep_nodes);
	free(keep_edges);
	free(nodes);
	free(edges);
}

void recent_sweep(struct recent *r, uint64_t interval)
{
	if (r->g.arena.used_bytes > r->sweep_above && interval > KEPT_INTERVALS)
		sweep(r, interval - KEPT_INTERVALS);
}
