// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Bytes through pipes, queues, eventfds, files and copies of memory, where system calls return. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "health.bpf.h"
#include "ipc_abi.h"
#include "ipc_count.bpf.h"
#include "ipc_file.bpf.h"
#include "ipc_message.bpf.h"
#include "ipc_pass.bpf.h"
#include "ipc_turns.bpf.h"
#include "ipc_types.bpf.h"
#include "ipc_uring.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* By system call number: enum ipc_call. */
const volatile __u16 call_actions[IPC_CALLS] = {};

__u64 aio_calls = 0; /* io_submit(2): what it moves is not seen */

/* A system call that returned; what is not an error, but for ioctl(2). */
struct call {
	u64 ret;
	u64 arg[5];
	u32 action;
};

/* A 32-bit program on a 64-bit kernel, or such a call by another one. */
static __always_inline bool is_compat(const bool fast)
{
#ifdef __TARGET_ARCH_x86
	struct task_struct___x86 *t = fast ? (void *)bpf_get_current_task_btf()
					   : (void *)bpf_get_current_task();

	return F_READ(fast, t, thread_info.status) & 2; /* TS_COMPAT, asm/thread_info.h */
#else
	struct task_struct___arm64 *t = fast ? (void *)bpf_get_current_task_btf()
					     : (void *)bpf_get_current_task();

	return F_READ(fast, t, thread_info.flags) & 1 << 22; /* TIF_32BIT, asm/thread_info.h */
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
	case IPC_CALL_VMSPLICE:
		/* From memory into the write end, or out of the read end into memory. */
		through_fd(c->arg[0], fd_mode(c->arg[0]) & FMODE_WRITE ? IPC_WRITE : IPC_READ,
			   c->ret, ACCEPT_DATA, fast);
		break;
	case IPC_CALL_SPLICE:
		through_fd(c->arg[0], IPC_READ, c->ret, ACCEPT_SPLICED, fast);
		through_fd(c->arg[2], IPC_WRITE, c->ret, ACCEPT_DATA, fast);
		break;
	case IPC_CALL_TEE:
		/* What is copied stays where it was. */
		through_fd(c->arg[1], IPC_WRITE, c->ret, ACCEPT_DATA, fast);
		break;
	case IPC_CALL_SENDFILE:
		through_fd(c->arg[1], IPC_READ, c->ret, ACCEPT_DATA, fast);
		through_fd(c->arg[0], IPC_WRITE, c->ret, ACCEPT_DATA, fast);
		break;
	case IPC_CALL_COPY_RANGE:
		through_fd(c->arg[0], IPC_READ, c->ret, ACCEPT_DATA, fast);
		through_fd(c->arg[2], IPC_WRITE, c->ret, ACCEPT_DATA, fast);
		break;
	}
}

static __always_inline void on_message_call(const struct call *c, const bool fast)
{
	switch (c->action) {
	case IPC_CALL_MQ_SEND:
		through_fd(c->arg[0], IPC_WRITE, c->arg[2], ACCEPT_QUEUE, fast);
		break;
	case IPC_CALL_MQ_RECEIVE:
		through_fd(c->arg[0], IPC_READ, c->ret, ACCEPT_QUEUE, fast);
		break;
	case IPC_CALL_MSGSND:
		on_sysv(IPC_SYSV_QUEUE, c->arg[0], IPC_WRITE, c->arg[2], 1, fast);
		break;
	case IPC_CALL_MSGRCV:
		if (!(c->arg[4] & MSG_COPY))
			on_sysv(IPC_SYSV_QUEUE, c->arg[0], IPC_READ, c->ret, 1, fast);
		break;
	case IPC_CALL_SEMOP:
		on_semop(c->arg[0], c->arg[1], c->arg[2], fast);
		break;
	case IPC_CALL_VM_READ:
		on_vm(c->arg[0], IPC_READ, c->ret, fast);
		break;
	case IPC_CALL_VM_WRITE:
		on_vm(c->arg[0], IPC_WRITE, c->ret, fast);
		break;
	case IPC_CALL_EVENTFD:
		on_eventfd(c->ret);
		break;
	case IPC_CALL_AIO:
		__sync_fetch_and_add(&aio_calls, 1);
		break;
	}
}

static __always_inline void on_pass_call(const struct call *c)
{
	switch (c->action) {
	case IPC_CALL_SENDMSG:
		on_msghdr(c->arg[0], c->arg[1], IPC_PASS_SENT);
		break;
	case IPC_CALL_RECVMSG:
		on_msghdr(c->arg[0], c->arg[1], IPC_PASS_RECEIVED);
		break;
	case IPC_CALL_SENDMMSG:
		on_mmsghdr(c->arg[0], c->arg[1], c->ret, IPC_PASS_SENT);
		break;
	case IPC_CALL_RECVMMSG:
		on_mmsghdr(c->arg[0], c->arg[1], c->ret, IPC_PASS_RECEIVED);
		break;
	case IPC_CALL_PIDFD_GETFD:
		on_pidfd_getfd(c->arg[0], c->ret);
		break;
	}
}

