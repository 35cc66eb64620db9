/* Has system calls watched in turns while watching all of them would cost the observed too much. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "collect_ipc.h"
#include "governor.h"
#include "ipc_spread.h"
#include "sched_probe.h"

/*
 * What the scheduler's hooks take of a switch and of the wake-up before, about (docs/decisions/008-overhead.md); what
 * calls cost is measured.
 */
#define SWITCH_NS 200.0
/* How often in a millisecond it is looked at what a thread waits for, while calls are watched in turns. */
#define DETAIL_MOST 4

struct cpu_count {
	struct ipc_runs runs;
	uint64_t switches;
};

struct ipc_turns {
	struct governor governor;
	struct ipc_spread spread;
	VEC(struct ipc_sample) estimated; /* of one reading */
	uint32_t ncpu;
	struct cpu_count *before, *now; /* at the last question; room for this one */
	/* CLOCK_MONOTONIC: */
	uint64_t asked_ns;   /* last question */
	uint64_t due_ns;     /* next thing to do */
	uint64_t counted_ns; /* up to here the time is in what follows */
	uint64_t look_ns;    /* begin of the look, 0: none is under way */
	uint64_t asked_watched_ns; /* since the last question */
	uint64_t watched_ns, unwatched_ns; /* of the period, since the last reading */
	bool period, ending;  /* one goes on; it is over with the next reading */
	bool fewer_waits; /* waits and wake-ups are looked at in looks only */
	size_t before_period; /* samples of this interval from before it began */
	double excess; /* newest answer */
	/* Since open. */
	double most_pct, most_uncounted_pct;
	uint64_t looks, looked_ns, turns_ns, periods, estimated_bytes;
};

struct ipc_turns *ipc_turns_new(const struct collect *c)
{
	struct ipc_turns *t = mem_alloc(sizeof(*t));
	double pct = c->o.max_overhead_pct;

	governor_init(&t->governor, pct < 0 || !ipc_probe_can_turn(c->ipc_probe) ? 0 : pct ?: GOVERNOR_DEFAULT_PCT);
	t->ncpu = ipc_probe_cpus();
	t->before = mem_alloc(t->ncpu * sizeof(*t->before));
	t->now = mem_alloc(t->ncpu * sizeof(*t->now));
	t->due_ns = UINT64_MAX;
	return t;
}

void ipc_turns_free(struct ipc_turns *t)
{
	if (!t)
		return;
	ipc_spread_done(&t->spread);
	vec_done(&t->estimated);
	free(t->before);
	free(t->now);
	free(t);
}

/* Up to now calls were watched, or not. */
static void account(struct ipc_turns *t, bool watched)
{
	uint64_t now = clock_mono_ns(), ns = now - t->counted_ns;

	t->counted_ns = now;
	if (watched)
		t->asked_watched_ns += ns;
	if (!t->period)
		return;
	*(watched ? &t->watched_ns : &t->unwatched_ns) += ns;
	if (t->ending)
		return;
	t->turns_ns += ns;
	t->looked_ns += watched ? ns : 0;
}

/* While the hook comes and goes counts as watched. */
static int hold(struct ipc_turns *t, struct collect *c, bool on, struct err *e)
{
	int rc;

	if (!on)
		account(t, ipc_probe_watches_calls(c->ipc_probe));
	rc = ipc_probe_hold(c->ipc_probe, on, e);
	if (on)
		account(t, true);
	return rc;
}

static void count(struct ipc_turns *t, const struct collect *c)
{
	ipc_probe_runs(c->ipc_probe, &t->now->runs, sizeof(*t->now), t->ncpu);
	if (c->sched_probe)
		sched_probe_switches(c->sched_probe, &t->now->switches, sizeof(*t->now), t->ncpu);
}

/* What hooks would take of a CPU if all were watched, in percent: each of the busiest in it. */
static struct governor_load load_since(const struct ipc_turns *t, const struct collect *c, uint64_t now)
{
	struct governor_load r = {.length_ns = now - t->asked_ns};
	struct ipc_cost cost = ipc_probe_cost(c->ipc_probe);
	double watched = t->asked_watched_ns ? 100 / (double)t->asked_watched_ns : 0;

	for (uint32_t i = 0; i < t->ncpu; i++) {
		const struct cpu_count *b = &t->before[i], *n = &t->now[i];
		double calls = (double)(n->runs.calls - b->runs.calls);
		double counted = (double)(n->runs.counted - b->runs.counted);
		/* splice(2) and the like are counted twice. */
		double uncounted = calls > counted ? (calls - counted) * cost.call_ns * watched : 0;
		double switches = (double)(n->switches - b->switches) * SWITCH_NS * 100 / (double)r.length_ns;
		double pct = switches + (calls * cost.call_ns + counted * cost.counted_ns) * watched;

		r.pct = pct > r.pct ? pct : r.pct;
		r.uncounted_pct = uncounted > r.uncounted_pct ? uncounted : r.uncounted_pct;
	}
	return r;
}

