/*
 * How parallel processes are: threads that run or want to, on average and over time. After GAPP (Nair and Field,
 * ICPE 2020), which weighs time by the number of threads that are active.
 */
#include <stdlib.h>

#include "waitfor/parts.h"

struct change {
	uint64_t ns;
	uint32_t thread;
	int8_t step;
};

static int change_order(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

struct changes {
	VEC(struct change) v;
};

static void add_stretch(struct changes *c, uint32_t thread, uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	vec_push(&c->v, ((struct change){from, thread, 1}));
	vec_push(&c->v, ((struct change){to, thread, -1}));
}

/*
 * A thread is active when it does not wait; one of which no wait is known, when it runs most of the time.
 * @ready: it is, too, while it could run and has not got to.
 */
static void add_thread(const struct wf *x, struct changes *c, uint32_t no, bool ready)
{
	const struct wf_thread *t = &x->threads.v[no];
	uint64_t at = x->from_ns, end;

	if (!t->n && (t->run_ns + t->runq_ns) * 2 < x->w->window_ns)
		return;
	for (uint32_t i = wf_span_after(x, t, at); i < t->first + t->n; i++) {
		add_stretch(c, no, at, x->spans.v[i].out_ns);
		end = ready ? x->spans.v[i].wake_ns : x->spans.v[i].in_ns;
		at = end > at ? end : at;
	}
	add_stretch(c, no, at, x->to_ns);
}

/* The thread that is alone most of the time; times are by thread number, and cleared. */
static uint32_t find_top(const struct wf *x, const struct changes *c, uint64_t *alone)
{
	uint32_t top = NODE_NONE;
	uint64_t most = 0;

	vec_for(&c->v, change) {
		uint64_t ns = alone[change->thread];

		if (ns > most || (ns && ns == most && x->threads.v[change->thread].node < top)) {
			most = ns;
			top = x->threads.v[change->thread].node;
		}
	}
	vec_for(&c->v, change)
		alone[change->thread] = 0;
	return top;
}

double wf_one_active_pct(const struct wf *x, const uint32_t *threads, size_t n, bool ready, uint32_t *ret_top)
{
	uint64_t busy = 0, one = 0, sum = 0; /* sum of the numbers of active threads */
	uint64_t *alone = mem_alloc((x->threads.n + 1) * sizeof(*alone));
	struct changes c = {0};
	uint32_t active = 0;

	for (size_t i = 0; i < n && x->to_ns > x->from_ns; i++)
		add_thread(x, &c, threads[i], ready);
	if (c.v.n)
		qsort(c.v.v, c.v.n, sizeof(*c.v.v), change_order);
	for (size_t i = 0; i < c.v.n; i++) {
		uint64_t ns = i ? c.v.v[i].ns - c.v.v[i - 1].ns : 0;

		busy += active ? ns : 0;
		if (active == 1) {
			one += ns;
			alone[sum] += ns;
		}
		active += (uint32_t)c.v.v[i].step;
		sum += c.v.v[i].step > 0 ? c.v.v[i].thread : 0;
		sum -= c.v.v[i].step < 0 ? c.v.v[i].thread : 0;
	}
	if (ret_top)
		*ret_top = find_top(x, &c, alone);
	vec_done(&c.v);
	free(alone);
	return busy ? (double)one * 100 / (double)busy : -1;
}

static int by_process(const void *a, const void *b, void *ctx)
{
	const struct wf *x = ctx;
	const struct wf_thread *p = &x->threads.v[*(const uint32_t *)a], *q = &x->threads.v[*(const uint32_t *)b];

	if (p->process != q->process)
		return p->process < q->process ? -1 : 1;
	return p->node < q->node ? -1 : p->node > q->node;
}

static void add_process(struct wf *x, const uint32_t *threads, size_t n)
{
	struct wait_serial s = {.process = x->threads.v[threads[0]].process, .top = NODE_NONE};
	uint64_t active = 0;

	for (size_t i = 0; i < n; i++) {
		const struct wf_thread *t = &x->threads.v[threads[i]];

		s.threads += t->run_ns || t->runq_ns;
		active += t->run_ns + t->runq_ns;
	}
	/* Who does next to nothing is neither serial nor parallel. */
	if (s.threads < 2 || s.process == NODE_NONE || active < wf_least_ns(x) * 10)
		return;
	s.mean_active = (double)active / (double)x->w->window_ns;
	s.serial_pct = s.mean_active < s.threads ? 100 * (1 - s.mean_active / s.threads) : 0;
	s.one_active_pct = wf_one_active_pct(x, threads, n, true, &s.top);
	vec_push(&x->w->serial, s);
}

void wf_add_serial(struct wf *x)
{
	uint32_t *order = mem_alloc((x->threads.n + 1) * sizeof(*order));
	size_t n = 0;

	for (uint32_t i = 0; i < x->threads.n; i++)
		if (!x->threads.v[i].kernel)
			order[n++] = i;
	if (n)
		qsort_r(order, n, sizeof(*order), by_process, x);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1;
		     end < n && x->threads.v[order[end]].process == x->threads.v[order[i]].process; end++)
			;
		add_process(x, order + i, end - i);
	}
	free(order);
}
