/*
 * Whom the ranks of a job wait for: in each step, the one that waits least came last. What it does more of than its
 * equals is why.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/period.h"
#include "waitfor/ranks.h"

#define STEPS_MOST  4096u
#define STEPS_LEAST 5u
#define LATE_PCT    5u	/* of the period: less is no lateness */
#define FIXED_PCT   60u /* of the late steps: then it is always the same one */

struct steps {
	struct wf *x;
	const struct wf_rank_sets *sets;
	const struct wf_ranks *ranks;
	VEC(uint64_t) ends;   /* times at which waits for other ranks end, ascending */
	VEC(uint64_t) begins; /* of steps, ascending: an end belongs to the last one that is not later */
	uint64_t *wait;	      /* [ranks * steps] */
};

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void read_ends(struct steps *s)
{
	const struct wf *x = s->x;

	vec_for(&s->ranks->v, r) {
		const struct wf_thread *t = &x->threads.v[r->thread];

		for (uint32_t i = t->first; i < t->first + t->n; i++)
			if (wf_is_inner(s->sets, x, r->thread, &x->spans.v[i]))
				vec_push(&s->ends, x->spans.v[i].wake_ns);
	}
	if (s->ends.n)
		qsort(s->ends.v, s->ends.n, sizeof(*s->ends.v), by_time);
}

/* A step ends with waits that end together: a gap comes before the next ones. */
static void find_steps(struct steps *s, uint64_t gap)
{
	vec_clear(&s->begins);
	for (size_t i = 0; i < s->ends.n && s->begins.n < STEPS_MOST; i++)
		if (!i || s->ends.v[i] - s->ends.v[i - 1] > gap)
			vec_push(&s->begins, s->ends.v[i]);
}

static uint64_t median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_time);
	return n ? v[(n - 1) / 2] : 0;
}

static uint64_t median_step(const struct steps *s)
{
	uint64_t *v = mem_alloc((s->begins.n + 1) * sizeof(*v)), ret;

	for (size_t i = 1; i < s->begins.n; i++)
		v[i - 1] = s->begins.v[i] - s->begins.v[i - 1];
	ret = s->begins.n > 1 ? median(v, s->begins.n - 1) : 0;
	free(v);
	return ret;
}

