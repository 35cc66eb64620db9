/* Turns the totals that the sched programs keep of each thread into differences by reading. */
#include "sched_probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "caps.h"
#include "cleanup.h"
#include "idmap.h"
#include "ladder.h"
#include "mem.h"
#include "sched.skel.h"
#include "vec.h"
#include "wait_calls.h"
#include "wait_plain.h"
#include "wait_ring.h"
#include "wait_sums.h"

/* Room for sums that threads have turned away from in one interval, and for the newest waits. */
#define WAIT_SUMS_MAX	   8192u
/* Of all CPUs, and of each: the ring is read element by element when a recording ends. */
#define WAIT_SEGMENTS_BYTES (4u << 20)
#define WAIT_SEGMENTS_MOST  16384u
#define RIVAL_LEAST 20u /* who took less than such a part is not told */

static const struct hook_def hooks[] = {
	{"switch", "CPU time of threads", true,
	 {{"tp_btf", {"switch_btf"}}, {"raw_tp", {"switch_raw"}}}},
	{"waking", "run-queue delay of woken threads", false,
	 {{"tp_btf", {"waking_btf"}}, {"raw_tp", {"waking_raw"}}}},
	{"wakeup_new", "run-queue delay of new threads", false,
	 {{"tp_btf", {"wakeup_new_btf"}}, {"raw_tp", {"wakeup_new_raw"}}}},
	{"read", NULL, false, {{"iter", {"read_tasks"}}}},
	/* Last: left out where nothing is counted. */
	{"count", "what hardware counters gained since a thread came to its CPU, until it leaves", false,
	 {{"run", {"count_running"}}}, NULL, true},
};

struct cpu_share {
	uint32_t cpu;
	bool has_counts;
	struct sched_counts counts; /* not handed out yet */
	uint64_t flushed_ns;  /* of finished streaks, since open */
	uint64_t reported_ns; /* handed out, since open */
};

/* One thread between readings. */
struct entry {
	struct sched_totals now, before;
	VEC(struct cpu_share) cpus;
	bool touched; /* something arrived in this reading */
	bool seen;    /* in this reading's list of threads */
	bool ended;   /* its last record was reported: goes after the next reading */
};

struct sched_probe {
	struct ladder ladder;
	struct swap_map cpu_time, wait_sums, counts;
	uint32_t ncounts;	/* events of each CPU, 0: nothing is counted */
	VEC(uint32_t) counted;	/* CPUs with counters */
	struct wait_sums waits;
	struct ring_buffer *ring;
	struct sched__bss *bss; /* shared with the programs */
	bool storage;
	bool has_regs; /* what a thread waits for is known */
	bool has_irq;  /* interrupts can be told from threads */
	bool count_in_hot;
	int64_t count_from_rq;
	bool complete; /* the last reading listed all threads */
	uint32_t max_tasks, ncpu, segments;
	bool counts_refused;
	uint64_t uncounted; /* CPUs that could not be looked at between switches */
	uint64_t read_ns; /* CLOCK_MONOTONIC of the last reading */
	uint64_t ring_full;
	VEC(struct entry) entries;
	VEC(uint32_t) index; /* open addressing over entries: number + 1, 0: free */
	VEC(struct sched_cpu_time) out;
	struct sched_rival_sample rivals[SCHED_RIVALS];
	struct idmap by_tid; /* number of the entry; entries.n: more than one had that id lately */
	VEC(uint64_t) slots; /* read_slots() */
	struct wait_plain plain;
	struct sched_plain plain_all;
};

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t slot_of(const struct sched_probe *p, uint32_t tid, uint64_t start_ns)
{
	uint64_t h = (start_ns ^ (uint64_t)tid << 40) * 0x9e3779b97f4a7c15u;
	size_t mask = p->index.n - 1, i = (h >> 32) & mask;

	while (p->index.v[i]) {
		const struct task_ident *id = &p->entries.v[p->index.v[i] - 1].now.id;

		if (id->tid == tid && id->start_ns == start_ns)
			break;
		i = (i + 1) & mask;
	}
	return i;
}

