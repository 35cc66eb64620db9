/* Nodes and edges of one snapshot: identity, merging, ids, adjacency. */
#include "graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "strbuf.h"
#include "strtab.h"

/* Open addressing over item numbers. */
struct slots {
	struct slot {
		uint32_t item; /* plus one; 0: free */
		uint32_t hash; /* to skip most comparisons and to regrow; in the same cache line */
	} *v;
	size_t cap, n;
};

struct graph_private {
	struct slots nodes, edges; /* of the first ones; those behind were appended */
	struct slots ids;
	struct strtab strings;
	const char *local; /* "local", interned */
	struct node **spare_nodes; /* [n_entity_types] a merged draft, used again */
	struct edge **spare_edges;
	VEC(const char *) id_list; /* by node */
	size_t ids_of, adjacency_of_nodes, adjacency_of_edges;
	uint32_t *out, *in, *out_start, *in_start; /* compressed adjacency */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static void slots_done(struct slots *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

static void slots_place(struct slots *s, uint32_t item_plus_1, uint32_t hash)
{
	size_t i = hash & (s->cap - 1);

	while (s->v[i].item)
		i = (i + 1) & (s->cap - 1);
	s->v[i] = (struct slot){item_plus_1, hash};
}

static void slots_grow(struct slots *s)
{
	struct slots old = *s;

	if ((s->n + 1) * 10 <= s->cap * 7)
		return;
	s->cap = s->cap ? s->cap * 2 : 64;
	s->v = mem_alloc(s->cap * sizeof(*s->v));
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i].item)
			slots_place(s, old.v[i].item, old.v[i].hash);
	free(old.v);
}

static void slots_add(struct slots *s, size_t item, uint64_t hash)
{
	slots_grow(s);
	slots_place(s, (uint32_t)item + 1, (uint32_t)hash);
	s->n++;
}

/* Visit candidates with an equal hash: `for (size_t it = …; (i = slots_next(…)) != SIZE_MAX;)`. */
static size_t slots_next(const struct slots *s, uint64_t hash, size_t *at)
{
	if (!s->cap)
		return SIZE_MAX;
	if (*at == SIZE_MAX)
		*at = (uint32_t)hash & (s->cap - 1);
	else
		*at = (*at + 1) & (s->cap - 1);
	for (; s->v[*at].item; *at = (*at + 1) & (s->cap - 1))
		if (s->v[*at].hash == (uint32_t)hash)
			return s->v[*at].item - 1;
	return SIZE_MAX;
}

void graph_init(struct graph *g)
{
	memset(g, 0, sizeof(*g));
	arena_init(&g->arena);
	g->priv = mem_alloc(sizeof(*g->priv));
	strtab_init(&g->priv->strings, &g->arena);
	g->priv->spare_nodes = mem_alloc(n_entity_types * sizeof(struct node *));
	g->priv->spare_edges = mem_alloc(n_edge_types * sizeof(struct edge *));
	g->priv->local = graph_str(g, "local");
}

static void adjacency_drop(struct graph_private *p)
{
	free(p->out);
	free(p->in);
	free(p->out_start);
	free(p->in_start);
	p->out = p->in = p->out_start = p->in_start = NULL;
}

void graph_done(struct graph *g)
{
	struct graph_private *p = g->priv;

	if (!p)
		return;
	strtab_done(&p->strings);
	slots_done(&p->nodes);
	slots_done(&p->edges);
	slots_done(&p->ids);
	vec_done(&p->id_list);
	free(p->spare_nodes);
	free(p->spare_edges);
	adjacency_drop(p);
	free(p);
	vec_done(&g->nodes);
	vec_done(&g->edges);
	vec_done(&g->status);
	vec_done(&g->losses);
	vec_done(&g->costs);
	arena_done(&g->arena);
	memset(g, 0, sizeof(*g));
}

