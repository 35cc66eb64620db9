// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* CPU time, run-queue delay and switches by thread, kept where the scheduler switches. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "counts.bpf.h"
#include "health.bpf.h"
#include "sched_abi.h"
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load: what the kernel allows. Branches not taken are removed by the verifier. */
const volatile bool use_storage = true;
const volatile bool switch_has_state = true; /* 4th argument, since v5.18 (fa2c3254d7cf) */
const volatile bool has_waking = true; /* sched_waking is attached */
const volatile bool use_queue_clock = true; /* the scheduler notes when threads are queued */
const volatile __u32 ncpu = 1;
const volatile __u32 segments_per_cpu = 1; /* a power of two */

__u64 started_ns = 0; /* set by user space once all is attached; nothing counts before */
__u64 stopped_ns = 0; /* set for the last reading: nothing counts after */
/*
 * How often in about a millisecond it is looked at what a thread waits for, 0: always. Beyond that, waits shorter
 * than WAIT_SEGMENT_NS count with their time only.
 */
__u32 detail_most = 0;
/* The hook of wake-ups is taken away for the moment: all waits but long ones count with their time only. */
bool wakings_unwatched = false;
bool queue_clock = false; /* set by the reading: HAS_QUEUE_CLOCK */
bool report_all = false; /* the next reading also reports what did not change */

#define WOKEN 1 /* in waiting_since */

static const struct sched_state no_state = {};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_state);
} task_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_state);
} tid_states SEC(".maps");

/* When the thread that runs on a CPU came there; a cache line each, so that CPUs do not contend. */
struct cpu_slot {
	u64 since;
	u64 segments; /* kept on this CPU so far */
	u64 lead;     /* of the clock over that of the run queue, as of: */
	u64 checked;  /* by the clock of the run queue */
	u64 seen;     /* what the lead looked like then */
	u64 switches;
	u64 pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_slot);
} cpu_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} exits SEC(".maps");

struct cpu_time_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sched_cpu_key);
	__type(value, u64);
} cpu_time_0 SEC(".maps"), cpu_time_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct cpu_time_map);
} cpu_time SEC(".maps") = {
	.values = {&cpu_time_0},
};

struct wait_sums_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct wait_key);
	__type(value, struct wait_value);
} wait_sums_0 SEC(".maps"), wait_sums_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct wait_sums_map);
} wait_sums SEC(".maps") = {
	.values = {&wait_sums_0},
};

/* The newest waits of some length, a ring for each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_segment);
} wait_segments SEC(".maps");

/* Storage implies tp_btf, where task pointers can be followed directly, which is much cheaper. */
#define TASK_READ(t, member) (use_storage ? (t)->member : BPF_CORE_READ(t, member))

static __always_inline u64 elapsed(u64 since, u64 now)
{
	return now > since ? now - since : 0;
}

#define HAS_IO                                                                                     \
	(bpf_core_field_exists(((struct task_struct___io *)0)->ioac.rchar) &&                      \
	 bpf_core_field_exists(((struct task_struct___io *)0)->ioac.read_bytes))

static __always_inline void io_read(struct sched_usage *u, const struct task_struct *t)
{
	const struct task_struct___io *x = (const void *)t;

	if (!HAS_IO)
		return;
	u->called_read_bytes = x->ioac.rchar;
	u->called_write_bytes = x->ioac.wchar;
	u->storage_read_bytes = x->ioac.read_bytes;
	u->storage_write_bytes = x->ioac.write_bytes;
	u->cancelled_write_bytes = x->ioac.cancelled_write_bytes;
}