static void index_rebuild(struct sched_probe *p)
{
	size_t n = 1024;

	while (n < p->entries.n * 3)
		n *= 2;
	vec_reserve(&p->index, n);
	p->index.n = n;
	memset(p->index.v, 0, n * sizeof(*p->index.v));
	for (size_t i = 0; i < p->entries.n; i++) {
		const struct task_ident *id = &p->entries.v[i].now.id;

		p->index.v[slot_of(p, id->tid, id->start_ns)] = (uint32_t)i + 1;
	}
}

static struct entry *entry_of(struct sched_probe *p, uint32_t tid, uint64_t start_ns)
{
	size_t i = slot_of(p, tid, start_ns);
	struct entry *en;

	if (p->index.v[i])
		return &p->entries.v[p->index.v[i] - 1];
	en = vec_add(&p->entries);
	en->now.id.tid = tid;
	en->now.id.start_ns = start_ns;
	en->now.cpu = p->ncpu;
	p->index.v[i] = (uint32_t)p->entries.n;
	if (p->entries.n * 2 > p->index.n)
		index_rebuild(p);
	return en;
}

static struct cpu_share *share_of(struct entry *en, uint32_t cpu)
{
	struct cpu_share *s;

	vec_for(&en->cpus, it)
		if (it->cpu == cpu)
			return it;
	s = vec_add(&en->cpus);
	s->cpu = cpu;
	return s;
}

static int on_cpu_time(void *ctx, const void *key, const void *value)
{
	const struct sched_cpu_key *k = key;
	struct entry *en = entry_of(ctx, k->tid, k->start_ns);
	uint64_t ns;

	memcpy(&ns, value, sizeof(ns));
	share_of(en, k->cpu)->flushed_ns += ns;
	en->touched = true;
	return 0;
}

static int on_counts(void *ctx, const void *key, const void *value)
{
	const struct sched_cpu_key *k = key;
	struct entry *en = entry_of(ctx, k->tid, k->start_ns);
	struct cpu_share *s = share_of(en, k->cpu);
	struct sched_counts c;

	memcpy(&c, value, sizeof(c));
	for (size_t i = 0; i < SCHED_COUNTS; i++) {
		s->counts.v[i].raw += c.v[i].raw;
		s->counts.v[i].enabled_ns += c.v[i].enabled_ns;
		s->counts.v[i].running_ns += c.v[i].running_ns;
	}
	s->has_counts = true;
	en->touched = true;
	return 0;
}

/* A copy taken while the thread was switching may lag one taken before: totals never go back. */
static void take_totals(struct sched_probe *p, const struct sched_totals *t)
{
	struct entry *en = entry_of(p, t->id.tid, t->id.start_ns);

	en->seen = true;
	if (t->run_ns < en->now.run_ns && !(t->flags & SCHED_EXITED))
		return;
	if (en->now.flags & SCHED_EXITED)
		return;
	en->now = *t;
	en->touched = true;
	wait_sums_record(&p->waits, t);
}

static int on_wait_sum(void *ctx, const void *key, const void *value)
{
	struct sched_probe *p = ctx;

	wait_sums_flushed(&p->waits, key, value);
	return 0;
}

static int on_exit_record(void *ctx, void *data, size_t size)
{
	if (size >= sizeof(struct sched_totals))
		take_totals(ctx, data);
	return 0;
}

static int on_totals(void *ctx, const void *record)
{
	take_totals(ctx, record);
	return 0;
}

static int read_iterator(struct sched_probe *p, struct err *e)
{
	struct ladder_records r = {sizeof(struct sched_totals), false, on_totals, p};

	return ladder_iterate(&p->ladder, "read", &r, e);
}

/* When each CPU switched last: that is when the thread that holds it came there. */
static void read_slots(struct sched_probe *p)
{
	int fd = ladder_map_fd(&p->ladder, "cpu_slots");
	uint64_t slot[8]; /* struct cpu_slot */

	vec_clear(&p->slots);
	for (uint32_t i = 0; i < p->ncpu; i++) {
		if (bpf_map_lookup_elem(fd, &i, slot))
			slot[0] = 0;
		vec_push(&p->slots, slot[0]);
	}
}

/* A thread whose switch-out was not traced must not seem to run for ever. */
static bool holds_cpu(const struct sched_probe *p, uint32_t cpu, uint64_t on_since)
{
	return on_since && cpu < p->slots.n && p->slots.v[cpu] == on_since;
}

