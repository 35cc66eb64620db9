#pragma once

/*
 * While system calls are watched in turns only, the kernel's own account of each thread (what
 * /proc/PID/task/TID/io shows) tells what went by unwatched: all that a thread has read since the period
 * began, less what was seen of it. Whether a call at the edge of a turn was seen or not, it is in one of
 * the two and not in both.
 */

#include "compat.bpf.h"
#include "health.bpf.h"
#include "ipc_abi.h"
#include "ipc_types.bpf.h"
#include "runs.bpf.h"

const volatile bool can_turn = false; /* tp_btf with task storage, and the kernel counts; set before load */

__u32 period = 0;	     /* number of the period of turns, 0: all calls are watched */
__u64 period_since_ns = 0; /* CLOCK_BOOTTIME */

/* By enum ipc_dir: IPC_WRITE, IPC_READ. */
struct turn_state {
	u64 base[2]; /* by the kernel's account, when the period began or the thread was first met in it */
	u64 seen[2]; /* of that account, by calls that were watched since */
	u64 told[2]; /* unwatched, as read so far */
	u64 seen_told[2];
	u32 period;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct turn_state);
} turn_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ended SEC(".maps");

/* What splice(2), queues and the like move is not in the kernel's account. */
static __always_inline bool is_accounted(u32 action)
{
	return action == IPC_CALL_READ || action == IPC_CALL_WRITE || action == IPC_CALL_SENDFILE ||
	       action == IPC_CALL_COPY_RANGE;
}

static __always_inline void turn_begin(struct turn_state *s, u64 wrote, u64 read)
{
	s->base[IPC_WRITE] = wrote;
	s->base[IPC_READ] = read;
	s->seen[IPC_WRITE] = s->seen[IPC_READ] = 0;
	s->told[IPC_WRITE] = s->told[IPC_READ] = 0;
	s->seen_told[IPC_WRITE] = s->seen_told[IPC_READ] = 0;
	s->period = period;
}

/* The account holds the call already. */
static __always_inline void turn_seen(u32 action, u64 bytes)
{
	struct task_struct___io *t = (void *)bpf_get_current_task_btf();
	u64 wrote = action == IPC_CALL_READ ? 0 : bytes, read = action == IPC_CALL_WRITE ? 0 : bytes;
	struct turn_state *s = bpf_task_storage_get(&turn_states, (struct task_struct *)t, 0,
						    BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!s) {
		health_count(HEALTH_READ_FAULT);
		return;
	}
	if (s->period != period)
		turn_begin(s, t->ioac.wchar - wrote, t->ioac.rchar - read);
	s->seen[IPC_WRITE] += wrote;
	s->seen[IPC_READ] += read;
}

/* A call that is in the account and not seen yet makes it less than it was for a moment. */
static __always_inline u64 gain(u64 now, u64 told)
{
	return (__s64)(now - told) > 0 ? now - told : 0;
}

/* @return whether there is something to tell */
static __always_inline bool turn_read(struct ipc_unwatched *r, struct turn_state *s, struct task_struct *task)
{
	struct task_struct___io *t = (void *)task;
	u64 now[2] = {t->ioac.wchar, t->ioac.rchar};

	/* Who began after the period did began at nothing. */
	if (s->period != period)
		turn_begin(s, task->start_boottime < period_since_ns ? now[0] : 0,
			   task->start_boottime < period_since_ns ? now[1] : 0);
#pragma clang loop unroll(full)
	for (int d = 0; d < 2; d++) {
		r->unwatched[d] = gain(now[d] - s->base[d] - s->seen[d], s->told[d]);
		r->seen[d] = s->seen[d] - s->seen_told[d];
	}
	return r->unwatched[0] || r->unwatched[1] || r->seen[0] || r->seen[1];
}

static __always_inline void turn_told(struct turn_state *s, const struct ipc_unwatched *r)
{
#pragma clang loop unroll(full)
	for (int d = 0; d < 2; d++) {
		s->told[d] += r->unwatched[d];
		s->seen_told[d] += r->seen[d];
	}
}

SEC("iter/task")
int read_turns(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct ipc_unwatched r = {};
	struct turn_state *s;

	if (!can_turn || !period || !t || t->flags & PF_KTHREAD)
		return 0;
	s = bpf_task_storage_get(&turn_states, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		health_count(HEALTH_READ_FAULT);
		return 0;
	}
	if (!turn_read(&r, s, t))
		return 0;
	task_ident_read(&r.task, t);
	BPF_CORE_READ_STR_INTO(&r.comm, t, comm);
	if (!bpf_seq_write(ctx->meta->seq, &r, sizeof(r)))
		turn_told(s, &r);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int end_btf(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	struct ipc_unwatched r = {};
	struct turn_state *s;

	if (!can_turn || !period || t->flags & PF_KTHREAD)
		return 0;
	s = bpf_task_storage_get(&turn_states, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s || !turn_read(&r, s, t))
		return 0;
	task_ident_read(&r.task, t);
	BPF_CORE_READ_STR_INTO(&r.comm, t, comm);
	if (bpf_ringbuf_output(&ended, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		health_count(HEALTH_RING_FULL);
	else
		turn_told(s, &r);
	return 0;
}
