/* Single waits by thread, with whom each is charged to, and what threads do between them. */
#include <stdlib.h>
#include <string.h>

#include "waitfor/parts.h"

/* A thread that ran so long or less before it waited for the same again got nothing done. */
#define FALSE_WAKE_NS 20000u
#define HOLD_MOST_NS  50000000u /* a time-out is put down to a release that comes so soon after it */
#define CONDITION_BYTES 48 /* sizeof(pthread_cond_t) */

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

	/* The last totals are older than the last waits. */
	if (v.out_ns >= x->to_ns || v.in_ns - v.out_ns > WF_TIME_MOST)
		return;
	if (v.wake_ns > x->to_ns) {
		v.goes_on = true;
		v.wake_ns = x->to_ns;
		v.waker = NODE_NONE;
		v.ender = ENDER_UNKNOWN;
	}
	if (v.in_ns > x->to_ns)
		v.in_ns = x->to_ns;
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

	if (t->n && x->spans.v[t->first + t->n - 1].goes_on)
		return;
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

bool wf_word_place(const struct node *n, uint64_t *ret_pid, uint64_t *ret_address)
{
	const char *key = n->type == &futex_type && HAS(futex, n, futex_key) ? GET(futex, n, futex_key) : NULL;
	char *end;

	if (!key)
		return false;
	*ret_pid = strtoull(key, &end, 10);
	if (strncmp(end, ":0x", 3))
		return false;
	*ret_address = strtoull(end + 1, NULL, 16);
	return true;
}

/* The same object, or words of one condition of the C library, which takes them by turns. */
static bool is_same(const struct wf *x, uint32_t a, uint32_t b)
{
	uint64_t pid[2], at[2];

	if (a == b || a == NODE_NONE || b == NODE_NONE)
		return a == b && a != NODE_NONE;
	return wf_word_place(x->g->nodes.v[a], &pid[0], &at[0]) && wf_word_place(x->g->nodes.v[b], &pid[1], &at[1]) &&
	       pid[0] == pid[1] && (at[0] > at[1] ? at[0] - at[1] : at[1] - at[0]) < CONDITION_BYTES;
}

/*
 * A time-out of a wait that then goes on, and a lock that another one took first: the wait was for
 * whoever ended it in the end.
 */
static void charge(struct wf *x, const struct wf_thread *t)
{
	for (uint32_t i = t->first + t->n; i > t->first + 1; i--) {
		struct wf_span *next = &x->spans.v[i - 1], *s = &x->spans.v[i - 2];

		if (s->cause != next->cause || s->cause == CAUSE_SLEEP || next->out_ns - s->in_ns > FALSE_WAKE_NS ||
		    !is_same(x, s->object, next->object))
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

/* Somebody ended a wait for a word: it had what others wait for. */
struct release {
	uint64_t ns;
	uint32_t word; /* first futex node of the same condition */
	uint32_t waker;
};

struct releases {
	VEC(struct release) v;
	uint32_t *word; /* [g->nodes.n] of a futex */
};

static int release_order(const void *a, const void *b)
{
	const struct release *x = a, *y = b;

	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->waker < y->waker ? -1 : x->waker > y->waker;
}

/* Words beside each other in one process are taken for one. */
static void find_words(const struct wf *x, struct releases *r)
{
	struct idmap of = {0};

	r->word = mem_alloc((x->g->nodes.n + 1) * sizeof(*r->word));
	for (uint32_t i = 0; i < x->g->nodes.n; i++) {
		uint64_t pid, at;

		r->word[i] = i;
		if (!wf_word_place(x->g->nodes.v[i], &pid, &at))
			continue;
		r->word[i] = idmap_get(&of, pid, at / 64);
		if (r->word[i] == IDMAP_NONE) {
			r->word[i] = i;
			idmap_put(&of, pid, at / 64, i);
		}
	}
	idmap_done(&of);
}

static const struct release *next_release(const struct releases *r, uint32_t word, uint64_t ns)
{
	size_t low = 0, high = r->v.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct release *at = &r->v.v[middle];

		if (at->word < word || (at->word == word && at->ns < ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->v.n && r->v.v[low].word == word ? &r->v.v[low] : NULL;
}

/*
 * Who waits for a word with a time-out, and then finds what it wants, waited for whoever had it: for the one that
 * wakes the next waiter. The interpreter lock of CPython is taken so.
 */
static void charge_holders(struct wf *x)
{
	struct releases r = {0};

	find_words(x, &r);
	vec_for(&x->spans, s)
		if (s->cause == CAUSE_FUTEX && s->waker != NODE_NONE && s->object != NODE_NONE)
			vec_push(&r.v, ((struct release){s->wake_ns, r.word[s->object], s->waker}));
	if (r.v.n)
		qsort(r.v.v, r.v.n, sizeof(*r.v.v), release_order);
	for (uint32_t no = 0; r.v.n && no < x->threads.n; no++)
		for (uint32_t i = x->threads.v[no].first; i < x->threads.v[no].first + x->threads.v[no].n; i++) {
			struct wf_span *s = &x->spans.v[i];
			const struct release *next;

			if (s->cause != CAUSE_FUTEX || s->ender != ENDER_TIMER || s->charged != NODE_NONE ||
			    s->object == NODE_NONE || s->goes_on)
				continue;
			next = next_release(&r, r.word[s->object], s->wake_ns);
			if (!next || next->waker == no || next->ns - s->wake_ns > HOLD_MOST_NS)
				continue;
			s->charged = next->waker;
			s->merged = true;
			x->w->merged++;
		}
	vec_done(&r.v);
	free(r.word);
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
	charge_holders(x);
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

static const char *object_name(const struct node *n)
{
	return n->type == &wait_object_type ? wf_str(n, wait_object_f_name) : NULL;
}

/* Stopped by a signal is not waiting for one. */
static bool is_stop(const struct node *n)
{
	const char *name = object_name(n);

	return name && !strcmp(name, "stopped");
}

/*
 * Character devices behind which there is a person, by major number: Linux allocated devices, admin-guide/devices.txt.
 * Terminals, serial lines and consoles (2 to 5, 128 to 143, 166, 188, 204, 229), input devices (13).
 */
static bool is_terminal(const struct node *n)
{
	const char *name = object_name(n);
	unsigned long major = name ? strtoul(name, NULL, 10) : 0;

	return (major >= 2 && major <= 5) || (major >= 128 && major <= 143) || major == 13 || major == 166 ||
	       major == 188 || major == 204 || major == 229;
}

enum wait_state wf_wait_state(const struct wf *x, const struct wf_span *s)
{
	const struct node *n = s->object == NODE_NONE ? NULL : x->g->nodes.v[s->object];

	switch (s->cause) {
	case CAUSE_SLEEP:
		return STATE_SLEEP;
	case CAUSE_DISK:
	case CAUSE_FILE:
		return STATE_DISK;
	case CAUSE_PAGE_FAULT:
		return STATE_FAULT;
	case CAUSE_DEVICE:
		return n && is_terminal(n) ? STATE_OUTSIDE : STATE_DEVICE;
	case CAUSE_SIGNAL:
		return n && is_stop(n) ? STATE_STOPPED : STATE_OUTSIDE;
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

bool wf_is_followed(const struct wf *x, const struct wf_span *s)
{
	return s->charged != NODE_NONE && !x->threads.v[s->charged].kernel && s->cause != CAUSE_DISK &&
	       s->cause != CAUSE_SLEEP && s->cause != CAUSE_SIGNAL;
}
