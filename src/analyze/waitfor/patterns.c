/* Patterns between two sides: who makes and who takes; and who is busy for nobody. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

#define PAIR_PCT    20	/* a side that waits less than that is not held up */
#define POLLER_PCT  80	/* of the time on a CPU or ready to be: who looks all the time */
#define YIELDS_PER_S 1000
#define LOOKS_PER_S  200 /* who sleeps that often only to look */

/* Which way data goes between a thread that waits and what it waits for. */
enum way { WAY_UNKNOWN, WAY_TAKES, WAY_GIVES, WAY_ASKS };

static bool has_edge(const struct wf *x, uint32_t from, const struct type *t, uint32_t to)
{
	struct edge_list out;

	if (from == NODE_NONE)
		return false;
	out = graph_out(x->g, from);
	for (size_t i = 0; i < out.n; i++)
		if (x->g->edges.v[out.v[i]]->type == t && x->g->edges.v[out.v[i]]->target == to)
			return true;
	return false;
}

static uint64_t flow_messages(const struct wf *x, uint32_t from, uint32_t to)
{
	struct edge_list out = graph_out(x->g, from);
	uint64_t n = 0;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = x->g->edges.v[out.v[i]];

		if (d->type == &flow_type && d->target == to && HAS(flow, d, messages))
			n += GET(flow, d, messages);
	}
	return n;
}

static uint32_t process_of(const struct wf *x, uint32_t thread)
{
	return x->threads.v[x->no[thread]].process;
}

static enum way way_of(const struct wf *x, const struct wait_role *waiter, const struct wait_role *other,
		       const struct wait_part *p)
{
	uint32_t thread = waiter->threads.v[0], object = p->first_object;
	uint32_t from = process_of(x, thread), to = process_of(x, other->threads.v[0]);
	uint64_t gives, takes;
	bool reads, writes;

	if (object != NODE_NONE) {
		writes = has_edge(x, thread, &write_to_type, object);
		reads = has_edge(x, object, &read_from_type, thread);
		if (reads != writes)
			return reads ? WAY_TAKES : WAY_GIVES;
	}
	if (from == NODE_NONE || to == NODE_NONE || from == to)
		return WAY_UNKNOWN;
	gives = flow_messages(x, from, to);
	takes = flow_messages(x, to, from);
	if (!gives && !takes)
		return WAY_UNKNOWN;
	/* One way, or there and back; who polls mostly waits for something to come. */
	if (gives > takes * 10 && p->cause != CAUSE_POLL)
		return WAY_GIVES;
	return takes > gives * 10 ? WAY_TAKES : WAY_ASKS;
}

static bool in_pattern(const struct wf *x, uint32_t thread, uint64_t ns)
{
	vec_for(&x->w->patterns, p)
		vec_for(&p->threads, t)
			if (*t == thread && p->ns * 2 > ns)
				return true;
	return false;
}

static void add_pair(struct wf *x, const struct wait_chain *c, const struct wait_part *p, uint64_t ns, uint64_t ready)
{
	const struct wait_role *waiter = &x->w->roles.v[c->role];
	uint32_t next = p->via.n ? p->via.v[0] : p->role;
	enum way way = way_of(x, waiter, &x->w->roles.v[next], p);
	const char *who = wf_thread_text(x->w, x->g, p->thread);
	static const char *const does[] = {"woken by", "for data from", "for room to hand data to",
					   "for answers or questions of"};
	struct wait_pattern v = {.kind = way == WAY_GIVES ? PATTERN_BACK_PRESSURE : PATTERN_SLOW_PRODUCER,
				 .object = p->first_object,
				 .root = p->thread,
				 .ns = ns,
				 .ready_ns = ready,
				 .confidence_pct = way == WAY_UNKNOWN ? 60 : 80,
				 .asks = way == WAY_ASKS,
				 .root_pct = (double)ns * 100 / (double)c->waited_ns};

	vec_for(&waiter->threads, t)
		vec_push(&v.threads, *t);
	vec_for(&x->w->links, l)
		if (l->waiter == c->role && l->waker == next)
			v.events += l->waits;
	v.text = way == WAY_GIVES ? wf_text(x->w, "%s cannot hand on: %s is too slow", waiter->text, who)
				  : wf_text(x->w, "%s wait%s for %s", waiter->text, waiter->threads.n > 1 ? "" : "s", who);
	v.why = wf_text(x->w,
			"waits by %s, %s %s; %.0f %% of the time waited, %.1f s, ended when %s had gone on, which was %s "
			"meanwhile",
			wait_cause_name(p->cause), does[way], x->w->roles.v[next].text, v.root_pct, (double)ns / 1e9, who,
			wait_state_text(p->state));
	vec_push(&x->w->patterns, v);
}

