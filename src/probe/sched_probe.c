/* Turns the totals that the sched programs keep of each thread into differences by reading. */
#include "sched_probe.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "caps.h"
#include "ladder.h"
#include "mem.h"
#include "sched.skel.h"
#include "vec.h"

static const struct hook_def hooks[] = {
	{"switch", "CPU time of threads", true,
	 {{"tp_btf", {"switch_btf"}}, {"raw_tp", {"switch_raw"}}}},
	{"waking", "run-queue delay of woken threads", false,
	 {{"tp_btf", {"waking_btf"}}, {"raw_tp", {"waking_raw"}}}},
	{"wakeup_new", "run-queue delay of new threads", false,
	 {{"tp_btf", {"wakeup_new_btf"}}, {"raw_tp", {"wakeup_new_raw"}}}},
	{"read", NULL, false, {{"iter", {"read_tasks"}}}},
};

struct cpu_share {
	uint32_t cpu;
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
	struct swap_map cpu_time;
	struct ring_buffer *ring;
	struct sched__bss *bss; /* shared with the programs */
	bool storage;
	uint32_t max_tasks, ncpu;
	uint64_t read_ns; /* CLOCK_MONOTONIC of the last reading */
	uint64_t ring_full;
	VEC(struct entry) entries;
	VEC(uint32_t) index; /* open addressing over entries: number + 1, 0: free */
	VEC(struct sched_cpu_time) out;
	VEC(uint64_t) slots; /* read_slots() */
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
}

static int on_exit_record(void *ctx, void *data, size_t size)
{
	if (size >= sizeof(struct sched_totals))
		take_totals(ctx, data);
	return 0;
}

