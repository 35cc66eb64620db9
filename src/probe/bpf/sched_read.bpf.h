#pragma once

/*
 * The reading of all threads: what each did so far, and what goes on, which may change while it is
 * copied. Part of sched.bpf.c, whose states it reads.
 */

/* What of a state is going on at a reading. */
struct open_state {
	u64 before; /* value of changes */
	u64 on_since, waiting_since, out_ns;
	u32 early;
};

/* @return whether nothing changed while it was copied */
static __always_inline bool copy_once(struct sched_totals *r, struct sched_state *s,
				      struct open_state *o)
{
	volatile struct sched_state *v = s;

	o->before = v->changes;
	barrier();
	*r = s->t;
	o->on_since = v->on_since;
	o->waiting_since = v->waiting_since;
	o->out_ns = v->out_ns;
	o->early = v->early;
	barrier();
	return !(o->before & 1) && v->changes == o->before;
}

static __always_inline u64 cpu_held_since(u32 cpu)
{
	volatile struct cpu_slot *slot = bpf_map_lookup_elem(&cpu_slots, &cpu);

	return slot ? slot->since : 0;
}

/*
 * Adds what is going on: a slice on a CPU, a delay, a wait. An early wake-up that came before the
 * thread made up its mind to sleep does not count.
 */
static __always_inline void state_open(struct sched_totals *r, const struct open_state *o, u64 held,
				       u64 now, bool runnable)
{
	u64 woken = o->waiting_since ?: (o->early && runnable ? o->out_ns : 0);

	r->observed_ns = elapsed(r->since_ns, now);
	if (o->on_since && o->on_since != held) {
		/* Its switch-out is under way, or was missed, which is certain at the end only. */
		if (stopped_ns)
			r->blocked_ns += elapsed(o->on_since, now);
		return;
	}
	if (o->on_since) {
		r->flags |= SCHED_RUNNING;
		r->run_ns += elapsed(o->on_since, now);
		r->streak_ns += elapsed(o->on_since, now);
		return;
	}
	if (woken)
		r->runq_ns += elapsed(woken, now);
	if (o->out_ns)
		r->open_ns = elapsed(o->out_ns, woken ?: now);
	r->blocked_ns += r->open_ns;
}

/* At the last reading threads go on being queued, after the end of what counts. */
static __always_inline u64 not_after(u64 latest, u64 at)
{
	return at > latest ? latest : at;
}

/* Of a thread that does not run. */
static __always_inline bool is_in_queue(struct task_struct *t)
{
	return ((struct task_struct___sched *)t)->sched_info.last_queued;
}

static __always_inline u64 queued_by_now(struct task_struct *t, u64 before, u64 now)
{
	s32 cpu = task_cpu_of(t);
	struct cpu_slot *slot = bpf_map_lookup_elem(&cpu_slots, &cpu);

	/* Its lead is known once a thread was switched there. */
	return slot && slot->checked ? queued_since(slot, t, before, now) : now;
}

/*
 * Read while it may be changing on another CPU; totals only grow, so a later reading heals it.
 * Not a loop: kernel 6.1 takes its shape for an endless one.
 */
static __always_inline bool state_copy(struct sched_totals *r, struct sched_state *s,
				       struct task_struct *t, u64 now)
{
	u32 state = task_state(t);
	u64 held = cpu_held_since(s->t.cpu);
	struct open_state o;

	if (!copy_once(r, s, &o) && !copy_once(r, s, &o))
		copy_once(r, s, &o);
	if (!report_all && !o.on_since && o.before == s->reported)
		return false;
	s->reported = o.before;
	if (HAS_QUEUE_CLOCK && (o.waiting_since == WOKEN || (!o.waiting_since && o.out_ns && !o.early && is_in_queue(t))))
		o.waiting_since = not_after(now, not_before(o.out_ns, queued_by_now(t, s->delay_ns, now)));
	state_open(r, &o, held, now, state == TASK_RUNNING || (state & TASK_WAKING));
	if (s->plain && r->open_ns)
		wait_read(&r->on, t, state, false);
	return true;
}

/* Never switched since the start: since then it holds a CPU, or waits for one, or for something. */
static __always_inline bool since_start(struct sched_totals *r, struct task_struct *t, u64 now)
{
	u64 since = started_ns, ns = elapsed(since, now);
	u32 state = task_state(t);

	if (((struct task_struct___wait *)t)->start_time >= since || t->exit_state ||
	    (!t->on_cpu && !report_all))
		return false;
	task_ident_read(&r->id, t);
	r->cpu = ncpu;
	r->since_ns = since;
	r->observed_ns = ns;
	r->flags = t->flags & PF_KTHREAD ? SCHED_KTHREAD : 0;
	if (t->on_cpu) {
		r->run_ns = r->streak_ns = ns;
		r->flags |= SCHED_RUNNING;
	} else if (state == TASK_RUNNING) {
		r->runq_ns = ns;
	} else {
		r->blocked_ns = r->open_ns = ns;
		wait_read(&r->on, t, state, false);
	}
	return true;
}

/* Of the iterator, of which there is one at a time: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_totals);
} read_room SEC(".maps");

SEC("iter/task")
int read_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct sched_totals *r;
	struct sched_state *s;
	u64 now, was = 0;
	u32 zero = 0;

	if (!t || !t->pid || !use_storage)
		return 0;
	r = bpf_map_lookup_elem(&read_room, &zero);
	if (!r)
		return 0;
	__builtin_memset(r, 0, sizeof(*r));
	queue_clock = HAS_QUEUE_CLOCK;
	now = stopped_ns ?: bpf_ktime_get_ns();
	s = bpf_task_storage_get(&task_states, t, 0, 0);
	if (s)
		was = s->reported;
	if (s && s->dead)
		return 0;
	if (s && !s->unseen ? !state_copy(r, s, t, now) : !since_start(r, t, now))
		return 0;
	if (s)
		usage_since(r, s, t);
	rank_read(r, t);
	BPF_CORE_READ_STR_INTO(&r->comm, t, comm);
	if (bpf_seq_write(ctx->meta->seq, r, sizeof(*r)) && s)
		s->reported = was; /* the buffer was full: the kernel asks again */
	return 0;
}
