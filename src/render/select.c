/* Filters and order of lists: what a selection wants of a graph. */
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "render.h"

static bool has_name(struct graph *g, const struct node *n, const char *name)
{
	if (strstr(graph_node_id(g, n->index), name))
		return true;
	for (int i = 0; i < n->type->nfields; i++) {
		const struct field *f = &n->type->fields[i];

		if (f->type == T_STR && (n->measured & 1ull << i) &&
		    strstr(field_get(f, n->data).str, name))
			return true;
	}
	return false;
}

static bool in_container(struct graph *g, uint32_t node, const char *container)
{
	uint32_t p = process_of(g, node);
	struct edge_list out;

	if (g->nodes.v[node]->type == &container_type)
		return has_name(g, g->nodes.v[node], container);
	if (p == NODE_NONE)
		return false;
	out = graph_out(g, p);
	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];

		if (d->type == &run_on_type && has_name(g, g->nodes.v[d->target], container))
			return true;
	}
	return false;
}

/* The largest value in bytes of an entity or relation. */
static uint64_t most_bytes(const struct type *t, uint64_t measured, const uint64_t *data)
{
	uint64_t ret = 0;

	for (int i = 0; i < t->nfields; i++) {
		const struct field *f = &t->fields[i];

		if (f->unit == BYTES && f->type == T_U64 && (measured & 1ull << i) &&
		    field_get(f, data).u64 > ret)
			ret = field_get(f, data).u64;
	}
	return ret;
}

static bool is_enough(const struct graph *g, const struct selection *s, uint64_t bytes)
{
	if (bytes < s->min_bytes)
		return false;
	return !s->min_rate ||
	       (g->meta.window_ns &&
		(double)bytes * 1e9 / (double)g->meta.window_ns >= (double)s->min_rate);
}

static bool wants_node(struct graph *g, const struct selection *s, const struct node *n)
{
	if (s->type && s->type != n->type)
		return false;
	if ((s->min_bytes || s->min_rate) &&
	    !is_enough(g, s, most_bytes(n->type, n->measured, n->data)))
		return false;
	return (!s->name || has_name(g, n, s->name)) &&
	       (!s->container || in_container(g, n->index, s->container));
}

/* A relation is wanted for either of its ends. */
static bool wants_edge(struct graph *g, const struct selection *s, const struct edge *d)
{
	if (s->type && s->type != d->type)
		return false;
	if ((s->min_bytes || s->min_rate) &&
	    !is_enough(g, s, most_bytes(d->type, d->measured, d->data)))
		return false;
	if (s->name && !has_name(g, g->nodes.v[d->source], s->name) &&
	    !has_name(g, g->nodes.v[d->target], s->name))
		return false;
	return !s->container || in_container(g, d->source, s->container) ||
	       in_container(g, d->target, s->container);
}

struct weighed {
	uint64_t weight;
	uint32_t index;
};

static int compare_weighed(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

/* What people ask for first, whatever hangs on the rest. */
static uint64_t rank_of(const struct type *t)
{
	if (t == &process_type || t == &npu_type || t == &gpu_type || t == &container_type ||
	    t == &host_type)
		return 2ull << 40;
	return t == &thread_type || t == &shared_memory_type || t == &nic_type ||
		       t == &block_device_type
		   ? 1ull << 40
		   : 0;
}

/* Those that most hangs on come first. */
static void by_weight(struct graph *g, struct index_list *list, bool edges)
{
	struct weighed *all = mem_alloc((list->v.n + 1) * sizeof(*all));

	for (size_t i = 0; i < list->v.n; i++) {
		uint32_t x = list->v.v[i];

		all[i].index = x;
		all[i].weight =
		    edges ? most_bytes(g->edges.v[x]->type, g->edges.v[x]->measured,
				       g->edges.v[x]->data)
			  : rank_of(g->nodes.v[x]->type) + graph_out(g, x).n + graph_in(g, x).n;
	}
	qsort(all, list->v.n, sizeof(*all), compare_weighed);
	for (size_t i = 0; i < list->v.n; i++)
		list->v.v[i] = all[i].index;
	free(all);
}

void entities_selected(struct graph *g, const struct selection *s, struct index_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	vec_for(&g->nodes, n)
		if (wants_node(g, s, *n))
			vec_push(&ret->v, (*n)->index);
	if (s->important_first && ret->v.n)
		by_weight(g, ret, false);
}

void edges_selected(struct graph *g, const struct selection *s, struct index_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	vec_for(&g->edges, d)
		if (wants_edge(g, s, *d))
			vec_push(&ret->v, (*d)->index);
	if (s->important_first && ret->v.n)
		by_weight(g, ret, true);
}

void flows_selected(struct graph *g, const struct selection *s, struct index_list *ret)
{
	struct selection flows = *s;
	size_t n = 0;

	flows.type = NULL;
	flows_by_bytes(g, ret);
	for (size_t i = 0; i < ret->v.n; i++)
		if (wants_edge(g, &flows, g->edges.v[ret->v.v[i]]))
			ret->v.v[n++] = ret->v.v[i];
	ret->v.n = n;
}

size_t selection_end(const struct selection *s, size_t all)
{
	if (s->after >= all)
		return all;
	return s->limit && s->limit < all - s->after ? (size_t)(s->after + s->limit) : all;
}
