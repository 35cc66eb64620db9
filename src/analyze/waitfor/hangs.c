/*
 * What made progress and does not any more: threads that woke each other and now all wait for each other, ranks that
 * wait for one that does something else, and who was stopped.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/ranks.h"

#define QUIET_LEAST_NS 1000000000u
#define QUIET_PERIODS  10u /* without progress, of what was usual before */
#define BEFORE_LEAST   10u /* waits that ended before, to know what was usual */

/* The wait that a thread is in at the end of the recording, or NULL. */
static const struct wf_span *last_wait(const struct wf *x, const struct wf_thread *t)
{
	const struct wf_span *s = t->n ? &x->spans.v[t->first + t->n - 1] : NULL;

	return s && s->goes_on ? s : NULL;
}

static uint64_t length(const struct wf_span *s)
{
	return s->wake_ns - s->out_ns;
}

static bool has_ended(const struct wf *x, const struct wf_thread *t)
{
	return HAS(thread, x->g->nodes.v[t->node], end_ns);
}

static bool is_stop(const struct wf *x, const struct wf_span *s)
{
	const struct node *n = s->object == NODE_NONE ? NULL : x->g->nodes.v[s->object];

	return s->cause == CAUSE_SIGNAL && n && n->type == &wait_object_type && HAS(wait_object, n, name) &&
	       !strcmp(GET(wait_object, n, name), "stopped");
}

static bool is_on_word(const struct wf_span *s)
{
	return s->cause == CAUSE_FUTEX || s->cause == CAUSE_SEMAPHORE;
}

/* Threads that ended each other's waits belong together. */
struct bonds {
	const struct wf *x;
	uint32_t *up;	   /* [threads.n] union-find */
	uint32_t *ended;   /* [threads.n] waits ended within, by the root of the part */
	uint64_t *first, *last; /* likewise: when the first and the last of them ended */
};

static uint32_t part(struct bonds *b, uint32_t i)
{
	while (b->up[i] != i)
		i = b->up[i] = b->up[b->up[i]];
	return i;
}

static void join(struct bonds *b, uint32_t i, uint32_t j)
{
	uint32_t p = part(b, i), q = part(b, j);

	if (p < q)
		b->up[q] = p;
	else
		b->up[p] = q;
}

static void bonds_init(struct bonds *b, const struct wf *x)
{
	size_t n = x->threads.n + 1;

	*b = (struct bonds){.x = x};
	b->up = mem_alloc(n * sizeof(*b->up));
	b->ended = mem_alloc(n * sizeof(*b->ended));
	b->first = mem_alloc(n * sizeof(*b->first));
	b->last = mem_alloc(n * sizeof(*b->last));
	for (uint32_t i = 0; i < x->threads.n; i++)
		b->up[i] = i;
	for (uint32_t no = 0; no < x->threads.n; no++)
		for (uint32_t i = x->threads.v[no].first; i < x->threads.v[no].first + x->threads.v[no].n; i++)
			if (x->spans.v[i].waker != NODE_NONE && is_on_word(&x->spans.v[i]))
				join(b, no, x->spans.v[i].waker);
	for (uint32_t no = 0; no < x->threads.n; no++) {
		uint32_t p = part(b, no);

		for (uint32_t i = x->threads.v[no].first; i < x->threads.v[no].first + x->threads.v[no].n; i++) {
			const struct wf_span *s = &x->spans.v[i];

			if (s->goes_on)
				continue;
			b->ended[p]++;
			if (!b->first[p] || s->wake_ns < b->first[p])
				b->first[p] = s->wake_ns;
			if (s->wake_ns > b->last[p])
				b->last[p] = s->wake_ns;
		}
	}
}

static void bonds_done(struct bonds *b)
{
	free(b->up);
	free(b->ended);
	free(b->first);
	free(b->last);
}

static const char *seconds(struct wf *x, uint64_t ns)
{
	return wf_text(x->w, "%.1f s", (double)ns / 1e9);
}

