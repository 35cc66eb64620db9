/*
 * Follows each wait to what the thread that ended it was doing meanwhile, and if that waited, further: the
 * cascaded redistribution of Zhou et al., wPerf, OSDI 2018.
 */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "waitfor/cascade.h"

#define PIECES_MOST (2u << 20) /* 32 MiB; then those of one account and way are summed up */
#define MIX_DEPTH  4   /* threads that are followed where only totals are known */
#define MIX_PARTS  50u /* what is less than such a part of the whole is not followed */
#define SEEN_LEAST 20u /* an account with less than 1/20 of its time in single waits goes by totals */

static uint64_t now_ns_of(const struct wf_span *s)
{
	return s->wake_ns - s->out_ns;
}

/* The way along the path to thread @root at @depth; the waiter itself, at depth 0, is no part of it. */
static uint32_t intern_way(struct cascade *c, uint32_t root, unsigned depth, enum wait_state state)
{
	uint64_t a = hash_pair(root, state), b = hash_pair(state + 77, root);
	struct wf_way way = {.thread = root, .state = state, .object = NODE_NONE};
	uint32_t *via, at;

	way.nvia = depth ? depth - 1 : 0;
	for (unsigned i = 1; i < depth; i++) {
		a = hash_pair(a, c->path[i]);
		b = hash_pair(c->path[i], b);
	}
	at = idmap_get(&c->way_of, a, b);
	if (at != IDMAP_NONE)
		return at;
	if (c->ways.n >= WAITFOR_PARTS && depth > 1) /* too many ways to tell apart: without what lies between */
		return intern_way(c, root, 0, state);
	via = arena_alloc(&c->x->w->arena, (way.nvia + 1) * sizeof(*via));
	memcpy(via, c->path + 1, way.nvia * sizeof(*via));
	way.via = via;
	idmap_put(&c->way_of, a, b, (uint32_t)c->ways.n);
	vec_push(&c->ways, way);
	return (uint32_t)(c->ways.n - 1);
}

static int way_order(const void *a, const void *b)
{
	const struct wf_piece *x = a, *y = b;

	return x->way < y->way ? -1 : x->way > y->way;
}

/* By account, of which there are many with few pieces each; then those of one way are summed up. */
static void merge_pieces(struct cascade *c)
{
	struct wf_piece *sorted = mem_alloc((c->pieces.n + 1) * sizeof(*sorted));
	uint32_t *start = mem_alloc((c->accounts.n + 2) * sizeof(*start));
	size_t kept = 0;

	vec_for(&c->pieces, p)
		start[p->account + 2]++;
	for (size_t i = 2; i < c->accounts.n + 2; i++)
		start[i] += start[i - 1];
	vec_for(&c->pieces, p)
		sorted[start[p->account + 1]++] = *p;
	for (size_t a = 0; a < c->accounts.n; a++) {
		struct wf_piece *first = sorted + start[a];
		size_t n = start[a + 1] - start[a], begin = kept;

		if (n > 1)
			qsort(first, n, sizeof(*first), way_order);
		for (size_t i = 0; i < n; i++)
			if (kept > begin && c->pieces.v[kept - 1].way == first[i].way)
				c->pieces.v[kept - 1].ns += first[i].ns;
			else
				c->pieces.v[kept++] = first[i];
	}
	c->pieces.n = kept;
	/* Where that makes little of it, the next time has to be far off. */
	c->merge_at = kept * 2 > PIECES_MOST ? kept * 2 : PIECES_MOST;
	free(sorted);
	free(start);
}

static void emit(struct cascade *c, uint32_t root, unsigned depth, enum wait_state state, uint32_t object,
		 uint64_t ns)
{
	uint32_t way;

	if (!ns)
		return;
	way = intern_way(c, root, depth, state);
	if (object != NODE_NONE && ns > c->ways.v[way].object_ns) {
		c->ways.v[way].object = object;
		c->ways.v[way].object_ns = ns;
	}
	if (c->pieces.n >= (c->merge_at ?: PIECES_MOST))
		merge_pieces(c);
	vec_push(&c->pieces, ((struct wf_piece){c->now, way, ns}));
}

