#pragma once

/* Members that kernels from 5.10 on name differently, and accessors that hide it. */

#include "kernel_types.bpf.h"
#include "task_abi.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* task_struct.__state: `volatile long state` before v5.14 (2f064a59a11f). */
struct task_struct___new_state {
	unsigned int __state;
};

struct task_struct___old_state {
	long state;
};

/* The CPU of a task: thread_info.cpu since v5.16 (bcf9033e5449) on x86 and arm64, before: cpu. */
struct thread_info___cpu {
	unsigned int cpu;
};

struct task_struct___info {
	struct thread_info___cpu thread_info;
};

struct task_struct___cpu {
	unsigned int cpu;
};

struct percpu_counter {
	long long count;
};

struct mm_rss_stat {
	atomic64_t count[4];
};

struct mm_struct___percpu {
	struct percpu_counter rss_stat[4];
};

struct mm_struct___atomic {
	struct mm_rss_stat rss_stat;
};

#pragma clang attribute pop

/* Read with bpf_core_read, so that the same body serves raw_tp, where pointers are not trusted. */
static __always_inline u32 task_state(const struct task_struct *t)
{
	const struct task_struct___new_state *n = (const void *)t;
	const struct task_struct___old_state *o = (const void *)t;

	if (bpf_core_field_exists(n->__state))
		return BPF_CORE_READ(n, __state);
	return BPF_CORE_READ(o, state);
}

/* The CPU that runs it or has it queued, < 0: not known. */
static __always_inline s32 task_cpu_of(struct task_struct *t)
{
	struct task_struct___info *i = (void *)t;
	struct task_struct___cpu *c = (void *)t;

	if (bpf_core_field_exists(i->thread_info.cpu))
		return BPF_CORE_READ(i, thread_info.cpu);
	if (bpf_core_field_exists(c->cpu))
		return BPF_CORE_READ(c, cpu);
	return -1;
}

static __always_inline void task_ident_read(struct task_ident *id, const struct task_struct *t)
{
	id->tid = BPF_CORE_READ(t, pid);
	id->tgid = BPF_CORE_READ(t, tgid);
	id->start_ns = BPF_CORE_READ(t, start_boottime);
	id->leader_start_ns = BPF_CORE_READ(t, group_leader, start_boottime);
}
