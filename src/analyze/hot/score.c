/* How hot a thread is: points of the published score, and the rules P0 to P2 that explain them. */
#include "hot_parts.h"

static void reason(struct hot_thread *t, unsigned points, const char *text)
{
	struct hot_reason *r = vec_add(&t->reasons);

	r->points = points;
	r->text = text;
	t->points += points;
}

static void score_cpu(struct hot *h, struct hot_thread *t)
{
	if (!hot_has(t->cpu_pct)) {
		vec_push(&t->missing,
			 t->since.run_ns != UINT64_MAX && !h->window_ns
			     ? "CPU time: only a total since the thread started, which is no rate"
			     : "CPU time: not measured");
		return;
	}
	t->possible += 2;
	if (t->cpu_pct > h->limits.v[LIMIT_hot_cpu])
		reason(t, 2,
		       hot_text(h, "CPU %.1f %%, above %.0f %%", t->cpu_pct,
				h->limits.v[LIMIT_hot_cpu]));
}

static void score_switches(struct hot *h, struct hot_thread *t)
{
	if (!hot_has(t->switches_s)) {
		vec_push(&t->missing, t->since.voluntary != UINT64_MAX && !h->window_ns
					  ? "context switches: only totals since the thread "
					    "started, which are no rate"
					  : "context switches: not measured");
		return;
	}
	t->possible += 1;
	if (t->switches_s > h->limits.v[LIMIT_hot_switches])
		reason(t, 1,
		       hot_text(h, "%.0f context switches/s, above %.0f/s", t->switches_s,
				h->limits.v[LIMIT_hot_switches]));
}

static void score_remote(struct hot *h, struct hot_thread *t)
{
	if (!hot_has(t->remote_pct)) {
		vec_push(&t->missing,
			 t->cpu.v.n ? "remote memory: on which nodes its memory is was not seen"
				    : "remote memory: on which nodes it ran was not measured");
		return;
	}
	t->possible += 2;
	if (hot_runs(h, t) && t->remote_pct > h->limits.v[LIMIT_hot_remote])
		reason(t, 2,
		       hot_text(
			   h, "%.0f %% of its accesses %s on other NUMA nodes, above %.0f %%",
			   t->remote_pct, hot_remote_how(t), h->limits.v[LIMIT_hot_remote]));
}

static void score_llc(struct hot *h, struct hot_thread *t)
{
	if (!hot_has(t->llc_miss_pct)) {
		vec_push(&t->missing, "cache misses: not counted by thread");
		return;
	}
	t->possible += 1;
	if (t->llc_miss_pct > h->limits.v[LIMIT_hot_llc_miss])
		reason(t, 1,
		       hot_text(h, "%.1f %% of last-level cache references missed, above %.0f %%",
				t->llc_miss_pct, h->limits.v[LIMIT_hot_llc_miss]));
}

static enum hot_level level_of(unsigned points)
{
	return points >= 5   ? LEVEL_SEVERE
	       : points >= 3 ? LEVEL_MODERATE
	       : points      ? LEVEL_LIGHT
			     : LEVEL_NORMAL;
}

/* What costs time, whatever the score says. */
static void other_reasons(struct hot *h, struct hot_thread *t)
{
	double waited = hot_share_of(t, t->waited_for_ns);
	bool active = hot_has(t->cpu_pct) &&
		      hot_share_of(t, t->run_ns + t->runq_ns) >= h->limits.v[LIMIT_hot_active];

	if (hot_above(h, t->runq_pct, LIMIT_hot_runq))
		reason(t, 0,
		       hot_text(h, "%.1f %% of the time runnable without a CPU, above %.0f %%",
				t->runq_pct, h->limits.v[LIMIT_hot_runq]));
	if (active && hot_above(h, waited, LIMIT_hot_waited_for))
		reason(
		    t, 0,
		    hot_text(
			h,
			"%zu thread%s waited for it, together %.0f %% of the time, above %.0f %%",
			t->waiters.n, t->waiters.n == 1 ? "" : "s", waited,
			h->limits.v[LIMIT_hot_waited_for]));
}

struct hot_rule {
	const char *id;
	unsigned points, pct;
	const char *(*check)(struct hot *h, const struct hot_thread *t); /* what is so, or NULL */
	const char *advice;
};

static const char *busy_with_misses(struct hot *h, const struct hot_thread *t)
{
	if (!hot_above(h, t->cpu_pct, LIMIT_p0_1_cpu) ||
	    !hot_above(h, t->llc_miss_pct, LIMIT_p0_1_llc_miss))
		return NULL;
	return hot_text(h,
			"busy with poor locality: CPU %.0f %%, %.1f %% of cache references missed",
			t->cpu_pct, t->llc_miss_pct);
}