static __always_inline void io_since(struct sched_totals *r, const struct sched_usage *base,
				     const struct task_struct *t)
{
	const struct task_struct___io *x = (const void *)t;

	if (!HAS_IO)
		return;
	r->usage.called_read_bytes = x->ioac.rchar - base->called_read_bytes;
	r->usage.called_write_bytes = x->ioac.wchar - base->called_write_bytes;
	r->usage.storage_read_bytes = x->ioac.read_bytes - base->storage_read_bytes;
	r->usage.storage_write_bytes = x->ioac.write_bytes - base->storage_write_bytes;
	r->usage.cancelled_write_bytes =
		x->ioac.cancelled_write_bytes - base->cancelled_write_bytes;
	r->flags |= SCHED_IO;
}

static __always_inline void usage_read(struct sched_usage *u, const struct task_struct *t)
{
	io_read(u, t);
	u->user_ns = t->utime;
	u->system_ns = t->stime;
	u->minor_faults = t->min_flt;
	u->major_faults = t->maj_flt;
}

static __always_inline void usage_since(struct sched_totals *r, const struct sched_state *s,
					const struct task_struct *t)
{
	if (!s->has_base)
		return;
	io_since(r, &s->base, t);
	r->usage.user_ns = t->utime - s->base.user_ns;
	r->usage.system_ns = t->stime - s->base.system_ns;
	r->usage.minor_faults = t->min_flt - s->base.minor_faults;
	r->usage.major_faults = t->maj_flt - s->base.major_faults;
	r->flags |= SCHED_USAGE;
}

/* static_prio of a thread with nice value 0: linux/sched/prio.h */
#define DEFAULT_PRIO 120

static __always_inline void rank_read(struct sched_totals *r, const struct task_struct *t)
{
	r->rank.policy = TASK_READ(t, policy);
	r->rank.nice = TASK_READ(t, static_prio) - DEFAULT_PRIO;
	r->rank.rt_priority = TASK_READ(t, rt_priority);
	r->flags |= SCHED_RANK;
}

#define CREDIT_MOST 16 /* so that another one that takes its part is seen soon */

/* Who comes in its place. Misra and Gries, Science of Computer Programming 1982: who does so often stays. */
static __always_inline void rival_note(struct sched_totals *t, u32 tid)
{
	struct sched_rival *r = t->rivals, *free = NULL;

#pragma unroll
	for (int i = 0; i < SCHED_RIVALS; i++) {
		if (r[i].tid == tid) {
			r[i].times++;
			if (r[i].credit < CREDIT_MOST)
				r[i].credit++;
			return;
		}
		if (!r[i].credit)
			free = &r[i];
	}
	if (free) {
		free->tid = tid;
		free->times = free->credit = 1;
		return;
	}
#pragma unroll
	for (int i = 0; i < SCHED_RIVALS; i++)
		r[i].credit--;
}

/*
 * Reading the clock costs as much as half of all the rest. The scheduler has just read one for the
 * run queue, and notes by it when a thread is queued. How far that clock is behind is looked at once in
 * CHECK_NS. It stands still while the scheduler looks for work on other CPUs, so that a look may find it
 * further behind than it is: the lead grows by no more than two looks agree on, and than clocks can drift
 * apart.
 */
#define CHECK_NS	1000000
#define DRIFT_SHIFT	10 /* one part in so many powers of two */
#define HAS_QUEUE_CLOCK                                                                            \
	(use_queue_clock && use_storage &&                                                         \
	 bpf_core_field_exists(((struct task_struct___sched *)0)->se.cfs_rq) &&                    \
	 bpf_core_field_exists(((struct cfs_rq *)0)->rq) &&                                        \
	 bpf_core_field_exists(((struct rq *)0)->clock) &&                                         \
	 bpf_core_field_exists(((struct task_struct___sched *)0)->sched_info.last_queued))

