/* Knots and end-to-end paths: circles of data are found first, then the widest way to each end. */
#include <stdlib.h>
#include <string.h>

#include "topology_parts.h"

/** All links between two actors as one step, requests and replies together, in the request's
 * direction. */
struct arc {
	uint32_t from, to, link;
	uint64_t bytes, waited_ns;
	bool measured;
};

struct router {
	struct topology *t;
	VEC(struct arc) arcs;
	uint32_t *whole; /**< [actors.n] representative: members of a collective are one */
	uint32_t *part;  /**< [actors.n] strongly connected part of that; numbered against the
			    direction of data */
	uint32_t *first; /**< [actors.n + 1] arcs by representative of their begin */
	uint32_t nparts;
	uint64_t *width;  /**< [nparts] of the widest way here; 0: nothing measured yet, UINT64_MAX:
			     begin */
	uint32_t *before; /**< [nparts] last arc of that way, TOPO_NONE: a begin */
};

static int by_parentage(const struct topology *t, uint32_t a, uint32_t b)
{
	return topo_descends(t, b, a) ? 1 : topo_descends(t, a, b) ? -1 : 0;
}

/* Who asks whom, where data goes both ways. @return whether @p there 's sender asks */
static bool asks(const struct topology *t, const struct arc *there, const struct arc *back)
{
	const struct topo_actor *a = &t->actors.v[there->from], *b = &t->actors.v[there->to];
	int known;

	if (a->kind == ACTOR_STORAGE || b->kind == ACTOR_STORAGE)
		return there->bytes >= back->bytes;
	known = topo_who_asks(t, there->from, there->to);
	if (!known)
		known = by_parentage(t, there->from, there->to);
	return known ? known > 0 : there->bytes <= back->bytes;
}

/* The links of one direction as an arc. @return index behind them */
static size_t gather(const struct topology *t, size_t at, struct arc *ret)
{
	const struct topo_link *l = &t->links.v[at];

	*ret = (struct arc){.from = l->from, .to = l->to, .link = (uint32_t)at};
	for (; at < t->links.n && t->links.v[at].from == ret->from && t->links.v[at].to == ret->to;
	     at++) {
		l = &t->links.v[at];
		ret->bytes += l->bytes;
		ret->waited_ns += l->waited_ns;
		ret->measured |= l->measured;
		if (l->bytes > t->links.v[ret->link].bytes)
			ret->link = (uint32_t)at;
	}
	return at;
}

static void add_arcs(struct router *r)
{
	struct topology *t = r->t;

	for (size_t i = 0; i < t->links.n;) {
		struct arc a, b;
		size_t back;

		i = gather(t, i, &a);
		back = topo_find_link(t, a.to, a.from);
		if (back != SIZE_MAX) {
			/* Both are one arc, made when its smaller end comes by. */
			if (a.from > a.to)
				continue;
			gather(t, back, &b);
			if (!asks(t, &a, &b)) {
				struct arc c = a;

				a = b;
				b = c;
			}
			a.bytes += b.bytes;
			a.waited_ns += b.waited_ns;
			a.measured |= b.measured;
		}
		/* A client asks, also where only the answers were counted. */
		if (back == SIZE_MAX && t->actors.v[a.to].role == ROLE_CLIENT &&
		    t->actors.v[a.from].role != ROLE_CLIENT) {
			uint32_t client = a.to;

			a.to = a.from;
			a.from = client;
		}
		vec_push(&r->arcs, a);
	}
}

static bool linked(const struct topology *t, uint32_t a, uint32_t b)
{
	return topo_find_link(t, a, b) != SIZE_MAX || topo_find_link(t, b, a) != SIZE_MAX;
}

static void guess(struct router *r, uint32_t from, uint32_t to)
{
	if (!linked(r->t, from, to))
		vec_push(&r->arcs, ((struct arc){.from = from, .to = to, .link = STEP_GUESS}));
}

