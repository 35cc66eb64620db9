#pragma once

/* Adds up what moved, by thread and object, in maps that user space swaps at each reading. */

#include "compat.bpf.h"
#include "health.bpf.h"
#include "ipc_abi.h"
#include "ipc_file.bpf.h"

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

/*
 * Processes that are recorded, when not all of them are: user space says so, some time after a
 * fork.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u8);
} recorded SEC(".maps");

__u32 others_room = 0; /* entries for files that other processes may have; 0: all are recorded */
__u32 others = 0;      /* that they have in this interval, or asked for */

#define ANCESTORS 4 /* a child is recorded with its parent, before user space has heard of it */

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

/* The clock costs as much as all the rest: it is read once a timer tick for each entry. */
static __always_inline void touch(struct ipc_value *v)
{
	u32 tick = bpf_jiffies64();

	if (v->tick == tick)
		return;
	v->tick = tick;
	v->last_ns = bpf_ktime_get_boot_ns();
}

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
	touch(v);
	return true;
}

static __always_inline bool is_recorded(void)
{
	struct task_struct *t = (void *)bpf_get_current_task();

#pragma clang loop unroll(full)
	for (int i = 0; i < ANCESTORS; i++) {
		u32 tgid = BPF_CORE_READ(t, tgid);

		if (bpf_map_lookup_elem(&recorded, &tgid))
			return true;
		t = BPF_CORE_READ(t, real_parent);
	}
	return false;
}

/* Those that are not recorded may not use up the room of those that are. */
static __always_inline bool may_have_entry(void)
{
	if (!others_room || is_recorded())
		return true;
	if (others >= others_room)
		return false;
	__sync_fetch_and_add(&others, 1);
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
	u32 zero = 0;
	void *map;

	if (fast) {
		k.start_ns = bpf_get_current_task_btf()->start_boottime;
	} else {
		struct task_struct *t = (void *)bpf_get_current_task();

		k.start_ns = BPF_CORE_READ(t, start_boottime);
	}
	health_count(HEALTH_EMITTED);
	if (k.kind == IPC_FILE) {
		map = bpf_map_lookup_elem(&files, &zero);
		if (map &&
		    (moved_count(map, &k, m) || (may_have_entry() && !moved_new(map, &k, m))))
			return;
		/*
		 * All further files of this thread together: they are few entries, so these find
		 * room.
		 */
		k.id = 0;
		k.space = 0;
		k.flags |= IPC_FOLDED;
	}
	map = bpf_map_lookup_elem(&moved, &zero);
	if (map && !moved_count(map, &k, m) && moved_new(map, &k, m))
		rest_add(m);
}

#define BIT(kind)      (1u << (kind))
#define ACCEPT_DATA                                                                                \
	(BIT(IPC_PIPE) | BIT(IPC_FIFO) | BIT(IPC_EVENTFD) | BIT(IPC_FILE) | BIT(IPC_BLOCK))
#define ACCEPT_SPLICED (ACCEPT_DATA | BIT(IPC_SOCKET))
#define ACCEPT_QUEUE   BIT(IPC_POSIX_QUEUE)

/* What went through an open file; @accept: bit per enum ipc_kind. */
static __always_inline void through_file(struct file *file, u32 fd, u32 dir, u64 bytes, u32 accept,
					 const bool fast)
{
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

/* Functions of their own, so that there is one copy of all this for each way to read. */
static __noinline int through_fd_fast(u32 fd, u32 dir, u64 bytes, u32 accept)
{
	through_file(file_of_fd(fd, true), fd, dir, bytes, accept, true);
	return 0;
}

static __noinline int through_fd_slow(u32 fd, u32 dir, u64 bytes, u32 accept)
{
	through_file(file_of_fd(fd, false), fd, dir, bytes, accept, false);
	return 0;
}

static __always_inline void through_fd(u32 fd, u32 dir, u64 bytes, u32 accept, const bool fast)
{
	if (fast)
		through_fd_fast(fd, dir, bytes, accept);
	else
		through_fd_slow(fd, dir, bytes, accept);
}

/* Kernel messages, /dev/null and the like; terminals: every shell asks them something all the time. */
#define MEM_MAJOR	   1
#define TTY_MAJOR	   4
#define TTYAUX_MAJOR	   5
#define UNIX98_PTY_MAJOR   136 /* and the next seven, linux/major.h */
#define UNIX98_PTY_MAJORS  8

static __always_inline bool is_counted_device(u32 rdev)
{
	u32 major = rdev >> 20;

	return major != MEM_MAJOR && major != TTY_MAJOR && major != TTYAUX_MAJOR &&
	       major - UNIX98_PTY_MAJOR >= UNIX98_PTY_MAJORS;
}

/* ioctl(2) on a device; @failed: 1 or 0 */
static __always_inline void through_device(struct file *file, u32 fd, u32 failed, const bool fast)
{
	struct moving m = {.bytes = failed, .calls = 1, .file = file, .fd = fd, .dir = IPC_WRITE};
	struct inode *inode;

	if (!file)
		return;
	inode = F_READ(fast, file, f_inode);
	if ((F_READ(fast, inode, i_mode) & S_IFMT) != S_IFCHR)
		return;
	m.object.kind = IPC_DEVICE;
	m.object.id = F_READ(fast, inode, i_rdev);
	if (is_counted_device(m.object.id))
		moved_add(&m, fast);
}

static __noinline int on_ioctl_fast(u32 fd, u32 failed)
{
	through_device(file_of_fd(fd, true), fd, failed, true);
	return 0;
}

static __noinline int on_ioctl_slow(u32 fd, u32 failed)
{
	through_device(file_of_fd(fd, false), fd, failed, false);
	return 0;
}