static uint64_t elapsed(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

/* Adds what is going on, as state_open() of the programs does. */
static void add_open(const struct sched_probe *p, struct sched_state *s, uint64_t now)
{
	uint64_t woken = s->waiting_since;

	s->t.observed_ns = elapsed(s->t.since_ns, now);
	if (s->on_since && !holds_cpu(p, s->t.cpu, s->on_since)) {
		if (p->bss->stopped_ns)
			s->t.blocked_ns += elapsed(s->on_since, now);
		return;
	}
	if (s->on_since) {
		s->t.run_ns += elapsed(s->on_since, now);
		s->t.streak_ns += elapsed(s->on_since, now);
		s->t.flags |= SCHED_RUNNING;
		return;
	}
	if (woken)
		s->t.runq_ns += elapsed(woken, now);
	if (s->out_ns)
		s->t.open_ns = elapsed(s->out_ns, woken ?: now);
	s->t.blocked_ns += s->t.open_ns;
}

static int read_hash(struct sched_probe *p, uint64_t stopped_ns)
{
	int fd = ladder_map_fd(&p->ladder, "tid_states");
	uint32_t key, *prev = NULL;
	struct sched_state s;

	read_slots(p);
	for (; !bpf_map_get_next_key(fd, prev, &key); prev = &key) {
		uint64_t now = stopped_ns ?: monotonic_ns();

		if (bpf_map_lookup_elem(fd, &key, &s) || s.dead || s.unseen)
			continue;
		add_open(p, &s, now);
		take_totals(p, &s.t);
	}
	return 0;
}

static int cpu_order(const void *a, const void *b)
{
	const struct sched_cpu_time *x = a, *y = b;

	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/*
 * Hand out what was counted. An event that found no free counter waits for an interval in which it did:
 * then it is scaled by all of the time.
 */
static void take_counts(struct cpu_share *s, struct sched_cpu_time *ret)
{
	if (!s->has_counts)
		return;
	for (size_t i = 0; i < SCHED_COUNTS; i++) {
		if (!s->counts.v[i].running_ns)
			continue;
		ret->counts.v[i] = s->counts.v[i];
		s->counts.v[i] = (struct sched_count){0};
		ret->has_counts = true;
	}
	s->has_counts = false;
}

/*
 * A CPU that is taken away between its look at the clock and its switch gives the reading of another one more time than
 * the thread had. In all that heals, as the thread goes on, but not on a CPU that it left: the sum here is never more than
 * what it ran.
 */
static void entry_cpus(struct sched_probe *p, struct entry *en)
{
	uint64_t room = en->before.run_ns;

	vec_clear(&p->out);
	if (en->now.cpu < p->ncpu)
		share_of(en, en->now.cpu);
	vec_for(&en->cpus, s)
		room = elapsed(s->reported_ns, room);
	vec_for(&en->cpus, s) {
		uint64_t ns = s->flushed_ns + (s->cpu == en->now.cpu ? en->now.streak_ns : 0);
		struct sched_cpu_time t = {.cpu = s->cpu};

		take_counts(s, &t);
		t.run_ns = elapsed(s->reported_ns, ns);
		t.run_ns = t.run_ns < room ? t.run_ns : room;
		if (!t.run_ns && !t.has_counts)
			continue;
		room -= t.run_ns;
		s->reported_ns += t.run_ns;
		vec_push(&p->out, t);
	}
	if (p->out.n > 1)
		qsort(p->out.v, p->out.n, sizeof(*p->out.v), cpu_order);
}

static uint64_t gain(uint64_t now, __u64 *reported)
{
	uint64_t d = now > *reported ? now - *reported : 0;

	*reported += d;
	return d;
}

static void find_tids(struct sched_probe *p)
{
	idmap_clear(&p->by_tid);
	for (uint32_t i = 0; i < p->entries.n; i++) {
		uint32_t tid = p->entries.v[i].now.id.tid;
		bool taken = idmap_get(&p->by_tid, tid, 0) != IDMAP_NONE;

		idmap_put(&p->by_tid, tid, 0, taken ? (uint32_t)p->entries.n : i);
	}
}

/* Those that took a twentieth of what @s was taken off its CPU; the idle thread is nobody. */
static void entry_rivals(struct sched_probe *p, struct entry *en, struct sched_sample *s)
{
	for (unsigned i = 0; i < SCHED_RIVALS; i++) {
		struct sched_rival *now = &en->now.rivals[i], *before = &en->before.rivals[i];
		bool same = now->tid == before->tid && now->times >= before->times;
		uint64_t times = now->times - (same ? before->times : 0);
		uint32_t at = now->tid ? idmap_get(&p->by_tid, now->tid, 0) : IDMAP_NONE;

		*before = *now;
		if (!times || times * RIVAL_LEAST < s->involuntary || at >= p->entries.n ||
		    !p->entries.v[at].now.id.tgid)
			continue;
		p->rivals[s->nrivals++] = (struct sched_rival_sample){
			.task = p->entries.v[at].now.id, .comm = p->entries.v[at].now.comm, .times = times};
	}
	s->rivals = p->rivals;
}

static int entry_report(struct sched_probe *p, struct entry *en,
			int (*cb)(void *ctx, const struct sched_sample *s), void *ctx)
{
	const struct sched_totals *n = &en->now;
	struct sched_totals *b = &en->before;
	struct sched_sample s = {
		.task = n->id,
		.run_ns = gain(n->run_ns, &b->run_ns),
		.runq_ns = gain(n->runq_ns, &b->runq_ns),
		.blocked_ns = gain(n->blocked_ns, &b->blocked_ns),
		.observed_ns = gain(n->observed_ns, &b->observed_ns),
		.voluntary = gain(n->voluntary, &b->voluntary),
		.involuntary = gain(n->involuntary, &b->involuntary),
		.migrations = gain(n->migrations, &b->migrations),
		.wakeups = gain(n->wakeups, &b->wakeups),
		.cpu = n->cpu,
		.flags = n->flags,
		.has_usage = n->flags & SCHED_USAGE,
		.has_rank = n->flags & SCHED_RANK,
		.rank = n->rank,
	};

	if (!n->id.tgid) /* its totals were lost or come with the next reading */
		return 0;
	if (s.has_usage) {
		s.usage.user_ns = gain(n->usage.user_ns, &b->usage.user_ns);
		s.usage.system_ns = gain(n->usage.system_ns, &b->usage.system_ns);
		s.usage.minor_faults = gain(n->usage.minor_faults, &b->usage.minor_faults);
		s.usage.major_faults = gain(n->usage.major_faults, &b->usage.major_faults);
		s.usage.called_read_bytes = gain(n->usage.called_read_bytes, &b->usage.called_read_bytes);
		s.usage.called_write_bytes = gain(n->usage.called_write_bytes, &b->usage.called_write_bytes);
		s.usage.storage_read_bytes = gain(n->usage.storage_read_bytes, &b->usage.storage_read_bytes);
		s.usage.storage_write_bytes = gain(n->usage.storage_write_bytes, &b->usage.storage_write_bytes);
		s.usage.cancelled_write_bytes =
			gain(n->usage.cancelled_write_bytes, &b->usage.cancelled_write_bytes);
	}
	entry_cpus(p, en);
	entry_rivals(p, en, &s);
	memcpy(s.comm, n->comm, TASK_COMM_BYTES);
	s.cpus = p->out.v;
	s.ncpus = p->out.n;
	if (!s.run_ns && !s.runq_ns && !s.blocked_ns && !s.voluntary && !s.involuntary &&
	    !s.ncpus && !(s.flags & SCHED_EXITED))
		return 0;
	return cb(ctx, &s);
}

const struct task_ident *sched_probe_find(const struct sched_probe *p, uint32_t tid,
					  uint64_t start_ns)
{
	uint32_t i = p->index.v[slot_of(p, tid, start_ns)];
	const struct task_ident *id = i ? &p->entries.v[i - 1].now.id : NULL;

	return id && id->tgid ? id : NULL;
}

static const struct task_ident *find_task(void *ctx, uint32_t tid, uint64_t start_ns)
{
	return sched_probe_find(ctx, tid, start_ns);
}

const struct task_ident *sched_probe_task(const struct sched_probe *p, uint32_t tid)
{
	uint32_t i = idmap_get(&p->by_tid, tid, 0);
	const struct task_ident *ended = NULL;

	if (i == IDMAP_NONE)
		return NULL;
	if (i < p->entries.n)
		return p->entries.v[i].now.id.tgid ? &p->entries.v[i].now.id : NULL;
	/* More than one had it. */
	vec_for(&p->entries, en) {
		if (en->now.id.tid != tid || !en->now.id.tgid)
			continue;
		if (!(en->now.flags & SCHED_EXITED))
			return &en->now.id;
		if (!ended || en->now.id.start_ns > ended->start_ns)
			ended = &en->now.id;
	}
	return ended;
}

/* Waits that found no room in the map are waits of the thread nevertheless. */
static int report_lost(struct entry *en, int (*cb)(void *ctx, const struct wait_sample *s),
		       void *ctx)
{
	struct wait_sample s = {.task = en->now.id, .on = {.kind = WAIT_ON_LOST}};

	s.waits = gain(en->now.lost_waits, &en->before.lost_waits);
	s.waited_ns = gain(en->now.lost_ns, &en->before.lost_ns);
	return s.waits || s.waited_ns ? cb(ctx, &s) : 0;
}

static void add_plain(struct sched_probe *p, struct entry *en)
{
	struct sched_plain more = {.waits = gain(en->now.plain_waits, &en->before.plain_waits),
				   .ns = gain(en->now.plain_ns, &en->before.plain_ns)};

	if (!en->now.id.tgid || !more.waits)
		return;
	p->plain_all.waits += more.waits;
	p->plain_all.ns += more.ns;
	wait_plain_thread(&p->plain, &en->now.id, more.waits, more.ns);
}

int sched_probe_limit(struct sched_probe *p, uint32_t most)
{
	if (!p->storage)
		return -ENOTSUP;
	__atomic_store_n(&p->bss->detail_most, most, __ATOMIC_RELAXED);
	return 0;
}

int sched_probe_watch_wakings(struct sched_probe *p, bool on, struct err *e)
{
	bool *unwatched = &p->bss->wakings_unwatched;
	int rc;

	if (on == !*unwatched)
		return 0;
	if (!on && (!p->storage || !p->bss->queue_clock))
		return err_msg(e, -ENOTSUP, "this kernel does not tell when threads were woken");
	if (!on) {
		__atomic_store_n(unwatched, true, __ATOMIC_RELAXED);
		p->plain.unwatched = true;
	}
	rc = ladder_switch(&p->ladder, "waking", on, e);
	if (on && !rc)
		__atomic_store_n(unwatched, false, __ATOMIC_RELAXED);
	return rc;
}

struct sched_plain sched_probe_plain(const struct sched_probe *p)
{
	return p->plain_all;
}

void sched_probe_switches(const struct sched_probe *p, uint64_t *ret, size_t step, uint32_t n)
{
	int fd = ladder_map_fd(&p->ladder, "cpu_slots");
	uint64_t slot[8]; /* struct cpu_slot */

	for (uint32_t i = 0; i < n && i < p->ncpu; i++)
		*(uint64_t *)((char *)ret + i * step) = bpf_map_lookup_elem(fd, &i, slot) ? 0 : slot[5];
}

int sched_probe_waits(struct sched_probe *p, int (*cb)(void *ctx, const struct wait_sample *s),
		      void *ctx)
{
	struct wait_names names = {.find = find_task, .ctx = p, .complete = p->complete};
	int rc;

	vec_for(&p->entries, en)
		add_plain(p, en);
	if (p->plain.threads.n || p->plain.unwatched)
		rc = wait_sums_report(&p->waits, &names, wait_plain_sample, &p->plain) ?:
		     wait_plain_report(&p->plain, cb, ctx);
	else
		rc = wait_sums_report(&p->waits, &names, cb, ctx);
	p->plain.unwatched = p->bss->wakings_unwatched;
	vec_for(&p->entries, en)
		rc = rc ?: report_lost(en, cb, ctx);
	return rc;
}

int sched_probe_segments(struct sched_probe *p, int (*cb)(void *ctx, const struct wait_segment *s),
			 void *ctx, uint64_t *ret_from_ns, struct err *e)
{
	return wait_ring_read(&p->ladder, p->ncpu, p->segments, cb, ctx, ret_from_ns, e);
}

static void entries_prune(struct sched_probe *p)
{
	size_t kept = 0;

	vec_for(&p->entries, en) {
		bool gone = en->ended || (p->complete && !en->seen);

		en->ended = (en->now.flags & SCHED_EXITED) != 0;
		en->touched = en->seen = false;
		if (gone)
			vec_done(&en->cpus);
		else
			p->entries.v[kept++] = *en;
	}
	if (kept == p->entries.n)
		return;
	p->entries.n = kept;
	index_rebuild(p);
}

/* Both maps first: what moves later is missing in this reading, never counted twice. */
static int drain_maps(struct sched_probe *p, struct err *e)
{
	int rc = swap_map_drain(&p->cpu_time, on_cpu_time, p, e);

	if (!rc && p->ncounts)
		rc = swap_map_drain(&p->counts, on_counts, p, e);
	return rc ?: swap_map_drain(&p->wait_sums, on_wait_sum, p, e);
}

/*
 * Where each CPU's counters are by now, for whoever is on it. Kernels before 5.10 (1b4d60ec162f) cannot be
 * told on which CPU to run it.
 */
static void count_running(struct sched_probe *p)
{
	int fd = p->ncounts ? ladder_prog_fd(&p->ladder, "count") : -1;

	for (size_t i = 0; fd >= 0 && i < p->counted.n; i++) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = p->counted.v[i]);

		p->uncounted += bpf_prog_test_run_opts(fd, &o) != 0;
	}
}