/* Waits come by their beginnings, so what was counted before lies before or is the same time. */
static void count_wall(struct cascade *c, uint32_t thread, enum wait_state state, uint64_t from, uint64_t to)
{
	struct wf_wall *w = &c->wall[(size_t)thread * STATE_COUNT + state];

	if (!c->measures)
		return;
	if (from < w->until_ns)
		from = w->until_ns;
	if (to > from) {
		w->ns += to - from;
		w->until_ns = to;
	}
}

/* What one thread did in a stretch of time, by state. */
struct frame {
	uint64_t ns[STATE_COUNT], most[STATE_COUNT];
	uint32_t object[STATE_COUNT];
};

static void frame_add(struct cascade *c, struct frame *f, uint32_t thread, enum wait_state state, uint32_t object,
		      uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	f->ns[state] += to - from;
	if (object != NODE_NONE && to - from > f->most[state]) {
		f->most[state] = to - from;
		f->object[state] = object;
	}
	count_wall(c, thread, state, from, to);
}

static void frame_active(struct cascade *c, struct frame *f, uint32_t thread, uint64_t from, uint64_t to)
{
	uint64_t run;

	if (to <= from)
		return;
	run = (to - from) / 1000 * c->x->threads.v[thread].run_permille +
	      (to - from) % 1000 * c->x->threads.v[thread].run_permille / 1000;
	frame_add(c, f, thread, STATE_RUN, NODE_NONE, from, from + run);
	frame_add(c, f, thread, STATE_RUNQ, NODE_NONE, from + run, to);
}

static bool on_path(const struct cascade *c, unsigned depth, uint32_t thread)
{
	for (unsigned i = 0; i < depth; i++)
		if (c->path[i] == thread)
			return true;
	return false;
}

static void follow(struct cascade *c, uint32_t thread, uint64_t from, uint64_t to, unsigned depth);

/* @thread, at @depth, is in wait @s from @from to @to. */
static void follow_wait(struct cascade *c, struct frame *f, uint32_t thread, const struct wf_span *s,
			uint64_t from, uint64_t to, unsigned depth)
{
	if (to <= from)
		return;
	if (!wf_is_followed(c->x, s)) {
		frame_add(c, f, thread, wf_wait_state(c->x, s), s->object, from, to);
		return;
	}
	c->path[depth] = thread;
	if (on_path(c, depth + 1, s->charged)) {
		frame_add(c, f, thread, STATE_CYCLE, s->object, from, to);
	} else if (depth + 1 >= WAITFOR_DEPTH || c->x->steps >= WAITFOR_STEPS) {
		frame_add(c, f, thread, STATE_BLOCKED, s->object, from, to);
		c->x->w->cut_ns += to - from;
	} else {
		follow(c, s->charged, from, to, depth + 1);
	}
}

/* What @thread did between @from and @to, while those on the path waited for it. */
static void follow(struct cascade *c, uint32_t thread, uint64_t from, uint64_t to, unsigned depth)
{
	const struct wf *x = c->x;
	const struct wf_thread *t = &x->threads.v[thread];
	uint32_t i = wf_span_after(x, t, from), end = t->first + t->n;
	struct frame f = {0};
	uint64_t at = from;

	for (unsigned s = 0; s < STATE_COUNT; s++)
		f.object[s] = NODE_NONE;
	for (; i < end && x->spans.v[i].out_ns < to && at < to; i++) {
		const struct wf_span *s = &x->spans.v[i];
		uint64_t out = s->out_ns > at ? s->out_ns : at;
		uint64_t wake = s->wake_ns < to ? s->wake_ns : to, in = s->in_ns < to ? s->in_ns : to;

		c->x->steps++;
		frame_active(c, &f, thread, at, out);
		follow_wait(c, &f, thread, s, out, wake, depth);
		frame_add(c, &f, thread, STATE_RUNQ, NODE_NONE, wake > at ? wake : at, in);
		at = in > out ? in : out;
	}
	frame_active(c, &f, thread, at, to);
	for (unsigned s = 0; s < STATE_COUNT; s++)
		emit(c, thread, depth, s, f.object[s], f.ns[s]);
}

