/*
 * Waits that one thread ends for several at once. If the waker is one of the equals and waits itself at other times,
 * they meet at a barrier; if it is another and most of those that it woke go to wait again at once, it is a herd.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "waitfor/parts.h"

#define BURST_GAP_NS	200000u /* one call wakes them all, a few us each; it may be held up between */
#define BACK_NS		300000u /* who ran no longer than that before it waited again found nothing to do */
#define HERD_LEAST_HZ	100u /* wake-ups for nothing: below that their switches take less than a thousandth of a CPU */
#define ROUNDS_LEAST	3u

struct ending {
	uint64_t wake_ns;
	uint32_t waker, waiter, span;
};

struct family {
	uint32_t first;	 /* thread number */
	uint32_t object; /* of the longest wait */
	uint64_t object_ns, ns;
	uint32_t members, rounds, woken, inner, back;
	uint32_t waker; /* one of them, for who is outside */
};

struct rounds {
	struct wf *x;
	VEC(struct ending) v;
	VEC(struct family) families;
	uint32_t *family_of; /* [threads.n] */
	uint32_t *last;	     /* [threads.n] rounds that it ended for its own family */
	uint64_t *ns;	     /* [threads.n] that it waited in rounds */
	uint8_t *member;     /* [threads.n] */
};

static uint64_t hash_text(const char *s)
{
	return s ? hash_bytes(s, strlen(s), 7) : 0;
}

/* Threads of a role are equal; if there is one only, so are those of sibling processes with the same names. */
static uint64_t family_key(const struct wf *x, const struct wf_thread *t)
{
	const struct wait_role *r = &x->w->roles.v[t->role];
	const struct node *p = t->process == NODE_NONE ? NULL : x->g->nodes.v[t->process];

	if (r->threads.n > 1 || !p || p->type != &process_type || !HAS(process, p, ppid))
		return hash_pair(1, t->role);
	return hash_pair(hash_pair(GET(process, p, ppid), hash_text(wf_str(p, process_f_name))), hash_text(r->name));
}

static void find_families(struct rounds *r)
{
	struct idmap of = {0};

	for (uint32_t i = 0; i < r->x->threads.n; i++) {
		uint64_t key = family_key(r->x, &r->x->threads.v[i]);
		uint32_t at = idmap_get(&of, key, 1);

		if (at == IDMAP_NONE) {
			at = (uint32_t)r->families.n;
			idmap_put(&of, key, 1, at);
			vec_push(&r->families,
				 ((struct family){.first = i, .object = NODE_NONE, .waker = NODE_NONE}));
		}
		r->family_of[i] = at;
	}
	idmap_done(&of);
}

static bool counts(const struct wf *x, const struct wf_span *s)
{
	if (s->ender != ENDER_THREAD || s->waker == NODE_NONE || x->threads.v[s->waker].kernel)
		return false;
	if (s->object != NODE_NONE && x->lock[s->object])
		return false;
	return s->cause == CAUSE_FUTEX || s->cause == CAUSE_SEMAPHORE || s->cause == CAUSE_EVENTFD ||
	       s->cause == CAUSE_PIPE || s->cause == CAUSE_SOCKET || s->cause == CAUSE_POLL;
}