static void add_stopped(struct wf *x, struct bonds *b, uint32_t no, const struct wf_rank_sets *sets)
{
	const struct wf_thread *t = &x->threads.v[no];
	const struct wf_span *s = last_wait(x, t);
	struct wait_hang h = {.kind = HANG_STOPPED, .thread = t->node, .object = s->object, .since_ns = length(s)};
	uint32_t set = t->process == NODE_NONE ? NODE_NONE : sets->set_of[t->process];

	/* Its equals, and who woke it or was woken by it. */
	for (uint32_t i = 0; i < x->threads.n; i++) {
		const struct wf_thread *other = &x->threads.v[i];
		const struct wf_span *w = last_wait(x, other);
		bool equal = other->role == t->role ||
			     (set != NODE_NONE && other->process != NODE_NONE && sets->set_of[other->process] == set);

		if (other->process == t->process || !w || is_stop(x, w) || w->cause == CAUSE_SLEEP ||
		    w->cause == CAUSE_CHILD)
			continue;
		if ((equal || part(b, i) == part(b, no)) && length(w) * 2 > h.since_ns)
			vec_push(&h.threads, other->node);
	}
	h.confidence_pct = h.threads.n ? 95 : b->ended[part(b, no)] ? 80 : 60;
	h.text = wf_text(x->w, "%s is stopped by a signal", wf_thread_text(x->w, x->g, t->node));
	h.why = wf_text(x->w, "for %s all of its threads are stopped (SIGSTOP, SIGTSTP or a debugger); %zu other thread%s wait%s "
			      "for it", seconds(x, h.since_ns), h.threads.n, h.threads.n == 1 ? "" : "s",
			h.threads.n == 1 ? "s" : "");
	vec_push(&x->w->hangs, h);
}

static void find_stopped(struct wf *x, struct bonds *b, const struct wf_rank_sets *sets)
{
	uint32_t last = NODE_NONE;

	for (uint32_t i = 0; i < x->threads.n; i++) {
		const struct wf_span *s = last_wait(x, &x->threads.v[i]);

		if (!s || !is_stop(x, s) || length(s) < QUIET_LEAST_NS / 4 || x->threads.v[i].process == last)
			continue;
		last = x->threads.v[i].process;
		add_stopped(x, b, i, sets);
	}
}

/* Members of a part that all wait for words, and since when none of them does anything else. */
struct still {
	uint32_t members, locks, words; /* words: different ones that are locks */
	uint32_t newest;		/* who began to wait last */
	uint64_t since_ns;
	bool moves;
};

static void look_at(const struct wf *x, uint32_t no, struct still *s, uint32_t first_lock)
{
	const struct wf_span *w = last_wait(x, &x->threads.v[no]);

	if (has_ended(x, &x->threads.v[no]))
		return;
	s->members++;
	if (!w || !is_on_word(w)) {
		s->moves = true;
		return;
	}
	if (w->out_ns >= s->since_ns) {
		s->since_ns = w->out_ns;
		s->newest = no;
	}
	if (w->object != NODE_NONE && x->lock[w->object]) {
		s->locks++;
		s->words += w->object != first_lock;
	}
}

static uint32_t first_lock(const struct wf *x, const struct bonds *b, uint32_t p)
{
	for (uint32_t i = p; i < x->threads.n; i++) {
		const struct wf_span *w = last_wait(x, &x->threads.v[i]);

		if (part((struct bonds *)b, i) == p && w && w->object != NODE_NONE && x->lock[w->object])
			return w->object;
	}
	return NODE_NONE;
}

/* A thread of the same process, none of them, that waits for events from outside: it may have work for them at any time. */
static uint32_t event_loop(const struct wf *x, struct bonds *b, uint32_t p, uint32_t process)
{
	for (uint32_t i = 0; i < x->threads.n && process != NODE_NONE; i++) {
		const struct wf_span *w = x->threads.v[i].process == process ? last_wait(x, &x->threads.v[i]) : NULL;

		if (w && part(b, i) != p && !has_ended(x, &x->threads.v[i]) &&
		    (w->cause == CAUSE_POLL || w->cause == CAUSE_SOCKET || w->cause == CAUSE_PIPE))
			return i;
	}
	return NODE_NONE;
}

