/* Single waits and intervals of threads, in order. */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

static const char *const causes[CAUSE_COUNT] = {
	[CAUSE_FUTEX] = "futex",	   [CAUSE_PIPE] = "pipe",
	[CAUSE_SOCKET] = "socket",	   [CAUSE_QUEUE] = "queue",
	[CAUSE_SEMAPHORE] = "semaphore",   [CAUSE_EVENTFD] = "eventfd",
	[CAUSE_POLL] = "poll",		   [CAUSE_SLEEP] = "sleep",
	[CAUSE_DISK] = "disk",		   [CAUSE_FILE] = "file",
	[CAUSE_FILE_LOCK] = "file_lock",   [CAUSE_PAGE_FAULT] = "page_fault",
	[CAUSE_DEVICE] = "device",	   [CAUSE_CHILD] = "child",
	[CAUSE_SIGNAL] = "signal",	   [CAUSE_OTHER] = "other",
};

static const char *const enders[ENDER_COUNT] = {
	[ENDER_UNKNOWN] = "unknown", [ENDER_THREAD] = "thread", [ENDER_TIMER] = "timer",
	[ENDER_DISK] = "disk",	     [ENDER_NETWORK] = "network", [ENDER_DEVICE] = "device",
	[ENDER_INTERRUPT] = "interrupt",
};

const char *wait_cause_name(enum wait_cause c)
{
	return c < CAUSE_COUNT ? causes[c] : "other";
}

enum wait_cause wait_cause_find(const char *name)
{
	for (unsigned i = 0; name && i < CAUSE_COUNT; i++)
		if (*name == *causes[i] && !strcmp(name, causes[i]))
			return i;
	return CAUSE_OTHER;
}

enum wait_ender wait_ender_find(const char *kind)
{
	if (!kind)
		return ENDER_UNKNOWN;
	for (unsigned i = 0; i < ENDER_COUNT; i++)
		if (*kind == *enders[i] && !strcmp(kind, enders[i]))
			return i;
	return ENDER_INTERRUPT;
}

const char *wait_ender_name(enum wait_ender e)
{
	return e < ENDER_COUNT ? enders[e] : "unknown";
}

void timeline_done(struct timeline *t)
{
	vec_done(&t->intervals);
	vec_done(&t->spans);
	vec_done(&t->slices);
	memset(t, 0, sizeof(*t));
}

bool timeline_add_span(struct timeline *t, const struct wait_span *s)
{
	struct wait_span *to;

	if (s->waiter == NODE_NONE || !s->out_ns || s->out_ns > s->wake_ns || s->wake_ns > s->in_ns)
		return false;
	to = vec_add(&t->spans);
	*to = *s;
	if (s->ender != ENDER_THREAD || s->waker == s->waiter)
		to->waker = NODE_NONE;
	if (s->ender == ENDER_THREAD && to->waker == NODE_NONE)
		to->ender = ENDER_UNKNOWN;
	return true;
}

static uint32_t count_of(uint64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static bool has_gained(const struct node *n)
{
	for (int i = 0; i < n->type->nfields; i++)
		if (n->type->fields[i].merge == SUM && n->measured & (1ull << i) &&
		    field_get(&n->type->fields[i], n->data).u64)
			return true;
	return false;
}

/* What was not measured is nothing here: slices are sums. */
#define GAIN(n, field) (HAS(thread, n, field) ? GET(thread, n, field) : 0)

struct thread_slice *timeline_add_slice(struct timeline *t, uint32_t interval, const struct node *n,
					uint32_t index)
{
	struct thread_slice s = {
	    .thread = index,
	    .interval = interval,
	    .run_ns = GAIN(n, run_ns),
	    .runq_ns = GAIN(n, runq_ns),
	    .blocked_ns = GAIN(n, blocked_ns),
	    .voluntary = count_of(GAIN(n, voluntary_switches)),
	    .involuntary = count_of(GAIN(n, involuntary_switches)),
	    .migrations = count_of(GAIN(n, migrations)),
	    .wakeups = count_of(GAIN(n, wakeups)),
	};

	if (!has_gained(n))
		return NULL;
	vec_push(&t->slices, s);
	return &t->slices.v[t->slices.n - 1];
}

static int order_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int span_order(const void *a, const void *b)
{
	const struct wait_span *x = a, *y = b;

	return order_u64(x->out_ns, y->out_ns) ?: order_u64(x->waiter, y->waiter)
					       ?: order_u64(x->in_ns, y->in_ns);
}

static int slice_order(const void *a, const void *b)
{
	const struct thread_slice *x = a, *y = b;

	return order_u64(x->thread, y->thread) ?: order_u64(x->interval, y->interval);
}

void timeline_sort(struct timeline *t)
{
	bool sorted = true;

	for (size_t i = 1; sorted && i < t->spans.n; i++)
		sorted = span_order(&t->spans.v[i - 1], &t->spans.v[i]) <= 0;
	if (!sorted)
		qsort(t->spans.v, t->spans.n, sizeof(*t->spans.v), span_order);
	sorted = true;
	for (size_t i = 1; sorted && i < t->slices.n; i++)
		sorted = slice_order(&t->slices.v[i - 1], &t->slices.v[i]) <= 0;
	if (!sorted)
		qsort(t->slices.v, t->slices.n, sizeof(*t->slices.v), slice_order);
	/* A wait is kept when it ends: the first end is what is known of the beginning. */
	if (!t->spans_from_ns && t->spans.n) {
		t->spans_from_ns = UINT64_MAX;
		vec_for(&t->spans, s)
			if (s->in_ns < t->spans_from_ns)
				t->spans_from_ns = s->in_ns;
	}
}

const struct thread_slice *timeline_slices(const struct timeline *t, uint32_t thread, size_t *ret_n)
{
	size_t low = 0, high = t->slices.n, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->slices.v[middle].thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	end = low;
	while (end < t->slices.n && t->slices.v[end].thread == thread)
		end++;
	*ret_n = end - low;
	return end > low ? &t->slices.v[low] : NULL;
}