/* Requests reach ranks through those who started them, also where that leaves no trace. */
static void guess_arcs(struct router *r)
{
	struct topology *t = r->t;

	vec_for(&t->groups, gr) {
		uint32_t a = gr->launcher, up;

		if (a == TOPO_NONE || t->actors.v[a].group != TOPO_NONE ||
		    (t->actors.v[a].role != ROLE_ENGINE && t->actors.v[a].role != ROLE_API_SERVER))
			continue;
		vec_for(&gr->members, m)
			if (t->actors.v[*m].parent == a)
				guess(r, a, *m);
		for (; t->actors.v[a].role == ROLE_ENGINE; a = up) {
			up = t->actors.v[a].parent;
			if (up == TOPO_NONE || (t->actors.v[up].role != ROLE_ENGINE &&
						t->actors.v[up].role != ROLE_API_SERVER))
				break;
			guess(r, up, a);
		}
	}
}

static bool is_collective(const struct topo_group *gr)
{
	switch (gr->shape.shape) {
	case SHAPE_PAIR:
	case SHAPE_RING:
	case SHAPE_TREE:
	case SHAPE_ALL_TO_ALL:
	case SHAPE_HIERARCHY:
	case SHAPE_GRID:
		return true;
	default:
		return false;
	}
}

static void join_collectives(struct router *r)
{
	for (uint32_t i = 0; i < r->t->actors.n; i++)
		r->whole[i] = i;
	vec_for(&r->t->groups, gr)
		if (is_collective(gr))
			vec_for(&gr->members, m)
				r->whole[*m] = gr->members.v[0];
}

