#pragma once

/*
 * Messages, semaphores and copies of memory: what is named by an identifier, not by a descriptor.
 */

#include "ipc_count.bpf.h"

#define MSG_COPY 040000 /* linux/msg.h: the message stays in the queue */

__u64 long_semops = 0; /* semop(2) with more operations than are looked at */

struct sembuf {
	u16 num;
	short op;
	short flags;
};

/*
 * Counters in a map are unknown to the verifier, which then need not follow each of their values.
 */
struct semop {
	u64 by_dir[IPC_DIRS];
	struct sembuf v[IPC_SEMBUFS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct semop);
} semops SEC(".maps");

/*
 * By pid as the caller sees it, since v6.14 (6fab1be5e9aa); by pid of the host, since v6.2
 * (3f0e6f2b41d3).
 */
extern struct task_struct *bpf_task_from_vpid(s32 pid) __ksym __weak;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *t) __ksym __weak;

static __always_inline void on_sysv(u32 kind, u32 id, u32 dir, u64 bytes, u64 calls,
				    const bool fast)
{
	struct task_struct___files *t = (void *)bpf_get_current_task();
	struct moving m = {.bytes = bytes, .calls = calls, .fd = -1, .dir = dir};

	m.object.kind = kind;
	m.object.id = id;
	m.object.space = BPF_CORE_READ(t, nsproxy, ipc_ns, ns.inum);
	moved_add(&m, fast);
}

/* All operations of a call: each that adds, each that subtracts, each that waits for zero. */
static __always_inline void on_semop(u32 id, u64 ops, u64 n, const bool fast)
{
	u32 zero = 0, looked = n < IPC_SEMBUFS ? n : IPC_SEMBUFS;
	struct semop *s = bpf_map_lookup_elem(&semops, &zero);

	if (n > IPC_SEMBUFS)
		__sync_fetch_and_add(&long_semops, 1);
	if (!s || bpf_probe_read_user(s->v, looked * sizeof(*s->v), (void *)ops)) {
		health_count(HEALTH_READ_FAULT);
		return;
	}
	__builtin_memset(s->by_dir, 0, sizeof(s->by_dir));
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < IPC_SEMBUFS; i++) {
		if (i >= looked)
			break;
		if (s->v[i].op > 0)
			s->by_dir[IPC_WRITE]++;
		else if (s->v[i].op < 0)
			s->by_dir[IPC_READ]++;
		else
			s->by_dir[IPC_ZERO_WAIT]++;
	}
#pragma clang loop unroll(disable)
	for (u32 dir = 0; dir < IPC_DIRS; dir++)
		if (s->by_dir[dir])
			on_sysv(IPC_SYSV_SEM, id, dir, 0, s->by_dir[dir], fast);
}

/* A pid in the caller's namespace: user space has to find out who that is. */
static __always_inline void target_by_number(struct moving *m, u32 pid)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct pid *own = BPF_CORE_READ(t, thread_pid);
	u32 level = BPF_CORE_READ(own, level);
	struct upid upid = {};

	bpf_probe_read_kernel(&upid, sizeof(upid), &own->numbers[level]);
	m->object.id = pid;
	m->object.space = BPF_CORE_READ(upid.ns, ns.inum);
	m->flags = IPC_TARGET_PID;
}

static __always_inline bool sees_host_pids(void)
{
	struct task_struct *t = (void *)bpf_get_current_task();

	return BPF_CORE_READ(t, thread_pid, level) == 0;
}

static __always_inline bool target_by_task(struct moving *m, u32 pid)
{
	struct task_struct *t = NULL;

	if (!bpf_task_release)
		return false;
	if (bpf_task_from_vpid)
		t = bpf_task_from_vpid(pid);
	else if (bpf_task_from_pid && sees_host_pids())
		t = bpf_task_from_pid(pid);
	if (!t)
		return false;
	m->object.space = t->tgid;
	m->object.id = BPF_CORE_READ(t, group_leader, start_boottime);
	bpf_task_release(t);
	return true;
}

static __always_inline void on_vm(u32 pid, u32 dir, u64 bytes, const bool fast)
{
	struct moving m = {.bytes = bytes, .calls = 1, .fd = -1, .dir = dir};

	if (!bytes)
		return;
	m.object.kind = IPC_MEMORY;
	if (!fast || !target_by_task(&m, pid))
		target_by_number(&m, pid);
	moved_add(&m, fast);
}

static __always_inline void on_eventfd(u32 fd)
{
	struct file *file = file_of_fd(fd, false);
	struct eventfd_ctx *e = file ? BPF_CORE_READ(file, private_data) : NULL;
	u32 id, *generation, first = 1;

	if (!e)
		return;
	id = BPF_CORE_READ(e, id);
	generation = bpf_map_lookup_elem(&eventfds, &id);
	if (generation)
		__sync_fetch_and_add(generation, 1);
	else
		bpf_map_update_elem(&eventfds, &id, &first, BPF_ANY);
}
