/* Single waits by thread, with whom each is charged to, and what threads do between them. */
#include <stdlib.h>
#include <string.h>

#include "waitfor/parts.h"

/* A thread that ran so long or less before it waited for the same again got nothing done. */
#define FALSE_WAKE_NS 20000u

static int by_thread(const void *a, const void *b, void *ctx)
{
	const struct wait_span *s = ctx, *p = &s[*(const uint32_t *)a], *q = &s[*(const uint32_t *)b];

	if (p->waiter != q->waiter)
		return p->waiter < q->waiter ? -1 : 1;
	if (p->out_ns != q->out_ns)
		return p->out_ns < q->out_ns ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void put_span(struct wf *x, const struct wait_span *s)
{
	struct wf_thread *t = &x->threads.v[x->no[s->waiter]];
	struct wf_span v = {
		.out_ns = s->out_ns,
		.wake_ns = s->wake_ns,
		.in_ns = s->in_ns,
		.waker = s->waker == NODE_NONE ? NODE_NONE : x->no[s->waker],
		.object = s->object,
		.ender = s->ender,
		.cause = s->cause,
	};

	/* Files from elsewhere: a thread waits once at a time. */
	if (t->n && v.out_ns < x->spans.v[x->spans.n - 1].in_ns)
		return;
	v.charged = v.waker;
	if (!t->n)
		t->first = (uint32_t)x->spans.n;
	t->n++;
	vec_push(&x->spans, v);
}

/* What a thread waits for that had not ended: by its relations, the largest wait that nobody ended. */
struct unended {
	uint64_t ns;	 /* of all that it waits for, ended waits taken off */
	uint64_t most;	 /* of one relation */
	uint32_t object; /* of that one */
	uint8_t cause;
};

static struct unended *find_unended(struct wf *x)
{
	struct unended *u = mem_alloc((x->threads.n + 1) * sizeof(*u));
	uint64_t (*ended)[CAUSE_COUNT] = mem_alloc((x->threads.n + 1) * sizeof(*ended));
	uint64_t (*waited)[CAUSE_COUNT] = mem_alloc((x->threads.n + 1) * sizeof(*waited));

	for (size_t i = 0; i < x->threads.n; i++)
		u[i].object = NODE_NONE;
	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;

		if (d->type == &wakes_type && x->no[d->target] != NODE_NONE)
			ended[x->no[d->target]][wf_edge_cause(d)] += wf_edge_ns(d);
		else if (d->type == &waits_for_type && x->no[d->source] != NODE_NONE)
			waited[x->no[d->source]][wf_edge_cause(d)] += wf_edge_ns(d);
	}
	for (size_t i = 0; i < x->threads.n; i++)
		for (unsigned c = 0; c < CAUSE_COUNT; c++)
			if (waited[i][c] > ended[i][c] && waited[i][c] - ended[i][c] > u[i].ns) {
				u[i].ns = waited[i][c] - ended[i][c];
				u[i].cause = (uint8_t)c;
			}
	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;
		struct unended *to;

		if (d->type != &waits_for_type || x->no[d->source] == NODE_NONE)
			continue;
		to = &u[x->no[d->source]];
		if (wf_edge_cause(d) != to->cause)
			continue;
		/* The last wait is one wait: an object that was waited for as long, and longest at once. */
		if (wf_edge_ns(d) >= to->ns / 2 && wf_edge_ns(d) > to->most) {
			to->most = wf_edge_ns(d);
			to->object = d->target;
		}
	}
	free(ended);
	free(waited);
	return u;
}

/* A wait that goes on at the end, so that what a thread does then is known. */
static void put_unended(struct wf *x, struct wf_thread *t, const struct unended *u)
{
	const struct node *n = x->g->nodes.v[t->node];
	uint64_t out, last = t->n ? x->spans.v[t->first + t->n - 1].in_ns : 0;

	if (u->ns < FALSE_WAKE_NS || x->to_ns <= x->from_ns || HAS(thread, n, end_ns))
		return;
	out = x->to_ns > u->ns ? x->to_ns - u->ns : 0;
	if (out < last)
		out = last;
	if (out >= x->to_ns)
		return;
	if (!t->n)
		t->first = (uint32_t)x->spans.n;
	t->n++;
	vec_push(&x->spans, ((struct wf_span){.out_ns = out,
					      .wake_ns = x->to_ns,
					      .in_ns = x->to_ns,
					      .waker = NODE_NONE,
					      .charged = NODE_NONE,
					      .object = u->object,
					      .ender = ENDER_UNKNOWN,
					      .cause = u->cause,
					      .goes_on = true}));
}

