#pragma once

/*
 * What a thread waits for, read from the system call that it is in and from its arguments, and who
 * wakes it. Pointers to tasks are trusted ones: of tp_btf programs, of iterators, or of the current
 * task.
 */

#include "compat.bpf.h"
#include "wait_abi.h"
#include "wait_types.bpf.h"

/* Set before load. */
const volatile bool use_regs = true;
const volatile __u8 wait_calls[WAIT_CALLS_MAX] = {};

/* Helpers that came with v5.15 (dd6e10fbd9fb) and v5.11. */
#define CAN_CALL(name)	bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_##name)
#define HAS_REGS	(use_regs && CAN_CALL(task_pt_regs) && HAS_CURRENT)
#define HAS_CURRENT	CAN_CALL(get_current_task_btf)

struct call {
	s32 nr; /* < 0: in none */
	u64 arg[4];
};

#if defined(__TARGET_ARCH_x86)
#define USER32_CS 0x23 /* 32-bit programs number their calls differently */
static __always_inline void call_read(struct call *c, struct task_struct *t)
{
	struct pt_regs___wait_x86 *r = (void *)bpf_task_pt_regs(t);

	c->nr = (s32)r->orig_ax;
	if ((u16)r->cs == USER32_CS)
		c->nr = WAIT_CALLS_MAX;
	c->arg[0] = r->di;
	c->arg[1] = r->si;
	c->arg[2] = r->dx;
	c->arg[3] = r->r10;
}
#else
#define PSR_32BIT 0x10
static __always_inline void call_read(struct call *c, struct task_struct *t)
{
	struct pt_regs___wait_arm64 *r = (void *)bpf_task_pt_regs(t);

	c->nr = r->syscallno;
	if (r->pstate & PSR_32BIT)
		c->nr = WAIT_CALLS_MAX;
	c->arg[0] = r->orig_x0;
	c->arg[1] = r->regs[1];
	c->arg[2] = r->regs[2];
	c->arg[3] = r->regs[3];
}
#endif

static __always_inline u8 call_class(s32 nr)
{
	return nr >= 0 && nr < WAIT_CALLS_MAX ? wait_calls[nr] : CALL_OTHER;
}

/* A pointer that came from memory as a number: typed where the kernel can, for plain loads. */
#define CAST(p, type)                                                                              \
	((struct type *)bpf_rdonly_cast((void *)(p), bpf_core_type_id_kernel(struct type)))
#define CAN_CAST (bpf_rdonly_cast != NULL)
#define LOAD(p, type, member)                                                                      \
	(CAN_CAST ? CAST(p, type)->member : BPF_CORE_READ((struct type *)(p), member))

static __always_inline bool is_name(u64 name, const char *s)
{
	union {
		char c[8];
		u64 n;
	} want = {{s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]}};

	return name == want.n;
}

static __always_inline void wait_on_anon(struct wait_on *w, struct file *file)
{
	struct dentry *d = (void *)BPF_CORE_READ(file, f_path.dentry);
	const unsigned char *text = BPF_CORE_READ(d, d_name.name);
	u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), text);
	if (is_name(name, "[eventfd")) {
		struct eventfd_ctx *ctx = BPF_CORE_READ(file, private_data);

		w->cause = WAIT_EVENTFD;
		w->kind = WAIT_ON_EVENTFD;
		w->a = BPF_CORE_READ(ctx, id);
	} else if (is_name(name, "[timerfd")) {
		w->cause = WAIT_SLEEP;
	} else if (is_name(name, "[signalf")) {
		w->cause = WAIT_SIGNAL;
	} else {
		w->cause = WAIT_FILE;
	}
}

static __always_inline u64 ipc_namespace(struct task_struct *t)
{
	struct task_struct___wait *x = (void *)t;

	return BPF_CORE_READ(x, nsproxy, ipc_ns, ns.inum);
}