const char *graph_strn(struct graph *g, const char *s, size_t n)
{
	struct graph_private *p = g->priv;

	/* A graph, and its arena with it, may have been moved by assignment. */
	p->strings.arena = &g->arena;
	return strtab_intern(&p->strings, s, n);
}

const char *graph_str(struct graph *g, const char *s)
{
	return graph_strn(g, s, strlen(s));
}

bool graph_has_str(const struct graph *g, const char *s)
{
	return strtab_find(&g->priv->strings, s, strlen(s));
}

struct value field_get(const struct field *f, const uint64_t *data)
{
	const void *at = (const char *)data + f->offset;
	struct value v = {.type = f->type};

	switch (f->type) {
	case T_BOOL:
		v.b = *(const bool *)at;
		break;
	case T_I64:
		v.i64 = *(const int64_t *)at;
		break;
	case T_U64:
		v.u64 = *(const uint64_t *)at;
		break;
	case T_F64:
		v.f64 = *(const double *)at;
		break;
	case T_STR:
	case T_JSON:
		v.str = *(const char *const *)at;
		break;
	case T_REF:
		v.ref = *(const uint32_t *)at;
		break;
	}
	return v;
}

void field_set(const struct field *f, uint64_t *data, const struct value *v)
{
	void *at = (char *)data + f->offset;

	assert(f->type == v->type);
	switch (f->type) {
	case T_BOOL:
		*(bool *)at = v->b;
		break;
	case T_I64:
		*(int64_t *)at = v->i64;
		break;
	case T_U64:
		*(uint64_t *)at = v->u64;
		break;
	case T_F64:
		*(double *)at = v->f64;
		break;
	case T_STR:
	case T_JSON:
		*(const char **)at = v->str;
		break;
	case T_REF:
		*(uint32_t *)at = v->ref;
		break;
	}
}

/* Interned strings make the address stand for the text. */
static uint64_t value_bits(const struct value *v)
{
	switch (v->type) {
	case T_BOOL:
		return v->b;
	case T_STR:
	case T_JSON:
		return (uintptr_t)v->str;
	case T_REF:
		return v->ref;
	default:
		return v->u64;
	}
}

static uint64_t key_hash(const struct type *t, uint64_t measured, const uint64_t *data, uint64_t h)
{
	for (int i = 0; i < t->nfields; i++) {
		struct value v;

		if (t->fields[i].key == KEY_NONE || !(measured & (1ull << i)))
			continue;
		v = field_get(&t->fields[i], data);
		h = mix(h, value_bits(&v) + (uint64_t)i);
	}
	return h ^ (h >> 32);
}

static bool key_equal(const struct type *t, uint64_t ma, const uint64_t *a, uint64_t mb,
		      const uint64_t *b)
{
	for (int i = 0; i < t->nfields; i++) {
		struct value va, vb;

		if (t->fields[i].key == KEY_NONE)
			continue;
		if ((ma ^ mb) & (1ull << i))
			return false;
		if (!(ma & (1ull << i)))
			continue;
		va = field_get(&t->fields[i], a);
		vb = field_get(&t->fields[i], b);
		if (value_bits(&va) != value_bits(&vb))
			return false;
	}
	return true;
}

/* Times since 1970 need all 64 bits: as doubles, neighbours would be equal. */
static bool value_less(const struct value *a, const struct value *b)
{
	switch (a->type) {
	case T_BOOL:
		return a->b < b->b;
	case T_I64:
		return a->i64 < b->i64;
	case T_U64:
		return a->u64 < b->u64;
	case T_F64:
		return a->f64 < b->f64;
	default:
		return false;
	}
}

static void value_sum(struct value *a, const struct value *b)
{
	if (a->type == T_U64) {
		if (__builtin_add_overflow(a->u64, b->u64, &a->u64) || a->u64 > INT64_MAX)
			a->u64 = INT64_MAX;
	} else if (a->type == T_I64) {
		if (__builtin_add_overflow(a->i64, b->i64, &a->i64))
			a->i64 = b->i64 < 0 ? INT64_MIN : INT64_MAX;
	} else if (a->type == T_F64) {
		a->f64 += b->f64;
	}
}