static __always_inline u64 switch_now(struct cpu_slot *slot, struct task_struct *t)
{
	u64 at, seen, lead, most;

	if (!HAS_QUEUE_CLOCK)
		return bpf_ktime_get_ns();
	at = ((struct task_struct___sched *)t)->se.cfs_rq->rq->clock;
	if (at - slot->checked > CHECK_NS) {
		lead = seen = bpf_ktime_get_ns() - at;
		if (slot->checked) {
			most = slot->lead + ((at - slot->checked) >> DRIFT_SHIFT);
			if ((__s64)(lead - slot->seen) > 0)
				lead = slot->seen;
			if ((__s64)(lead - most) > 0)
				lead = most;
		}
		slot->lead = lead;
		slot->seen = seen;
		slot->checked = at;
	}
	return at + slot->lead;
}

/*
 * Since when the thread, in the run queue of the CPU of @slot, has been in run queues: it may have been
 * moved from one to another. @before: what its delays summed up to when it was woken.
 */
static __always_inline u64 queued_since(const struct cpu_slot *slot, struct task_struct *t, u64 before,
					u64 now)
{
	const struct sched_info *i = &((struct task_struct___sched *)t)->sched_info;
	u64 queued = i->last_queued;

	return (queued ? queued + slot->lead : now) - elapsed(before, i->run_delay);
}

static __always_inline void state_init(struct sched_state *s, const struct task_struct *t)
{
	task_ident_read(&s->t.id, t);
	s->t.cpu = ncpu; /* none yet */
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		s->t.flags = SCHED_KTHREAD;
	s->unseen = BPF_CORE_READ((struct task_struct___wait *)t, start_time) < started_ns;
	s->t.since_ns = s->unseen ? started_ns : bpf_ktime_get_ns();
}

static __always_inline struct sched_state *state_by_tid(struct task_struct *t)
{
	u32 tid = BPF_CORE_READ(t, pid);
	struct sched_state *s = bpf_map_lookup_elem(&tid_states, &tid);

	if (s && s->t.id.start_ns == BPF_CORE_READ(t, start_boottime))
		return s;
	/*
	 * In place: another CPU may hold the old element, which an update would give to another
	 * key.
	 */
	if (s) {
		*s = no_state;
	} else {
		bpf_map_update_elem(&tid_states, &tid, &no_state, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&tid_states, &tid);
	}
	if (s)
		state_init(s, t);
	return s;
}

/* In tp_btf and fexit programs @t is a trusted pointer; task storage demands one. */
static __always_inline struct sched_state *state_of(struct task_struct *t)
{
	struct sched_state *s;

	if (use_storage) {
		s = bpf_task_storage_get(&task_states, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (s && !s->t.id.tid) {
			state_init(s, t);
			usage_read(&s->base, t);
			barrier();
			s->has_base = 1;
		}
	} else {
		s = state_by_tid(t);
	}
	/* Storage is refused in an interrupt that hits its own code: rare, but it happens. */
	if (!s)
		health_count(use_storage ? HEALTH_READ_FAULT : HEALTH_MAP_FULL);
	return s;
}

/* The thread turns to another kind of wait: the sum of the last kind goes to the map. */
static __always_inline void sum_flush(struct sched_state *s)
{
	struct wait_sum *sum = &s->t.sum;
	struct wait_key key = {
		.a = sum->on.a,
		.b = sum->on.b,
		.start_ns = s->t.id.start_ns,
		.waker_start_ns = sum->by.start_ns,
		.tid = s->t.id.tid,
		.waker_tid = sum->by.tid,
		.cause = sum->on.cause,
		.kind = sum->on.kind,
		.waker_class = sum->by.class,
	};
	struct wait_value first = {.times = sum->times, .word = sum->on.word}, *v;
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&wait_sums, &zero);

	if (!map)
		return;
	v = bpf_map_lookup_elem(map, &key);
	if (v) { /* only this thread's switches write it, one at a time */
		v->times.count += sum->times.count;
		v->times.ns += sum->times.ns;
		if (sum->times.longest_ns > v->times.longest_ns)
			v->times.longest_ns = sum->times.longest_ns;
		v->word = sum->on.word;
	} else if (bpf_map_update_elem(map, &key, &first, BPF_NOEXIST)) {
		health_count(HEALTH_MAP_FULL);
		s->t.lost_ns += sum->times.ns;
		s->t.lost_waits += sum->times.count;
	}
}