static int read_iterator(struct sched_probe *p, struct err *e)
{
	struct sched_totals buf[256];
	const struct bpf_link *link = ladder_link(&p->ladder, "read");
	ssize_t n;
	int fd;

	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return err_set(e, -errno, "iterator over tasks");
	for (;;) {
		size_t have = 0;

		/* A read may end anywhere: whole records are put together here. */
		do {
			n = read(fd, (char *)buf + have, sizeof(buf) - have);
			have += n > 0 ? (size_t)n : 0;
		} while ((n > 0 && have < sizeof(buf)) || (n < 0 && (errno == EINTR || errno == EAGAIN)));
		if (n < 0)
			break;
		for (size_t i = 0; i < have / sizeof(*buf); i++)
			take_totals(p, &buf[i]);
		if (!n)
			break;
	}
	if (n < 0)
		err_set(e, n = -errno, "iterator over tasks");
	close(fd);
	return (int)n;
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

static int read_hash(struct sched_probe *p)
{
	int fd = ladder_map_fd(&p->ladder, "tid_states");
	uint32_t key, *prev = NULL;
	struct state {
		struct sched_totals t;
		uint64_t on_since, waiting_since, out_ns, changes, reported;
		uint32_t dead, pad;
	} s;

	read_slots(p);
	for (; !bpf_map_get_next_key(fd, prev, &key); prev = &key) {
		uint64_t now = monotonic_ns();

		if (bpf_map_lookup_elem(fd, &key, &s) || s.dead)
			continue;
		if (holds_cpu(p, s.t.cpu, s.on_since) && now > s.on_since) {
			s.t.run_ns += now - s.on_since;
			s.t.streak_ns += now - s.on_since;
			s.t.flags |= SCHED_RUNNING;
		}
		take_totals(p, &s.t);
	}
	return 0;
}

static int cpu_order(const void *a, const void *b)
{
	const struct sched_cpu_time *x = a, *y = b;

	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static void entry_cpus(struct sched_probe *p, struct entry *en)
{
	vec_clear(&p->out);
	if (en->now.cpu < p->ncpu)
		share_of(en, en->now.cpu);
	vec_for(&en->cpus, s) {
		uint64_t ns = s->flushed_ns + (s->cpu == en->now.cpu ? en->now.streak_ns : 0);
		struct sched_cpu_time t = {.cpu = s->cpu};

		if (ns <= s->reported_ns)
			continue;
		t.run_ns = ns - s->reported_ns;
		s->reported_ns = ns;
		vec_push(&p->out, t);
	}
	if (p->out.n > 1)
		qsort(p->out.v, p->out.n, sizeof(*p->out.v), cpu_order);
}

static int entry_report(struct sched_probe *p, struct entry *en,
			int (*cb)(void *ctx, const struct sched_sample *s), void *ctx)
{
	const struct sched_totals *n = &en->now, *b = &en->before;
	struct sched_sample s = {
		.task = n->id,
		.run_ns = n->run_ns - b->run_ns,
		.runq_ns = n->runq_ns - b->runq_ns,
		.voluntary = n->voluntary - b->voluntary,
		.involuntary = n->involuntary - b->involuntary,
		.migrations = n->migrations - b->migrations,
		.wakeups = n->wakeups - b->wakeups,
		.cpu = n->cpu,
		.flags = n->flags,
	};

	if (!n->id.tgid) /* its totals were lost or come with the next reading */
		return 0;
	entry_cpus(p, en);
	memcpy(s.comm, n->comm, TASK_COMM_BYTES);
	s.cpus = p->out.v;
	s.ncpus = p->out.n;
	en->before = en->now;
	if (!s.run_ns && !s.runq_ns && !s.voluntary && !s.involuntary && !s.ncpus &&
	    !(s.flags & SCHED_EXITED))
		return 0;
	return cb(ctx, &s);
}

static void entries_prune(struct sched_probe *p, bool complete)
{
	size_t kept = 0;

	vec_for(&p->entries, en) {
		bool gone = en->ended || (complete && !en->seen);

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

int sched_probe_read(struct sched_probe *p, int (*cb)(void *ctx, const struct sched_sample *s),
		     void *ctx, uint64_t *ret_window_ns, struct err *e)
{
	struct probe_health health;
	bool complete;
	uint64_t now;
	int rc;

	/* Records of exits were lost: a full list tells which threads are gone. */
	ladder_health(&p->ladder, &health);
	complete = health.ring_full != p->ring_full || !p->storage;
	p->ring_full = health.ring_full;
	__atomic_store_n(&p->bss->report_all, complete, __ATOMIC_RELEASE);
	/* The map first: what moves later is missing in this reading, never counted twice. */
	rc = swap_map_drain(&p->cpu_time, on_cpu_time, p, e);
	if (rc)
		return rc;
	now = monotonic_ns();
	rc = p->storage ? read_iterator(p, e) : read_hash(p);
	if (rc)
		return rc;
	ring_buffer__consume(p->ring);
	if (ret_window_ns)
		*ret_window_ns = now - p->read_ns;
	p->read_ns = now;
	vec_for(&p->entries, en) {
		if (!rc && en->touched && (!en->ended || en->cpus.n))
			rc = entry_report(p, en, cb, ctx);
	}
	entries_prune(p, complete);
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

static void size_map(struct bpf_object *obj, const char *name, uint32_t n)
{
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, name), n);
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
	r->ncpu = p->ncpu;
	if (!p->storage)
		bpf_map__set_autocreate(bpf_object__find_map_by_name(obj, "task_states"), false);
	size_map(obj, "tid_states", p->storage ? 1 : p->max_tasks);
	size_map(obj, "cpu_slots", p->ncpu);
	size_map(obj, "cpu_time_0", p->max_tasks * 4);
	size_map(obj, "cpu_time_1", p->max_tasks * 4);
	size_map(obj, "exits", 1 << 20);
	return 0;
}

int sched_probe_open(struct sched_probe **ret, const struct probe_options *o, struct err *e)
{
	struct sched_probe *p = mem_alloc(sizeof(*p));
	const void *elf;
	size_t size;
	int rc;

	p->max_tasks = probe_max_tasks(o);
	p->ncpu = (uint32_t)libbpf_num_possible_cpus();
	index_rebuild(p);
	elf = sched__elf_bytes(&size);
	ladder_init(&p->ladder, "sched", hooks, sizeof(hooks) / sizeof(*hooks), o);
	rc = ladder_load(&p->ladder, elf, size, prepare, p, e);
	if (!rc)
		rc = swap_map_init(&p->cpu_time, &p->ladder, "cpu_time", "cpu_time_0", "cpu_time_1",
				   e);
	if (!rc) {
		p->ring = ring_buffer__new(ladder_map_fd(&p->ladder, "exits"), on_exit_record, p,
					   NULL);
		if (!p->ring)
			rc = err_set(e, -errno, "ring buffer of probe 'sched'");
	}
	if (!rc)
		rc = ladder_globals(&p->ladder, "sched.bss", (void **)&p->bss, e);
	if (rc) {
		sched_probe_close(p);
		return rc;
	}
	p->read_ns = monotonic_ns();
	__atomic_store_n(&p->bss->started_ns, p->read_ns, __ATOMIC_RELEASE);
	*ret = p;
	return 0;
}

void sched_probe_close(struct sched_probe *p)
{
	if (!p)
		return;
	ring_buffer__free(p->ring);
	ladder_globals_done(p->bss);
	swap_map_done(&p->cpu_time);
	ladder_done(&p->ladder);
	vec_for(&p->entries, en)
		vec_done(&en->cpus);
	vec_done(&p->entries);
	vec_done(&p->index);
	vec_done(&p->out);
	vec_done(&p->slots);
	free(p);
}

void sched_probe_health(struct sched_probe *p, struct probe_health *ret)
{
	ladder_health(&p->ladder, ret);
	if (!p->storage)
		ret->notes[ret->nnotes++] =
			"a thread that was on its CPU before the probe started and has not left it is "
			"not seen until it does";
}