/*
 * A time-out of a wait that then goes on, and a lock that another one took first: the wait was for
 * whoever ended it in the end.
 */
static void charge(struct wf *x, const struct wf_thread *t)
{
	for (uint32_t i = t->first + t->n; i > t->first + 1; i--) {
		struct wf_span *next = &x->spans.v[i - 1], *s = &x->spans.v[i - 2];

		if (s->object == NODE_NONE || s->object != next->object || s->cause != next->cause ||
		    s->cause == CAUSE_SLEEP || next->out_ns - s->in_ns > FALSE_WAKE_NS)
			continue;
		if (s->ender != ENDER_TIMER && !x->lock[s->object])
			continue;
		if (next->charged == NODE_NONE || next->charged == s->charged)
			continue;
		s->charged = next->charged;
		s->merged = true;
		x->w->merged++;
	}
}

/* Ready but not running after a wait is in the spans; the rest lies between them. */
static uint32_t run_permille(const struct wf *x, const struct wf_thread *t)
{
	uint64_t seen = 0, rest, covered = x->to_ns - x->from_ns;
	double scale = covered && x->w->window_ns > covered ? (double)x->w->window_ns / (double)covered : 1;

	for (uint32_t i = t->first; i < t->first + t->n; i++)
		seen += x->spans.v[i].in_ns - x->spans.v[i].wake_ns;
	seen = (uint64_t)((double)seen * scale);
	rest = t->runq_ns > seen ? t->runq_ns - seen : 0;
	if (!(t->run_ns + rest))
		return 1000;
	return (uint32_t)((double)t->run_ns * 1000 / (double)(t->run_ns + rest));
}

void wf_add_spans(struct wf *x)
{
	const struct timeline *t = x->t;
	uint32_t *order = mem_alloc((t->spans.n + 1) * sizeof(*order)), n = 0, at = 0;
	struct unended *unended = find_unended(x);

	vec_for(&t->spans, s)
		if (s->waiter < x->g->nodes.n && x->no[s->waiter] != NODE_NONE &&
		    (s->waker == NODE_NONE ||
		     (s->waker < x->g->nodes.n && x->no[s->waker] != NODE_NONE)))
			order[n++] = (uint32_t)(s - t->spans.v);
	if (n)
		qsort_r(order, n, sizeof(*order), by_thread, t->spans.v);
	vec_for(&x->threads, thread) {
		while (at < n && t->spans.v[order[at]].waiter == thread->node)
			put_span(x, &t->spans.v[order[at++]]);
		put_unended(x, thread, &unended[thread - x->threads.v]);
		charge(x, thread);
		thread->run_permille = run_permille(x, thread);
	}
	free(order);
	free(unended);
}

uint32_t wf_span_after(const struct wf *x, const struct wf_thread *t, uint64_t ns)
{
	uint32_t low = t->first, high = t->first + t->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (x->spans.v[middle].in_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum wait_state wf_wait_state(const struct wf *x, const struct wf_span *s)
{
	(void)x;
	switch (s->cause) {
	case CAUSE_SLEEP:
		return STATE_SLEEP;
	case CAUSE_DISK:
	case CAUSE_FILE:
		return STATE_DISK;
	case CAUSE_PAGE_FAULT:
		return STATE_FAULT;
	case CAUSE_DEVICE:
		return STATE_DEVICE;
	case CAUSE_SIGNAL:
		return STATE_STOPPED;
	}
	switch (s->ender) {
	case ENDER_TIMER:
		return STATE_SLEEP;
	case ENDER_DISK:
		return STATE_DISK;
	case ENDER_NETWORK:
		return STATE_NETWORK;
	case ENDER_DEVICE:
		return STATE_DEVICE;
	}
	if (s->cause == CAUSE_SOCKET || s->cause == CAUSE_POLL)
		return STATE_NETWORK;
	return STATE_BLOCKED;
}