/*
 * @return the time after which nothing counts. Between a look at the clock and what the programs see of it may be long,
 * on a busy host: they stop at the first, and the second is no earlier than what they have counted till then.
 */
static uint64_t stop(struct sched_probe *p)
{
	uint64_t now;

	__atomic_store_n(&p->bss->stopped_ns, monotonic_ns(), __ATOMIC_SEQ_CST);
	now = monotonic_ns();
	__atomic_store_n(&p->bss->stopped_ns, now, __ATOMIC_SEQ_CST);
	return now;
}

int sched_probe_read(struct sched_probe *p, bool last,
		     int (*cb)(void *ctx, const struct sched_sample *s), void *ctx,
		     uint64_t *ret_window_ns, struct err *e)
{
	struct probe_health health;
	uint64_t now, stopped = 0;
	int rc;

	count_running(p);
	/* What ended meanwhile could be named until now. */
	entries_prune(p);
	/* Records of exits were lost: a full list tells which threads are gone. */
	ladder_health(&p->ladder, &health);
	p->complete = last || health.ring_full != p->ring_full || !p->storage;
	p->ring_full = health.ring_full;
	__atomic_store_n(&p->bss->report_all, p->complete, __ATOMIC_RELEASE);
	if (last)
		stopped = stop(p);
	rc = drain_maps(p, e);
	if (rc)
		return rc;
	now = stopped ?: monotonic_ns();
	rc = p->storage ? read_iterator(p, e) : read_hash(p, stopped);
	if (rc)
		return rc;
	ring_buffer__consume(p->ring);
	if (ret_window_ns)
		*ret_window_ns = now - p->read_ns;
	p->read_ns = now;
	find_tids(p);
	vec_for(&p->entries, en) {
		if (!rc && en->touched && (!en->ended || en->cpus.n))
			rc = entry_report(p, en, cb, ctx);
	}
	return rc;
}

