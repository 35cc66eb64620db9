/* The second pass: what the waits of others and its own say of a thread, where its figures alone
 * mislead. */
#include "hot_parts.h"
#include "waitfor.h"

#define POLLER_CERTAIN_PCT 70

/* The part of its chain that most of the late time is. */
static const struct wait_part *late_part(const struct wait_chain *c)
{
	vec_for(&c->parts, p)
		if (!p->idle)
			return p;
	return NULL;
}

static void follow_chain(struct hot *h, struct hot_thread *t, const struct waitfor *w)
{
	const struct wait_chain *c = waitfor_chain(w, t->node);
	const struct wait_part *p = c ? late_part(c) : NULL;
	double share;

	if (!p || !c->waited_ns)
		return;
	share = (double)p->ns * 100 / (double)c->waited_ns;
	t->root = p->thread;
	t->root_pct = share;
	if (p->thread == t->node)
		t->root_why = hot_text(h, "%.0f %% of the waits of its kind: %s", share,
				       wait_state_text(p->state));
	else
		t->root_why = hot_text(h, "%.0f %% of the waits of its kind end at %s, %s", share,
				       hot_label(h, p->thread), wait_state_text(p->state));
	if (t->cause == HOT_CAUSE_COMMUNICATION && p->held) {
		t->cause = HOT_CAUSE_SYNCHRONISATION;
		t->root_why = hot_text(
		    h, "%s; it holds a lock, so this is no matter of communication", t->root_why);
	}
}

/* Busy, and by design: it turns until something is there, and nobody waits for it. */
static void follow_pollers(struct hot *h, const struct waitfor *w)
{
	vec_for(&w->patterns, p) {
		struct hot_thread *t;

		if (p->kind != PATTERN_POLLER || p->root == NODE_NONE || p->root >= h->n_nodes ||
		    h->of[p->root] == HOT_NONE)
			continue;
		t = &h->threads.v[h->of[p->root]];
		if (t->cause != HOT_CAUSE_COMPUTE && t->cause != HOT_CAUSE_MEMORY)
			continue;
		/* One that turns without a sign of looking for work may as well compute: both are
		 * said. */
		if (p->confidence_pct >= POLLER_CERTAIN_PCT)
			t->cause = HOT_CAUSE_NONE;
		t->root_why = hot_text(h, "nobody waits for it; busy by design (%u %%): %s",
				       p->confidence_pct, p->why ?: p->text);
	}
}

void hot_follow_waits(struct hot *h, const struct waitfor *w)
{
	vec_for(&h->threads, t) {
		bool waits =
		    t->cause == HOT_CAUSE_COMMUNICATION || t->cause == HOT_CAUSE_SYNCHRONISATION;

		if (waits)
			follow_chain(h, t, w);
	}
	follow_pollers(h, w);
}