static uint32_t account_of(struct cascade *c, uint32_t waiter, uint32_t source, enum wait_cause cause)
{
	uint64_t key = (uint64_t)waiter << 32 | source;
	uint32_t at = idmap_get(&c->account_of, key, cause);

	if (at != IDMAP_NONE)
		return at;
	at = (uint32_t)c->accounts.n;
	idmap_put(&c->account_of, key, cause, at);
	vec_push(&c->accounts, ((struct wf_account){.waiter = waiter,
						    .source = source,
						    .cause = cause,
						    .object = NODE_NONE}));
	return at;
}

/* Relations of one kind of interrupt have one source, whatever wait_object that is in this graph. */
static void find_sources(const struct wf *x, uint32_t *source)
{
	for (unsigned i = 0; i < ENDER_COUNT; i++)
		source[i] = NODE_NONE - 1 - i;
	vec_for(&x->g->nodes, n)
		if ((*n)->type == &wait_object_type && HAS(wait_object, *n, kind) &&
		    !HAS(wait_object, *n, name)) {
			enum wait_ender e = wait_ender_find(GET(wait_object, *n, kind));

			if (e != ENDER_INTERRUPT || !strcmp(GET(wait_object, *n, kind), "interrupt"))
				source[e] = (*n)->index;
		}
}

/* Of a thread's own waits: those in which it has nothing to do. */
static bool is_rest(enum wait_state state)
{
	return state == STATE_SLEEP || state == STATE_STOPPED || state == STATE_OUTSIDE;
}

static void follow_span(struct cascade *c, uint32_t waiter, const struct wf_span *s, const uint32_t *source)
{
	struct wf *x = c->x;
	uint32_t from = s->waker == NODE_NONE ? source[s->ender] : x->threads.v[s->waker].node;
	struct wf_account *a;
	enum wait_state state;

	c->now = account_of(c, waiter, from, s->cause);
	a = &c->accounts.v[c->now];
	a->span_ns += now_ns_of(s);
	if (s->object != NODE_NONE && now_ns_of(s) > a->object_ns) {
		a->object = s->object;
		a->object_ns = now_ns_of(s);
	}
	if (s->object != NODE_NONE && x->lock[s->object])
		a->held_ns += now_ns_of(s);
	state = wf_wait_state(x, s);
	if (!wf_is_followed(x, s) && is_rest(state))
		return;
	a->counted_ns += now_ns_of(s);
	c->measures = s->cause != CAUSE_CHILD;
	c->path[0] = waiter;
	if (!wf_is_followed(x, s))
		emit(c, waiter, 0, state, s->object, now_ns_of(s));
	else
		follow(c, s->charged, s->out_ns, s->wake_ns, 1);
}

static int span_time(const void *a, const void *b, void *ctx)
{
	const struct wf_span *s = ctx, *p = &s[*(const uint32_t *)a], *q = &s[*(const uint32_t *)b];

	if (p->out_ns != q->out_ns)
		return p->out_ns < q->out_ns ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void follow_spans(struct cascade *c)
{
	struct wf *x = c->x;
	uint32_t *order = mem_alloc((x->spans.n + 1) * sizeof(*order));
	uint32_t *owner = mem_alloc((x->spans.n + 1) * sizeof(*owner)), source[ENDER_COUNT], n = 0;

	find_sources(x, source);
	vec_for(&x->threads, t)
		for (uint32_t i = t->first; i < t->first + t->n; i++) {
			owner[i] = (uint32_t)(t - x->threads.v);
			if (!x->spans.v[i].goes_on && !t->kernel)
				order[n++] = i;
		}
	if (n)
		qsort_r(order, n, sizeof(*order), span_time, x->spans.v);
	for (uint32_t i = 0; i < n; i++)
		follow_span(c, owner[order[i]], &x->spans.v[order[i]], source);
	free(order);
	free(owner);
}

/* Totals only: what a waker did over the whole window stands for what it did while others waited. */

static void put_waker(const struct wf *x, struct wf_wakers *w, const struct edge *d)
{
	uint64_t ns = wf_edge_ns(d);
	unsigned at = WF_WAKERS;

	w->all_ns += ns;
	while (at > 0 && (w->edges[at - 1] == NODE_NONE || wf_edge_ns(x->g->edges.v[w->edges[at - 1]]) < ns))
		at--;
	if (at == WF_WAKERS)
		return;
	memmove(w->edges + at + 1, w->edges + at, (WF_WAKERS - at - 1) * sizeof(*w->edges));
	w->edges[at] = d->index;
}

static void find_wakers(struct cascade *c)
{
	const struct wf *x = c->x;

	c->wakers = mem_alloc((x->threads.n + 1) * sizeof(*c->wakers));
	for (size_t i = 0; i < x->threads.n; i++)
		memset(c->wakers[i].edges, 0xff, sizeof(c->wakers[i].edges));
	vec_for(&x->g->edges, d)
		if ((*d)->type == &wakes_type && x->no[(*d)->target] != NODE_NONE)
			put_waker(x, &c->wakers[x->no[(*d)->target]], *d);
}

/* Once for all: a thread may have thousands of them, and is asked about at each step. */
static void find_longest(struct cascade *c)
{
	struct wf *x = c->x;

	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;
		uint32_t thread = d->type == &waits_for_type ? x->no[d->source] : NODE_NONE, at;
		struct wf_longest *l;

		if (thread == NODE_NONE)
			continue;
		at = idmap_get(&c->longest_of, thread, wf_edge_cause(d));
		if (at == IDMAP_NONE) {
			at = (uint32_t)c->longest.n;
			idmap_put(&c->longest_of, thread, wf_edge_cause(d), at);
			vec_push(&c->longest, ((struct wf_longest){NODE_NONE, 0}));
		}
		l = &c->longest.v[at];
		if (wf_edge_ns(d) > l->ns)
			*l = (struct wf_longest){d->target, wf_edge_ns(d)};
	}
}

