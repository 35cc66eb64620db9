#pragma once

/*
 * Descriptors that go from process to process: with messages over Unix sockets, or by
 * pidfd_getfd(2).
 */

#include "ipc_count.bpf.h"

#define SOL_SOCKET 1 /* asm-generic/socket.h */
#define SCM_RIGHTS 1 /* linux/socket.h */
#define CMSGS	   4 /* control messages of one message that are looked at */
#define MMSGS	   8 /* messages of one call that are looked at */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* As user space lays them out, on 64 bits. */
struct user_cmsg {
	u64 len;
	u32 level, type;
};

struct user_control {
	u64 at, len;
};

#define MSGHDR_CONTROL 32 /* offset of msg_control and msg_controllen in struct msghdr */
#define MMSGHDR_BYTES  64

static __always_inline void passed_file(struct ipc_passed *ev, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct ipc_object o = {};
	const unsigned char *name;

	file_object(&o, file, false);
	ev->file = (u64)file;
	ev->kind = o.kind;
	ev->id = o.id;
	ev->space = o.space;
	ev->ino = BPF_CORE_READ(inode, i_ino);
	ev->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	ev->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	ev->mode = BPF_CORE_READ(inode, i_mode);
	name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(ev->name, sizeof(ev->name), name);
}

static __always_inline int passed(u32 fd, u64 sock_ino, u32 how, const struct task_ident *owner)
{
	struct file *file = file_of_fd(fd, false);
	struct ipc_passed *ev;

	if (!file)
		return 0;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev) {
		health_count(HEALTH_RING_FULL);
		return 0;
	}
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->time_ns = bpf_ktime_get_boot_ns();
	ev->how = how;
	ev->fd = fd;
	ev->sock_ino = sock_ino;
	task_ident_read(&ev->task, (void *)bpf_get_current_task());
	bpf_get_current_comm(ev->comm, sizeof(ev->comm));
	if (owner)
		ev->owner = *owner;
	passed_file(ev, file);
	bpf_ringbuf_submit(ev, 0);
	health_count(HEALTH_EMITTED);
	return 0;
}

/* Global functions are verified once, not at each call. */
__noinline int on_right(u64 at, u64 sock_ino, u32 how)
{
	u32 fd;

	if (bpf_probe_read_user(&fd, sizeof(fd), (void *)at)) {
		health_count(HEALTH_READ_FAULT);
		return 1;
	}
	return passed(fd, sock_ino, how, NULL);
}

/* The descriptors of one control message. */
__noinline int on_rights(u64 fds, u32 n, u64 sock_ino, u32 how)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < IPC_FDS; i++)
		if (i >= n || on_right(fds + i * sizeof(u32), sock_ino, how))
			break;
	return 0;
}

static __always_inline void on_control(const struct user_control *c, u64 sock_ino, u32 how)
{
	u64 at = c->at, end = c->at + c->len;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < CMSGS; i++) {
		struct user_cmsg h;

		if (at + sizeof(h) > end)
			break;
		if (bpf_probe_read_user(&h, sizeof(h), (void *)at)) {
			health_count(HEALTH_READ_FAULT);
			break;
		}
		if (h.len < sizeof(h) || h.len > end - at)
			break;
		if (h.level == SOL_SOCKET && h.type == SCM_RIGHTS)
			on_rights(at + sizeof(h), (h.len - sizeof(h)) / sizeof(u32), sock_ino, how);
		at += (h.len + 7) & ~7ull;
	}
}

/* @msg: struct msghdr of user space. Most messages have no control data and cost one read. */
__noinline int on_msghdr(u32 fd, u64 msg, u32 how)
{
	struct user_control c;
	struct file *file;
	u64 sock_ino = 0;

	if (bpf_probe_read_user(&c, sizeof(c), (void *)(msg + MSGHDR_CONTROL))) {
		health_count(HEALTH_READ_FAULT);
		return 0;
	}
	if (!c.len)
		return 0;
	file = file_of_fd(fd, false);
	if (file)
		sock_ino = BPF_CORE_READ(file, f_inode, i_ino);
	on_control(&c, sock_ino, how);
	return 0;
}

static __always_inline void on_mmsghdr(u32 fd, u64 vec, u32 n, u32 how)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MMSGS; i++) {
		if (i >= n)
			break;
		on_msghdr(fd, vec + i * MMSGHDR_BYTES, how);
	}
}

/* struct pid of a pidfd: in the inode since pidfs, v6.9 (cb12fd8e0dab), before in the file. */
static __always_inline struct pid *pid_of_pidfd(u32 fd)
{
	struct file *file = file_of_fd(fd, false);
	struct inode *inode = file ? BPF_CORE_READ(file, f_inode) : NULL;

	if (!inode)
		return NULL;
	if (BPF_CORE_READ(inode, i_sb, s_magic) == PID_FS_MAGIC)
		return BPF_CORE_READ((struct inode___private *)inode, i_private);
	return BPF_CORE_READ(file, private_data);
}

static __always_inline void on_pidfd_getfd(u32 pidfd, u32 fd)
{
	struct pid___tasks *pid = (void *)pid_of_pidfd(pidfd);
	struct hlist_node *first = pid ? BPF_CORE_READ(pid, tasks[0].first) : NULL;
	struct task_ident owner = {};

	/* It may have ended just now: then nobody can tell any more who it was. */
	if (!first)
		return;
	task_ident_read(&owner, (void *)first -
				bpf_core_field_offset(struct task_struct___links, pid_links[0]));
	passed(fd, 0, IPC_PASS_TAKEN, &owner);
}
