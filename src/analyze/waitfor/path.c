/*
 * The critical path of an interval, back from its end: while a thread runs it is the path, while it waits the path goes
 * on with who ended the wait. What would be if parts of it took no time.
 */
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

#define STEPS_MOST 200000u
#define JUMPS_MOST 64u /* from thread to thread at one instant */

struct walker {
	const struct wf *x;
	struct wait_path *p;
	uint32_t thread; /* number */
	uint64_t at;	 /* what lies behind is done */
	unsigned jumps;
};

/* The path is walked backward: pieces come in reverse. */
static void put(struct walker *k, enum wait_state state, uint32_t object, uint64_t from)
{
	struct wait_path *p = k->p;
	struct path_step *last = p->steps.n ? &p->steps.v[p->steps.n - 1] : NULL;
	uint32_t node = k->x->threads.v[k->thread].node;

	if (from < p->from_ns)
		from = p->from_ns;
	if (from >= k->at)
		return;
	if (last && last->thread == node && last->state == state && last->object == object)
		last->from_ns = from;
	else
		vec_push(&p->steps, ((struct path_step){node, object, state, from, k->at}));
	k->at = from;
	k->jumps = 0;
}

static void put_active(struct walker *k, uint64_t from)
{
	uint64_t run;

	if (from < k->p->from_ns)
		from = k->p->from_ns;
	run = (k->at - from) / 1000 * k->x->threads.v[k->thread].run_permille +
	      (k->at - from) % 1000 * k->x->threads.v[k->thread].run_permille / 1000;
	put(k, STATE_RUN, NODE_NONE, k->at - run);
	put(k, STATE_RUNQ, NODE_NONE, from);
}

