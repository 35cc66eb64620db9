// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* CPU time, run-queue delay and switches by thread, kept where the scheduler switches. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "health.bpf.h"
#include "sched_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load: what the kernel allows. Branches not taken are removed by the verifier. */
const volatile bool use_storage = true;
const volatile bool switch_has_state = true; /* 4th argument, since v5.18 (fa2c3254d7cf) */
const volatile __u32 ncpu = 1;

__u64 started_ns = 0; /* set by user space once all is attached; nothing counts before */
bool report_all = false; /* the next reading also reports what did not change */

struct sched_state {
	struct sched_totals t;
	u64 on_since;	   /* 0: not on a CPU */
	u64 waiting_since; /* 0: not runnable, or already on a CPU */
	u64 out_ns;	   /* when it blocked, 0: did not */
	u64 changes;	   /* odd while it is being changed */
	u64 reported;	   /* value of changes at the last reading */
	u32 dead;
	u32 early; /* woken while still on its CPU */
};

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
	u64 pad[7];
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

/* Storage implies tp_btf, where task pointers can be followed directly, which is much cheaper. */
#define TASK_READ(t, member) (use_storage ? (t)->member : BPF_CORE_READ(t, member))

static __always_inline void state_init(struct sched_state *s, const struct task_struct *t)
{
	task_ident_read(&s->t.id, t);
	s->t.cpu = ncpu; /* none yet */
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		s->t.flags = SCHED_KTHREAD;
}

static __always_inline struct sched_state *state_by_tid(struct task_struct *t)
{
	u32 tid = BPF_CORE_READ(t, pid);
	struct sched_state *s = bpf_map_lookup_elem(&tid_states, &tid);
	struct sched_state fresh = {};

	if (s && s->t.id.start_ns == BPF_CORE_READ(t, start_boottime))
		return s;
	state_init(&fresh, t);
	/* In place: another CPU may hold the old element, which an update would give to another key. */
	if (s)
		*s = fresh;
	else
		bpf_map_update_elem(&tid_states, &tid, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tid_states, &tid);
}

/* In tp_btf and fexit programs @t is a trusted pointer; task storage demands one. */
static __always_inline struct sched_state *state_of(struct task_struct *t)
{
	struct sched_state *s;

	if (use_storage) {
		s = bpf_task_storage_get(&task_states, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (s && !s->t.id.tid)
			state_init(s, t);
	} else {
		s = state_by_tid(t);
	}
	/* Storage is refused in an interrupt that hits its own code: rare, but it happens. */
	if (!s)
		health_count(use_storage ? HEALTH_READ_FAULT : HEALTH_MAP_FULL);
	return s;
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
	u64 ns = now > since ? now - since : 0;

	s->t.cpu = cpu;
	s->t.run_ns += ns;
	s->t.streak_ns += ns;
}

static __always_inline void state_emit_exit(struct sched_state *s, struct task_struct *t)
{
	struct sched_totals *r;

	s->dead = 1;
	if (!use_storage) { /* the tid is free from here on */
		u32 tid = s->t.id.tid;

		BPF_CORE_READ_STR_INTO(&s->t.comm, t, comm);
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
	BPF_CORE_READ_STR_INTO(&r->comm, t, comm);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	health_count(HEALTH_EMITTED);
}

static __always_inline void switch_out(struct task_struct *t, bool preempt, u32 state, u64 now,
				       u64 cpu_since, u32 cpu)
{
	struct sched_state *s = state_of(t);

	if (!s)
		return;
	s->changes++;
	barrier();
	if (!use_storage)
		BPF_CORE_READ_STR_INTO(&s->t.comm, t, comm);
	state_slice(s, s->on_since ?: cpu_since, now, cpu);
	if (preempt || state == TASK_RUNNING) {
		s->t.involuntary++;
		s->waiting_since = now;
		s->out_ns = 0;
	} else {
		s->t.voluntary++;
		s->waiting_since = 0;
		s->out_ns = now;
	}
	barrier();
	s->on_since = 0;
	s->changes++;
	if (!preempt && (state & TASK_DEAD))
		state_emit_exit(s, t);
}

static __always_inline void switch_in(struct task_struct *t, u64 now, u32 cpu)
{
	struct sched_state *s = state_of(t);
	u64 since;

	if (!s)
		return;
	s->changes++;
	barrier();
	/*
	 * A wake-up that began before the thread was switched out, on another CPU, took effect at
	 * the switch-out.
	 */
	since = s->waiting_since ?: (s->early ? s->out_ns : 0);
	if (since && now > since)
		s->t.runq_ns += now - since;
	if (s->out_ns)
		s->t.wakeups++;
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
	s->on_since = now;
	barrier();
	s->changes++;
}

static __always_inline int on_switch(bool preempt, struct task_struct *prev,
				     struct task_struct *next, u32 state)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 now, since;
	struct cpu_slot *slot;

	if (!started_ns)
		return 0;
	slot = bpf_map_lookup_elem(&cpu_slots, &cpu);
	if (!slot)
		return 0;
	now = bpf_ktime_get_ns();
	since = slot->since ?: started_ns;
	slot->since = now;
	if (TASK_READ(prev, pid))
		switch_out(prev, preempt, state, now, since, cpu);
	if (TASK_READ(next, pid))
		switch_in(next, now, cpu);
	return 0;
}

static __always_inline int on_waking(struct task_struct *t)
{
	struct sched_state *s;

	if (!started_ns)
		return 0;
	s = state_of(t);
	if (s && s->on_since)
		s->early = 1;
	else if (s && !s->waiting_since)
		s->waiting_since = bpf_ktime_get_ns();
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
	return on_waking((void *)ctx[0]);
}

SEC("raw_tp/sched_waking")
int waking_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_waking((void *)ctx->args[0]);
}