static __always_inline void on_call(const struct call *c, const bool fast)
{
	if (c->action <= IPC_CALL_COPY_RANGE)
		on_data_call(c, fast);
	else if (c->action <= IPC_CALL_AIO)
		on_message_call(c, fast);
	else if (c->action == IPC_CALL_IOCTL && fast)
		on_ioctl_fast(c->arg[0], (__s64)c->ret < 0);
	else if (c->action == IPC_CALL_IOCTL)
		on_ioctl_slow(c->arg[0], (__s64)c->ret < 0);
	else
		on_pass_call(c);
}

/* ipc(2), uapi/linux/ipc.h: the call, then its arguments in an order of its own. */
static __always_inline bool from_ipc_call(struct call *c)
{
	switch (c->arg[0]) {
	case 1: /* SEMOP */
	case 4: /* SEMTIMEDOP */
		c->action = IPC_CALL_SEMOP;
		c->arg[0] = c->arg[1];
		c->arg[1] = c->arg[4];
		return true;
	case 11: /* MSGSND */
	case 12: /* MSGRCV */
		c->action = c->arg[0] == 11 ? IPC_CALL_MSGSND : IPC_CALL_MSGRCV;
		c->arg[0] = c->arg[1];
		c->arg[4] = c->arg[3];
		return true;
	default:
		return false;
	}
}

#ifdef __TARGET_ARCH_x86
#define REG(raw, regs, x86, arm64)                                                                 \
	((raw) ? BPF_CORE_READ((struct pt_regs___amd64 *)(regs), x86)                              \
	       : ((struct pt_regs___amd64 *)(regs))->x86)
#else
#define REG(raw, regs, x86, arm64)                                                                 \
	((raw) ? BPF_CORE_READ((struct pt_regs___a64 *)(regs), arm64)                              \
	       : ((struct pt_regs___a64 *)(regs))->arm64)
#endif

static __always_inline void read_args(struct call *c, struct pt_regs *regs, const bool raw)
{
	c->arg[0] = REG(raw, regs, di, orig_x0);
	c->arg[1] = REG(raw, regs, si, regs[1]);
	c->arg[2] = REG(raw, regs, dx, regs[2]);
	c->arg[3] = REG(raw, regs, r10, regs[3]);
	c->arg[4] = REG(raw, regs, r8, regs[4]);
}

static __always_inline void read_compat_args(struct call *c, struct pt_regs *regs, const bool raw)
{
	c->arg[0] = (u32)REG(raw, regs, bx, orig_x0);
	c->arg[1] = (u32)REG(raw, regs, cx, regs[1]);
	c->arg[2] = (u32)REG(raw, regs, dx, regs[2]);
	c->arg[3] = (u32)REG(raw, regs, si, regs[3]);
	c->arg[4] = (u32)REG(raw, regs, di, regs[4]);
}

static __always_inline int on_exit(struct pt_regs *regs, long ret, const bool raw, const bool fast)
{
	u64 nr = REG(raw, regs, orig_ax, syscallno);
	struct call c = {.ret = ret};
	u32 actions;
	bool compat;

	run_count();
	if (nr >= IPC_CALLS)
		return 0;
	actions = call_actions[nr];
	if (!actions)
		return 0;
	compat = is_compat(fast);
	c.action = compat ? actions >> 8 : actions & 0xff;
	/* One that a signal interrupted is made again: -ERESTARTSYS … -ERESTART_RESTARTBLOCK. */
	if (ret < 0 && (c.action != IPC_CALL_IOCTL || (ret <= -512 && ret >= -516)))
		return 0;
	/* End of file, nothing left to write: only messages may be empty. */
	if (!c.action || (!ret && c.action <= IPC_CALL_COPY_RANGE))
		return 0;
	if (can_turn && period && is_accounted(c.action))
		turn_seen(c.action, ret);
	if (compat)
		read_compat_args(&c, regs, raw);
	else
		read_args(&c, regs, raw);
	if (c.action != IPC_CALL_IPC || from_ipc_call(&c))
		on_call(&c, fast);
	return 0;
}

SEC("tp_btf/sys_exit")
int exit_btf(u64 *ctx)
{
	if (bpf_rdonly_cast)
		return on_exit((void *)ctx[0], ctx[1], false, true);
	return on_exit((void *)ctx[0], ctx[1], false, false);
}

SEC("raw_tp/sys_exit")
int exit_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_exit((void *)ctx->args[0], ctx->args[1], true, false);
}