static size_t step_of(const struct steps *s, uint64_t ns)
{
	size_t low = 0, high = s->begins.n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s->begins.v[middle] <= ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void read_waits(struct steps *s)
{
	const struct wf *x = s->x;

	s->wait = mem_alloc((s->ranks->v.n * s->begins.n + 1) * sizeof(*s->wait));
	vec_for(&s->ranks->v, r) {
		const struct wf_thread *t = &x->threads.v[r->thread];
		size_t row = (size_t)(r - s->ranks->v.v) * s->begins.n;

		for (uint32_t i = t->first; i < t->first + t->n; i++)
			if (wf_is_inner(s->sets, x, r->thread, &x->spans.v[i]))
				s->wait[row + step_of(s, x->spans.v[i].wake_ns)] +=
					x->spans.v[i].wake_ns - x->spans.v[i].out_ns;
	}
}

/* Who waited least in step @at, if that is clearly less than what is usual in it. */
static uint32_t last_of_step(const struct steps *s, size_t at, uint64_t period, uint64_t *room)
{
	size_t n = s->ranks->v.n;
	uint32_t last = 0;

	for (uint32_t i = 0; i < n; i++) {
		room[i] = s->wait[i * s->begins.n + at];
		if (room[i] < s->wait[last * s->begins.n + at])
			last = i;
	}
	/* Of two, the other one; of more, the middle one. */
	median(room, n);
	if (room[n > 2 ? (n - 1) / 2 : n - 1] < s->wait[last * s->begins.n + at] + period * LATE_PCT / 100)
		return NODE_NONE;
	return last;
}

/* Time by state of a rank: its CPU time of all threads, other waits of the thread that takes the steps. */
static void times_of(const struct steps *s, const struct wf_rank *r, uint64_t *ns)
{
	const struct wf *x = s->x;
	const struct wf_thread *t = &x->threads.v[r->thread];
	uint64_t covered = x->to_ns - x->from_ns;
	double scale = (double)x->w->window_ns / (double)covered;

	memset(ns, 0, STATE_COUNT * sizeof(*ns));
	vec_for(&x->threads, other)
		if (other->process == r->process) {
			ns[STATE_RUN] += other->run_ns;
			ns[STATE_RUNQ] += other->runq_ns;
		}
	for (uint32_t i = t->first; i < t->first + t->n; i++) {
		const struct wf_span *span = &x->spans.v[i];

		if (!wf_is_inner(s->sets, x, r->thread, span))
			ns[wf_wait_state(x, span)] += (uint64_t)((double)(span->wake_ns - span->out_ns) * scale);
	}
}

/*
 * Who computes longer is taken off its CPU more often, too: delay in proportion to computing, as its equals have it, is
 * no cause of its own.
 */
static void spread_delay(uint64_t (*ns)[STATE_COUNT], size_t n, size_t last, uint64_t *others)
{
	size_t k = 0;
	double run, runq, usual;

	for (size_t i = 0; i < n; i++)
		if (i != last)
			others[k++] = ns[i][STATE_RUN];
	run = (double)median(others, k);
	k = 0;
	for (size_t i = 0; i < n; i++)
		if (i != last)
			others[k++] = ns[i][STATE_RUNQ];
	runq = (double)median(others, k);
	usual = run > 0 ? (double)ns[last][STATE_RUN] * (runq / run) - runq : 0;
	if (usual <= 0)
		return;
	if (usual > (double)ns[last][STATE_RUNQ])
		usual = (double)ns[last][STATE_RUNQ];
	ns[last][STATE_RUN] += (uint64_t)usual;
	ns[last][STATE_RUNQ] -= (uint64_t)usual;
}

static void find_extra(const struct steps *s, struct wait_straggler *v)
{
	size_t n = s->ranks->v.n;
	uint64_t (*ns)[STATE_COUNT] = mem_alloc(n * sizeof(*ns)), *others = mem_alloc(n * sizeof(*others)), best = 0;
	double steps = (double)s->x->w->window_ns / (double)v->period_ns;

	for (size_t i = 0; i < n; i++)
		times_of(s, &s->ranks->v.v[i], ns[i]);
	spread_delay(ns, n, v->last, others);
	v->extra = STATE_BLOCKED;
	for (unsigned c = 0; c < STATE_COUNT; c++) {
		uint64_t usual;
		size_t k = 0;

		for (size_t i = 0; i < n; i++)
			if (i != v->last)
				others[k++] = ns[i][c];
		usual = median(others, k);
		if (ns[v->last][c] > usual && ns[v->last][c] - usual > best) {
			best = ns[v->last][c] - usual;
			v->extra = c;
		}
	}
	v->extra_ns = (uint64_t)((double)best / steps);
	free(ns);
	free(others);
}

static uint32_t busiest_thread(const struct wf *x, uint32_t process)
{
	const struct wf_thread *best = NULL;

	vec_for(&x->threads, t)
		if (t->process == process && (!best || t->run_ns + t->runq_ns > best->run_ns + best->runq_ns))
			best = t;
	return best ? best->node : NODE_NONE;
}

static const char *rank_text(struct wf *x, const struct wf_rank *r)
{
	const struct node *p = x->g->nodes.v[r->process];

	return wf_text(x->w, "%s[%" PRIu64 "]", wf_str(p, process_f_name) ?: "?",
		       HAS(process, p, pid) ? GET(process, p, pid) : 0);
}

static void say(const struct steps *s, struct wait_straggler *v, uint64_t late)
{
	struct wf *x = s->x;
	const char *who = rank_text(x, &s->ranks->v.v[v->last]);
	double share = late ? (double)v->last_count.v[v->last] * 100 / (double)late : 0;

	if (!v->uneven)
		v->text = wf_text(x->w, "%zu ranks arrive together", v->ranks.n);
	else if (v->fixed)
		v->text = wf_text(x->w, "%zu ranks wait for %s, rank %" PRIu32 " of them", v->ranks.n, who, v->last);
	else
		v->text = wf_text(x->w, "%zu ranks wait for a different one each time", v->ranks.n);
	v->why = wf_text(x->w,
			 "a step takes %.1f ms (%.0f %% regular); in %" PRIu64 " of %" PRIu32
			 " somebody was late, in %.0f %% of these %s%s",
			 (double)v->period_ns / 1e6, v->period_pct, late, v->steps, share, who,
			 !v->fixed ? ""
				   : wf_text(x->w, "; it spends %.1f ms more of a step %s than its equals",
					     (double)v->extra_ns / 1e6, wait_state_text(v->extra)));
}

/* Mean length of a step less what the others waited for the last one alone: they would wait for the next to last. */
static void add_gain(const struct steps *s, const struct wait_straggler *v, uint64_t *room)
{
	size_t n = s->ranks->v.n;
	struct wf *x = s->x;
	struct wait_what_if f = {.thread = v->thread, .state = v->extra, .now_ns = v->period_ns};
	const char *who = rank_text(x, &s->ranks->v.v[v->last]);
	uint64_t sum = 0, gain;

	for (size_t at = 0; at < s->begins.n; at++) {
		uint64_t least = s->wait[v->last * s->begins.n + at];
		size_t k = 0;

		for (size_t i = 0; i < n; i++)
			if (i != v->last)
				room[k++] = s->wait[i * s->begins.n + at];
		qsort(room, k, sizeof(*room), by_time);
		sum += room[0] > least ? room[0] - least : 0;
	}
	gain = sum / s->begins.n;
	gain = gain < v->extra_ns ? gain : v->extra_ns;
	if (!gain || gain >= v->period_ns)
		return;
	f.then_ns = v->period_ns - gain;
	f.text = wf_text(x->w, "if %s were no longer %s than its equals, a step would take %.1f instead of %.1f ms", who,
			 wait_state_text(v->extra), (double)f.then_ns / 1e6, (double)f.now_ns / 1e6);
	f.assumes = "the other ranks stay as they are: then they wait for the next to last one";
	vec_push(&x->w->what_ifs, f);
}

/* What the steps hung on, over all that were seen whole. */
static void add_path(const struct steps *s)
{
	struct wait_path p = {.thread = s->x->threads.v[s->ranks->v.v[0].thread].node,
			      .from_ns = s->begins.v[0],
			      .to_ns = s->begins.v[s->begins.n - 1],
			      .rounds = (uint32_t)s->begins.n - 1};

	if (p.to_ns <= p.from_ns)
		return;
	wf_walk_path(s->x, &p);
	vec_push(&s->x->w->paths, p);
}

static void judge(struct steps *s, struct wait_straggler *v)
{
	size_t n = s->ranks->v.n;
	uint64_t *room = mem_alloc((n + s->begins.n + 1) * sizeof(*room)), late = 0;
	double rest;

	for (size_t i = 0; i < n; i++) {
		memcpy(room, &s->wait[i * s->begins.n], s->begins.n * sizeof(*room));
		vec_push(&v->wait_ns, median(room, s->begins.n));
		vec_push(&v->last_count, 0);
		vec_push(&v->ranks, s->ranks->v.v[i].process);
	}
	for (size_t at = 0; at < s->begins.n; at++) {
		uint32_t last = last_of_step(s, at, v->period_ns, room);

		if (last == NODE_NONE)
			continue;
		late++;
		v->last_count.v[last]++;
	}
	for (uint32_t i = 1; i < n; i++)
		if (v->last_count.v[i] > v->last_count.v[v->last])
			v->last = i;
	v->fixed = late * 2 >= s->begins.n && v->last_count.v[v->last] * 100ull >= late * FIXED_PCT &&
		   (n == 2 || v->last_count.v[v->last] * n >= 2 * late);
	/* Somebody is last now and then wherever CPUs are short. */
	v->uneven = v->fixed || late * 4 >= s->begins.n * 3;
	v->thread = busiest_thread(s->x, v->ranks.v[v->last]);
	v->confidence_pct = !v->uneven ? 70 : n < 3 ? 60 : v->steps >= 20 ? 90 : 75;
	v->extra = STATE_BLOCKED;
	wf_split_waits(s->x, s->x->threads.v[s->ranks->v.v[0].thread].role, &v->ready_pct, &rest);
	v->ready_pct *= 100;
	if (v->fixed) {
		find_extra(s, v);
		add_gain(s, v, room);
	}
	free(room);
	say(s, v, late);
	add_path(s);
}

static void add_set(struct wf *x, const struct wf_rank_sets *sets, struct wf_ranks *ranks)
{
	struct steps s = {.x = x, .sets = sets, .ranks = ranks};
	struct wait_straggler v = {.thread = NODE_NONE};

	read_ends(&s);
	v.period_ns = period_find(s.ends.v, s.ends.n, x->from_ns, x->to_ns, &v.period_pct);
	find_steps(&s, v.period_ns ? v.period_ns * 2 / 5 : 1000000);
	/* Steps of different lengths have no period, but a usual length. */
	if (!v.period_ns || s.begins.n * v.period_ns * 2 < x->to_ns - x->from_ns) {
		find_steps(&s, 1000000);
		v.period_ns = median_step(&s);
	}
	ranks->period_ns = v.period_ns;
	v.steps = (uint32_t)s.begins.n;
	if (s.begins.n >= STEPS_LEAST && v.period_ns) {
		read_waits(&s);
		judge(&s, &v);
		vec_push(&x->w->stragglers, v);
	}
	free(s.wait);
	vec_done(&s.ends);
	vec_done(&s.begins);
}

void wf_add_stragglers(struct wf *x)
{
	struct wf_rank_sets sets;

	if (x->to_ns <= x->from_ns)
		return;
	wf_ranks_init(&sets, x);
	vec_for(&sets.v, set)
		add_set(x, &sets, set);
	wf_add_hangs(x, &sets);
	wf_ranks_done(&sets);
}
