/* Spreads waits that nobody looked at over those that were. */
#include "wait_plain.h"

void wait_plain_done(struct wait_plain *p)
{
	vec_done(&p->threads);
	vec_done(&p->samples);
	idmap_done(&p->by_thread);
}

static struct plain_thread *thread_new(struct wait_plain *p, const struct task_ident *id)
{
	struct plain_thread *t = vec_add(&p->threads);

	t->id = *id;
	idmap_put(&p->by_thread, id->tid, id->start_ns, (uint32_t)p->threads.n - 1);
	return t;
}

void wait_plain_thread(struct wait_plain *p, const struct task_ident *id, uint64_t waits, uint64_t ns)
{
	struct plain_thread *t = thread_new(p, id);

	t->waits[false] = t->waits[true] = waits;
	t->ns[false] = t->ns[true] = ns;
}

static struct plain_thread *thread_of(struct wait_plain *p, const struct task_ident *id)
{
	uint32_t i = idmap_get(&p->by_thread, id->tid, id->start_ns);

	return i == IDMAP_NONE ? NULL : &p->threads.v[i];
}

/* Who ended it can be one of those that were seen to end others. */
static bool is_unwatched(const struct wait_plain *p, const struct wait_sample *s)
{
	return p->unwatched && s->ended && s->waker_class == WAKER_NONE;
}

int wait_plain_sample(void *ctx, const struct wait_sample *s)
{
	struct wait_plain *p = ctx;
	struct plain_thread *t;

	if (is_unwatched(p, s)) {
		t = thread_of(p, &s->task) ?: thread_new(p, &s->task);
		t->waits[true] += s->waits;
		t->ns[true] += s->waited_ns;
		return 0;
	}
	vec_push(&p->samples, *s);
	return 0;
}

/* The difference of two rounded parts, so that all parts sum up to the whole. */
static uint64_t part(uint64_t all, uint64_t upto, uint64_t whole, uint64_t *given)
{
	uint64_t more = (uint64_t)((unsigned __int128)all * upto / whole) - *given;

	*given += more;
	return more;
}

static void spread(struct plain_thread *t, struct wait_sample *s)
{
	bool e = s->ended;

	if (!s->waits)
		return;
	t->before[e] += s->waits;
	s->estimated_waits = part(t->waits[e], t->before[e], t->seen[e], &t->gave_waits[e]);
	s->estimated_ns = part(t->ns[e], t->before[e], t->seen[e], &t->gave_ns[e]);
	s->waits += s->estimated_waits;
	s->waited_ns += s->estimated_ns;
}

/* Nothing is known of what it waits for. */
static int report_alone(const struct plain_thread *t, int (*cb)(void *ctx, const struct wait_sample *s), void *ctx)
{
	struct wait_sample s = {.task = t->id, .waits = t->waits[false], .waited_ns = t->ns[false]};

	s.estimated_waits = s.waits;
	s.estimated_ns = s.waited_ns;
	return cb(ctx, &s);
}

int wait_plain_report(struct wait_plain *p, int (*cb)(void *ctx, const struct wait_sample *s), void *ctx)
{
	struct plain_thread *t;
	int rc = 0;

	vec_for(&p->samples, s)
		if ((t = thread_of(p, &s->task)))
			t->seen[s->ended] += s->waits;
	vec_for(&p->samples, s) {
		t = thread_of(p, &s->task);
		if (t)
			spread(t, s);
		rc = rc ?: cb(ctx, s);
	}
	vec_for(&p->threads, x)
		if (!rc && x->waits[false] && !x->seen[false])
			rc = report_alone(x, cb, ctx);
	vec_clear(&p->threads);
	vec_clear(&p->samples);
	idmap_clear(&p->by_thread);
	return rc;
}
