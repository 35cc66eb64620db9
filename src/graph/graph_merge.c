/* One graph into another: the same entity observed twice becomes one. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* One graph on its way into another. */
struct merging {
	struct graph *into;
	const struct graph *from;
	const char *ns;         /* instead of "local"; NULL: as it is */
	const uint32_t *stands; /* what stands for each node; NULL: itself */
	uint32_t *nodes; /* index in `into` of each node of `from`, NODE_NONE: not there yet */
	struct number_list *taken; /* gets the nodes of `from` that were copied; NULL: not wanted */
	bool apart; /* nothing of `into` is the same as anything of `from`, which has each entity once */
	bool *joined; /* [from->nodes.n] it stands for others, or others for it; NULL: none does */
};

static bool is_joined(const struct merging *m, uint32_t index)
{
	return m->joined && m->joined[index];
}

static void copy_fields(const struct merging *m, const struct type *t, uint64_t measured,
			uint64_t *to, const uint64_t *from)
{
	for (uint64_t left = measured; left; left &= left - 1) {
		const struct field *f = &t->fields[__builtin_ctzll(left)];
		struct value v = field_get(f, from);

		if (f->type == T_STR || f->type == T_JSON)
			v.str = graph_str(m->into, v.str);
		else if (f->type == T_REF)
			v.ref = m->nodes[v.ref];
		field_set(f, to, &v);
	}
}

/* What it refers to comes first; references make no circles. */
static uint32_t copy_node(const struct merging *m, uint32_t index);

static bool refers_to_joined(const struct merging *m, const struct type *t, uint64_t measured, const uint64_t *data)
{
	for (int i = 0; m->joined && i < t->nfields; i++)
		if (t->fields[i].type == T_REF && measured & 1ull << i && m->joined[field_get(&t->fields[i], data).ref])
			return true;
	return false;
}

static void copy_references(const struct merging *m, const struct type *t, uint64_t measured,
			    const uint64_t *data)
{
	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].type == T_REF && (measured & (1ull << i)))
			copy_node(m, field_get(&t->fields[i], data).ref);
}

static uint32_t copy_node(const struct merging *m, uint32_t index)
{
	const struct node *n = m->from->nodes.v[index];
	struct node *d;

	if (m->nodes[index] != NODE_NONE)
		return m->nodes[index];
	if (m->stands && m->stands[index] != index)
		return m->nodes[index] = copy_node(m, m->stands[index]);
	copy_references(m, n->type, n->measured, n->data);
	d = graph_new_node(m->into, n->type);
	d->ns = graph_str(m->into, m->ns && !strcmp(n->ns, "local") ? m->ns : n->ns);
	d->extra = n->extra ? graph_str(m->into, n->extra) : NULL;
	d->measured = n->measured;
	copy_fields(m, n->type, n->measured, d->data, n->data);
	if (m->taken)
		vec_push(&m->taken->v, index);
	if (m->apart && !is_joined(m, index) && !refers_to_joined(m, n->type, n->measured, n->data))
		return m->nodes[index] = graph_append_node(m->into, d)->index;
	return m->nodes[index] = graph_add_node(m->into, d)->index;
}

static uint32_t copy_edge(const struct merging *m, const struct edge *x)
{
	uint32_t source = copy_node(m, x->source);
	uint32_t target = copy_node(m, x->target);
	struct edge *d;

	copy_references(m, x->type, x->measured, x->data);
	d = graph_new_edge(m->into, x->type, source, target);
	d->extra = x->extra ? graph_str(m->into, x->extra) : NULL;
	d->has_weight = x->has_weight;
	d->weight = x->weight;
	d->measured = x->measured;
	copy_fields(m, x->type, x->measured, d->data, x->data);
	if (m->apart && !is_joined(m, x->source) && !is_joined(m, x->target) &&
	    !refers_to_joined(m, x->type, x->measured, x->data))
		return graph_append_edge(m->into, d)->index;
	return graph_add_edge(m->into, d)->index;
}

static void merge(struct merging *m, const bool *nodes, const bool *edges, uint32_t *ret_edges)
{
	for (size_t i = 0; i < m->from->nodes.n; i++)
		m->nodes[i] = NODE_NONE;
	for (uint32_t i = 0; i < m->from->nodes.n; i++)
		if (!nodes || nodes[i])
			copy_node(m, i);
	for (size_t i = 0; i < m->from->edges.n; i++) {
		uint32_t index = NODE_NONE;

		if (!edges || edges[i])
			index = copy_edge(m, m->from->edges.v[i]);
		if (ret_edges)
			ret_edges[i] = index;
	}
}

void graph_merge_some(struct graph *into, const struct graph *from, const bool *nodes,
		      const bool *edges, uint32_t *ret_nodes, uint32_t *ret_edges)
{
	struct merging m = {.into = into, .from = from, .nodes = ret_nodes, .apart = !into->nodes.n};

	merge(&m, nodes, edges, ret_edges);
}

void graph_merge_listed(struct graph *into, const struct graph *from, const struct number_list *nodes,
			const struct number_list *edges, uint32_t *map, struct number_list *ret_taken)
{
	struct merging m = {.into = into, .from = from, .nodes = map, .taken = ret_taken, .apart = !into->nodes.n};

	vec_for(&nodes->v, i)
		copy_node(&m, *i);
	vec_for(&edges->v, i)
		copy_edge(&m, from->edges.v[*i]);
}

void graph_merge_joined(struct graph *into, const struct graph *from, const bool *nodes,
			const bool *edges, const uint32_t *stands, uint32_t *ret_nodes)
{
	struct merging m = {.into = into, .from = from, .stands = stands, .nodes = ret_nodes, .apart = !into->nodes.n};

	m.joined = mem_alloc(from->nodes.n + 1);
	for (uint32_t i = 0; i < from->nodes.n; i++)
		if (stands[i] != i)
			m.joined[i] = m.joined[stands[i]] = true;
	merge(&m, nodes, edges, NULL);
	free(m.joined);
}

void graph_merge_host(struct graph *into, const struct graph *from, const char *ns)
{
	uint32_t *nodes = mem_alloc((from->nodes.n + 1) * sizeof(*nodes));
	struct merging m = {.into = into, .from = from, .ns = ns, .nodes = nodes, .apart = !graph_has_str(into, ns)};

	/* It may tell of further hosts, which may be there. */
	for (size_t i = 0; m.apart && i < from->nodes.n; i++)
		m.apart = !strcmp(from->nodes.v[i]->ns, "local");

	merge(&m, NULL, NULL, NULL);
	free(nodes);
}

void graph_merge(struct graph *into, const struct graph *from, uint32_t *ret_nodes,
		 uint32_t *ret_edges)
{
	uint32_t *own = ret_nodes ? NULL : mem_alloc((from->nodes.n + 1) * sizeof(*own));

	graph_merge_some(into, from, NULL, NULL, ret_nodes ?: own, ret_edges);
	free(own);
}