static __always_inline bool sum_is_for(const struct wait_sum *sum, const struct wait_on *on,
				       const struct waker *by)
{
	return sum->on.a == on->a && sum->on.b == on->b && sum->on.cause == on->cause &&
	       sum->on.kind == on->kind && sum->by.tid == by->tid && sum->by.class == by->class &&
	       sum->by.start_ns == by->start_ns;
}

static __always_inline void segment_keep(struct sched_state *s, struct cpu_slot *slot, u32 cpu,
					 u64 wake, u64 now)
{
	u32 i = cpu * segments_per_cpu + (slot->segments++ & (segments_per_cpu - 1));
	struct wait_segment *g = bpf_map_lookup_elem(&wait_segments, &i);

	if (!g)
		return;
	g->out_ns = s->out_ns;
	g->wake_ns = wake;
	g->in_ns = now;
	g->a = s->t.on.a;
	g->b = s->t.on.b;
	g->start_ns = s->t.id.start_ns;
	g->waker_start_ns = s->by.start_ns;
	g->tid = s->t.id.tid;
	g->waker_tid = s->by.tid;
	g->cause = s->t.on.cause;
	g->kind = s->t.on.kind;
	g->waker_class = s->by.class;
}

/* A wait is over: it ended at @wake. */
static __always_inline void wait_end(struct sched_state *s, struct cpu_slot *slot, u32 cpu,
				     u64 wake, u64 now)
{
	u64 ns = elapsed(s->out_ns, wake);
	struct wait_sum *sum = &s->t.sum;

	s->t.wakeups++;
	s->t.blocked_ns += ns;
	if (s->t.flags & SCHED_KTHREAD)
		return;
	if (s->plain) {
		s->t.plain_waits++;
		s->t.plain_ns += ns;
		return;
	}
	if (!sum_is_for(sum, &s->t.on, &s->by)) {
		if (sum->times.count)
			sum_flush(s);
		sum->on = s->t.on;
		sum->by = s->by;
		sum->times.count = sum->times.ns = sum->times.longest_ns = 0;
	}
	sum->on.word = s->t.on.word;
	sum->times.count++;
	sum->times.ns += ns;
	if (ns > sum->times.longest_ns)
		sum->times.longest_ns = ns;
	if (ns >= WAIT_SEGMENT_NS)
		segment_keep(s, slot, cpu, wake, now);
}

/* A streak on a CPU has ended: its time goes to the map of the interval. */
static __always_inline void streak_flush(struct sched_state *s)
{
	struct sched_cpu_key key = {
		.start_ns = s->t.id.start_ns, .tid = s->t.id.tid, .cpu = s->t.cpu};
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&cpu_time, &zero);
	u64 ns = s->t.streak_ns, *sum;

	s->t.streak_ns = 0;
	if (!map || !ns)
		return;
	sum = bpf_map_lookup_elem(map, &key);
	if (!sum && !bpf_map_update_elem(map, &key, &ns, BPF_NOEXIST))
		return;
	if (!sum)
		sum = bpf_map_lookup_elem(map, &key);
	if (sum)
		__sync_fetch_and_add(sum, ns);
	else
		health_count(HEALTH_MAP_FULL);
}

static __always_inline void state_slice(struct sched_state *s, u64 since, u64 now, u32 cpu)
{
	u64 ns = elapsed(since, now);

	s->t.cpu = cpu;
	s->t.run_ns += ns;
	s->t.streak_ns += ns;
}