/* The third argument after the context, prev_state, came with v5.18 (fa2c3254d7cf). */
static bool switch_has_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	bool has = false;
	int id;

	if (!btf)
		return false;
	id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	has = t && btf_is_func_proto(t) && btf_vlen(t) >= 5;
	btf__free(btf);
	return has;
}

/* A kernel without CONFIG_SCHED_INFO, or with it switched off, says "0 0 0" even of who runs. */
static bool scheduler_notes_queueing(void)
{
	CLEANUP_FCLOSE FILE *f = fopen("/proc/self/schedstat", "re");
	unsigned long long times = 0;

	return f && fscanf(f, "%*u %*u %llu", &times) == 1 && times > 0;
}

/* Offset of a variable of each CPU in their section, or -1. */
static int64_t percpu_offset(const struct btf *btf, const char *name)
{
	int section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *t = section > 0 ? btf__type_by_id(btf, (unsigned)section) : NULL;
	const struct btf_var_secinfo *v = t ? btf_var_secinfos(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name))
			return v[i].offset;
	}
	return -1;
}

/* Where the kernel keeps what tells an interrupt from a thread; see wait.bpf.h. */
static void find_preempt_count(struct sched_probe *p)
{
#ifdef __x86_64__
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t queue, count;

	if (!btf)
		return;
	queue = percpu_offset(btf, "runqueues");
	count = percpu_offset(btf, "__preempt_count");
	p->count_in_hot = count < 0;
	if (count < 0)
		count = percpu_offset(btf, "pcpu_hot");
	if (queue >= 0 && count >= 0)
		p->count_from_rq = count - queue;
	p->has_irq = p->count_from_rq != 0;
	btf__free(btf);
#else
	p->has_irq = true;
#endif
}