/* Two observations of one field, by its rule. */
static struct value value_merge(enum merge rule, const struct value *old, const struct value *new)
{
	struct value sum = *old;

	switch (rule) {
	case LAST:
	case GAUGE:
		return *new;
	case FIRST:
		break;
	case SUM:
		value_sum(&sum, new);
		break;
	case MIN:
		return value_less(new, old) ? *new : *old;
	case MAX:
		return value_less(old, new) ? *new : *old;
	}
	return sum;
}

/*
 * Observed again: each field that the newcomer knows, by the field's rule; a copy replaces.
 *
 * @return whether @p into is other than before
 */
static bool fields_merge(const struct type *t, uint64_t *measured, uint64_t *into,
			 uint64_t new_measured, const uint64_t *from, bool replace)
{
	bool changed = (new_measured & ~*measured) != 0;

	for (uint64_t left = new_measured; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		const struct field *f = &t->fields[i];
		struct value old = field_get(f, into), new = field_get(f, from);

		if (!replace && (*measured & (1ull << i)))
			new = value_merge(f->merge, &old, &new);
		if (value_bits(&old) == value_bits(&new))
			continue;
		field_set(f, into, &new);
		changed = true;
	}
	*measured |= new_measured;
	return changed;
}

struct node *graph_new_node(struct graph *g, const struct type *t)
{
	struct node *n = g->priv->spare_nodes[t->number];

	assert(t->kind == KIND_ENTITY);
	if (n) {
		g->priv->spare_nodes[t->number] = NULL;
		memset(n, 0, sizeof(*n) + t->size);
	} else {
		n = arena_alloc(&g->arena, sizeof(*n) + t->size);
	}
	n->type = t;
	n->index = NODE_NONE;
	n->ns = g->priv->local;
	return n;
}

static uint64_t node_hash(const struct node *n)
{
	return key_hash(n->type, n->measured, n->data, mix(n->type->number, (uintptr_t)n->ns));
}

/* Those that were appended. */
static void index_nodes(struct graph *g)
{
	for (size_t i = g->priv->nodes.n; i < g->nodes.n; i++)
		slots_add(&g->priv->nodes, i, node_hash(g->nodes.v[i]));
}

struct node *graph_append_node(struct graph *g, struct node *draft)
{
	draft->index = (uint32_t)g->nodes.n;
	vec_push(&g->nodes, draft);
	return draft;
}

static struct node *add_node(struct graph *g, struct node *draft, bool replace)
{
	struct graph_private *p = g->priv;
	const struct type *t = draft->type;
	uint64_t h = node_hash(draft);
	size_t i;

	index_nodes(g);
	for (size_t at = SIZE_MAX; (i = slots_next(&p->nodes, h, &at)) != SIZE_MAX;) {
		struct node *n = g->nodes.v[i];

		if (n->type != t || n->ns != draft->ns ||
		    !key_equal(t, n->measured, n->data, draft->measured, draft->data))
			continue;
		g->rewrites += fields_merge(t, &n->measured, n->data, draft->measured, draft->data,
					    replace);
		if (draft->extra) {
			g->rewrites += n->extra != draft->extra;
			n->extra = draft->extra;
		}
		p->spare_nodes[t->number] = draft;
		return n;
	}
	slots_add(&p->nodes, g->nodes.n, h);
	return graph_append_node(g, draft);
}

struct node *graph_add_node(struct graph *g, struct node *draft)
{
	return add_node(g, draft, false);
}

struct node *graph_put_node(struct graph *g, struct node *draft)
{
	return add_node(g, draft, true);
}

struct edge *graph_new_edge(struct graph *g, const struct type *t, uint32_t source, uint32_t target)
{
	struct edge *e = g->priv->spare_edges[t->number];