static void asked(struct ipc_turns *t, uint64_t now)
{
	struct cpu_count *swap = t->before;

	t->before = t->now;
	t->now = swap;
	t->asked_ns = now;
	t->asked_watched_ns = 0;
}

static int on_moved(void *ctx, const struct ipc_sample *s)
{
	struct ipc_state *state = ctx;

	vec_push(&state->samples, *s);
	return 0;
}

static int turns_begin(struct ipc_turns *t, struct collect *c, struct err *e)
{
	int rc = 0;

	if (!t->period) {
		rc = ipc_probe_read(c->ipc_probe, on_moved, c->ipc, e);
		t->before_period = c->ipc->samples.n;
		rc = rc ?: ipc_probe_turns(c->ipc_probe, true, e);
		t->watched_ns = t->unwatched_ns = 0;
	}
	t->periods++;
	t->period = true;
	t->ending = false;
	return rc;
}

/* Wake-ups are watched unless it costs too much, and in looks. Where they cannot be left out, they are watched. */
static int watch_wakings(struct ipc_turns *t, struct collect *c, struct err *e)
{
	int rc;

	if (!c->sched_probe)
		return 0;
	rc = sched_probe_watch_wakings(c->sched_probe, !t->fewer_waits || t->look_ns, e);
	return rc == -ENOTSUP ? 0 : rc;
}

static int limit_waits(struct ipc_turns *t, struct collect *c, bool fewer, struct err *e)
{
	if (c->sched_probe)
		sched_probe_limit(c->sched_probe, fewer ? DETAIL_MOST : 0);
	t->fewer_waits = fewer;
	return watch_wakings(t, c, e);
}

static int turns_end(struct ipc_turns *t, struct collect *c, struct err *e)
{
	int rc = limit_waits(t, c, false, e);

	t->ending = true;
	return rc ?: hold(t, c, false, e);
}

static int look_begin(struct ipc_turns *t, struct collect *c, uint64_t now, struct err *e)
{
	int rc;

	t->look_ns = now;
	t->looks++;
	t->due_ns = now + governor_look_ns(t->excess);
	rc = watch_wakings(t, c, e);
	return rc ?: hold(t, c, false, e);
}

/* The question: what did hooks cost since the last one, and what follows from that? */
static int ask(struct ipc_turns *t, struct collect *c, uint64_t now, struct err *e)
{
	enum governor_change change;
	struct governor_load load;
	int rc = 0;

	count(t, c);
	load = load_since(t, c, now);
	change = governor_step(&t->governor, &load);
	t->most_pct = load.pct > t->most_pct ? load.pct : t->most_pct;
	t->most_uncounted_pct =
		load.uncounted_pct > t->most_uncounted_pct ? load.uncounted_pct : t->most_uncounted_pct;
	t->excess = governor_excess(&t->governor, &load);
	asked(t, now);
	if (change == GOVERNOR_TURNS_BEGIN)
		rc = turns_begin(t, c, e);
	else if (change == GOVERNOR_TURNS_END)
		rc = turns_end(t, c, e);
	/* Calls that are watched for nothing are no reason to look at fewer waits. */
	if (!rc && t->governor.in_turns)
		rc = limit_waits(t, c, load.pct > t->governor.max_pct, e);
	if (!t->governor.in_turns)
		t->due_ns = now + GOVERNOR_CHECK_NS;
	else if (change == GOVERNOR_TURNS_BEGIN && !rc)
		rc = look_begin(t, c, now, e); /* at once, so that it is known from the start what threads use */
	return rc;
}

static int look_end(struct ipc_turns *t, struct collect *c, struct err *e)
{
	int rc = hold(t, c, true, e);

	t->due_ns = t->counted_ns + governor_gap_ns(&t->governor, t->excess, t->counted_ns - t->look_ns);
	t->look_ns = 0;
	return rc ?: watch_wakings(t, c, e);
}

uint64_t collect_turn_due_ns(const struct collect *c)
{
	return c->ipc && c->ipc->turns->governor.max_pct ? c->ipc->turns->due_ns : UINT64_MAX;
}

int collect_turn(struct collect *c, struct err *e)
{
	struct ipc_turns *t = c->ipc ? c->ipc->turns : NULL;
	uint64_t now = clock_mono_ns();
	int rc = 0;

	if (!t || now < collect_turn_due_ns(c))
		return 0;
	if (t->governor.in_turns && !t->look_ns)
		return look_begin(t, c, now, e);
	if (t->look_ns)
		rc = look_end(t, c, e);
	else
		account(t, ipc_probe_watches_calls(c->ipc_probe));
	return rc ?: ask(t, c, t->counted_ns, e);
}

