/* Who ran on the CPUs of threads that were kept waiting for one. */
#include <stdlib.h>
#include <string.h>

#include "hot_parts.h"

/* Of each CPU, so many threads are looked at: those that used most of it. */
#define RIVALS_OF_CPU  32
#define RUNQ_LEAST_PCT 1.0

struct stay {
	uint32_t cpu, thread; /* nodes */
	uint64_t run_ns;
};

struct stays {
	VEC(struct stay) v; /* by CPU, longest first */
	uint32_t *first;    /* [g->nodes.n] place of a CPU's first one, HOT_NONE */
};

static int by_cpu(const void *a, const void *b)
{
	const struct stay *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->run_ns != y->run_ns)
		return x->run_ns > y->run_ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void stays_init(const struct hot *h, struct stays *s)
{
	const struct graph *g = h->g;

	s->first = mem_alloc((g->nodes.n + 1) * sizeof(*s->first));
	memset(s->first, 0xff, (g->nodes.n + 1) * sizeof(*s->first));
	vec_for(&g->edges, it) {
		const struct edge *d = *it;

		if (d->type == &ran_on_type && HAS(ran_on, d, run_ns) && GET(ran_on, d, run_ns))
			vec_push(&s->v,
				 ((struct stay){d->target, d->source, GET(ran_on, d, run_ns)}));
	}
	if (s->v.n > 1)
		qsort(s->v.v, s->v.n, sizeof(*s->v.v), by_cpu);
	for (uint32_t i = (uint32_t)s->v.n; i-- > 0;)
		s->first[s->v.v[i].cpu] = i;
}

static int by_time(const void *a, const void *b)
{
	const struct hot_rival *x = a, *y = b;

	if (x->run_ns != y->run_ns)
		return x->run_ns > y->run_ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Who came in its place, and how often. */
static void find_preempting(const struct hot *h, struct hot_thread *t, struct hot_rival *v, size_t n)
{
	struct edge_list in = graph_in(h->g, t->node);

	for (size_t i = 0; i < in.n; i++) {
		const struct edge *d = h->g->edges.v[in.v[i]];
		uint64_t times =
		    d->type == &preempts_type && HAS(preempts, d, times) ? GET(preempts, d, times) : 0;

		if (!times)
			continue;
		t->preempted += times;
		if (times > t->preempter_times ||
		    (times == t->preempter_times && d->source < t->preempter)) {
			t->preempter = d->source;
			t->preempter_times = times;
		}
		for (size_t k = 0; k < n; k++)
			if (v[k].node == d->source)
				v[k].times = times;
	}
}

/* @param sum [g->nodes.n], all 0 before and after */
static void find_rivals(const struct hot *h, struct hot_thread *t, const struct stays *s, const uint32_t *cpus,
			size_t n, uint64_t *sum)
{
	VEC(struct hot_rival) all = {0};

	for (size_t i = 0; i < n; i++) {
		size_t at = s->first[cpus[i]];

		for (size_t k = 0;
		     k < RIVALS_OF_CPU && at + k < s->v.n && s->v.v[at + k].cpu == cpus[i]; k++) {
			const struct stay *x = &s->v.v[at + k];

			if (x->thread == t->node)
				continue;
			if (!sum[x->thread])
				vec_push(&all, ((struct hot_rival){.node = x->thread}));
			sum[x->thread] += x->run_ns;
		}
	}
	vec_for(&all, r) {
		r->run_ns = sum[r->node];
		sum[r->node] = 0;
	}
	if (all.n > 1)
		qsort(all.v, all.n, sizeof(*all.v), by_time);
	for (size_t i = 0; i < all.n && i < HOT_RIVALS; i++)
		vec_push(&t->rivals, all.v[i]);
	find_preempting(h, t, t->rivals.v, t->rivals.n);
	vec_done(&all);
}

static bool was_kept_waiting(const struct hot *h, const struct hot_thread *t)
{
	return (hot_has(t->runq_pct) && t->runq_pct >= RUNQ_LEAST_PCT) ||
	       hot_above(h, t->involuntary_s, LIMIT_class_compute_switches);
}

void hot_fill_rivals(struct hot *h)
{
	uint64_t *sum = mem_alloc((h->g->nodes.n + 1) * sizeof(*sum));
	VEC(uint32_t) cpus = {0};
	struct stays s = {0};

	stays_init(h, &s);
	vec_for(&h->threads, t) {
		struct edge_list out;

		t->preempter = HOT_NONE;
		if (!was_kept_waiting(h, t))
			continue;
		out = graph_out(h->g, t->node);
		vec_clear(&cpus);
		for (size_t i = 0; i < out.n; i++) {
			const struct edge *d = h->g->edges.v[out.v[i]];

			if (d->type == &ran_on_type && s.first[d->target] != HOT_NONE)
				vec_push(&cpus, d->target);
		}
		find_rivals(h, t, &s, cpus.v, cpus.n, sum);
	}
	vec_done(&cpus);
	vec_done(&s.v);
	free(s.first);
	free(sum);
}
