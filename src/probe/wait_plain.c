/* Spreads waits that nobody looked at over those that were. */
#include "wait_plain.h"

void wait_plain_done(struct wait_plain *p)
{
	vec_done(&p->threads);
	vec_done(&p->samples);
	idmap_done(&p->by_thread);
}

void wait_plain_thread(struct wait_plain *p, const struct task_ident *id, uint64_t waits, uint64_t ns)
{
	struct plain_thread *t = vec_add(&p->threads);

	t->id = *id;
	t->waits = waits;
	t->ns = ns;
	idmap_put(&p->by_thread, id->tid, id->start_ns, (uint32_t)p->threads.n - 1);
}

static struct plain_thread *thread_of(struct wait_plain *p, const struct task_ident *id)
{
	uint32_t i = idmap_get(&p->by_thread, id->tid, id->start_ns);

	return i == IDMAP_NONE ? NULL : &p->threads.v[i];
}

int wait_plain_sample(void *ctx, const struct wait_sample *s)
{
	struct wait_plain *p = ctx;
	struct plain_thread *t = thread_of(p, &s->task);

	if (t)
		t->seen[s->ended] += s->waits;
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
	s->estimated_waits = part(t->waits, t->before[e], t->seen[e], &t->gave_waits[e]);
	s->estimated_ns = part(t->ns, t->before[e], t->seen[e], &t->gave_ns[e]);
	s->waits += s->estimated_waits;
	s->waited_ns += s->estimated_ns;
}

/* Nothing is known of what it waits for. */
static int report_alone(const struct plain_thread *t, int (*cb)(void *ctx, const struct wait_sample *s), void *ctx)
{
	struct wait_sample s = {.task = t->id, .waits = t->waits, .waited_ns = t->ns};

	s.estimated_waits = s.waits;
	s.estimated_ns = s.waited_ns;
	return cb(ctx, &s);
}

int wait_plain_report(struct wait_plain *p, int (*cb)(void *ctx, const struct wait_sample *s), void *ctx)
{
	int rc = 0;

	vec_for(&p->samples, s) {
		struct plain_thread *t = thread_of(p, &s->task);

		if (t)
			spread(t, s);
		rc = rc ?: cb(ctx, s);
	}
	vec_for(&p->threads, t)
		if (!rc && !t->seen[false])
			rc = report_alone(t, cb, ctx);
	vec_clear(&p->threads);
	vec_clear(&p->samples);
	idmap_clear(&p->by_thread);
	return rc;
}