static int compare_arcs(const void *a, const void *b, void *ctx)
{
	const struct router *r = ctx;
	const struct arc *x = a, *y = b;

	if (r->whole[x->from] != r->whole[y->from])
		return r->whole[x->from] < r->whole[y->from] ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void index_arcs(struct router *r)
{
	size_t at = 0;

	if (r->arcs.n)
		qsort_r(r->arcs.v, r->arcs.n, sizeof(*r->arcs.v), compare_arcs, r);
	for (size_t a = 0; a <= r->t->actors.n; a++) {
		while (at < r->arcs.n && r->whole[r->arcs.v[at].from] < a)
			at++;
		r->first[a] = (uint32_t)at;
	}
}

/** State of the search for strongly connected parts, without recursion (Tarjan 1972). */
struct search {
	uint32_t *number, *low, *next, *calls, *open;
	uint8_t *is_open;
	size_t ncalls, nopen;
	uint32_t counter;
};

static void enter(struct router *r, struct search *s, uint32_t v)
{
	s->number[v] = s->low[v] = ++s->counter;
	s->next[v] = r->first[v];
	s->calls[s->ncalls++] = v;
	s->open[s->nopen++] = v;
	s->is_open[v] = 1;
}

static void leave(struct router *r, struct search *s)
{
	uint32_t v = s->calls[--s->ncalls], w;

	if (s->low[v] == s->number[v]) {
		do {
			w = s->open[--s->nopen];
			s->is_open[w] = 0;
			r->part[w] = r->nparts;
		} while (w != v);
		r->nparts++;
	}
	if (s->ncalls) {
		w = s->calls[s->ncalls - 1];
		s->low[w] = s->low[v] < s->low[w] ? s->low[v] : s->low[w];
	}
}

static void visit(struct router *r, struct search *s, uint32_t root)
{
	enter(r, s, root);
	while (s->ncalls) {
		uint32_t v = s->calls[s->ncalls - 1], w;

		if (s->next[v] == r->first[v + 1]) {
			leave(r, s);
			continue;
		}
		w = r->whole[r->arcs.v[s->next[v]++].to];
		if (!s->number[w])
			enter(r, s, w);
		else if (s->is_open[w] && s->number[w] < s->low[v])
			s->low[v] = s->number[w];
	}
}

static void find_parts(struct router *r)
{
	size_t n = r->t->actors.n + 1;
	struct search s = {.number = mem_alloc(n * 4),
			   .low = mem_alloc(n * 4),
			   .next = mem_alloc(n * 4),
			   .calls = mem_alloc(n * 4),
			   .open = mem_alloc(n * 4),
			   .is_open = mem_alloc(n)};

	for (uint32_t i = 0; i < r->t->actors.n; i++)
		if (r->whole[i] == i && !s.number[i])
			visit(r, &s, i);
	for (uint32_t i = 0; i < r->t->actors.n; i++)
		r->part[i] = r->part[r->whole[i]];
	free(s.number);
	free(s.low);
	free(s.next);
	free(s.calls);
	free(s.open);
	free(s.is_open);
}

static int compare_knots(const void *a, const void *b)
{
	const struct topo_knot *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->actors.v[0] < y->actors.v[0] ? -1 : 1;
}

static void name_knot(struct topology *t, struct topo_knot *k)
{
	uint32_t group = t->actors.v[k->actors.v[0]].group;

	vec_for(&k->actors, a)
		if (t->actors.v[*a].group != group)
			group = TOPO_NONE;
	k->what = group != TOPO_NONE ? topo_text(t, "collective of %zu ranks", k->actors.n)
				     : topo_text(t, "circle of data through %zu", k->actors.n);
}

static void add_knots(struct router *r)
{
	struct topology *t = r->t;
	uint32_t *count = mem_alloc((r->nparts + 1) * sizeof(*count));
	uint32_t *knot = mem_alloc((r->nparts + 1) * sizeof(*knot));

	for (uint32_t i = 0; i < t->actors.n; i++)
		count[r->part[i]]++;
	for (uint32_t i = 0; i < t->actors.n; i++) {
		uint32_t p = r->part[i];

		if (count[p] < 2)
			continue;
		if (!knot[p]) {
			vec_add(&t->knots);
			knot[p] = (uint32_t)t->knots.n;
		}
		vec_push(&t->knots.v[knot[p] - 1].actors, i);
	}
	vec_for(&t->links, l)
		if (r->part[l->from] == r->part[l->to] && knot[r->part[l->from]])
			t->knots.v[knot[r->part[l->from]] - 1].bytes += l->bytes;
	vec_for(&t->knots, k)
		name_knot(t, k);
	if (t->knots.n)
		qsort(t->knots.v, t->knots.n, sizeof(*t->knots.v), compare_knots);
	free(count);
	free(knot);
}

static uint64_t narrower(uint64_t width, const struct arc *a)
{
	if (!a->measured)
		return width;
	return a->bytes < width ? a->bytes : width;
}

static int compare_parts(const void *a, const void *b, void *ctx)
{
	const struct router *r = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t p = r->part[r->arcs.v[x].from], q = r->part[r->arcs.v[y].from];

	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Parts are numbered so that data goes from higher numbers to lower ones: one pass over the arcs is
 * enough. */
static void find_widest(struct router *r)
{
	uint32_t *order = mem_alloc((r->arcs.n + 1) * sizeof(*order));

	for (uint32_t i = 0; i < r->arcs.n; i++)
		order[i] = i;
	if (r->arcs.n)
		qsort_r(order, r->arcs.n, sizeof(*order), compare_parts, r);
	for (uint32_t p = 0; p < r->nparts; p++)
		r->before[p] = TOPO_NONE;
	for (size_t i = 0; i < r->arcs.n; i++) {
		const struct arc *a = &r->arcs.v[order[i]];
		uint32_t p = r->part[a->from], q = r->part[a->to];
		uint64_t width = narrower(r->before[p] == TOPO_NONE ? UINT64_MAX : r->width[p], a);

		if (p == q || (r->before[q] != TOPO_NONE && width <= r->width[q] &&
			       r->width[q] != UINT64_MAX))
			continue;
		/* Of a way on which nothing was measured, nothing is known: any measured one is
		 * better. */
		if (r->before[q] != TOPO_NONE && width == UINT64_MAX)
			continue;
		r->width[q] = width;
		r->before[q] = order[i];
	}
	free(order);
}

#define PATH_STEPS_MAX 64

static void push_step(struct topo_path *p, uint32_t actor, uint32_t link)
{
	vec_push(&p->actors, actor);
	vec_push(&p->links, link);
}

/* Written from the end to the begin, and turned round. */
static void add_path(struct router *r, uint32_t part)
{
	struct topo_path p = {.bytes = r->width[part] == UINT64_MAX ? 0 : r->width[part]};
	uint32_t at = r->before[part];

	vec_push(&p.actors, r->arcs.v[at].to);
	for (size_t steps = 0; at != TOPO_NONE && steps < PATH_STEPS_MAX; steps++) {
		const struct arc *a = &r->arcs.v[at];

		p.waited_ns += a->waited_ns;
		if (p.actors.v[p.actors.n - 1] != a->to)
			push_step(&p, a->to, STEP_KNOT);
		push_step(&p, a->from, a->link);
		at = r->before[r->part[a->from]];
	}
	for (size_t i = 0; i < p.actors.n / 2; i++) {
		uint32_t x = p.actors.v[i];

		p.actors.v[i] = p.actors.v[p.actors.n - 1 - i];
		p.actors.v[p.actors.n - 1 - i] = x;
	}
	for (size_t i = 0; i < p.links.n / 2; i++) {
		uint32_t x = p.links.v[i];

		p.links.v[i] = p.links.v[p.links.n - 1 - i];
		p.links.v[p.links.n - 1 - i] = x;
	}
	vec_push(&r->t->paths, p);
}

static int compare_paths(const void *a, const void *b)
{
	const struct topo_path *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns < y->waited_ns ? 1 : -1;
	if (x->actors.n != y->actors.n)
		return x->actors.n < y->actors.n ? 1 : -1;
	for (size_t i = 0; i < x->actors.n; i++)
		if (x->actors.v[i] != y->actors.v[i])
			return x->actors.v[i] < y->actors.v[i] ? -1 : 1;
	return 0;
}

static int compare_ends(const void *a, const void *b, void *ctx)
{
	const struct router *r = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t wx = r->width[x] == UINT64_MAX ? 0 : r->width[x],
		 wy = r->width[y] == UINT64_MAX ? 0 : r->width[y];

	if (wx != wy)
		return wx < wy ? 1 : -1;
	return r->arcs.v[r->before[x]].to < r->arcs.v[r->before[y]].to ? -1 : x != y;
}

static void add_paths(struct router *r)
{
	uint8_t *goes_on = mem_alloc(r->nparts + 1);
	VEC(uint32_t) ends = {0};

	vec_for(&r->arcs, a)
		goes_on[r->part[a->from]] |= r->part[a->from] != r->part[a->to];
	for (uint32_t p = 0; p < r->nparts; p++)
		if (!goes_on[p] && r->before[p] != TOPO_NONE)
			vec_push(&ends, p);
	if (ends.n)
		qsort_r(ends.v, ends.n, sizeof(*ends.v), compare_ends, r);
	for (size_t i = 0; i < ends.n && i < TOPO_PATHS_MAX; i++)
		add_path(r, ends.v[i]);
	if (r->t->paths.n)
		qsort(r->t->paths.v, r->t->paths.n, sizeof(*r->t->paths.v), compare_paths);
	vec_done(&ends);
	free(goes_on);
}

void topo_add_paths(struct topology *t)
{
	size_t n = t->actors.n + 1;
	struct router r = {.t = t,
			   .whole = mem_alloc(n * 4),
			   .part = mem_alloc(n * 4),
			   .first = mem_alloc((n + 1) * 4)};

	add_arcs(&r);
	guess_arcs(&r);
	join_collectives(&r);
	index_arcs(&r);
	find_parts(&r);
	add_knots(&r);
	r.width = mem_alloc((r.nparts + 1) * sizeof(*r.width));
	r.before = mem_alloc((r.nparts + 1) * sizeof(*r.before));
	find_widest(&r);
	add_paths(&r);
	vec_done(&r.arcs);
	free(r.whole);
	free(r.part);
	free(r.first);
	free(r.width);
	free(r.before);
}