static __always_inline void state_emit_exit(struct sched_state *s, struct task_struct *t, u64 now)
{
	struct sched_totals *r;

	s->dead = 1;
	s->t.observed_ns = elapsed(s->t.since_ns, now);
	if (!use_storage) { /* the tid is free from here on */
		u32 tid = s->t.id.tid;

		BPF_CORE_READ_STR_INTO(&s->t.comm, t, comm);
		rank_read(&s->t, t);
		s->t.flags |= SCHED_EXITED;
		if (bpf_ringbuf_output(&exits, &s->t, sizeof(s->t), BPF_RB_NO_WAKEUP))
			health_count(HEALTH_RING_FULL);
		else
			health_count(HEALTH_EMITTED);
		bpf_map_delete_elem(&tid_states, &tid);
		return;
	}
	r = bpf_ringbuf_reserve(&exits, sizeof(*r), 0);
	if (!r) {
		health_count(HEALTH_RING_FULL);
		return;
	}
	*r = s->t;
	r->flags |= SCHED_EXITED;
	usage_since(r, s, t);
	rank_read(r, t);
	BPF_CORE_READ_STR_INTO(&r->comm, t, comm);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	health_count(HEALTH_EMITTED);
}

/* What the thread has waited in run queues, while it is in none. */
static __always_inline void delay_note(struct sched_state *s, struct task_struct *t)
{
	if (HAS_QUEUE_CLOCK)
		s->delay_ns = ((struct task_struct___sched *)t)->sched_info.run_delay;
}

/* Its first event since the start: until then it was blocked, or in a run queue. */
static __always_inline void first_event(struct sched_state *s, struct task_struct *t, bool runnable)
{
	s->unseen = 0;
	if (runnable) {
		s->waiting_since = started_ns;
		return;
	}
	s->out_ns = started_ns;
	delay_note(s, t);
	if (use_storage)
		wait_read(&s->t.on, t, 0, false);
}

/*
 * Clocks of two CPUs may differ by what their lead is wrong by. What a thread does begins where that
 * before it ended, or its parts would sum up to more than the time that passed.
 */
static __always_inline u64 not_before(u64 earliest, u64 at)
{
	return at < earliest ? earliest : at;
}

/* The thread came to CPU @cpu at @now. */
static __always_inline void state_in(struct sched_state *s, struct cpu_slot *slot, u64 now, u32 cpu)
{
	u64 since, earliest;

	earliest = s->out_ns ?: s->t.since_ns;
	now = not_before(earliest, now);
	/*
	 * A wake-up that began before the thread was switched out, on another CPU, took effect at
	 * the switch-out. One that was not seen at all is taken to be now.
	 */
	since = s->waiting_since ?: (s->early ? s->out_ns : 0);
	/* Woken on another CPU since switch_in() looked: it has waited for nothing yet. */
	if (since == WOKEN)
		since = now;
	if (since) {
		since = not_before(earliest, since);
		now = not_before(since, now);
		s->t.runq_ns += elapsed(since, now);
	}
	if (s->out_ns)
		wait_end(s, slot, cpu, since ?: now, now);
	if (s->t.cpu != cpu) {
		if (s->t.cpu != ncpu) {
			s->t.migrations++;
			streak_flush(s);
		}
		s->t.cpu = cpu;
	}
	s->waiting_since = 0;
	s->out_ns = 0;
	s->early = 0;
	s->by.class = WAKER_NONE;
	s->by.tid = 0;
	s->by.start_ns = 0;
	s->on_since = now;
}

/* Rare: a function of its own, for the size of the whole. */
static __noinline int state_in_rarely(struct sched_state *s, struct cpu_slot *slot, u64 now, u32 cpu)
{
	if (s && slot)
		state_in(s, slot, now, cpu);
	return 0;
}

/*
 * There are threads at whose switch-out no program runs: it is missing, and so is the switch-in of
 * whoever comes next. That one has the CPU since the other came there, or since it could run at
 * all.
 */
