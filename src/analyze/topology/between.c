/* Ways between two entities: the shortest over relations, and the widest for data. */
#include "between.h"

#include <stdlib.h>
#include <string.h>

/* Passing through one of these would join any two entities of a host. */
static bool joins_all(const struct node *n)
{
	return n->type == &cpu_type || n->type == &numa_type || n->type == &numa_set_type ||
	       n->type == &net_namespace_type || n->type == &host_type ||
	       n->type == &wait_object_type || n->type == &container_type;
}

struct walk {
	struct graph *g;
	uint32_t *by; /**< [nodes] edge that led there, NODE_NONE: not there yet */
	VEC(uint32_t) queue;
	uint32_t from;
};

static void step(struct walk *w, uint32_t at, struct edge_list list)
{
	for (size_t i = 0; i < list.n; i++) {
		const struct edge *d = w->g->edges.v[list.v[i]];
		uint32_t next = d->source == at ? d->target : d->source;

		if (next == w->from || w->by[next] != NODE_NONE)
			continue;
		w->by[next] = d->index;
		vec_push(&w->queue, next);
	}
}

void relations_between(struct graph *g, uint32_t from, uint32_t to, struct relation_path *ret)
{
	struct walk w = {.g = g, .by = mem_alloc((g->nodes.n + 1) * sizeof(*w.by)), .from = from};

	memset(ret, 0, sizeof(*ret));
	memset(w.by, 0xff, (g->nodes.n + 1) * sizeof(*w.by));
	vec_push(&w.queue, from);
	for (size_t i = 0; i < w.queue.n && w.by[to] == NODE_NONE; i++) {
		uint32_t at = w.queue.v[i];

		if (at != from && joins_all(g->nodes.v[at]))
			continue;
		step(&w, at, graph_out(g, at));
		step(&w, at, graph_in(g, at));
	}
	/* Backwards from the end, so that both lists come out in the right order when read
	 * backwards. */
	for (uint32_t at = to; w.by[to] != NODE_NONE;) {
		vec_push(&ret->nodes, at);
		if (at == from)
			break;
		vec_push(&ret->edges, w.by[at]);
		at = g->edges.v[w.by[at]]->source == at ? g->edges.v[w.by[at]]->target
							: g->edges.v[w.by[at]]->source;
	}
	for (size_t i = 0; i < ret->nodes.n / 2; i++) {
		uint32_t x = ret->nodes.v[i];

		ret->nodes.v[i] = ret->nodes.v[ret->nodes.n - 1 - i];
		ret->nodes.v[ret->nodes.n - 1 - i] = x;
	}
	for (size_t i = 0; i < ret->edges.n / 2; i++) {
		uint32_t x = ret->edges.v[i];

		ret->edges.v[i] = ret->edges.v[ret->edges.n - 1 - i];
		ret->edges.v[ret->edges.n - 1 - i] = x;
	}
	vec_done(&w.queue);
	free(w.by);
}

void relations_done(struct relation_path *p)
{
	vec_done(&p->nodes);
	vec_done(&p->edges);
}

void topology_link_parents(struct topology *t)
{
	vec_for(&t->g->edges, d)
		if ((*d)->type == &parent_of_type)
			return;
	for (size_t i = 0; i < t->n_processes; i++) {
		uint32_t up = t->actors.v[i].parent;

		if (up != TOPO_NONE)
			graph_link(t->g, &parent_of_type, t->actors.v[up].node,
				   t->actors.v[i].node);
	}
}

struct reach {
	uint64_t width;
	uint32_t actor;
};

/** Widest first; of equal ones the smaller actor, so that the same file gives the same way. */
struct heap {
	VEC(struct reach) v;
};

static bool before(const struct reach *a, const struct reach *b)
{
	return a->width != b->width ? a->width > b->width : a->actor < b->actor;
}

static void heap_push(struct heap *h, struct reach r)
{
	size_t i = h->v.n;

	vec_push(&h->v, r);
	for (; i && before(&r, &h->v.v[(i - 1) / 2]); i = (i - 1) / 2)
		h->v.v[i] = h->v.v[(i - 1) / 2];
	h->v.v[i] = r;
}

static struct reach heap_pop(struct heap *h)
{
	struct reach ret = h->v.v[0], last = h->v.v[--h->v.n];
	size_t i = 0;

	while (2 * i + 1 < h->v.n) {
		size_t k = 2 * i + 1;

		if (k + 1 < h->v.n && before(&h->v.v[k + 1], &h->v.v[k]))
			k++;
		if (!before(&h->v.v[k], &last))
			break;
		h->v.v[i] = h->v.v[k];
		i = k;
	}
	if (h->v.n)
		h->v.v[i] = last;
	return ret;
}

static void trace(const struct topology *t, const uint32_t *by, uint32_t from, uint32_t to,
		  struct topo_path *ret)
{
	size_t n = 0;

	for (uint32_t at = to; at != from; at = t->links.v[by[at]].from)
		n++;
	vec_reserve(&ret->actors, n + 1);
	vec_reserve(&ret->links, n);
	ret->actors.n = n + 1;
	ret->links.n = n;
	for (uint32_t at = to; n; n--) {
		ret->actors.v[n] = at;
		ret->links.v[n - 1] = by[at];
		ret->waited_ns += t->links.v[by[at]].waited_ns;
		at = t->links.v[by[at]].from;
	}
	ret->actors.v[0] = from;
}

void topology_between(const struct topology *t, uint32_t from, uint32_t to, struct topo_path *ret)
{
	uint64_t *width = mem_alloc((t->actors.n + 1) * sizeof(*width));
	uint32_t *by = mem_alloc((t->actors.n + 1) * sizeof(*by));
	struct heap h = {0};

	width[from] = UINT64_MAX;
	heap_push(&h, (struct reach){UINT64_MAX, from});
	while (h.v.n && from != to) {
		struct reach r = heap_pop(&h);
		const struct topo_link *l;
		size_t n;

		if (r.actor == to)
			break;
		l = topology_out(t, r.actor, &n);
		for (size_t i = 0; i < n && r.width == width[r.actor]; i++) {
			uint64_t w = l[i].measured && l[i].bytes ? l[i].bytes : 1;

			w = w < r.width ? w : r.width;
			if (w <= width[l[i].to])
				continue;
			width[l[i].to] = w;
			by[l[i].to] = (uint32_t)(l + i - t->links.v);
			heap_push(&h, (struct reach){w, l[i].to});
		}
	}
	if (from != to && width[to]) {
		trace(t, by, from, to, ret);
		ret->bytes = width[to] > 1 ? width[to] : 0;
	}
	vec_done(&h.v);
	free(width);
	free(by);
}