SEC("tp_btf/sched_wakeup_new")
int wakeup_new_btf(u64 *ctx)
{
	return on_waking((void *)ctx[0]);
}

SEC("raw_tp/sched_wakeup_new")
int wakeup_new_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_waking((void *)ctx->args[0]);
}

/* @return whether nothing changed while it was copied */
static __always_inline bool copy_once(struct sched_totals *r, struct sched_state *s, u64 *before,
				      u64 *on_since)
{
	volatile struct sched_state *v = s;

	*before = v->changes;
	barrier();
	*r = s->t;
	*on_since = v->on_since;
	barrier();
	return !(*before & 1) && v->changes == *before;
}

static __always_inline u64 cpu_held_since(u32 cpu)
{
	volatile struct cpu_slot *slot = bpf_map_lookup_elem(&cpu_slots, &cpu);

	return slot ? slot->since : 0;
}

/*
 * Read while it may be changing on another CPU; totals only grow, so a later reading heals it.
 * Not a loop: kernel 6.1 takes its shape for an endless one.
 */
static __always_inline bool state_copy(struct sched_totals *r, struct sched_state *s, u64 now)
{
	u64 before, on_since, held = cpu_held_since(s->t.cpu);

	if (!copy_once(r, s, &before, &on_since) && !copy_once(r, s, &before, &on_since))
		copy_once(r, s, &before, &on_since);
	if (!report_all && !on_since && before == s->reported)
		return false;
	s->reported = before;
	if (on_since) {
		if (on_since != held) /* its switch-out was not seen */
			return true;
		r->flags |= SCHED_RUNNING;
		if (now > on_since) {
			r->run_ns += now - on_since;
			r->streak_ns += now - on_since;
		}
	}
	return true;
}

static __always_inline bool first_slice(struct sched_totals *r, struct task_struct *t, u64 now)
{
	u64 since = started_ns;

	/* Never switched since the start: it holds a CPU since then, or it has not run at all. */
	if (!t->on_cpu || now < since)
		return false;
	task_ident_read(&r->id, t);
	r->cpu = ncpu;
	r->run_ns = r->streak_ns = now - since;
	r->flags = SCHED_RUNNING | (t->flags & PF_KTHREAD ? SCHED_KTHREAD : 0);
	return true;
}

SEC("iter/task")
int read_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct sched_totals r = {};
	struct sched_state *s;
	u64 now, was = 0;

	if (!t || !t->pid || !use_storage)
		return 0;
	now = bpf_ktime_get_ns();
	s = bpf_task_storage_get(&task_states, t, 0, 0);
	if (s)
		was = s->reported;
	if (s && s->dead)
		return 0;
	if (s ? !state_copy(&r, s, now) : !first_slice(&r, t, now))
		return 0;
	BPF_CORE_READ_STR_INTO(&r.comm, t, comm);
	if (bpf_seq_write(ctx->meta->seq, &r, sizeof(r)) && s)
		s->reported = was; /* the buffer was full: the kernel asks again */
	return 0;
}
