/* Has TCP watched in turns while watching all of its messages would cost the observed too much. */
#include "sock_turns.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "governor.h"
#include "mem.h"
#include "sock_spread.h"

/* What a message takes of the one who sends or receives it, about (docs/decisions/008-overhead.md). */
#define MESSAGE_NS 50.0
/* What messages may take of the bound: there is a total of the kernel for all that they tell, but for their number. */
#define TCP_SHARE 0.03

/* Sockets that splice(2) was seen to take from; of more of them it may be told twice. */
#define SPLICED_MOST 65536

struct spliced {
	uint64_t owed; /* told of by the other probe, and not taken off a total yet */
	bool total;    /* there was one */
};

struct sock_turns {
	struct governor governor;
	struct sock_spread spread;
	uint32_t ncpu;
	uint64_t *before, *now; /* messages at the last question; room for this one */
	/* CLOCK_MONOTONIC: */
	uint64_t asked_ns;   /* last question */
	uint64_t due_ns;     /* next thing to do */
	uint64_t counted_ns; /* up to here the time is in what follows */
	uint64_t look_ns;    /* begin of the look, 0: none is under way */
	uint64_t asked_watched_ns; /* since the last question */
	uint64_t unwatched_ns;	   /* since the last reading */
	uint64_t read_ns;	   /* CLOCK_BOOTTIME of that */
	bool period, ending;	   /* one goes on; it is over with the next reading */
	bool held;		   /* nothing is watched now */
	double excess;		   /* newest answer */
	VEC(struct spliced) spliced;
	struct idmap by_id; /* of them */
	/* Since open. */
	double most_pct;
	uint64_t looks, looked_ns, turns_ns, periods, estimated_bytes, unknown_bytes;
};

struct sock_turns *sock_turns_new(const struct collect *c)
{
	struct sock_turns *t = mem_alloc(sizeof(*t));
	double pct = c->o.max_overhead_pct;

	if (pct < 0 || !c->sock_probe || !sock_probe_can_turn(c->sock_probe))
		pct = 0;
	else if (!pct)
		pct = GOVERNOR_DEFAULT_PCT;
	governor_init(&t->governor, pct * TCP_SHARE);
	t->ncpu = c->sock_probe ? sock_probe_cpus() : 0;
	t->before = mem_alloc((t->ncpu + 1) * sizeof(*t->before));
	t->now = mem_alloc((t->ncpu + 1) * sizeof(*t->now));
	t->due_ns = UINT64_MAX;
	return t;
}

void sock_turns_free(struct sock_turns *t)
{
	if (!t)
		return;
	sock_spread_done(&t->spread);
	vec_done(&t->spliced);
	idmap_done(&t->by_id);
	free(t->before);
	free(t->now);
	free(t);
}

int sock_turns_begin(struct collect *c, struct err *e)
{
	struct sock_turns *t = c->sock_turns;

	if (!t || !t->governor.max_pct)
		return 0;
	sock_probe_runs(c->sock_probe, t->before);
	t->asked_ns = t->counted_ns = clock_mono_ns();
	t->due_ns = t->asked_ns + GOVERNOR_CHECK_NS;
	return sock_probe_meet(c->sock_probe, e);
}

/* Up to now all was watched, or not. */
static void account(struct sock_turns *t)
{
	uint64_t now = clock_mono_ns(), ns = now - t->counted_ns;

	t->counted_ns = now;
	*(t->held ? &t->unwatched_ns : &t->asked_watched_ns) += ns;
	if (!t->period || t->ending)
		return;
	t->turns_ns += ns;
	t->looked_ns += t->held ? 0 : ns;
}

static void hold(struct sock_turns *t, struct collect *c, bool on)
{
	account(t);
	sock_probe_hold(c->sock_probe, on);
	t->held = on;
}

/* What messages would take of a CPU if all were watched, in percent: of the busiest. */
static struct governor_load load_since(struct sock_turns *t, const struct collect *c)
{
	struct governor_load r = {.length_ns = t->counted_ns - t->asked_ns};
	double watched = t->asked_watched_ns ? MESSAGE_NS * 100 / (double)t->asked_watched_ns : 0;
	uint64_t *swap = t->before;

	sock_probe_runs(c->sock_probe, t->now);
	for (uint32_t i = 0; i < t->ncpu; i++) {
		double pct = (double)(t->now[i] - t->before[i]) * watched;

		r.pct = pct > r.pct ? pct : r.pct;
	}
	t->before = t->now;
	t->now = swap;
	t->asked_ns = t->counted_ns;
	t->asked_watched_ns = 0;
	return r;
}

static int turns_begin(struct sock_turns *t, struct collect *c, struct err *e)
{
	int rc = t->period ? 0 : sock_probe_turns(c->sock_probe, true, e);

	if (rc) {
		governor_init(&t->governor, t->governor.max_pct);
		return rc;
	}
	t->periods++;
	t->period = true;
	t->ending = false;
	/* A look at once, so that it is known from the start who uses what. */
	t->look_ns = t->counted_ns;
	t->looks++;
	return 0;
}

