// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Processes and threads that begin and end, and the list of all there are. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "health.bpf.h"
#include "proc_abi.h"
#include "proc_files.bpf.h"
#include "proc_maps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

#define EVENT_BASE __builtin_offsetof(struct proc_event, cmdline)

/* Too large for the stack, and a fork or exec may be preempted: built in the ring buffer itself. */
static __always_inline struct proc_event *event_begin(enum proc_event_kind kind,
						      struct task_struct *t)
{
	struct proc_event *ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);

	if (!ev) {
		health_count(HEALTH_RING_FULL);
		return NULL;
	}
	__builtin_memset(ev, 0, EVENT_BASE);
	ev->kind = kind;
	ev->size = EVENT_BASE;
	ev->time_ns = bpf_ktime_get_boot_ns();
	task_ident_read(&ev->task, t);
	ev->uid = BPF_CORE_READ(t, real_cred, uid.val);
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		ev->flags = PROC_KTHREAD;
	BPF_CORE_READ_STR_INTO(&ev->comm, t, comm);
	return ev;
}

/* Forks and exits need no command line: a short record, so that the ring holds many. */
static __always_inline int event_short(enum proc_event_kind kind, struct task_struct *t,
				       struct task_struct *parent, s32 exit_code)
{
	struct {
		u8 bytes[EVENT_BASE];
	} *room = bpf_ringbuf_reserve(&events, EVENT_BASE, 0);
	struct proc_event *ev = (void *)room;

	if (!room) {
		health_count(HEALTH_RING_FULL);
		return 0;
	}
	__builtin_memset(room, 0, EVENT_BASE);
	ev->kind = kind;
	ev->size = EVENT_BASE;
	ev->time_ns = bpf_ktime_get_boot_ns();
	task_ident_read(&ev->task, t);
	task_ident_read(&ev->parent, parent);
	ev->exit_code = exit_code;
	ev->uid = BPF_CORE_READ(t, real_cred, uid.val);
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		ev->flags = PROC_KTHREAD;
	BPF_CORE_READ_STR_INTO(&ev->comm, t, comm);
	bpf_ringbuf_submit(room, 0);
	health_count(HEALTH_EMITTED);
	return 0;
}

static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child)
{
	return event_short(PROC_FORK, child, parent, 0);
}

static __always_inline int on_exec(struct task_struct *t)
{
	struct proc_event *ev = event_begin(PROC_EXEC, t);
	struct mm_struct *mm;
	unsigned long from, to;
	u64 n;

	if (!ev)
		return 0;
	mm = BPF_CORE_READ(t, mm);
	task_ident_read(&ev->parent, BPF_CORE_READ(t, real_parent));
	from = BPF_CORE_READ(mm, arg_start);
	to = BPF_CORE_READ(mm, arg_end);
	n = to > from ? to - from : 0;
	if (n > PROC_CMDLINE_BYTES) {
		n = PROC_CMDLINE_BYTES;
		ev->flags |= PROC_CMDLINE_CUT;
	}
	/* The verifier wants to see the bound where it counts. */
	asm volatile("" : "+r"(n));
	if (n > PROC_CMDLINE_BYTES)
		n = PROC_CMDLINE_BYTES;
	if (bpf_probe_read_user(ev->cmdline, n, (void *)from)) {
		health_count(HEALTH_READ_FAULT);
		n = 0;
	}
	ev->cmdline_bytes = n;
	ev->size = EVENT_BASE + n;
	bpf_ringbuf_submit(ev, 0);
	health_count(HEALTH_EMITTED);
	return 0;
}

static __always_inline int on_exit(struct task_struct *t)
{
	/* signal->live was decremented before: 0 says that the last thread ends. */
	if (BPF_CORE_READ(t, signal, live.counter))
		return 0;
	/* exit_group() leaves its code to the group; a single thread's is its own. */
	return event_short(PROC_EXIT, t, BPF_CORE_READ(t, group_leader, real_parent),
			   BPF_CORE_READ(t, signal, group_exit_code)
				   ?: BPF_CORE_READ(t, exit_code));
}