static void size_map(struct bpf_object *obj, const char *name, uint32_t n)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, name), n);
}

/* Maps that nothing uses are not made. */
static void prepare_counts(struct sched_probe *p, struct bpf_object *obj, struct sched__rodata *r)
{
	static const char *const maps[] = {"events", "counts_before", "counts_0", "counts_1", "counts"};

	r->count_events = p->ncounts;
	for (size_t i = 0; !p->ncounts && i < sizeof(maps) / sizeof(maps[0]); i++)
		bpf_map__set_autocreate(bpf_object__find_map_by_name(obj, maps[i]), false);
	if (!p->ncounts)
		return;
	size_map(obj, "events", p->ncpu * SCHED_COUNTS);
	size_map(obj, "counts_0", p->max_tasks * 4);
	size_map(obj, "counts_1", p->max_tasks * 4);
}

static int prepare(void *ctx, struct bpf_object *obj, const struct ladder *l, struct err *e)
{
	struct sched_probe *p = ctx;
	struct bpf_map *rodata = bpf_object__find_map_by_name(obj, "sched.rodata");
	struct sched__rodata *r = (void *)bpf_map__initial_value(rodata, &(size_t){0});

	p->storage = !strcmp(ladder_rung(l, "switch"), "tp_btf") &&
		     !strcmp(ladder_rung(l, "read"), "iter") && cap_has("task_storage") &&
		     !probe_refused(l->options, l->probe, "task_storage");
	r->use_storage = p->storage;
	r->switch_has_state = switch_has_state();
	r->use_queue_clock = scheduler_notes_queueing() &&
			     !probe_refused(l->options, l->probe, "queue_clock");
	r->has_waking = strcmp(ladder_rung(l, "waking"), "none") != 0;
	p->has_regs = cap_has("task_pt_regs") &&
		      !probe_refused(l->options, l->probe, "task_pt_regs");
	r->use_regs = p->has_regs;
	r->segments_per_cpu = p->segments;
#ifdef __x86_64__
	r->count_from_rq = p->count_from_rq;
	r->count_in_hot = p->count_in_hot;
#endif
	wait_calls_fill((unsigned char *)r->wait_calls);
	r->ncpu = p->ncpu;
	if (!p->storage)
		bpf_map__set_autocreate(bpf_object__find_map_by_name(obj, "task_states"), false);
	size_map(obj, "tid_states", p->storage ? 1 : p->max_tasks);
	size_map(obj, "cpu_slots", p->ncpu);
	size_map(obj, "cpu_time_0", p->max_tasks * 4);
	size_map(obj, "cpu_time_1", p->max_tasks * 4);
	size_map(obj, "wait_sums_0", WAIT_SUMS_MAX);
	size_map(obj, "wait_sums_1", WAIT_SUMS_MAX);
	size_map(obj, "wait_segments", p->ncpu * p->segments);
	size_map(obj, "exits", 1 << 20);
	prepare_counts(p, obj, r);
	return 0;
}

