/* Keeps the totals of waits that are not settled, and reports what they gained at each reading. */
#include "wait_sums.h"

void wait_sums_done(struct wait_sums *w)
{
	for (int i = 0; i < 2; i++) {
		on_map_done(&w->on[i]);
		by_map_done(&w->by[i]);
	}
}

static void times_add(struct wait_times *to, const struct wait_times *t)
{
	to->count += t->count;
	to->ns += t->ns;
	if (t->longest_ns > to->longest_ns)
		to->longest_ns = t->longest_ns;
}

void wait_sums_flushed(struct wait_sums *w, const struct wait_key *k, const struct wait_value *v)
{
	struct by_total *t = by_map_put(&w->by[0], *k, NULL);

	times_add(&t->flushed, &v->times);
	t->word = (uint32_t)v->word;
}

static struct on_key on_key_of(uint32_t tid, uint64_t start_ns, const struct wait_on *on)
{
	return (struct on_key){.a = on->a,
			       .b = on->b,
			       .start_ns = start_ns,
			       .tid = tid,
			       .cause = on->cause,
			       .kind = on->kind};
}

/*
 * The last record is the end of it: no map will bring it again. The iterator of the same reading may have
 * met the thread before it ended, with a part of the same sum, or in the wait that ended since.
 */
static void settle(struct wait_sums *w, struct by_total *t, const struct sched_totals *r)
{
	struct on_key k = on_key_of(r->id.tid, r->id.start_ns, &r->sum.on);

	times_add(&t->flushed, &r->sum.times);
	t->pending = (struct wait_times){0};
	on_map_put(&w->on[0], k, NULL)->open_ns = 0;
}

void wait_sums_record(struct wait_sums *w, const struct sched_totals *r)
{
	const struct wait_sum *s = &r->sum;

	if (r->flags & SCHED_KTHREAD)
		return;
	if (s->times.count) {
		struct wait_key k = {.a = s->on.a,
				     .b = s->on.b,
				     .start_ns = r->id.start_ns,
				     .waker_start_ns = s->by.start_ns,
				     .tid = r->id.tid,
				     .waker_tid = s->by.tid,
				     .cause = s->on.cause,
				     .kind = s->on.kind,
				     .waker_class = s->by.class};
		struct by_total *t = by_map_put(&w->by[0], k, NULL);

		if (r->flags & SCHED_EXITED)
			settle(w, t, r);
		else
			t->pending = s->times;
		t->word = s->on.word;
	}
	if (r->open_ns) {
		struct on_key k = on_key_of(r->id.tid, r->id.start_ns, &r->on);
		struct on_total *t = on_map_put(&w->on[0], k, NULL);

		t->open_ns = r->open_ns;
		t->word = r->on.word;
	}
}

static uint64_t gain(uint64_t now, uint64_t *reported)
{
	uint64_t d = now > *reported ? now - *reported : 0;

	*reported += d;
	return d;
}

struct report {
	struct wait_sums *w;
	const struct wait_names *names;
	int (*cb)(void *ctx, const struct wait_sample *s);
	void *ctx;
};

/* What one waker ended; it goes on to what the thread waited for at all. */
static int report_by(struct report *x, const struct wait_key *k, struct by_total *t,
		     const struct task_ident *waiter)
{
	struct wait_times total = t->flushed;
	struct wait_sample s = {.task = *waiter, .waker_class = (enum waker_class)k->waker_class};
	struct on_total *on;

	times_add(&total, &t->pending);
	s.on = (struct wait_on){.a = k->a, .b = k->b, .cause = k->cause, .kind = k->kind, .word = t->word};
	s.waits = gain(total.count, &t->waits);
	s.waited_ns = gain(total.ns, &t->waited_ns);
	s.longest_ns = total.longest_ns;
	if (!s.waits && !s.waited_ns)
		return 0;
	on = on_map_put(&x->w->on[0], on_key_of(k->tid, k->start_ns, &s.on), NULL);
	times_add(&on->finished, &(struct wait_times){s.waits, s.waited_ns, s.longest_ns});
	on->word = t->word;
	s.ended = true;
	if (s.waker_class == WAKER_THREAD) {
		s.waker = x->names->find(x->names->ctx, k->waker_tid, k->waker_start_ns);
		if (!s.waker)
			s.waker_class = WAKER_NONE;
	}
	return x->cb(x->ctx, &s);
}

static int report_wakers(struct report *x)
{
	struct by_map *all = &x->w->by[0], *kept = &x->w->by[1], swap;
	struct by_map_slot *slot;
	int rc = 0;

	for (size_t at = 0; !rc && (slot = by_map_next(all, &at));) {
		struct by_total *t = &slot->value;
		const struct task_ident *waiter =
			x->names->find(x->names->ctx, slot->key.tid, slot->key.start_ns);

		if (!waiter && x->names->complete)
			continue;
		if (waiter)
			rc = report_by(x, &slot->key, t, waiter);
		t->pending = (struct wait_times){0};
		if (!waiter || t->flushed.count != t->waits || t->flushed.ns != t->waited_ns)
			*by_map_put(kept, slot->key, NULL) = *t;
	}
	by_map_clear(all);
	swap = *all;
	*all = *kept;
	*kept = swap;
	return rc;
}

static int report_on(struct report *x, const struct on_key *k, struct on_total *t,
		     const struct task_ident *waiter)
{
	struct wait_sample s = {.task = *waiter};

	s.on = (struct wait_on){.a = k->a, .b = k->b, .cause = k->cause, .kind = k->kind, .word = t->word};
	s.waits = gain(t->finished.count + (t->open_ns > 0), &t->waits);
	s.waited_ns = gain(t->finished.ns + t->open_ns, &t->waited_ns);
	s.longest_ns = t->open_ns > t->finished.longest_ns ? t->open_ns : t->finished.longest_ns;
	return s.waits || s.waited_ns ? x->cb(x->ctx, &s) : 0;
}

static int report_objects(struct report *x)
{
	struct on_map *all = &x->w->on[0], *kept = &x->w->on[1], swap;
	struct on_map_slot *slot;
	int rc = 0;

	for (size_t at = 0; !rc && (slot = on_map_next(all, &at));) {
		struct on_total *t = &slot->value;
		const struct task_ident *waiter =
			x->names->find(x->names->ctx, slot->key.tid, slot->key.start_ns);

		if (!waiter && x->names->complete)
			continue;
		if (waiter)
			rc = report_on(x, &slot->key, t, waiter);
		t->open_ns = 0;
		if (!waiter || t->finished.count != t->waits || t->finished.ns != t->waited_ns)
			*on_map_put(kept, slot->key, NULL) = *t;
	}
	on_map_clear(all);
	swap = *all;
	*all = *kept;
	*kept = swap;
	return rc;
}

int wait_sums_report(struct wait_sums *w, const struct wait_names *names,
		     int (*cb)(void *ctx, const struct wait_sample *s), void *ctx)
{
	struct report x = {w, names, cb, ctx};
	int rc = report_wakers(&x);

	return rc ?: report_objects(&x);
}