	assert(t->kind == KIND_EDGE);
	if (e) {
		g->priv->spare_edges[t->number] = NULL;
		memset(e, 0, sizeof(*e) + t->size);
	} else {
		e = arena_alloc(&g->arena, sizeof(*e) + t->size);
	}
	e->type = t;
	e->source = source;
	e->target = target;
	return e;
}

static uint64_t edge_hash(const struct edge *d)
{
	return key_hash(d->type, d->measured, d->data, mix(mix(d->type->number, d->source), d->target));
}

static void index_edges(struct graph *g)
{
	for (size_t i = g->priv->edges.n; i < g->edges.n; i++)
		slots_add(&g->priv->edges, i, edge_hash(g->edges.v[i]));
}

struct edge *graph_append_edge(struct graph *g, struct edge *draft)
{
	assert(draft->source < g->nodes.n && draft->target < g->nodes.n);
	draft->index = (uint32_t)g->edges.n;
	vec_push(&g->edges, draft);
	return draft;
}

static struct edge *add_edge(struct graph *g, struct edge *draft, bool replace)
{
	struct graph_private *p = g->priv;
	const struct type *t = draft->type;
	uint64_t h = edge_hash(draft);
	size_t i;

	assert(draft->source < g->nodes.n && draft->target < g->nodes.n);
	index_edges(g);
	for (size_t at = SIZE_MAX; (i = slots_next(&p->edges, h, &at)) != SIZE_MAX;) {
		struct edge *e = g->edges.v[i];

		if (e->type != t || e->source != draft->source || e->target != draft->target ||
		    !key_equal(t, e->measured, e->data, draft->measured, draft->data))
			continue;
		fields_merge(t, &e->measured, e->data, draft->measured, draft->data, replace);
		if (draft->has_weight) {
			e->has_weight = true;
			e->weight = draft->weight;
		}
		if (draft->extra)
			e->extra = draft->extra;
		p->spare_edges[t->number] = draft;
		return e;
	}
	slots_add(&p->edges, g->edges.n, h);
	return graph_append_edge(g, draft);
}

struct edge *graph_add_edge(struct graph *g, struct edge *draft)
{
	return add_edge(g, draft, false);
}

struct edge *graph_put_edge(struct graph *g, struct edge *draft)
{
	return add_edge(g, draft, true);
}

void graph_add_status(struct graph *g, const char *source, const char *state, const char *rung,
		      const char *reason)
{
	struct status *s = vec_add(&g->status);

	s->source = graph_str(g, source);
	s->state = graph_str(g, state);
	s->rung = rung ? graph_str(g, rung) : NULL;
	s->reason = reason ? graph_str(g, reason) : NULL;
}

void graph_add_loss(struct graph *g, const char *source, const char *cause, uint64_t count)
{
	struct loss *l;

	if (!count)
		return;
	vec_for(&g->losses, it)
		if (!strcmp(it->source, source) && !strcmp(it->cause, cause)) {
			it->count += count;
			return;
		}
	l = vec_add(&g->losses);
	l->source = graph_str(g, source);
	l->cause = graph_str(g, cause);
	l->count = count;
}

void graph_add_cost(struct graph *g, const char *name, const char *unit, double value)
{
	struct cost *c = vec_add(&g->costs);

	c->name = graph_str(g, name);
	c->unit = graph_str(g, unit);
	c->value = value;
}

/* The last shown key that is measured, or the first one. */
static int last_shown_key(const struct node *n)
{
	int last = -1;

	for (int i = 0; i < n->type->nfields; i++)
		if (n->type->fields[i].key == KEY_SHOWN && (last < 0 || n->measured & (1ull << i)))
			last = i;
	return last;
}