static int open_object(struct sched_probe *p, const struct probe_options *o, struct err *e)
{
	size_t size, nhooks = sizeof(hooks) / sizeof(*hooks) - (p->ncounts ? 0 : 1);
	const void *elf = sched__elf_bytes(&size);

	ladder_init(&p->ladder, "sched", hooks, nhooks, o);
	return ladder_load(&p->ladder, elf, size, prepare, p, e);
}

int sched_probe_open(struct sched_probe **ret, const struct probe_options *o, struct err *e)
{
	struct sched_probe *p = mem_alloc(sizeof(*p));
	int rc;

	p->max_tasks = probe_max_tasks(o);
	p->ncpu = (uint32_t)libbpf_num_possible_cpus();
	p->ncounts = o && o->count_events < SCHED_COUNTS ? o->count_events : o ? SCHED_COUNTS : 0;
	p->segments = 1;
	while (p->segments < WAIT_SEGMENTS_MOST &&
	       p->segments * 2 * p->ncpu * sizeof(struct wait_segment) <= WAIT_SEGMENTS_BYTES)
		p->segments *= 2;
	find_preempt_count(p);
	index_rebuild(p);
	rc = open_object(p, o, e);
	/* Better without counters than not at all. */
	if (rc && p->ncounts) {
		p->ncounts = 0;
		p->counts_refused = true;
		rc = open_object(p, o, e);
	}
	if (!rc)
		rc = swap_map_init(&p->cpu_time, &p->ladder, "cpu_time", "cpu_time_0", "cpu_time_1",
				   e);
	if (!rc)
		rc = swap_map_init(&p->wait_sums, &p->ladder, "wait_sums", "wait_sums_0",
				   "wait_sums_1", e);
	if (!rc && p->ncounts)
		rc = swap_map_init(&p->counts, &p->ladder, "counts", "counts_0", "counts_1", e);
	rc = rc ?: ladder_ring(&p->ladder, "exits", on_exit_record, p, &p->ring, e);
	if (!rc)
		rc = ladder_globals(&p->ladder, "sched.bss", (void **)&p->bss, e);
	if (rc) {
		sched_probe_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

int sched_probe_count(struct sched_probe *p, uint32_t cpu, uint32_t event, int fd, struct err *e)
{
	uint32_t key = cpu * SCHED_COUNTS + event;
	bool known = false;

	if (event >= p->ncounts || cpu >= p->ncpu)
		return err_msg(e, -EINVAL, "event %u of CPU %u is not counted", event, cpu);
	if (bpf_map_update_elem(ladder_map_fd(&p->ladder, "events"), &key, &fd, BPF_ANY))
		return err_set(e, -errno, "count event %u of CPU %u for threads", event, cpu);
	vec_for(&p->counted, it)
		known |= *it == cpu;
	if (!known)
		vec_push(&p->counted, cpu);
	return 0;
}

void sched_probe_start(struct sched_probe *p)
{
	count_running(p);
	p->read_ns = monotonic_ns();
	__atomic_store_n(&p->bss->started_ns, p->read_ns, __ATOMIC_RELEASE);
}

uint64_t sched_probe_read_ns(const struct sched_probe *p)
{
	return p->read_ns;
}

void sched_probe_close(struct sched_probe *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	ladder_globals_done(p->bss);
	swap_map_done(&p->cpu_time);
	swap_map_done(&p->wait_sums);
	swap_map_done(&p->counts);
	vec_done(&p->counted);
	wait_sums_done(&p->waits);
	wait_plain_done(&p->plain);
	ladder_done(&p->ladder);
	vec_for(&p->entries, en)
		vec_done(&en->cpus);
	vec_done(&p->entries);
	vec_done(&p->index);
	idmap_done(&p->by_tid);
	vec_done(&p->out);
	vec_done(&p->slots);
	free(p);
}

void sched_probe_health(struct sched_probe *p, struct probe_health *ret)
{
	ladder_health(&p->ladder, ret);
	if (!p->storage)
		ret->notes[ret->nnotes++] =
			"a thread that was on its CPU before the probe started and has not left it "
			"is "
			"not seen until it does; nor is one that has waited since before";
	if (p->counts_refused)
		ret->notes[ret->nnotes++] = "hardware counters are known by NUMA node only: the kernel lets no program read them";
	if (p->uncounted)
		ret->notes[ret->nnotes++] = "hardware counters of a thread that stays on its CPU are known once it leaves";
	if (!p->has_regs)
		ret->notes[ret->nnotes++] = "what a thread waits for is not known, only how long";
	if (!p->has_irq)
		ret->notes[ret->nnotes++] = "who ends a wait is not known: the kernel does not say "
					    "what is an interrupt";
}
