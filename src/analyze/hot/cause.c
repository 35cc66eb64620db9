/* What holds a thread up by its own figures: the first pass, before the waits are followed. */
#include <string.h>

#include "hot_parts.h"

static bool is_ipc(const char *cause)
{
	static const char *const causes[] = {"socket", "pipe", "queue", "eventfd"};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strcmp(cause, causes[i]))
			return true;
	return false;
}

static void set_cause(struct hot_thread *t, enum hot_cause cause, const char *why)
{
	t->cause = cause;
	t->cause_why = why;
}

static void busy(struct hot *h, struct hot_thread *t)
{
	double limit = h->limits.v[LIMIT_cause_llc_miss];

	if (!hot_has(t->llc_miss_pct))
		set_cause(
		    t, HOT_CAUSE_COMPUTE,
		    hot_text(
			h,
			"on a CPU %.0f %% of the time; whether it computes or waits for memory "
			"is not known, as its cache misses were not counted",
			t->cpu_pct));
	else
		set_cause(
		    t, t->llc_miss_pct >= limit ? HOT_CAUSE_MEMORY : HOT_CAUSE_COMPUTE,
		    hot_has(t->ipc)
			? hot_text(h,
				   "on a CPU %.0f %% of the time, %.1f %% of cache references "
				   "missed, %.2f instructions a cycle",
				   t->cpu_pct, t->llc_miss_pct, t->ipc)
			: hot_text(h, "on a CPU %.0f %% of the time, %.1f %% of cache references missed",
				   t->cpu_pct, t->llc_miss_pct));
}

/* Blocked most of the time: for whom, as far as anybody is late. */
static void blocked(struct hot *h, struct hot_thread *t)
{
	const struct hot_wait *w = t->waits.v;
	double share;

	if (!t->waits.n) {
		set_cause(t, HOT_CAUSE_UNKNOWN, "what it waits for was not recorded");
		return;
	}
	share = hot_share_of(t, t->late_blocked_ns);
	if (w->idle || share < h->limits.v[LIMIT_cause_blocked]) {
		set_cause(t, HOT_CAUSE_NONE,
			  hot_text(h, "it waits where nobody is late: %s",
				   w->idle ? w->cause : "sleep, poll or the like"));
		return;
	}
	set_cause(t, is_ipc(w->cause) ? HOT_CAUSE_COMMUNICATION : HOT_CAUSE_SYNCHRONISATION,
		  hot_text(h, "blocked %.0f %% of the time, most of it by: %s", share, w->cause));
}

void hot_find_cause(struct hot *h, struct hot_thread *t)
{
	if (!t->base_ns) {
		if (hot_above(h, t->remote_pct, LIMIT_cause_remote))
			set_cause(t, HOT_CAUSE_NUMA,
				  hot_text(h,
					   "%.0f %% of its accesses %s on other nodes; "
					   "nothing else is known of it",
					   t->remote_pct, hot_remote_how(t)));
		else
			set_cause(t, HOT_CAUSE_UNKNOWN,
				  "no rates: what it did over a known time was not recorded");
		return;
	}
	if (t->cpu_pct > h->limits.v[LIMIT_cause_cpu])
		busy(h, t);
	else if (hot_above(h, t->runq_pct, LIMIT_hot_runq))
		set_cause(t, HOT_CAUSE_CPU_WAIT,
			  hot_text(h, "runnable without a CPU %.0f %% of the time", t->runq_pct));
	else if (hot_has(t->blocked_pct) && t->blocked_pct >= h->limits.v[LIMIT_cause_blocked])
		blocked(h, t);
	else if (hot_above(h, t->remote_pct, LIMIT_cause_remote) &&
		 t->cpu_pct >= h->limits.v[LIMIT_numa_cpu])
		set_cause(
		    t, HOT_CAUSE_NUMA,
		    hot_text(h, "%.0f %% of its accesses %s on other nodes", t->remote_pct,
			     hot_remote_how(t)));
	else
		set_cause(t, HOT_CAUSE_NONE, NULL);
}