static __always_inline void wait_on_file(struct wait_on *w, struct file *file, struct inode *inode,
					 struct task_struct *t, u16 mode)
{
	struct super_block *sb = LOAD(inode, inode, i_sb);
	u64 magic = LOAD(sb, super_block, s_magic);

	if (magic == ANON_INODE_FS_MAGIC) {
		wait_on_anon(w, file);
		return;
	}
	if (magic == MQUEUE_MAGIC) {
		w->cause = WAIT_QUEUE;
		w->kind = WAIT_ON_MQUEUE;
		w->b = ipc_namespace(t);
	} else if ((mode & S_IFMT) == S_IFIFO) {
		w->cause = WAIT_PIPE;
		w->kind = WAIT_ON_PIPE;
		if (magic != PIPEFS_MAGIC)
			w->b = LOAD(sb, super_block, s_dev);
	} else {
		w->cause = WAIT_FILE;
		w->kind = WAIT_ON_FILE;
		w->b = LOAD(sb, super_block, s_dev);
	}
	w->a = LOAD(inode, inode, i_ino);
}

/* What descriptor @fd of the thread stands for. */
static __always_inline void wait_on_fd(struct wait_on *w, struct task_struct *t, u32 fd)
{
	struct task_struct___wait *x = (void *)t;
	struct fdtable *table = x->files ? x->files->fdt : NULL;
	struct file *file = NULL;
	struct inode *inode;
	u16 mode;

	if (!table || fd >= table->max_fds)
		return;
	if (CAN_CAST)
		file = (void *)CAST(table->fd + fd, llist_node)->next;
	else
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	if (!file)
		return;
	inode = LOAD(file, file, f_inode);
	mode = LOAD(inode, inode, i_mode);
	if ((mode & S_IFMT) == S_IFSOCK) {
		struct socket *s = LOAD(file, file, private_data);
		struct sock *sk = LOAD(s, socket, sk);

		w->cause = WAIT_SOCKET;
		w->kind = WAIT_ON_SOCKET;
		w->a = LOAD(inode, inode, i_ino);
		w->b = LOAD(sk, sock, __sk_common.skc_cookie.counter);
	} else if ((mode & S_IFMT) == S_IFCHR) {
		w->cause = WAIT_DEVICE;
		w->kind = WAIT_ON_CHAR;
		w->a = LOAD(inode, inode, i_rdev);
	} else {
		wait_on_file(w, file, inode, t, mode);
	}
}

static __always_inline void wait_on_futex(struct wait_on *w, struct task_struct *t, u64 address,
					  bool private)
{
	w->cause = WAIT_FUTEX;
	w->kind = WAIT_ON_FUTEX;
	w->a = address;
	w->b = (u32)t->tgid | (private ? 0 : WAIT_SHARED);
}

/*
 * An ordinary mutex of glibc says 2 while others wait for it, and keeps its owner two ints behind
 * (struct __pthread_mutex_s). Where it is something else, user space finds no such thread.
 */
#define CONTENDED_LOCK	 2u
#define MUTEX_OWNER_AT	 8

static __always_inline void mutex_owner(struct wait_on *w, u64 address)
{
	u32 owner = 0;

	if (!bpf_probe_read_user(&owner, sizeof(owner), (void *)(address + MUTEX_OWNER_AT)) && owner &&
	    owner < WAIT_OWNER_MAX)
		w->word = WAIT_LOCK_OWNED | owner;
}

static __always_inline void call_futex(struct wait_on *w, const struct call *c,
				       struct task_struct *t, bool mine)
{
	u32 op = c->arg[1] & FUTEX_CMD_MASK;

	wait_on_futex(w, t, c->arg[0], c->arg[1] & FUTEX_PRIVATE);
	w->word = c->arg[2];
	if (mine && (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2))
		bpf_probe_read_user(&w->word, sizeof(w->word), (void *)c->arg[0]);
	else if (mine && w->word == CONTENDED_LOCK && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET))
		mutex_owner(w, c->arg[0]);
}