static int ending_order(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	if (x->waker != y->waker)
		return x->waker < y->waker ? -1 : 1;
	if (x->wake_ns != y->wake_ns)
		return x->wake_ns < y->wake_ns ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

static void read_endings(struct rounds *r)
{
	struct wf *x = r->x;

	for (uint32_t no = 0; no < x->threads.n; no++) {
		const struct wf_thread *t = &x->threads.v[no];

		for (uint32_t i = t->first; i < t->first + t->n; i++)
			if (counts(x, &x->spans.v[i]))
				vec_push(&r->v, ((struct ending){x->spans.v[i].wake_ns, x->spans.v[i].waker, no, i}));
	}
	if (r->v.n)
		qsort(r->v.v, r->v.n, sizeof(*r->v.v), ending_order);
}

/* Whether the thread, woken from a span, soon waits for the same or for what is beside it. */
static bool came_back(const struct wf *x, const struct ending *e)
{
	const struct wf_thread *t = &x->threads.v[e->waiter];
	const struct wf_span *s = &x->spans.v[e->span];
	uint32_t end = t->first + t->n, i = e->span + 1;
	uint64_t ran = 0, from = s->in_ns;

	/* It may have to queue for the lock that belongs to what it waits for. */
	for (; i < end; i++) {
		const struct wf_span *next = &x->spans.v[i];

		ran += next->out_ns - from;
		if (next->object == NODE_NONE || !x->lock[next->object])
			return ran <= BACK_NS && next->cause == s->cause && next->cause != CAUSE_SLEEP;
		from = next->in_ns;
	}
	return false;
}

static void put_member(struct rounds *r, struct family *f, uint32_t thread)
{
	f->members += !r->member[thread];
	r->member[thread] = 1;
}

/* Equal threads that waited for the same; a condition of the C library is more than one word. */
static bool is_equal(const struct rounds *r, const struct ending *a, const struct ending *b)
{
	const struct wf_span *s = &r->x->spans.v[a->span], *t = &r->x->spans.v[b->span];

	return r->family_of[a->waiter] == r->family_of[b->waiter] && s->cause == t->cause &&
	       (s->cause == CAUSE_FUTEX || s->object == t->object);
}

static void read_burst(struct rounds *r, const struct ending *e, size_t n)
{
	struct family *f = &r->families.v[r->family_of[e[0].waiter]];
	size_t equal = 0;

	for (size_t i = 0; i < n; i++)
		equal += is_equal(r, &e[0], &e[i]);
	if (equal < 2)
		return;
	f->rounds++;
	f->waker = e[0].waker;
	if (r->family_of[e[0].waker] == r->family_of[e[0].waiter]) {
		f->inner++;
		r->last[e[0].waker]++;
		put_member(r, f, e[0].waker);
	}
	for (size_t i = 0; i < n; i++) {
		const struct wf_span *s = &r->x->spans.v[e[i].span];
		uint64_t ns = s->wake_ns - s->out_ns;

		if (!is_equal(r, &e[0], &e[i]))
			continue;
		f->woken++;
		f->back += came_back(r->x, &e[i]);
		f->ns += ns;
		r->ns[e[i].waiter] += ns;
		r->x->burst_ns[e[i].waiter] += ns;
		put_member(r, f, e[i].waiter);
		if (ns > f->object_ns) {
			f->object_ns = ns;
			f->object = s->object;
		}
	}
}

static void read_bursts(struct rounds *r)
{
	for (size_t i = 0, end; i < r->v.n; i = end) {
		for (end = i + 1; end < r->v.n && r->v.v[end].waker == r->v.v[i].waker &&
				  r->v.v[end].wake_ns - r->v.v[end - 1].wake_ns <= BURST_GAP_NS;
		     end++)
			;
		if (end - i > 1)
			read_burst(r, &r->v.v[i], end - i);
	}
}

struct member {
	uint64_t ns;
	uint32_t thread;
};

static int member_order(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void add_members(struct rounds *r, struct wait_pattern *p, uint32_t family)
{
	VEC(struct member) v = {0};

	for (uint32_t i = r->families.v[family].first; i < r->x->threads.n; i++)
		if (r->family_of[i] == family && r->ns[i])
			vec_push(&v, ((struct member){r->ns[i], r->x->threads.v[i].node}));
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), member_order);
	vec_for(&v, m)
		vec_push(&p->threads, m->thread);
	vec_done(&v);
}

static uint64_t whole_window(const struct wf *x, uint64_t ns)
{
	uint64_t covered = x->to_ns - x->from_ns;

	return covered && covered < x->w->window_ns
		       ? (uint64_t)((double)ns * ((double)x->w->window_ns / (double)covered))
		       : ns;
}

/* How equal threads wait for each other: what of it they had no CPU, and what of it they let time pass. */
void wf_split_waits(const struct wf *x, uint32_t role, double *ret_ready, double *ret_rest)
{
	uint64_t all = 0, ready = 0, rest = 0;

	vec_for(&x->w->chains, c)
		vec_for(&c->parts, p) {
			if (c->role != role || p->role != role)
				continue;
			all += p->ns;
			ready += p->state == STATE_RUNQ ? p->ns : 0;
			rest += p->state == STATE_SLEEP || p->state == STATE_OUTSIDE ? p->ns : 0;
		}
	*ret_ready = all ? (double)ready / (double)all : 0;
	*ret_rest = all ? (double)rest / (double)all : 0;
}