static int ask(struct sock_turns *t, struct collect *c, struct err *e)
{
	struct governor_load load = load_since(t, c);
	enum governor_change change = governor_step(&t->governor, &load);
	int rc = 0;

	t->most_pct = load.pct > t->most_pct ? load.pct : t->most_pct;
	t->excess = governor_excess(&t->governor, &load);
	if (change == GOVERNOR_TURNS_BEGIN)
		rc = turns_begin(t, c, e);
	else if (change == GOVERNOR_TURNS_END)
		t->ending = true;
	if (!t->governor.in_turns)
		t->due_ns = t->counted_ns + GOVERNOR_CHECK_NS;
	else if (change == GOVERNOR_TURNS_BEGIN)
		t->due_ns = t->counted_ns + governor_look_ns(t->excess);
	return rc;
}

uint64_t sock_turns_due_ns(const struct collect *c)
{
	return c->sock_turns ? c->sock_turns->due_ns : UINT64_MAX;
}

int sock_turns_do(struct collect *c, struct err *e)
{
	struct sock_turns *t = c->sock_turns;
	uint64_t now = clock_mono_ns();
	int rc;

	if (!t || now < t->due_ns)
		return 0;
	if (t->governor.in_turns && !t->look_ns) {
		hold(t, c, false);
		t->look_ns = now;
		t->looks++;
		t->due_ns = now + governor_look_ns(t->excess);
		return 0;
	}
	account(t);
	if (t->look_ns)
		t->due_ns = t->counted_ns + governor_gap_ns(&t->governor, t->excess, t->counted_ns - t->look_ns);
	t->look_ns = 0;
	rc = ask(t, c, e);
	if (t->governor.in_turns && !t->look_ns)
		hold(t, c, true);
	return rc;
}

static struct spliced *spliced_of(struct sock_turns *t, uint64_t sk_id)
{
	uint32_t i = idmap_get(&t->by_id, sk_id, 0);

	return i == IDMAP_NONE ? NULL : &t->spliced.v[i];
}

void sock_turns_add(struct sock_turns *t, const struct sock_sample *s)
{
	struct spliced *p = s->what == SOCK_TOTAL && s->dir == SOCK_RECEIVED ? spliced_of(t, s->v.sock.sk_id) : NULL;
	struct sock_sample rest = *s;

	if (p) {
		uint64_t told = p->owed < s->v.bytes ? p->owed : s->v.bytes;

		p->total = true;
		p->owed -= told;
		rest.v.bytes -= told;
	}
	/* What had moved before was told of then. */
	if (s->what == SOCK_TOTAL && rest.v.first_ns < t->read_ns)
		rest.v.first_ns = t->read_ns < rest.v.last_ns ? t->read_ns : rest.v.last_ns;
	if (rest.what != SOCK_TOTAL || rest.v.bytes)
		sock_spread_add(&t->spread, &rest);
}

bool sock_turns_splice(struct sock_turns *t, const struct sock_facts *s, uint64_t bytes)
{
	struct spliced *p;

	if (!t || !t->governor.max_pct || s->proto != SOCK_PROTO_TCP)
		return false;
	p = spliced_of(t, s->sk_id);
	if (!p && t->spliced.n < SPLICED_MOST) {
		idmap_put(&t->by_id, s->sk_id, 0, (uint32_t)t->spliced.n);
		p = vec_add(&t->spliced);
	}
	if (!p)
		return false;
	p->total |= t->period;
	if (p->total)
		return true;
	p->owed += bytes;
	return false;
}

void sock_turns_unknown(struct sock_turns *t, uint64_t bytes)
{
	t->unknown_bytes += bytes;
}

struct telling {
	struct sock_turns *t;
	int (*cb)(void *ctx, const struct sock_sample *s);
	void *ctx;
};

static int on_settled(void *ctx, const struct sock_sample *s)
{
	struct telling *x = ctx;

	x->t->estimated_bytes += s->estimated_bytes;
	return x->cb(x->ctx, s);
}

int sock_turns_settle(struct collect *c, int (*cb)(void *ctx, const struct sock_sample *s), void *ctx, struct err *e)
{
	struct sock_turns *t = c->sock_turns;
	struct telling x = {t, cb, ctx};
	int rc;

	if (!t || !t->governor.max_pct)
		return 0;
	account(t);
	rc = sock_spread_settle(&t->spread, t->unwatched_ns > 0, on_settled, &x);
	t->unwatched_ns = 0;
	t->read_ns = clock_boot_ns();
	if (!t->ending)
		return rc;
	t->period = t->ending = false;
	return rc ?: sock_probe_turns(c->sock_probe, false, e);
}

void sock_turns_describe(const struct collect *c, struct graph *g)
{
	const struct sock_turns *t = c->sock_turns;
	char text[700];

	if (!t || !t->periods)
		return;
	graph_add_loss(g, "collector sock", "unwatched_bytes_of_unknown_process", t->unknown_bytes);
	snprintf(text, sizeof(text),
		 "to see every message of TCP would have taken up to %.2f %% of a CPU, more than their part of "
		 "--max-overhead allows (%g %%): for %.1f s they were watched in turns, %llu looks in %.1f %% of that time; "
		 "what each connection carried in each direction is exact, as the kernel counts it; which threads moved it, "
		 "and in how many messages, is as in the looks (estimated_bytes, %.0f MB); times of what no look saw are "
		 "those of readings; other sockets were watched all the time",
		 t->most_pct, t->governor.max_pct, (double)t->turns_ns / 1e9, (unsigned long long)t->looks,
		 t->turns_ns ? (double)t->looked_ns * 100 / (double)t->turns_ns : 0, (double)t->estimated_bytes / 1e6);
	graph_add_status(g, "overhead of sockets", "reduced", "in turns", text);
}
