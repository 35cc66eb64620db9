/* The analysis of waits as a whole: its steps and its end. */
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

static void find_cover(struct wf *x)
{
	const struct graph *g = x->g;

	x->w->window_ns = g->meta.window_ns;
	vec_for(&x->t->spans, s)
		if (s->in_ns > x->to_ns)
			x->to_ns = s->in_ns;
	if (!x->to_ns)
		return;
	if (g->meta.start_ns && g->meta.start_ns + g->meta.window_ns > x->to_ns)
		x->to_ns = g->meta.start_ns + g->meta.window_ns;
	x->from_ns = x->t->spans_from_ns > g->meta.start_ns ? x->t->spans_from_ns : g->meta.start_ns;
	if (!x->from_ns || x->from_ns > x->to_ns)
		x->from_ns = x->to_ns;
	if (!x->w->window_ns)
		x->w->window_ns = x->to_ns - x->from_ns;
	x->w->seen_from_ns = x->from_ns;
}

void waitfor_init(struct waitfor *w, struct graph *g, const struct timeline *t)
{
	static const struct timeline nothing;
	struct cascade c;
	struct wf x = {.w = w, .g = g, .t = t ?: &nothing, .c = &c};

	memset(w, 0, sizeof(*w));
	arena_init(&w->arena);
	w->g = g;
	find_cover(&x);
	wf_add_threads(&x);
	wf_add_spans(&x);
	wf_add_chains(&x);
	wf_add_knots(&x);
	wf_add_serial(&x);
	wf_add_rounds(&x);
	wf_add_locks(&x);
	wf_add_patterns(&x);
	wf_add_stragglers(&x);
	wf_sort_patterns(&x);
	cascade_done(&c);
	vec_done(&x.threads);
	vec_done(&x.spans);
	free(x.no);
	free(x.lock);
	free(x.burst_ns);
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
