/*
 * Who waits for whom directly, by role, and knots: roles that wait for each other and for nobody else (strongly
 * connected parts without a way out, after wPerf), in which there must be what holds all of them up.
 */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "waitfor/parts.h"

static int link_order(const void *a, const void *b)
{
	const struct wait_link *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	if (x->waker != y->waker)
		return x->waker < y->waker ? -1 : 1;
	return x->cause < y->cause ? -1 : x->cause > y->cause;
}

static void add_links(struct wf *x)
{
	struct waitfor *w = x->w;
	struct idmap of = {0};

	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;
		uint32_t waiter, waker, at;
		enum wait_cause cause;

		if (d->type != &wakes_type || x->no[d->source] == NODE_NONE || x->no[d->target] == NODE_NONE ||
		    x->threads.v[x->no[d->source]].kernel)
			continue;
		waiter = w->role_of[d->target];
		waker = w->role_of[d->source];
		cause = wf_edge_cause(d);
		at = idmap_get(&of, (uint64_t)waiter << 32 | waker, cause);
		if (at == IDMAP_NONE) {
			at = (uint32_t)w->links.n;
			idmap_put(&of, (uint64_t)waiter << 32 | waker, cause, at);
			vec_push(&w->links, ((struct wait_link){waiter, waker, cause, 0, 0}));
		}
		w->links.v[at].ns += wf_edge_ns(d);
		w->links.v[at].waits += HAS(wakes, d, wakeups) ? GET(wakes, d, wakeups) : 0;
	}
	if (w->links.n)
		qsort(w->links.v, w->links.n, sizeof(*w->links.v), link_order);
	idmap_done(&of);
}

/* Tarjan's algorithm without recursion, over links of some weight. */
struct walk {
	struct wf *x;
	size_t n, links;     /* roles, and links that count: the first so many */
	uint32_t *first, *to; /* compressed adjacency, waiter to waker */
	uint32_t *index, *low, *part, *stack, *path, *next;
	uint8_t *on_stack;
	uint32_t counter, parts;
	size_t stacked;
};

static void walk_make(struct walk *k)
{
	const struct waitfor *w = k->x->w;
	uint32_t *fill;

	k->first = mem_alloc((k->n + 2) * sizeof(*k->first));
	k->to = mem_alloc((k->links + 1) * sizeof(*k->to));
	fill = mem_alloc((k->n + 2) * sizeof(*fill));
	for (size_t i = 0; i < k->links; i++)
		k->first[w->links.v[i].waiter + 1]++;
	for (size_t i = 0; i < k->n; i++)
		k->first[i + 1] += k->first[i];
	for (size_t i = 0; i < k->links; i++) {
		uint32_t from = w->links.v[i].waiter;

		k->to[k->first[from] + fill[from]++] = w->links.v[i].waker;
	}
	free(fill);
	k->index = mem_alloc((k->n + 1) * sizeof(*k->index));
	k->low = mem_alloc((k->n + 1) * sizeof(*k->low));
	k->part = mem_alloc((k->n + 1) * sizeof(*k->part));
	k->stack = mem_alloc((k->n + 1) * sizeof(*k->stack));
	k->path = mem_alloc((k->n + 1) * sizeof(*k->path));
	k->next = mem_alloc((k->n + 1) * sizeof(*k->next));
	k->on_stack = mem_alloc(k->n + 1);
}

static void walk_done(struct walk *k)
{
	free(k->first);
	free(k->to);
	free(k->index);
	free(k->low);
	free(k->part);
	free(k->stack);
	free(k->path);
	free(k->next);
	free(k->on_stack);
}

static void enter(struct walk *k, uint32_t v, size_t *depth)
{
	k->index[v] = k->low[v] = ++k->counter;
	k->stack[k->stacked++] = v;
	k->on_stack[v] = 1;
	k->next[v] = k->first[v];
	k->path[(*depth)++] = v;
}

static void leave(struct walk *k, uint32_t v)
{
	uint32_t u;

	if (k->low[v] != k->index[v])
		return;
	do {
		u = k->stack[--k->stacked];
		k->on_stack[u] = 0;
		k->part[u] = k->parts;
	} while (u != v);
	k->parts++;
}

static void walk_from(struct walk *k, uint32_t root)
{
	size_t depth = 0;

	enter(k, root, &depth);
	while (depth) {
		uint32_t v = k->path[depth - 1];

		if (k->next[v] < k->first[v + 1]) {
			uint32_t u = k->to[k->next[v]++];

			if (!k->index[u])
				enter(k, u, &depth);
			else if (k->on_stack[u] && k->index[u] < k->low[v])
				k->low[v] = k->index[u];
			continue;
		}
		leave(k, v);
		depth--;
		if (depth && k->low[v] < k->low[k->path[depth - 1]])
			k->low[k->path[depth - 1]] = k->low[v];
	}
}

static int knot_order(const void *a, const void *b)
{
	const struct wait_knot *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->roles.v[0] < y->roles.v[0] ? -1 : x->roles.v[0] > y->roles.v[0];
}

static void add_knots(struct walk *k)
{
	struct waitfor *w = k->x->w;
	uint32_t *size = mem_alloc((k->parts + 1) * sizeof(*size)), *knot = mem_alloc((k->parts + 1) * sizeof(*knot));
	uint8_t *leads_out = mem_alloc(k->parts + 1);

	for (uint32_t i = 0; i < k->n; i++)
		size[k->part[i]]++;
	for (size_t i = 0; i < k->links; i++)
		if (k->part[w->links.v[i].waiter] != k->part[w->links.v[i].waker])
			leads_out[k->part[w->links.v[i].waiter]] = 1;
	for (uint32_t i = 0; i < k->parts; i++) {
		knot[i] = NODE_NONE;
		if (size[i] > 1 && !leads_out[i]) {
			knot[i] = (uint32_t)w->knots.n;
			vec_add(&w->knots);
		}
	}
	for (uint32_t i = 0; i < k->n; i++)
		if (knot[k->part[i]] != NODE_NONE)
			vec_push(&w->knots.v[knot[k->part[i]]].roles, i);
	for (uint32_t i = 0; i < k->links; i++) {
		uint32_t at = knot[k->part[w->links.v[i].waiter]];

		if (at == NODE_NONE)
			continue;
		vec_push(&w->knots.v[at].links, i);
		w->knots.v[at].ns += w->links.v[i].ns;
	}
	if (w->knots.n)
		qsort(w->knots.v, w->knots.n, sizeof(*w->knots.v), knot_order);
	free(size);
	free(knot);
	free(leads_out);
}

void wf_add_knots(struct wf *x)
{
	struct walk k = {.x = x, .n = x->w->roles.n};

	add_links(x);
	while (k.links < x->w->links.n && x->w->links.v[k.links].ns >= wf_least_ns(x))
		k.links++;
	if (!k.links)
		return;
	walk_make(&k);
	for (uint32_t i = 0; i < k.n; i++)
		if (!k.index[i])
			walk_from(&k, i);
	add_knots(&k);
	walk_done(&k);
}