/* The last span that begins before @ns, or NULL. */
static const struct wf_span *span_before(const struct wf *x, const struct wf_thread *t, uint64_t ns)
{
	uint32_t low = t->first, high = t->first + t->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (x->spans.v[middle].out_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > t->first ? &x->spans.v[low - 1] : NULL;
}

static void go_back(struct walker *k)
{
	const struct wf *x = k->x;
	const struct wf_span *s = span_before(x, &x->threads.v[k->thread], k->at);

	if (!s) {
		put_active(k, k->p->from_ns);
	} else if (k->at > s->in_ns) {
		put_active(k, s->in_ns);
	} else if (k->at > s->wake_ns) {
		put(k, STATE_RUNQ, NODE_NONE, s->wake_ns);
	} else if (!wf_is_followed(x, s)) {
		put(k, wf_wait_state(x, s), s->object, s->out_ns);
	} else if (++k->jumps > JUMPS_MOST) {
		put(k, STATE_CYCLE, s->object, s->out_ns);
	} else {
		k->thread = s->charged;
	}
}

static int part_order(const void *a, const void *b)
{
	const struct path_part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->state < y->state ? -1 : x->state > y->state;
}

static void sum_parts(struct wait_path *p)
{
	struct idmap of = {0};
	VEC(uint64_t) most = {0};

	vec_for(&p->steps, s) {
		uint32_t at = idmap_get(&of, s->thread, s->state);

		if (at == IDMAP_NONE) {
			at = (uint32_t)p->parts.n;
			idmap_put(&of, s->thread, s->state, at);
			vec_push(&p->parts, ((struct path_part){s->thread, NODE_NONE, s->state, 0}));
			vec_push(&most, 0);
		}
		p->parts.v[at].ns += s->to_ns - s->from_ns;
		if (s->to_ns - s->from_ns > most.v[at]) {
			most.v[at] = s->to_ns - s->from_ns;
			p->parts.v[at].object = s->object;
		}
	}
	if (p->parts.n)
		qsort(p->parts.v, p->parts.n, sizeof(*p->parts.v), part_order);
	vec_done(&most);
	idmap_done(&of);
}

void wf_walk_path(const struct wf *x, struct wait_path *p)
{
	struct walker k = {.x = x, .p = p, .thread = x->no[p->thread], .at = p->to_ns};

	while (k.at > p->from_ns && p->steps.n < STEPS_MOST)
		go_back(&k);
	if (k.at > p->from_ns) {
		p->cut_ns = k.at - p->from_ns;
		put(&k, STATE_BLOCKED, NODE_NONE, p->from_ns);
	}
	for (size_t i = 0, j = p->steps.n; i + 1 < j; i++) {
		struct path_step last = p->steps.v[--j];

		p->steps.v[j] = p->steps.v[i];
		p->steps.v[i] = last;
	}
	sum_parts(p);
}

/* Who of a role waits longest for others. */
static uint32_t worst_thread(const struct wf *x, uint32_t role)
{
	uint64_t *ns = mem_alloc((x->threads.n + 1) * sizeof(*ns));
	uint32_t worst = NODE_NONE;

	vec_for(&x->c->accounts, a)
		if (x->threads.v[a->waiter].role == role)
			ns[a->waiter] += a->counted_ns;
	for (uint32_t i = 0; i < x->threads.n; i++)
		if (ns[i] && (worst == NODE_NONE || ns[i] > ns[worst]))
			worst = i;
	free(ns);
	return worst == NODE_NONE ? NODE_NONE : x->threads.v[worst].node;
}

/* A part of the path that would take no time: the most that can be gained. */
static void add_what_ifs(struct wf *x, const struct wait_path *p)
{
	uint64_t whole = p->to_ns - p->from_ns;

	for (size_t i = 0; i < p->parts.n && i < 3; i++) {
		const struct path_part *part = &p->parts.v[i];
		struct wait_what_if v = {.thread = part->thread, .state = part->state};
		const char *who = wf_thread_text(x->w, x->g, part->thread);

		if (part->state == STATE_SLEEP || part->state == STATE_OUTSIDE || part->state == STATE_NETWORK || part->state == STATE_BLOCKED ||
		    part->ns * 20 < whole)
			continue;
		v.now_ns = whole;
		v.then_ns = whole - part->ns;
		v.text = wf_text(x->w, "without the time that %s is %s, what %s did in %.1f ms would take %.1f ms", who,
				 wait_state_text(part->state), wf_thread_text(x->w, x->g, p->thread),
				 (double)v.now_ns / 1e6, (double)v.then_ns / 1e6);
		v.assumes = "nothing else becomes what all wait for: the most that can be gained";
		vec_push(&x->w->what_ifs, v);
	}
}

void wf_add_paths(struct wf *x)
{
	struct wait_path p = {0};

	if (x->to_ns <= x->from_ns || !x->w->chains.n || x->w->chains.v[0].late_ns < wf_least_ns(x))
		return;
	p.thread = worst_thread(x, x->w->chains.v[0].role);
	if (p.thread == NODE_NONE)
		return;
	/* Ranks have theirs. */
	vec_for(&x->w->paths, other)
		if (x->w->role_of[other->thread] == x->w->chains.v[0].role) {
			add_what_ifs(x, other);
			return;
		}
	p.from_ns = x->from_ns;
	p.to_ns = x->to_ns;
	wf_walk_path(x, &p);
	vec_push(&x->w->paths, p);
	add_what_ifs(x, &x->w->paths.v[x->w->paths.n - 1]);
}

static int gain_order(const void *a, const void *b)
{
	const struct wait_what_if *x = a, *y = b;
	double g = (double)(x->now_ns - x->then_ns) / (double)x->now_ns;
	double h = (double)(y->now_ns - y->then_ns) / (double)y->now_ns;

	if (g != h)
		return g > h ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->state < y->state ? -1 : x->state > y->state;
}

void wf_sort_what_ifs(struct wf *x)
{
	if (x->w->what_ifs.n)
		qsort(x->w->what_ifs.v, x->w->what_ifs.n, sizeof(*x->w->what_ifs.v), gain_order);
}