static __always_inline void missed_in(struct sched_state *s, struct cpu_slot *slot, u64 cpu_since,
				      u32 cpu)
{
	u64 since = cpu_since;

	if (s->waiting_since > since)
		since = s->waiting_since;
	if (s->out_ns > since)
		since = s->out_ns;
	if (since < s->t.since_ns)
		s->t.since_ns = since;
	if (s->waiting_since == WOKEN) /* for how long is forgotten by now */
		s->waiting_since = since;
	state_in_rarely(s, slot, since, cpu);
}

/* The other of the two: nobody knows what it did since, so let it have waited. */
static __always_inline void missed_out(struct sched_state *s, struct task_struct *t)
{
	s->out_ns = s->on_since;
	delay_note(s, t);
	s->early = 0;
	s->plain = 0;
	s->t.on.cause = WAIT_OTHER;
	s->t.on.kind = WAIT_ON_NOTHING;
	s->t.on.a = s->t.on.b = 0;
}

/* A thread that goes to and fro tells the same each time: a few times in 2^20 ns will do. */
static __always_inline bool is_looked_at(struct sched_state *s, u64 now)
{
	u64 epoch = now >> 20;

	if (use_storage && wakings_unwatched)
		return false;
	if (!detail_most || !use_storage)
		return true;
	if (s->epoch != epoch) {
		s->epoch = epoch;
		s->looks = 0;
	}
	return s->looks++ < detail_most;
}

/* @param next who comes in its place */
static __always_inline void switch_out(struct task_struct *t, struct cpu_slot *slot, bool preempt,
				       u32 state, u64 now, u64 cpu_since, u32 cpu, u32 next)
{
	struct sched_state *s = state_of(t);

	if (!s)
		return;
	s->changes++;
	barrier();
	if (!use_storage)
		BPF_CORE_READ_STR_INTO(&s->t.comm, t, comm);
	if (s->unseen && cpu_since > started_ns)
		first_event(s, t, true);
	if (!s->on_since && !s->unseen)
		missed_in(s, slot, cpu_since, cpu);
	now = not_before(s->on_since, now);
	state_slice(s, s->on_since ?: cpu_since, now, cpu);
	if (preempt || state == TASK_RUNNING) {
		s->t.involuntary++;
		rival_note(&s->t, next);
		s->waiting_since = now;
		s->out_ns = 0;
	} else {
		s->t.voluntary++;
		s->waiting_since = 0;
		s->out_ns = now;
		delay_note(s, t);
		s->plain = !is_looked_at(s, now);
		if (!(state & TASK_DEAD) && !s->plain)
			/* The one that leaves is current still. */
			wait_read(&s->t.on, use_storage ? t : bpf_get_current_task_btf(), state,
				  true);
	}
	barrier();
	s->unseen = 0;
	s->on_since = 0;
	s->changes++;
	if (!preempt && (state & TASK_DEAD))
		state_emit_exit(s, t, now);
}

/* It comes to a CPU after a wait: woken, whether or not that was seen. An early wake-up is another matter. */
static __always_inline bool is_queued(const struct sched_state *s)
{
	return s->waiting_since == WOKEN || (!s->waiting_since && s->out_ns && !s->early);
}

static __always_inline void switch_in(struct task_struct *t, struct cpu_slot *slot, u64 now,
				      u32 cpu)
{
	struct sched_state *s = state_of(t);

	if (!s)
		return;
	s->changes++;
	barrier();
	if (s->unseen)
		first_event(s, t, has_waking && !wakings_unwatched);
	if (s->on_since)
		missed_out(s, t);
	if (HAS_QUEUE_CLOCK && is_queued(s))
		s->waiting_since = queued_since(slot, t, s->delay_ns, now);
	/* It was no short one after all. Where it waits can still be read, but not its memory. */
	if (use_storage && s->plain && s->out_ns && now - s->out_ns >= WAIT_SEGMENT_NS) {
		s->plain = 0;
		wait_read(&s->t.on, t, 0, false);
	}
	state_in(s, slot, now, cpu);
	barrier();
	s->changes++;
}

