/* The relations of one entity, the largest first. */
#include <stdlib.h>

#include "render.h"
#include "text.h"

struct weighed {
	uint64_t weight;
	uint32_t index;
};

static int compare(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

/* Its largest amount: bytes, or microseconds, which compare well enough with bytes. */
static uint64_t weight_of(const struct edge *d)
{
	uint64_t most = 0;

	for (int i = 0; i < d->type->nfields; i++) {
		const struct field *f = &d->type->fields[i];
		struct value v = field_get(f, d->data);
		uint64_t amount;

		/* Points in time are no amounts. */
		if (f->type != T_U64 || !(d->measured & 1ull << i) ||
		    !(f->unit == BYTES || (f->unit == NS && f->merge == SUM)))
			continue;
		amount = f->unit == NS ? v.u64 / 1000 : v.u64;
		most = amount > most ? amount : most;
	}
	return most;
}

static const char *name_of(const struct graph *g, uint32_t node)
{
	const struct node *n = g->nodes.v[node];
	int at = type_field(n->type, "name");

	if (at < 0 || n->type->fields[at].type != T_STR || !(n->measured & 1ull << at))
		return NULL;
	return field_get(&n->type->fields[at], n->data).str;
}

static void write_relation(struct graph *g, uint32_t node, const struct edge *d,
			   struct json_writer *w)
{
	uint32_t other = d->source == node ? d->target : d->source;

	json_write_object(w);
	json_key_str(w, "type", d->type->name);
	json_key_str(w, "direction", d->source == node ? "out" : "in");
	json_key_str(w, "other", graph_node_id(g, other));
	json_key_str(w, "other_name", name_of(g, other));
	json_fields(g, d->type, d->measured, d->data, w);
	json_write_object_end(w);
}

void render_relations_json(struct graph *g, uint32_t node, const struct selection *s,
			   struct json_writer *w)
{
	struct edge_list lists[2] = {graph_out(g, node), graph_in(g, node)};
	size_t n = 0, all = lists[0].n + lists[1].n;
	struct weighed *order = mem_alloc((all + 1) * sizeof(*order));

	for (int way = 0; way < 2; way++)
		for (size_t i = 0; i < lists[way].n; i++) {
			const struct edge *d = g->edges.v[lists[way].v[i]];

			order[n++] = (struct weighed){weight_of(d), d->index};
		}
	qsort(order, n, sizeof(*order), compare);
	json_write_array(w);
	for (size_t i = s->after; i < selection_end(s, n); i++)
		write_relation(g, node, g->edges.v[order[i].index], w);
	json_write_array_end(w);
	free(order);
}

void render_node_json(struct graph *g, uint32_t node, struct json_writer *w)
{
	json_entity(g, g->nodes.v[node], w);
}