/* What a thread waits for longest with that cause. */
static struct wf_longest longest_object(const struct cascade *c, uint32_t thread,
					enum wait_cause cause)
{
	uint32_t at = idmap_get(&c->longest_of, thread, cause);

	return at == IDMAP_NONE ? (struct wf_longest){NODE_NONE, 0} : c->longest.v[at];
}

static void mix(struct cascade *c, uint32_t thread, unsigned depth, uint64_t ns);

static void mix_blocked(struct cascade *c, uint32_t thread, unsigned depth, uint64_t ns)
{
	struct wf *x = c->x;
	const struct wf_wakers *w = &c->wakers[thread];
	uint64_t all = w->all_ns, rest = ns, blocked = x->threads.v[thread].blocked_ns;

	c->path[depth] = thread;
	if (all < blocked)
		all = blocked;
	for (unsigned i = 0; i < WF_WAKERS && w->edges[i] != NODE_NONE && all; i++) {
		const struct edge *d = x->g->edges.v[w->edges[i]];
		struct wf_span s = {.cause = (uint8_t)wf_edge_cause(d),
				    .ender = (uint8_t)wf_edge_ender(x->g, d),
				    .charged = x->no[d->source],
				    .object = NODE_NONE};
		uint64_t part = (uint64_t)((double)ns * ((double)wf_edge_ns(d) / (double)all));

		s.object = longest_object(c, thread, s.cause).object;
		s.charged = wf_beyond(x, &s);
		part = part < rest ? part : rest;
		rest -= part;
		x->steps++;
		if (!wf_is_followed(x, &s))
			emit(c, thread, depth, wf_wait_state(x, &s), NODE_NONE, part);
		else if (on_path(c, depth + 1, s.charged))
			emit(c, thread, depth, STATE_CYCLE, NODE_NONE, part);
		else if (depth + 1 > MIX_DEPTH || part < c->accounts.v[c->now].total_ns / MIX_PARTS ||
			 x->steps >= WAITFOR_STEPS)
			emit(c, thread, depth, STATE_BLOCKED, NODE_NONE, part);
		else
			mix(c, s.charged, depth + 1, part);
	}
	emit(c, thread, depth, STATE_BLOCKED, NODE_NONE, rest);
}