static void add_still(struct wf *x, struct bonds *b, uint32_t p, const struct still *s)
{
	uint64_t quiet = x->to_ns - s->since_ns, usual;
	struct wait_hang h = {.thread = x->threads.v[s->newest].node, .since_ns = quiet};
	bool locks = s->locks >= 2 && s->words;
	uint32_t loop = locks ? NODE_NONE : event_loop(x, b, p, x->threads.v[s->newest].process);

	if (quiet < QUIET_LEAST_NS || b->ended[p] < BEFORE_LEAST)
		return;
	usual = (b->last[p] - b->first[p]) / b->ended[p] + 1;
	if (quiet < usual * QUIET_PERIODS)
		return;
	h.kind = locks ? HANG_CYCLE : HANG_LOST_WAKEUP;
	h.object = last_wait(x, &x->threads.v[s->newest])->object;
	h.confidence_pct = loop != NODE_NONE ? 40 : quiet > usual * QUIET_PERIODS * 5 ? 85 : 70;
	for (uint32_t i = p; i < x->threads.n; i++)
		if (part(b, i) == p && !has_ended(x, &x->threads.v[i]))
			vec_push(&h.threads, x->threads.v[i].node);
	h.text = locks ? wf_text(x->w, "%" PRIu32 " threads wait for locks that they have from each other", s->members)
		       : wf_text(x->w, "%" PRIu32 " threads wait for each other: a wake-up was lost%s", s->members,
				 loop != NODE_NONE ? ", or they have nothing to do" : "");
	h.why = wf_text(x->w,
			"they woke each other %" PRIu32 " times, every %.1f ms; for %s all of them wait for words in memory, %s "
			"last, and nobody else has ever woken them",
			b->ended[p], (double)usual / 1e6, seconds(x, quiet), wf_thread_text(x->w, x->g, h.thread));
	if (loop != NODE_NONE)
		h.why = wf_text(x->w, "%s; %s waits for events from outside and may wake them", h.why,
				wf_thread_text(x->w, x->g, x->threads.v[loop].node));
	vec_push(&x->w->hangs, h);
}

static void find_still(struct wf *x, struct bonds *b)
{
	struct still *s = mem_alloc((x->threads.n + 1) * sizeof(*s));
	uint32_t *lock = mem_alloc((x->threads.n + 1) * sizeof(*lock));

	for (uint32_t i = 0; i < x->threads.n; i++)
		if (part(b, i) == i && b->ended[i])
			lock[i] = first_lock(x, b, i);
	for (uint32_t i = 0; i < x->threads.n; i++)
		if (b->ended[part(b, i)])
			look_at(x, i, &s[part(b, i)], lock[part(b, i)]);
	for (uint32_t i = 0; i < x->threads.n; i++)
		if (part(b, i) == i && s[i].members > 1 && !s[i].moves)
			add_still(x, b, i, &s[i]);
	free(s);
	free(lock);
}

/* A lock is no place to be idle: threads of a process that wait for several of them, and long, wait for each other. */
static void add_locked(struct wf *x, const uint32_t *threads, size_t n)
{
	struct wait_hang h = {.kind = HANG_CYCLE, .since_ns = UINT64_MAX, .confidence_pct = 75};
	uint32_t locks = 1, last = threads[0];

	for (size_t i = 0; i < n; i++) {
		const struct wf_span *w = last_wait(x, &x->threads.v[threads[i]]);

		locks += w->object != last_wait(x, &x->threads.v[threads[0]])->object;
		h.since_ns = length(w) < h.since_ns ? length(w) : h.since_ns;
		if (w->out_ns >= last_wait(x, &x->threads.v[last])->out_ns)
			last = threads[i];
	}
	vec_for(&x->w->hangs, other)
		vec_for(&other->threads, t)
			if (*t == x->threads.v[threads[0]].node)
				locks = 0; /* told already */
	if (locks < 2)
		return;
	for (size_t i = 0; i < n; i++)
		vec_push(&h.threads, x->threads.v[threads[i]].node);
	h.thread = x->threads.v[last].node;
	h.object = last_wait(x, &x->threads.v[last])->object;
	h.text = wf_text(x->w, "%zu threads wait for locks that they have from each other", n);
	h.why = wf_text(x->w, "for %s each of them has waited for a lock, not all for the same one, and nobody gave one up",
			seconds(x, h.since_ns));
	vec_push(&x->w->hangs, h);
}