void graph_id_base(struct strbuf *b, const struct node *n)
{
	int last = last_shown_key(n);

	strbuf_clear(b);
	strbuf_add(b, n->type->name);
	for (int i = 0; i <= last; i++) {
		const struct field *f = &n->type->fields[i];
		struct value v = field_get(f, n->data);

		if (f->key != KEY_SHOWN)
			continue;
		strbuf_addc(b, ':');
		if (!(n->measured & (1ull << i)))
			strbuf_addc(b, '?');
		else if (f->type == T_STR)
			strbuf_add(b, v.str);
		else
			strbuf_add_i64(b, v.i64);
	}
	if (strcmp(n->ns, "local")) {
		strbuf_addc(b, '@');
		strbuf_add(b, n->ns);
	}
}

static size_t id_lookup(const struct graph *g, const char *id)
{
	const struct graph_private *p = g->priv;
	uint64_t h = hash_bytes(id, strlen(id), 0);
	size_t i;

	for (size_t at = SIZE_MAX; (i = slots_next(&p->ids, h, &at)) != SIZE_MAX;)
		if (!strcmp(p->id_list.v[i], id))
			return i;
	return SIZE_MAX;
}

/* Give every node added since the last call its id; earlier ids stay as they are. */
static void ids_make(struct graph *g)
{
	struct graph_private *p = g->priv;
	struct strbuf b = {0};

	for (; p->ids_of < g->nodes.n; p->ids_of++) {
		size_t base;

		graph_id_base(&b, g->nodes.v[p->ids_of]);
		base = b.n;
		for (unsigned k = 2; id_lookup(g, b.s) != SIZE_MAX; k++) {
			b.n = base;
			strbuf_addf(&b, "#%u", k);
		}
		slots_add(&p->ids, p->ids_of, hash_bytes(b.s, b.n, 0));
		vec_push(&p->id_list, arena_strndup(&g->arena, b.s, b.n));
	}
	strbuf_done(&b);
}

const char *graph_node_id(struct graph *g, uint32_t node)
{
	assert(node < g->nodes.n);
	ids_make(g);
	return g->priv->id_list.v[node];
}

uint32_t graph_find(struct graph *g, const char *id)
{
	size_t i;

	ids_make(g);
	i = id_lookup(g, id);
	return i == SIZE_MAX ? NODE_NONE : (uint32_t)i;
}

/* Counting sort of the edge numbers by one end. */
static void adjacency_side(const struct graph *g, bool out, uint32_t **ret_list, uint32_t **ret_start)
{
	uint32_t *start = mem_alloc((g->nodes.n + 2) * sizeof(*start));
	uint32_t *list = mem_alloc((g->edges.n + 1) * sizeof(*list));

	for (size_t i = 0; i < g->edges.n; i++)
		start[(out ? g->edges.v[i]->source : g->edges.v[i]->target) + 2]++;
	for (size_t i = 2; i < g->nodes.n + 2; i++)
		start[i] += start[i - 1];
	for (size_t i = 0; i < g->edges.n; i++)
		list[start[(out ? g->edges.v[i]->source : g->edges.v[i]->target) + 1]++] = (uint32_t)i;
	*ret_list = list;
	*ret_start = start;
}

static void adjacency_make(struct graph *g)
{
	struct graph_private *p = g->priv;

	if (p->out && p->adjacency_of_nodes == g->nodes.n && p->adjacency_of_edges == g->edges.n)
		return;
	adjacency_drop(p);
	adjacency_side(g, true, &p->out, &p->out_start);
	adjacency_side(g, false, &p->in, &p->in_start);
	p->adjacency_of_nodes = g->nodes.n;
	p->adjacency_of_edges = g->edges.n;
}

struct edge_list graph_out(struct graph *g, uint32_t node)
{
	struct graph_private *p = g->priv;

	assert(node < g->nodes.n);
	adjacency_make(g);
	return (struct edge_list){p->out + p->out_start[node],
				  p->out_start[node + 1] - p->out_start[node]};
}

struct edge_list graph_in(struct graph *g, uint32_t node)
{
	struct graph_private *p = g->priv;

	assert(node < g->nodes.n);
	adjacency_make(g);
	return (struct edge_list){p->in + p->in_start[node],
				  p->in_start[node + 1] - p->in_start[node]};
}