int collect_turn_pause(struct collect *c, struct err *e)
{
	struct ipc_turns *t = c->ipc ? c->ipc->turns : NULL;

	return t && t->look_ns ? look_end(t, c, e) : 0;
}

static int on_unwatched(void *ctx, const struct ipc_unwatched *u)
{
	struct ipc_turns *t = ctx;

	vec_push(&t->spread.threads, *u);
	return 0;
}

static void on_estimated(void *ctx, const struct ipc_sample *s)
{
	struct ipc_turns *t = ctx;

	vec_push(&t->estimated, *s);
	t->estimated_bytes += s->v.bytes;
}

static int read_unwatched(struct ipc_turns *t, struct collect *c, struct err *e)
{
	struct ipc_state *state = c->ipc;
	size_t from = t->before_period;
	double share = t->watched_ns ? (double)t->unwatched_ns / (double)t->watched_ns : 0;
	int rc = ipc_probe_unwatched(c->ipc_probe, on_unwatched, t, e);

	if (rc)
		return rc;
	ipc_spread_add(&t->spread, state->samples.n ? state->samples.v + from : NULL, state->samples.n - from, share,
		       on_estimated, t);
	vec_for(&t->estimated, s)
		vec_push(&state->samples, *s);
	vec_clear(&t->estimated);
	t->watched_ns = t->unwatched_ns = 0;
	t->before_period = 0;
	if (!t->ending)
		return 0;
	t->period = t->ending = false;
	ipc_spread_clear(&t->spread);
	return ipc_probe_turns(c->ipc_probe, false, e);
}

int ipc_turns_read(struct collect *c, struct err *e)
{
	struct ipc_turns *t = c->ipc->turns;
	uint64_t now = clock_mono_ns();
	int rc = ipc_probe_read(c->ipc_probe, on_moved, c->ipc, e);

	if (t->due_ns == UINT64_MAX) {
		count(t, c);
		t->counted_ns = now;
		asked(t, now);
		t->due_ns = now + GOVERNOR_CHECK_NS;
	}
	account(t, ipc_probe_watches_calls(c->ipc_probe));
	return rc || !t->period ? rc : read_unwatched(t, c, e);
}

static void describe_waits(const struct collect *c, struct graph *g)
{
	struct sched_plain p = sched_probe_plain(c->sched_probe);
	char text[320];

	if (!p.waits)
		return;
	snprintf(text, sizeof(text),
		 "it was not looked at what %llu waits shorter than %u us were for, nor who ended them (%.1f s): they are taken to "
		 "be for what the same thread was seen to wait for (estimated_ns), and ended by whom others were; times of threads "
		 "are exact",
		 (unsigned long long)p.waits, WAIT_SEGMENT_NS / 1000, (double)p.ns / 1e9);
	graph_add_status(g, "overhead of waits", "reduced", NULL, text);
}

void ipc_turns_describe(const struct ipc_turns *t, const struct collect *c, struct graph *g)
{
	char text[800];

	if (c->sched_probe)
		describe_waits(c, g);
	graph_add_loss(g, "collector ipc", "unwatched_bytes_of_unknown_object", t->spread.unassigned);
	if (!t->governor.max_pct) {
		graph_add_status(g, "overhead", "off", NULL,
				 c->o.max_overhead_pct < 0 ?
					 "no bound was wanted: all calls are watched, whatever that costs" :
					 "no bound: this kernel does not tell what goes by unwatched");
		return;
	}
	if (!t->periods) {
		graph_add_status(g, "overhead", "ok", NULL, NULL);
		return;
	}
	snprintf(text, sizeof(text),
		 "hooks would have taken up to %.1f %% of a CPU, up to %.1f %% for calls that are of no interest here, more "
		 "than --max-overhead allows (%g %%, a tenth of it for such calls): for %.1f s calls were watched in turns, %llu looks in %.1f %% of that time; what a thread read and wrote in between is "
		 "exact, its split over pipes and files and the number of calls are as in the looks (estimated_bytes, "
		 "%.0f MB); queues, semaphores and copies of memory are scaled by time; descriptors passed in between, and "
		 "threads and objects of which no look saw a call, are not seen",
		 t->most_pct, t->most_uncounted_pct, t->governor.max_pct, (double)t->turns_ns / 1e9, (unsigned long long)t->looks,
		 t->turns_ns ? (double)t->looked_ns * 100 / (double)t->turns_ns : 0, (double)t->estimated_bytes / 1e6);
	graph_add_status(g, "overhead", "reduced", "in turns", text);
}