static void mix(struct cascade *c, uint32_t thread, unsigned depth, uint64_t ns)
{
	const struct wf_thread *t = &c->x->threads.v[thread];
	double all = (double)(t->run_ns + t->runq_ns + t->blocked_ns);
	uint64_t run, runq;

	if (all <= 0) {
		emit(c, thread, depth, STATE_BLOCKED, NODE_NONE, ns);
		return;
	}
	run = (uint64_t)((double)ns * ((double)t->run_ns / all));
	run = run < ns ? run : ns;
	runq = (uint64_t)((double)ns * ((double)t->runq_ns / all));
	runq = runq < ns - run ? runq : ns - run;
	emit(c, thread, depth, STATE_RUN, NODE_NONE, run);
	emit(c, thread, depth, STATE_RUNQ, NODE_NONE, runq);
	if (ns - run - runq)
		mix_blocked(c, thread, depth, ns - run - runq);
}

static void mix_account(struct cascade *c, uint32_t account)
{
	struct wf_account *a = &c->accounts.v[account];
	struct wf *x = c->x;
	struct wf_span s = {.cause = (uint8_t)a->cause, .charged = x->no[a->source], .object = a->object};
	const struct node *n = x->g->nodes.v[a->source];
	enum wait_state state;

	s.ender = n->type == &thread_type ? ENDER_THREAD
		  : n->type == &wait_object_type && HAS(wait_object, n, kind)
		      ? (uint8_t)wait_ender_find(GET(wait_object, n, kind))
		      : ENDER_UNKNOWN;
	s.charged = wf_beyond(x, &s);
	state = wf_wait_state(x, &s);
	c->now = account;
	c->path[0] = a->waiter;
	a->span_ns = 0;
	if (wf_is_followed(x, &s)) {
		mix(c, s.charged, 1, a->total_ns);
	} else {
		if (is_rest(state))
			a->total_ns = 0;
		emit(c, a->waiter, 0, state, NODE_NONE, a->total_ns);
	}
}

/* What the waiter waits for longest with that cause, where no single wait tells. */
static void find_object(struct cascade *c, struct wf_account *a)
{
	struct wf_longest l = longest_object(c, a->waiter, a->cause);

	a->object = l.object;
	a->object_ns = l.ns;
	a->held_ns = l.object != NODE_NONE && c->x->lock[l.object] ? 1 : 0;
}

/* Whether the single waits of an account are too few to tell for all of it. */
static bool goes_by_totals(const struct wf_account *a)
{
	return a->total_ns && a->span_ns * SEEN_LEAST < a->total_ns;
}

static void read_totals(struct cascade *c)
{
	struct wf *x = c->x;

	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;
		uint32_t at;

		if (d->type != &wakes_type || x->no[d->target] == NODE_NONE ||
		    x->threads.v[x->no[d->target]].kernel)
			continue;
		at = account_of(c, x->no[d->target], d->source, wf_edge_cause(d));
		c->accounts.v[at].total_ns += wf_edge_ns(d);
	}
}

static void add_totals(struct cascade *c)
{
	read_totals(c);
	vec_for(&c->pieces, p)
		if (goes_by_totals(&c->accounts.v[p->account]))
			p->ns = 0;
	for (uint32_t i = 0; i < c->accounts.n; i++) {
		struct wf_account *a = &c->accounts.v[i];

		if (goes_by_totals(a)) {
			find_object(c, a);
			mix_account(c, i);
			a->counted_ns = 0;
			a->held = a->held_ns != 0;
			continue;
		}
		/* Of a relation with time-outs in it, what was charged to a thread. */
		if (!a->total_ns)
			a->total_ns = a->counted_ns;
		else if (a->counted_ns < a->span_ns)
			a->total_ns = (uint64_t)((double)a->total_ns *
						 ((double)a->counted_ns / (double)a->span_ns));
		a->held = a->held_ns * 2 > a->span_ns;
	}
}

void cascade_run(struct cascade *c, struct wf *x)
{
	*c = (struct cascade){.x = x};
	c->wall = mem_alloc((x->threads.n * STATE_COUNT + 1) * sizeof(*c->wall));
	find_wakers(c);
	find_longest(c);
	follow_spans(c);
	add_totals(c);
	merge_pieces(c);
}

void cascade_done(struct cascade *c)
{
	vec_done(&c->ways);
	vec_done(&c->accounts);
	vec_done(&c->pieces);
	idmap_done(&c->way_of);
	idmap_done(&c->account_of);
	idmap_done(&c->longest_of);
	vec_done(&c->longest);
	free(c->wall);
	free(c->wakers);
}
