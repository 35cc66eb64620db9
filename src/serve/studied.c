/* Analyses of a snapshot that hold up nobody else: they have a copy. */
#include "studied.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

static void copy_about(struct graph *to, const struct graph *from)
{
	to->meta = from->meta;
	vec_for(&from->status, s)
		graph_add_status(to, s->source, s->state, s->rung, s->reason);
	vec_for(&from->losses, l)
		graph_add_loss(to, l->source, l->cause, l->count);
	vec_for(&from->costs, c)
		graph_add_cost(to, c->name, c->unit, c->value);
}

static uint32_t renumber(const uint32_t *nodes, uint32_t n)
{
	return n == NODE_NONE ? n : nodes[n];
}

static void copy_timeline(struct timeline *to, const struct timeline *from, const uint32_t *nodes)
{
	vec_for(&from->intervals, i)
		vec_push(&to->intervals, *i);
	vec_reserve(&to->spans, from->spans.n);
	vec_for(&from->spans, s) {
		struct wait_span *c = vec_add(&to->spans);

		*c = *s;
		c->waiter = renumber(nodes, s->waiter);
		c->waker = renumber(nodes, s->waker);
		c->object = renumber(nodes, s->object);
	}
	vec_reserve(&to->slices, from->slices.n);
	vec_for(&from->slices, s) {
		struct thread_slice *c = vec_add(&to->slices);

		*c = *s;
		c->thread = renumber(nodes, s->thread);
	}
	to->spans_from_ns = from->spans_from_ns;
	timeline_sort(to);
}

static void copy_amounts(struct studied *k, const struct interval_amounts *from, const uint32_t *nodes)
{
	vec_reserve(&k->amounts.v, from->v.n);
	vec_for(&from->v, a) {
		struct interval_amount *c = vec_add(&k->amounts.v);

		*c = *a;
		c->node = renumber(nodes, a->node);
		c->kind = a->kind ? graph_str(&k->g, a->kind) : NULL;
	}
}

void studied_init(struct studied *k, struct snapshot *s, const struct limits *l, const struct analysis_means *m)
{
	static const struct analysis_means none;
	uint32_t *nodes;

	memset(k, 0, sizeof(*k));
	graph_init(&k->g);
	pthread_mutex_lock(&s->lock);
	nodes = mem_alloc((s->g.nodes.n + 1) * sizeof(*nodes));
	graph_merge(&k->g, &s->g, nodes, NULL);
	copy_about(&k->g, &s->g);
	pthread_mutex_unlock(&s->lock);
	/* Of a sealed snapshot it does not change. */
	copy_timeline(&k->time, &s->time, nodes);
	copy_amounts(k, &s->amounts, nodes);
	free(nodes);
	analysis_init_with(&k->all, &k->g, &k->time, l, m ?: &none);
}

void studied_done(struct studied *k)
{
	analysis_done(&k->all);
	timeline_done(&k->time);
	vec_done(&k->amounts.v);
	graph_done(&k->g);
}
