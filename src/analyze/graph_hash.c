/* What a graph tells, as one number: whether it is as it was. */
#include <string.h>

#include "finding_hosts.h"
#include "graph.h"
#include "hash.h"
#include "idmap.h"

static uint64_t add_text(uint64_t h, const char *s)
{
	return s ? hash_bytes(s, strlen(s), h) : hash_pair(h, 0);
}

static uint64_t add_fields(uint64_t h, const struct type *t, uint64_t measured, const uint64_t *data)
{
	h = hash_pair(h, measured);
	for (uint64_t left = measured; left; left &= left - 1) {
		const struct field *f = &t->fields[__builtin_ctzll(left)];
		struct value v = field_get(f, data);

		switch (f->type) {
		case T_STR:
		case T_JSON:
			h = add_text(h, v.str);
			break;
		case T_BOOL:
			h = hash_pair(h, v.b);
			break;
		case T_REF:
			h = hash_pair(h, v.ref);
			break;
		default:
			h = hash_pair(h, v.u64);
		}
	}
	return h;
}

static uint64_t add_status(uint64_t h, const struct status *s)
{
	return add_text(add_text(add_text(add_text(h, s->source), s->state), s->rung), s->reason);
}

uint64_t graph_content_hash(const struct graph *g)
{
	uint64_t h = hash_pair(g->nodes.n, g->edges.n);

	h = hash_pair(hash_pair(h, g->meta.window_ns), g->meta.intervals << 1 | g->meta.complete);
	h = add_text(h, g->meta.tool);
	vec_for(&g->nodes, it) {
		const struct node *n = *it;

		h = add_text(add_text(hash_pair(h, n->type->number), n->ns), n->extra);
		h = add_fields(h, n->type, n->measured, n->data);
	}
	vec_for(&g->edges, it) {
		const struct edge *d = *it;
		uint64_t weight = 0;

		if (d->has_weight)
			memcpy(&weight, &d->weight, sizeof(weight));
		h = hash_pair(hash_pair(h, (uint64_t)d->source << 32 | d->target), d->type->number << 1 | d->has_weight);
		h = add_text(hash_pair(h, weight), d->extra);
		h = add_fields(h, d->type, d->measured, d->data);
	}
	vec_for(&g->status, s)
		h = add_status(h, s);
	return h;
}