/* The first of several words has to do. */
static __always_inline void call_futex_v(struct wait_on *w, const struct call *c,
					 struct task_struct *t, bool mine)
{
	struct {
		u64 val, address;
		u32 flags, pad;
	} first = {};

	w->cause = WAIT_FUTEX;
	if (mine && !bpf_probe_read_user(&first, sizeof(first), (void *)c->arg[0]))
		wait_on_futex(w, t, first.address, first.flags & FUTEX_PRIVATE);
}

/* poll(2) about one descriptor waits for that one. */
static __always_inline void call_poll(struct wait_on *w, const struct call *c,
				      struct task_struct *t, bool mine)
{
	u32 fd = 0;

	if (!c->arg[1])
		w->cause = WAIT_SLEEP;
	else if (mine && c->arg[1] == 1 && !bpf_probe_read_user(&fd, sizeof(fd), (void *)c->arg[0]))
		wait_on_fd(w, t, fd);
	if (c->arg[1])
		w->cause = WAIT_POLL;
}

static __always_inline void call_ipc(struct wait_on *w, const struct call *c, struct task_struct *t,
				     bool queue)
{
	w->cause = queue ? WAIT_QUEUE : WAIT_SEMAPHORE;
	w->kind = queue ? WAIT_ON_SYSV_QUEUE : WAIT_ON_SYSV_SEM;
	w->a = (u32)c->arg[0];
	w->b = ipc_namespace(t);
}

static __always_inline void wait_on_set(struct wait_on *w, const struct call *c,
					struct task_struct *t, u16 kind)
{
	w->cause = WAIT_POLL;
	w->kind = kind;
	w->a = (u64)t->tgid << 32 | (u32)c->arg[0];
}

static __always_inline void wait_for_child(struct wait_on *w, s32 pid)
{
	w->cause = WAIT_CHILD;
	w->kind = WAIT_ON_CHILD;
	w->a = pid > 0 ? pid : 0;
}

static __always_inline void wait_by_call(struct wait_on *w, const struct call *c,
					 struct task_struct *t, bool mine, u8 class)
{
	struct task_struct___wait *x = (void *)t;

	if (class == CALL_FUTEX) {
		call_futex(w, c, t, mine);
		return;
	}
	if (class == CALL_FD || class == CALL_SYNC || class == CALL_LOCK || class == CALL_FCNTL) {
		wait_on_fd(w, t, c->arg[0]);
		if (class == CALL_SYNC)
			w->cause = WAIT_DISK;
		else if (class == CALL_LOCK ||
			 (class == CALL_FCNTL && (c->arg[1] == F_SETLKW || c->arg[1] == F_OFD_SETLKW)))
			w->cause = WAIT_FILE_LOCK;
		else if (w->cause == WAIT_FILE && BPF_CORE_READ_BITFIELD(x, in_iowait))
			w->cause = WAIT_DISK;
		return;
	}
	switch (class) {
	case CALL_FUTEX2:
		wait_on_futex(w, t, c->arg[0], c->arg[3] & FUTEX_PRIVATE);
		w->word = c->arg[1];
		break;
	case CALL_FUTEX_V:
		call_futex_v(w, c, t, mine);
		break;
	case CALL_POLL:
		call_poll(w, c, t, mine);
		break;
	case CALL_SELECT:
		w->cause = c->arg[0] ? WAIT_POLL : WAIT_SLEEP;
		break;
	case CALL_EPOLL:
		wait_on_set(w, c, t, WAIT_ON_EPOLL);
		break;
	case CALL_URING:
		wait_on_set(w, c, t, WAIT_ON_URING);
		break;
	case CALL_MSG:
		call_ipc(w, c, t, true);
		break;
	case CALL_SEM:
		call_ipc(w, c, t, false);
		break;
	case CALL_SLEEP:
		w->cause = WAIT_SLEEP;
		break;
	case CALL_SYNC_ALL:
		w->cause = WAIT_DISK;
		break;
	case CALL_WAIT4:
		wait_for_child(w, c->arg[0]);
		break;
	case CALL_WAITID:
		wait_for_child(w, c->arg[0] == WAITID_PID ? c->arg[1] : 0);
		break;
	case CALL_SIGNAL:
		w->cause = WAIT_SIGNAL;
		break;
	default:
		if (BPF_CORE_READ_BITFIELD(x, in_iowait))
			w->cause = WAIT_DISK;
	}
}