/* One side waits most of the time for another one that is at work: it is the slow one. */
static void add_pairs(struct wf *x)
{
	vec_for(&x->w->chains, c) {
		const struct wait_role *r = &x->w->roles.v[c->role];
		const struct wait_part *top = NULL;
		uint64_t ns = 0, ready = 0;

		/* The same root in several states is one. */
		vec_for(&c->parts, p) {
			if (p->idle || p->held || p->role == c->role)
				continue;
			top = top ?: p;
			if (p->role != top->role)
				continue;
			ns += p->ns;
			ready += p->state == STATE_RUNQ ? p->ns : 0;
		}
		if (!top || ns * 100 < x->w->window_ns * r->threads.n * PAIR_PCT || ns * 2 < c->waited_ns)
			continue;
		if (!in_pattern(x, r->threads.v[0], ns))
			add_pair(x, c, top, ns, ready);
	}
}

static uint64_t timer_waits(const struct wf *x, uint32_t thread)
{
	struct edge_list out = graph_out(x->g, thread);
	uint64_t n = 0;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = x->g->edges.v[out.v[i]];

		if (d->type == &waits_for_type && wf_edge_cause(d) == CAUSE_SLEEP && HAS(waits_for, d, waits))
			n += GET(waits_for, d, waits);
	}
	return n;
}

static void add_poller(struct wf *x, const struct wf_thread *t)
{
	const struct node *n = x->g->nodes.v[t->node];
	double window = (double)x->w->window_ns / 1e9, run = (double)t->run_ns * 100 / (double)x->w->window_ns;
	double yields = HAS(thread, n, involuntary_switches) ? (double)GET(thread, n, involuntary_switches) / window : 0;
	double looks = (double)timer_waits(x, t->node) / window;
	struct wait_pattern p = {.kind = PATTERN_POLLER,
				 .object = NODE_NONE,
				 .root = t->node,
				 .ns = 0,
				 .confidence_pct = yields > YIELDS_PER_S || looks > LOOKS_PER_S ? 80 : 50,
				 .root_pct = run};

	if (waitfor_caused_ns(x->w, t->node, false) * 50 > x->w->window_ns)
		return;
	p.text = wf_text(x->w, "%s is busy and nobody waits for it", wf_thread_text(x->w, x->g, t->node));
	if (looks > LOOKS_PER_S)
		p.why = wf_text(x->w, "on a CPU for %.0f %% of the window; %.0f times a second it slept a moment and looked again",
				run, looks);
	else
		p.why = wf_text(x->w,
				"on a CPU for %.0f %% of the window, %.0f times a second off it without waiting; it looks for "
				"work all the time, or computes for itself",
				run, yields);
	vec_push(&x->w->patterns, p);
}

static void add_pollers(struct wf *x)
{
	vec_for(&x->threads, t) {
		/* Others may leave it little of a CPU; it would take all. */
		bool busy = (t->run_ns + t->runq_ns) * 100 > x->w->window_ns * POLLER_PCT &&
			    t->run_ns > 10 * wf_least_ns(x);

		if (t->kernel || !x->w->window_ns || !(busy || t->run_ns > 2 * wf_least_ns(x)))
			continue;
		if (busy || (double)timer_waits(x, t->node) * 1e9 > LOOKS_PER_S * (double)x->w->window_ns)
			add_poller(x, t);
	}
}

void wf_add_patterns(struct wf *x)
{
	wf_add_turns(x);
	add_pairs(x);
	add_pollers(x);
}

static int pattern_order(const void *a, const void *b)
{
	const struct wait_pattern *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->root_pct != y->root_pct)
		return x->root_pct > y->root_pct ? -1 : 1;
	return x->root < y->root ? -1 : x->root > y->root;
}

void wf_sort_patterns(struct wf *x)
{
	if (x->w->patterns.n)
		qsort(x->w->patterns.v, x->w->patterns.n, sizeof(*x->w->patterns.v), pattern_order);
}