static int by_process(const void *a, const void *b, void *ctx)
{
	const struct wf *x = ctx;
	const struct wf_thread *p = &x->threads.v[*(const uint32_t *)a], *q = &x->threads.v[*(const uint32_t *)b];

	if (p->process != q->process)
		return p->process < q->process ? -1 : 1;
	return p->node < q->node ? -1 : p->node > q->node;
}

static void find_locked(struct wf *x)
{
	uint32_t *list = mem_alloc((x->threads.n + 1) * sizeof(*list)), n = 0;

	for (uint32_t i = 0; i < x->threads.n; i++) {
		const struct wf_span *w = last_wait(x, &x->threads.v[i]);

		if (w && w->object != NODE_NONE && x->lock[w->object] && length(w) >= QUIET_LEAST_NS)
			list[n++] = i;
	}
	if (n)
		qsort_r(list, n, sizeof(*list), by_process, x);
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && x->threads.v[list[end]].process == x->threads.v[list[i]].process; end++)
			;
		if (end - i > 1)
			add_locked(x, list + i, end - i);
	}
	free(list);
}

/* All ranks but one wait: that one is not where the others wait for it. */
static void find_odd(struct wf *x, const struct wf_ranks *set)
{
	uint32_t by_cause[CAUSE_COUNT] = {0}, odd = NODE_NONE, waiting = 0;
	uint64_t least = set->period_ns * QUIET_PERIODS, shortest = UINT64_MAX;
	struct wait_hang h = {.kind = HANG_ODD_ONE, .object = NODE_NONE};
	enum wait_cause usual = CAUSE_OTHER;
	const struct wf_span *w;

	if (least < QUIET_LEAST_NS)
		least = QUIET_LEAST_NS;
	vec_for(&set->v, r) {
		w = last_wait(x, &x->threads.v[r->thread]);
		if (w && length(w) >= least && ++by_cause[w->cause] > by_cause[usual])
			usual = w->cause;
	}
	vec_for(&set->v, r) {
		w = last_wait(x, &x->threads.v[r->thread]);
		if (!w || length(w) < least || w->cause != usual) {
			odd = r->thread;
			continue;
		}
		waiting++;
		shortest = length(w) < shortest ? length(w) : shortest;
		vec_push(&h.threads, x->threads.v[r->thread].node);
	}
	w = odd == NODE_NONE ? NULL : last_wait(x, &x->threads.v[odd]);
	if (set->v.n < 3 || waiting + 1 != set->v.n || usual == CAUSE_SLEEP || (w && is_stop(x, w))) {
		vec_done(&h.threads);
		return;
	}
	h.thread = x->threads.v[odd].node;
	h.since_ns = shortest;
	h.object = w ? w->object : NODE_NONE;
	h.confidence_pct = 85;
	h.text = wf_text(x->w, "%" PRIu32 " ranks wait for %s, which does something else", waiting,
			 wf_thread_text(x->w, x->g, h.thread));
	h.why = wf_text(x->w, "no step for %s, where one took %.1f ms before; it is %s", seconds(x, h.since_ns),
			(double)set->period_ns / 1e6, w ? wait_state_text(wf_wait_state(x, w)) : "on a CPU or wants to be");
	vec_push(&x->w->hangs, h);
}

void wf_add_hangs(struct wf *x, const struct wf_rank_sets *sets)
{
	struct bonds b;

	bonds_init(&b, x);
	find_stopped(x, &b, sets);
	find_still(x, &b);
	find_locked(x);
	vec_for(&sets->v, set)
		find_odd(x, set);
	bonds_done(&b);
}
