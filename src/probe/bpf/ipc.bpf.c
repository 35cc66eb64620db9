// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Bytes through pipes, queues, eventfds, files and copies of memory, where system calls return. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "health.bpf.h"
#include "ipc_abi.h"
#include "ipc_file.bpf.h"
#include "ipc_types.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* By system call number: enum ipc_call. */
const volatile __u8 call_actions[IPC_CALLS] = {};

__u64 compat_calls = 0;  /* of 32-bit programs: their numbers and arguments are others */
__u64 long_semops = 0;  /* semop(2) with more operations than are looked at */

struct moved_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ipc_key);
	__type(value, struct ipc_value);
} moved_0 SEC(".maps"), moved_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct moved_map);
} moved SEC(".maps") = {
	.values = {&moved_0},
};

/* Files have a map of their own, so that a program that walks a tree does not push out the rest. */
struct file_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ipc_key);
	__type(value, struct ipc_value);
} files_0 SEC(".maps"), files_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct file_map);
} files SEC(".maps") = {
	.values = {&files_0},
};

/* What did not fit, by kind and direction. */
struct rest {
	u64 bytes, calls;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, IPC_KINDS * IPC_DIRS);
	__type(key, u32);
	__type(value, struct rest);
} rests SEC(".maps");

/* A system call that returned what is not an error. */
struct call {
	u64 ret;
	u64 arg[5];
	u32 action;
};

/* One movement: what it is about, how much, and the file where there is one. */
struct moving {
	struct ipc_object object;
	u64 bytes;
	u64 calls;
	struct file *file;
	s32 fd;
	u32 dir;
	u32 flags;
};

static __always_inline void rest_add(const struct moving *m)
{
	u32 key = m->object.kind * IPC_DIRS + m->dir;
	struct rest *r = bpf_map_lookup_elem(&rests, &key);

	health_count(HEALTH_MAP_FULL);
	if (!r)
		return;
	__sync_fetch_and_add(&r->bytes, m->bytes);
	__sync_fetch_and_add(&r->calls, m->calls);
}

static __always_inline int moved_new(void *map, const struct ipc_key *k, const struct moving *m)
{
	struct ipc_value v = {};

	v.bytes = m->bytes;
	v.calls = m->calls;
	v.first_ns = v.last_ns = bpf_ktime_get_boot_ns();
	v.fd = m->fd;
	task_ident_read(&v.task, (void *)bpf_get_current_task());
	bpf_get_current_comm(v.comm, sizeof(v.comm));
	if (m->file)
		file_facts(&v, m->file, k->kind);
	return bpf_map_update_elem(map, k, &v, BPF_NOEXIST);
}

static __always_inline bool moved_count(void *map, const struct ipc_key *k, const struct moving *m)
{
	struct ipc_value *v = bpf_map_lookup_elem(map, k);

	if (!v)
		return false;
	__sync_fetch_and_add(&v->bytes, m->bytes);
	__sync_fetch_and_add(&v->calls, m->calls);
	v->last_ns = bpf_ktime_get_boot_ns();
	return true;
}

static __always_inline void moved_add(const struct moving *m, const bool fast)
{
	struct ipc_key k = {
		.id = m->object.id,
		.tid = bpf_get_current_pid_tgid(),
		.space = m->object.space,
		.kind = m->object.kind,
		.dir = m->dir,
		.flags = m->flags,
	};
	bool is_file = k.kind == IPC_FILE;
	u32 zero = 0;
	void *map;

	map = is_file ? bpf_map_lookup_elem(&files, &zero) : bpf_map_lookup_elem(&moved, &zero);
	if (!map)
		return;
	if (fast) {
		k.start_ns = bpf_get_current_task_btf()->start_boottime;
	} else {
		struct task_struct *t = (void *)bpf_get_current_task();

		k.start_ns = BPF_CORE_READ(t, start_boottime);
	}
	health_count(HEALTH_EMITTED);
	if (moved_count(map, &k, m) || !moved_new(map, &k, m))
		return;
	if (!is_file) {
		rest_add(m);
		return;
	}
	/* All further files of this thread together: they are few entries, so these find room. */
	k.id = 0;
	k.space = 0;
	k.flags |= IPC_FOLDED;
	map = bpf_map_lookup_elem(&moved, &zero);
	if (map && !moved_count(map, &k, m) && moved_new(map, &k, m))
		rest_add(m);
}

