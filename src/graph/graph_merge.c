/* One graph into another: the same entity observed twice becomes one. */
#include <stdlib.h>

#include "graph.h"

/* @param nodes index in @p into of each node of the source, for references */
static void copy_fields(struct graph *into, const struct type *t, uint64_t measured, uint64_t *to,
			const uint64_t *from, const uint32_t *nodes)
{
	for (uint64_t left = measured; left; left &= left - 1) {
		const struct field *f = &t->fields[__builtin_ctzll(left)];
		struct value v = field_get(f, from);

		if (f->type == T_STR || f->type == T_JSON)
			v.str = graph_str(into, v.str);
		else if (f->type == T_REF)
			v.ref = nodes[v.ref];
		field_set(f, to, &v);
	}
}

static uint32_t copy_node(struct graph *into, const struct graph *from, const struct node *n,
			  uint32_t *nodes)
{
	struct node *d;

	if (nodes[n->index] != NODE_NONE)
		return nodes[n->index];
	/* What it refers to comes first; references make no circles. */
	for (int i = 0; i < n->type->nfields; i++)
		if (n->type->fields[i].type == T_REF && (n->measured & (1ull << i)))
			copy_node(into, from,
				  from->nodes.v[field_get(&n->type->fields[i], n->data).ref], nodes);
	d = graph_new_node(into, n->type);
	d->ns = graph_str(into, n->ns);
	d->extra = n->extra ? graph_str(into, n->extra) : NULL;
	d->measured = n->measured;
	copy_fields(into, n->type, n->measured, d->data, n->data, nodes);
	return nodes[n->index] = graph_add_node(into, d)->index;
}

static uint32_t copy_edge(struct graph *into, const struct graph *from, const struct edge *x,
			  uint32_t *nodes)
{
	uint32_t source = copy_node(into, from, from->nodes.v[x->source], nodes);
	uint32_t target = copy_node(into, from, from->nodes.v[x->target], nodes);
	struct edge *d = graph_new_edge(into, x->type, source, target);

	d->extra = x->extra ? graph_str(into, x->extra) : NULL;
	d->has_weight = x->has_weight;
	d->weight = x->weight;
	d->measured = x->measured;
	copy_fields(into, x->type, x->measured, d->data, x->data, nodes);
	return graph_add_edge(into, d)->index;
}

void graph_merge_some(struct graph *into, const struct graph *from, const bool *nodes, const bool *edges,
		      uint32_t *ret_nodes, uint32_t *ret_edges)
{
	for (size_t i = 0; i < from->nodes.n; i++)
		ret_nodes[i] = NODE_NONE;
	for (size_t i = 0; i < from->nodes.n; i++)
		if (!nodes || nodes[i])
			copy_node(into, from, from->nodes.v[i], ret_nodes);
	for (size_t i = 0; i < from->edges.n; i++) {
		uint32_t index = NODE_NONE;

		if (!edges || edges[i])
			index = copy_edge(into, from, from->edges.v[i], ret_nodes);
		if (ret_edges)
			ret_edges[i] = index;
	}
}

void graph_merge(struct graph *into, const struct graph *from, uint32_t *ret_nodes,
		 uint32_t *ret_edges)
{
	uint32_t *own = ret_nodes ? NULL : mem_alloc((from->nodes.n + 1) * sizeof(*own));

	graph_merge_some(into, from, NULL, NULL, ret_nodes ?: own, ret_edges);
	free(own);
}
