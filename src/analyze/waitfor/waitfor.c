/* The analysis of waits as a whole: its steps and its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

/*
 * The end of what is known of threads: the last interval goes on while its other sources are read, and single waits are
 * read after it.
 */
static uint64_t find_end(const struct wf *x)
{
	const struct graph *g = x->g;
	uint64_t last = 0, observed = 0, end = g->meta.start_ns + g->meta.window_ns;

	vec_for(&x->t->spans, s)
		last = s->in_ns > last ? s->in_ns : last;
	if (!g->meta.start_ns || !g->meta.window_ns)
		return last;
	vec_for(&g->nodes, n)
		if ((*n)->type == &thread_type && HAS(thread, *n, observed_ns) && GET(thread, *n, observed_ns) > observed)
			observed = GET(thread, *n, observed_ns);
	if (g->meta.start_ns + observed > last)
		last = g->meta.start_ns + observed;
	return observed && last < end ? last : end;
}

static void find_cover(struct wf *x)
{
	const struct graph *g = x->g;

	x->w->window_ns = g->meta.window_ns;
	if (!x->t->spans.n)
		return;
	x->to_ns = find_end(x);
	x->from_ns = x->t->spans_from_ns > g->meta.start_ns ? x->t->spans_from_ns : g->meta.start_ns;
	if (!x->from_ns || x->from_ns > x->to_ns)
		x->from_ns = x->to_ns;
	if (!x->w->window_ns)
		x->w->window_ns = x->to_ns - x->from_ns;
	x->w->seen_from_ns = x->from_ns < x->to_ns ? x->from_ns : 0;
}

bool waits_are_recorded(const struct graph *g)
{
	vec_for(&g->edges, d)
		if ((*d)->type == &waits_for_type || (*d)->type == &wakes_type)
			return true;
	vec_for(&g->nodes, n)
		if ((*n)->type == &thread_type && HAS(thread, *n, blocked_ns))
			return true;
	return false;
}

void wf_init(struct wf *x, struct waitfor *w, struct graph *g, const struct timeline *t)
{
	static const struct timeline nothing;

	*x = (struct wf){.w = w, .g = g, .t = t ?: &nothing};
	memset(w, 0, sizeof(*w));
	arena_init(&w->arena);
	w->g = g;
	w->recorded = waits_are_recorded(g);
	find_cover(x);
	wf_add_threads(x);
	wf_add_spans(x);
}

void wf_done(struct wf *x)
{
	vec_done(&x->threads);
	vec_done(&x->spans);
	free(x->no);
	free(x->lock);
	free(x->burst_ns);
	free(x->beyond);
}

void waitfor_init(struct waitfor *w, struct graph *g, const struct timeline *t)
{
	struct cascade c;
	struct wf x;

	wf_init(&x, w, g, t);
	x.c = &c;
	wf_add_beyond(&x);
	wf_add_chains(&x);
	wf_add_knots(&x);
	wf_add_serial(&x);
	wf_add_rounds(&x);
	wf_add_locks(&x);
	wf_add_patterns(&x);
	wf_add_stragglers(&x);
	wf_add_paths(&x);
	wf_sort_patterns(&x);
	wf_sort_what_ifs(&x);
	cascade_done(&c);
	wf_done(&x);
}

int wait_path_init(struct wait_path *p, struct graph *g, const struct timeline *t, uint32_t thread, uint64_t from_ns,
		   uint64_t to_ns)
{
	struct waitfor w;
	struct wf x;
	int rc = -ENOENT;

	wf_init(&x, &w, g, t);
	memset(p, 0, sizeof(*p));
	if (from_ns < x.from_ns)
		from_ns = x.from_ns;
	if (!to_ns || to_ns > x.to_ns)
		to_ns = x.to_ns;
	if (from_ns < to_ns && thread < g->nodes.n && x.no[thread] != NODE_NONE) {
		p->thread = thread;
		p->from_ns = from_ns;
		p->to_ns = to_ns;
		wf_walk_path(&x, p);
		rc = 0;
	}
	wf_done(&x);
	waitfor_done(&w);
	return rc;
}

void wait_path_done(struct wait_path *p)
{
	vec_done(&p->steps);
	vec_done(&p->parts);
}

void waitfor_done(struct waitfor *w)
{
	vec_for(&w->roles, r)
		vec_done(&r->threads);
	vec_for(&w->chains, c) {
		vec_for(&c->parts, p)
			vec_done(&p->via);
		vec_done(&c->parts);
	}
	vec_for(&w->roots, r)
		vec_done(&r->roles);
	vec_for(&w->knots, k) {
		vec_done(&k->roles);
		vec_done(&k->links);
	}
	vec_for(&w->patterns, p)
		vec_done(&p->threads);
	vec_for(&w->stragglers, s) {
		vec_done(&s->ranks);
		vec_done(&s->last_count);
		vec_done(&s->wait_ns);
	}
	vec_for(&w->hangs, h)
		vec_done(&h->threads);
	vec_for(&w->paths, path)
		wait_path_done(path);
	vec_done(&w->paths);
	vec_done(&w->what_ifs);
	vec_done(&w->roles);
	vec_done(&w->chains);
	vec_done(&w->roots);
	vec_done(&w->links);
	vec_done(&w->knots);
	vec_done(&w->patterns);
	vec_done(&w->stragglers);
	vec_done(&w->hangs);
	vec_done(&w->serial);
	free(w->role_of);
	arena_done(&w->arena);
}

const struct wait_chain *waitfor_chain(const struct waitfor *w, uint32_t thread)
{
	uint32_t role = thread < w->g->nodes.n ? w->role_of[thread] : NODE_NONE;

	vec_for(&w->chains, c)
		if (role != NODE_NONE && c->role == role)
			return c;
	return NULL;
}

uint64_t waitfor_caused_ns(const struct waitfor *w, uint32_t thread, bool idle)
{
	uint64_t ns = 0;

	vec_for(&w->roots, r)
		if (r->thread == thread && (idle || !r->idle) && r->waiters)
			ns += r->waited_ns;
	return ns;
}