/* What went through descriptor @fd. */
static __always_inline void through_fd(u32 fd, u32 dir, u64 bytes, u32 accept, const bool fast)
{
	struct file *file = file_of_fd(fd, fast);
	struct moving m = {.bytes = bytes, .calls = 1, .file = file, .fd = fd, .dir = dir};

	if (!file)
		return;
	file_object(&m.object, file, fast);
	if (!(accept >> m.object.kind & 1))
		return;
	if (m.object.kind == IPC_SOCKET)
		m.object.id = BPF_CORE_READ(file, f_inode, i_ino);
	moved_add(&m, fast);
}

#define BIT(kind)      (1u << (kind))
#define ACCEPT_DATA    (BIT(IPC_PIPE) | BIT(IPC_FIFO) | BIT(IPC_EVENTFD) | BIT(IPC_FILE) | BIT(IPC_BLOCK))
#define ACCEPT_SPLICED (ACCEPT_DATA | BIT(IPC_SOCKET))
#define ACCEPT_QUEUE   BIT(IPC_POSIX_QUEUE)

/* Thirty-two-bit programs on a 64-bit kernel. */
static __always_inline bool is_compat(void)
{
#ifdef __TARGET_ARCH_x86
	struct task_struct___x86 *t = (void *)bpf_get_current_task();

	return BPF_CORE_READ(t, thread_info.status) & 2; /* TS_COMPAT, asm/thread_info.h */
#else
	struct task_struct___arm64 *t = (void *)bpf_get_current_task();

	return BPF_CORE_READ(t, thread_info.flags) & 1 << 22; /* TIF_32BIT, asm/thread_info.h */
#endif
}

static __always_inline void on_data_call(const struct call *c, const bool fast)
{
	switch (c->action) {
	case IPC_CALL_READ:
		through_fd(c->arg[0], IPC_READ, c->ret, ACCEPT_DATA, fast);
		break;
	case IPC_CALL_WRITE:
		through_fd(c->arg[0], IPC_WRITE, c->ret, ACCEPT_DATA, fast);
		break;
	}
}

#ifdef __TARGET_ARCH_x86
#define SYSCALL_NR(raw, regs)                                                                      \
	((raw) ? BPF_CORE_READ((struct pt_regs___amd64 *)(regs), orig_ax)                            \
	       : ((struct pt_regs___amd64 *)(regs))->orig_ax)
#define SYSCALL_ARG(raw, regs, x86, arm64)                                                         \
	((raw) ? BPF_CORE_READ((struct pt_regs___amd64 *)(regs), x86)                                \
	       : ((struct pt_regs___amd64 *)(regs))->x86)
#else
#define SYSCALL_NR(raw, regs)                                                                      \
	((raw) ? BPF_CORE_READ((struct pt_regs___a64 *)(regs), syscallno)                        \
	       : ((struct pt_regs___a64 *)(regs))->syscallno)
#define SYSCALL_ARG(raw, regs, x86, arm64)                                                         \
	((raw) ? BPF_CORE_READ((struct pt_regs___a64 *)(regs), arm64)                            \
	       : ((struct pt_regs___a64 *)(regs))->arm64)
#endif

static __always_inline int on_exit(struct pt_regs *regs, long ret, const bool raw)
{
	u64 nr = SYSCALL_NR(raw, regs);
	struct call c = {.ret = ret};

	if (ret < 0 || nr >= IPC_CALLS)
		return 0;
	c.action = call_actions[nr];
	if (!c.action)
		return 0;
	/* End of file, nothing left to write: only messages may be empty. */
	if (!ret && c.action <= IPC_CALL_COPY_RANGE)
		return 0;
	if (is_compat()) {
		__sync_fetch_and_add(&compat_calls, 1);
		return 0;
	}
	c.arg[0] = SYSCALL_ARG(raw, regs, di, orig_x0);
	c.arg[1] = SYSCALL_ARG(raw, regs, si, regs[1]);
	c.arg[2] = SYSCALL_ARG(raw, regs, dx, regs[2]);
	c.arg[3] = SYSCALL_ARG(raw, regs, r10, regs[3]);
	c.arg[4] = SYSCALL_ARG(raw, regs, r8, regs[4]);
	if (!raw && bpf_rdonly_cast)
		on_data_call(&c, true);
	else
		on_data_call(&c, false);
	return 0;
}

SEC("tp_btf/sys_exit")
int exit_btf(u64 *ctx)
{
	return on_exit((void *)ctx[0], ctx[1], false);
}

SEC("raw_tp/sys_exit")
int exit_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_exit((void *)ctx->args[0], ctx->args[1], true);
}