/* @mine: the thread is the current one, so that its memory can be read */
static __noinline int wait_read(struct wait_on *w, struct task_struct *t, u32 state, bool mine)
{
	struct call c;
	u8 class;

	if (!w)
		return 0;
	if (!HAS_REGS) {
		w->cause = WAIT_OTHER;
		return 0;
	}
	if (state & (TASK_STOPPED | TASK_TRACED)) {
		*w = (struct wait_on){.cause = WAIT_SIGNAL, .kind = WAIT_ON_STOP};
		return 0;
	}
	call_read(&c, t);
	class = call_class(c.nr) & WAIT_CALL_MASK;
	if (class == CALL_RESTART)
		return 0;
	w->a = w->b = 0;
	w->cause = WAIT_OTHER;
	w->kind = WAIT_ON_NOTHING;
	w->word = 0;
	if (t->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	if (c.nr < 0)
		w->cause = WAIT_PAGE_FAULT;
	else
		wait_by_call(w, &c, t, mine, class);
	return 0;
}

/*
 * The count that tells an interrupt from a thread. On x86 it is a variable of each CPU, whose symbol
 * most kernels do not give; the run queue of a CPU is such a variable, too, and the thread that runs
 * there points to it.
 */
#if defined(__TARGET_ARCH_x86)
const volatile __s64 count_from_rq = 0; /* distance in bytes, 0: not known; set before load */
const volatile bool count_in_hot = false; /* member of pcpu_hot: v6.2 to v6.14 */

static __always_inline bool preempt_count_read(u32 *ret, const struct task_struct *cur)
{
	const struct task_struct___sched *t = (const void *)cur;
	u64 at;

	if (!count_from_rq || !bpf_core_field_exists(t->se.cfs_rq->rq))
		return false;
	at = (u64)t->se.cfs_rq->rq + count_from_rq;
	if (count_in_hot)
		at += bpf_core_field_offset(struct pcpu_hot___wait, preempt_count);
	if (CAN_CAST)
		*ret = CAST(at, seqcount)->sequence;
	else
		bpf_probe_read_kernel(ret, sizeof(*ret), (void *)at);
	return true;
}
#else
static __always_inline bool preempt_count_read(u32 *ret, const struct task_struct *cur)
{
	*ret = ((const struct task_struct___arm64 *)cur)->thread_info.preempt.count;
	return true;
}
#endif

/*
 * Loopback and veth devices run the receiver's side on the sender's own context, as a software
 * interrupt: when the current thread is in a call that may send, it is the one that wakes.
 */
static __always_inline bool is_sending(struct task_struct *cur, u16 cause)
{
	struct call c;

	if (!HAS_REGS || (cause != WAIT_SOCKET && cause != WAIT_POLL) || (cur->flags & PF_KTHREAD))
		return false;
	call_read(&c, cur);
	return call_class(c.nr) & WAIT_CALL_SENDS;
}

static __always_inline void waker_read(struct waker *by, u16 cause)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	u32 count = 0;

	if (!preempt_count_read(&count, cur)) {
		by->class = WAKER_NONE;
	} else if (count & HARDIRQ_MASK) {
		by->class = WAKER_HARDIRQ;
	} else if ((count & SOFTIRQ_SERVING) && (!cur->pid || !is_sending(cur, cause))) {
		by->class = WAKER_SOFTIRQ;
	} else {
		by->class = WAKER_THREAD;
		by->tid = cur->pid;
		by->start_ns = cur->start_boottime;
		return;
	}
	by->tid = 0;
	by->start_ns = 0;
}