static const char *busy_on_remote(struct hot *h, const struct hot_thread *t)
{
	if (!hot_above(h, t->cpu_pct, LIMIT_p0_2_cpu) ||
	    !hot_above(h, t->remote_pct, LIMIT_p0_2_remote))
		return NULL;
	return hot_text(
	    h, "busy on remote memory: CPU %.0f %%, %.0f %% of accesses %s on other nodes",
	    t->cpu_pct, t->remote_pct, hot_remote_how(t));
}

static double involuntary_pct(const struct hot_thread *t)
{
	return t->switches_s > 0 ? t->involuntary_s * 100 / t->switches_s : NAN;
}

static const char *taken_off(struct hot *h, const struct hot_thread *t)
{
	if (!hot_above(h, t->switches_s, LIMIT_p0_3_switches) ||
	    !hot_above(h, involuntary_pct(t), LIMIT_p0_3_involuntary))
		return NULL;
	return hot_text(h, "pre-empted all the time: %.0f switches/s, %.0f %% of them involuntary",
			t->switches_s, involuntary_pct(t));
}

static const char *many_switches(struct hot *h, const struct hot_thread *t)
{
	if (!hot_above(h, t->switches_s, LIMIT_p1_1_switches))
		return NULL;
	return hot_text(h, "switches often: %.0f/s", t->switches_s);
}

static const char *unlike_memory(struct hot *h, const struct hot_thread *t)
{
	if (!hot_runs(h, t) || !hot_has(t->similarity) ||
	    t->similarity >= h->limits.v[LIMIT_p1_2_similarity])
		return NULL;
	return hot_text(h, "CPU and memory on different nodes: similarity %.3f", t->similarity);
}

static const char *waits_often(struct hot *h, const struct hot_thread *t)
{
	if (!hot_above(h, t->voluntary_s, LIMIT_p1_3_voluntary) ||
	    t->voluntary_s * 100 <= t->switches_s * h->limits.v[LIMIT_p1_3_share])
		return NULL;
	return hot_text(h, "yields all the time: %.0f voluntary switches/s, %.0f %% of all",
			t->voluntary_s, t->voluntary_s * 100 / t->switches_s);
}

static const char *many_misses(struct hot *h, const struct hot_thread *t)
{
	if (!hot_runs(h, t) || !hot_above(h, t->llc_miss_pct, LIMIT_p2_1_llc_miss))
		return NULL;
	return hot_text(h, "many cache misses: %.1f %% of references", t->llc_miss_pct);
}

static const char *some_remote(struct hot *h, const struct hot_thread *t)
{
	if (!hot_runs(h, t) || !hot_above(h, t->remote_pct, LIMIT_p2_2_remote))
		return NULL;
	return hot_text(h, "some remote access: %.0f %% %s", t->remote_pct, hot_remote_how(t));
}

static const struct hot_rule rules[] = {
    {"P0-1", 8, 95, busy_with_misses, "order data and accesses for the cache; prefetch"},
    {"P0-2", 8, 92, busy_on_remote, "bind the thread to the node of its data, or move the data"},
    {"P0-3", 8, 90, taken_off, "fewer threads on its CPUs, a priority, or CPUs of its own"},
    {"P1-1", 5, 75, many_switches, "see what it waits for, and who else runs on its CPUs"},
    {"P1-2", 5, 78, unlike_memory, "bind thread and data to the same node"},
    {"P1-3", 5, 72, waits_often,
     "wait less often: larger batches, asynchronous calls, shorter locks"},
    {"P2-1", 3, 60, many_misses, "improve locality"},
    {"P2-2", 3, 65, some_remote, "check affinity; divide data by node"},
};

void hot_score(struct hot *h, struct hot_thread *t)
{
	score_cpu(h, t);
	score_switches(h, t);
	score_remote(h, t);
	score_llc(h, t);
	t->level = level_of(t->points);
	t->level_most = level_of(t->points + 6 - t->possible);
	other_reasons(h, t);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const char *text = rules[i].check(h, t);
		struct hot_reason *r;

		if (!text)
			continue;
		r = vec_add(&t->rules);
		*r = (struct hot_reason){.text = text,
					 .rule = rules[i].id,
					 .points = rules[i].points,
					 .pct = rules[i].pct,
					 .advice = rules[i].advice};
	}
}