SEC("tp_btf/sched_process_fork")
int fork_btf(u64 *ctx)
{
	return on_fork((void *)ctx[0], (void *)ctx[1]);
}

SEC("raw_tp/sched_process_fork")
int fork_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_fork((void *)ctx->args[0], (void *)ctx->args[1]);
}

SEC("tp_btf/sched_process_exec")
int exec_btf(u64 *ctx)
{
	return on_exec((void *)ctx[0]);
}

SEC("raw_tp/sched_process_exec")
int exec_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_exec((void *)ctx->args[0]);
}

SEC("tp_btf/sched_process_exit")
int exit_btf(u64 *ctx)
{
	return on_exit((void *)ctx[0]);
}

SEC("raw_tp/sched_process_exit")
int exit_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_exit((void *)ctx->args[0]);
}

/* fs/proc/array.c: get_task_state(); TASK_REPORT is 0x7f, TASK_IDLE 0x402, TASK_RTLOCK_WAIT not. */
static __always_inline char state_letter(struct task_struct *t)
{
	u32 state = task_state(t), exit = BPF_CORE_READ(t, exit_state);

	if (exit & 0x20)
		return 'Z';
	if (exit & 0x10)
		return 'X';
	if ((state & 0x402) == 0x402)
		return 'I';
	if (state & 1)
		return 'S';
	if (state & 2)
		return 'D';
	if (state & 4)
		return 'T';
	return state & 8 ? 't' : state & 0x40 ? 'P' : 'R';
}

static __always_inline void pid_facts(struct proc_task *r, struct task_struct *t)
{
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	struct pid *leader = BPF_CORE_READ(t, group_leader, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), leader_level = BPF_CORE_READ(leader, level);
	struct upid u;
	void *ns;

	if (!pid || !leader)
		return;
	bpf_probe_read_kernel(&u, sizeof(u), &pid->numbers[level]);
	r->nspid = u.nr;
	ns = u.ns;
	if (ns)
		r->pidns = BPF_CORE_READ((struct pid_namespace *)ns, ns.inum);
	bpf_probe_read_kernel(&u, sizeof(u), &leader->numbers[leader_level]);
	r->nstgid = u.nr;
}

/* rss_stat: since v6.2 (f1a7941243c1) an array of percpu counters, before a struct of atomics. */
static __always_inline u64 task_rss(struct task_struct *t)
{
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	struct mm_struct___percpu *p = (void *)mm;
	struct mm_struct___atomic *a = (void *)mm;
	long long n = 0;

	if (!mm)
		return 0;
	if (bpf_core_field_exists(a->rss_stat.count))
		n = BPF_CORE_READ(a, rss_stat.count[0].counter) +
		    BPF_CORE_READ(a, rss_stat.count[1].counter) +
		    BPF_CORE_READ(a, rss_stat.count[3].counter);
	else
		n = BPF_CORE_READ(p, rss_stat[0].count) + BPF_CORE_READ(p, rss_stat[1].count) +
		    BPF_CORE_READ(p, rss_stat[3].count);
	return n > 0 ? n : 0;
}

SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct proc_task r = {};

	if (!t || !t->pid)
		return 0;
	r.size = sizeof(r);
	task_ident_read(&r.task, t);
	r.flags = t->flags & PF_KTHREAD ? PROC_KTHREAD : 0;
	r.utime_ns = t->utime;
	r.stime_ns = t->stime;
	r.cgroup_id = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
	r.ppid = BPF_CORE_READ(t, real_parent, tgid);
	r.uid = BPF_CORE_READ(t, real_cred, uid.val);
	r.nr_threads = BPF_CORE_READ(t, signal, nr_threads);
	r.netns = BPF_CORE_READ(t, nsproxy, net_ns, ns.inum);
	r.mntns = BPF_CORE_READ(t, nsproxy, mnt_ns, ns.inum);
	pid_facts(&r, t);
	r.cpu = task_cpu_of(t);
	r.state = state_letter(t);
	if (t->pid == t->tgid)
		r.rss_pages = task_rss(t);
	BPF_CORE_READ_STR_INTO(&r.comm, t, comm);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