/* A thread ends while the last reading is under way, which will not find it any more. */
static __always_inline void last_record(struct task_struct *t)
{
	struct sched_state *s = state_of(t);

	if (!s || s->dead || s->unseen)
		return;
	if (s->on_since)
		state_slice(s, s->on_since, stopped_ns, s->t.cpu);
	else if (s->waiting_since > WOKEN)
		s->t.runq_ns += elapsed(s->waiting_since, stopped_ns);
	else if (s->out_ns)
		s->t.blocked_ns += elapsed(s->out_ns, stopped_ns);
	state_emit_exit(s, t, stopped_ns);
}

static __always_inline int on_switch(bool preempt, struct task_struct *prev,
				     struct task_struct *next, u32 state)
{
	u32 cpu = bpf_get_smp_processor_id(), in;
	u64 now, since;
	struct cpu_slot *slot;

	if (!started_ns)
		return 0;
	slot = bpf_map_lookup_elem(&cpu_slots, &cpu);
	if (!slot)
		return 0;
	if (stopped_ns) {
		if (!preempt && (state & TASK_DEAD) && TASK_READ(prev, pid))
			last_record(prev);
		return 0;
	}
	now = switch_now(slot, prev);
	since = slot->since ?: started_ns;
	slot->since = now;
	slot->switches++;
	in = TASK_READ(next, pid);
	if (count_events) {
		struct sched_cpu_key key = {
			.start_ns = TASK_READ(prev, start_boottime), .tid = TASK_READ(prev, pid), .cpu = cpu};

		counts_take(&key, true);
	}
	if (TASK_READ(prev, pid))
		switch_out(prev, slot, preempt, state, now, since, cpu, in);
	if (in)
		switch_in(next, slot, now, cpu);
	return 0;
}

static __always_inline int on_waking(struct task_struct *t, bool newborn)
{
	struct sched_state *s;

	if (!started_ns || stopped_ns)
		return 0;
	s = state_of(t);
	if (!s || (s->waiting_since && !s->on_since))
		return 0;
	if (s->unseen && !newborn && !TASK_READ(t, on_cpu))
		first_event(s, t, false);
	if (HAS_CURRENT)
		waker_read(&s->by, s->t.on.cause);
	if (s->on_since || s->unseen) {
		s->early = 1;
	} else if (HAS_QUEUE_CLOCK) {
		s->waiting_since = WOKEN;
	} else {
		s->waiting_since = bpf_ktime_get_ns();
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int switch_btf(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];

	return on_switch(ctx[0], prev, (void *)ctx[2],
			 switch_has_state ? (u32)ctx[3] : task_state(prev));
}

SEC("raw_tp/sched_switch")
int switch_raw(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (void *)ctx->args[1];

	return on_switch(ctx->args[0], prev, (void *)ctx->args[2],
			 switch_has_state ? (u32)ctx->args[3] : task_state(prev));
}

SEC("tp_btf/sched_waking")
int waking_btf(u64 *ctx)
{
	return on_waking((void *)ctx[0], false);
}

SEC("raw_tp/sched_waking")
int waking_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_waking((void *)ctx->args[0], false);
}

SEC("tp_btf/sched_wakeup_new")
int wakeup_new_btf(u64 *ctx)
{
	return on_waking((void *)ctx[0], true);
}

SEC("raw_tp/sched_wakeup_new")
int wakeup_new_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_waking((void *)ctx->args[0], true);
}

/* User space runs it on each CPU: who is on it may be there for long. */
SEC("raw_tp")
int count_running(void *ctx)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct sched_cpu_key key = {.start_ns = BPF_CORE_READ(t, start_boottime),
				    .tid = (u32)BPF_CORE_READ(t, pid),
				    .cpu = bpf_get_smp_processor_id()};

	counts_take(&key, started_ns && !stopped_ns);
	return 0;
}

#include "sched_read.bpf.h"