static void add_barrier(struct rounds *r, uint32_t family)
{
	struct wf *x = r->x;
	const struct family *f = &r->families.v[family];
	struct wait_pattern p = {.kind = PATTERN_BARRIER, .object = f->object, .root = NODE_NONE};
	const char *name = x->w->roles.v[x->threads.v[f->first].role].name;
	uint32_t top = NODE_NONE;
	double ready, rest;

	for (uint32_t i = f->first; i < x->threads.n; i++)
		if (r->family_of[i] == family && r->last[i] && (top == NODE_NONE || r->last[i] > r->last[top]))
			top = i;
	p.ns = whole_window(x, f->ns);
	wf_split_waits(x, x->threads.v[f->first].role, &ready, &rest);
	p.ready_ns = (uint64_t)((double)p.ns * ready);
	p.rest_ns = (uint64_t)((double)p.ns * rest);
	p.events = f->rounds;
	add_members(r, &p, family);
	p.root_pct = (double)r->last[top] * 100 / (double)f->inner;
	/* By chance each is last once in as many rounds as there are members. */
	if (p.root_pct >= 60 && p.root_pct >= 200.0 / f->members)
		p.root = x->threads.v[top].node;
	p.confidence_pct = f->rounds >= 10 ? 90 : 70;
	p.text = p.root == NODE_NONE
			 ? wf_text(x->w, "%" PRIu32 " %s meet at a barrier; the last one changes", f->members, name)
			 : wf_text(x->w, "%" PRIu32 " %s meet at a barrier and wait for %s", f->members, name,
				   wf_thread_text(x->w, x->g, p.root));
	p.why = wf_text(x->w,
			"%" PRIu32 " times one of them woke the others together, %.1f of %" PRIu32
			" on average; %s was last in %.0f %%",
			f->rounds, (double)f->woken / f->rounds, f->members - 1,
			wf_thread_text(x->w, x->g, x->threads.v[top].node), p.root_pct);
	vec_push(&x->w->patterns, p);
}

/* Some wake-ups too many now and then cost nobody anything. */
static bool is_often(const struct wf *x, uint64_t wakeups)
{
	return (double)wakeups * 1e9 >= (double)HERD_LEAST_HZ * (double)(x->to_ns - x->from_ns);
}

static void add_herd(struct rounds *r, uint32_t family)
{
	struct wf *x = r->x;
	const struct family *f = &r->families.v[family];
	struct wait_pattern p = {.kind = PATTERN_HERD,
				 .object = f->object,
				 .root = x->threads.v[f->waker].node,
				 .ns = whole_window(x, f->ns),
				 .events = f->woken,
				 .confidence_pct = f->rounds >= 10 ? 85 : 65};

	add_members(r, &p, family);
	p.root_pct = (double)f->back * 100 / f->woken;
	p.text = wf_text(x->w, "%s wakes %.0f %s at a time, and most find nothing to do",
			 wf_thread_text(x->w, x->g, p.root), (double)f->woken / f->rounds,
			 x->w->roles.v[x->threads.v[f->first].role].name);
	p.why = wf_text(x->w,
			"%" PRIu32 " times several were woken together; %.0f %% of those woken waited again after less than "
			"%u us on a CPU",
			f->rounds, p.root_pct, BACK_NS / 1000);
	vec_push(&x->w->patterns, p);
}

void wf_add_rounds(struct wf *x)
{
	size_t n = x->threads.n + 1;
	struct rounds r = {.x = x};

	r.family_of = mem_alloc(n * sizeof(*r.family_of));
	r.last = mem_alloc(n * sizeof(*r.last));
	r.ns = mem_alloc(n * sizeof(*r.ns));
	r.member = mem_alloc(n);
	x->burst_ns = mem_alloc(n * sizeof(*x->burst_ns));
	find_families(&r);
	read_endings(&r);
	read_bursts(&r);
	for (uint32_t i = 0; i < r.families.n; i++) {
		const struct family *f = &r.families.v[i];

		if (f->rounds < ROUNDS_LEAST)
			continue;
		if (f->inner * 10 >= f->rounds * 7 && f->members >= 3 &&
		    f->woken * 10 >= (uint64_t)f->rounds * (f->members - 1) * 6) {
			if (f->ns >= wf_least_ns(x))
				add_barrier(&r, i);
		} else if (f->back * 2 > f->woken && f->inner * 10 < f->rounds * 3 &&
			   is_often(x, f->back)) {
			add_herd(&r, i);
		}
	}
	vec_done(&r.v);
	vec_done(&r.families);
	free(r.family_of);
	free(r.last);
	free(r.ns);
	free(r.member);
}
