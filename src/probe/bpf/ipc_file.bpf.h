#pragma once

/*
 * From a descriptor of the current task to what it stands for. @fast says that pointers may be
 * followed with plain loads: the kernel has bpf_rdonly_cast(); else each member costs a helper
 * call.
 */

#include "compat.bpf.h"
#include "ipc_abi.h"
#include "ipc_types.bpf.h"

#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFCHR	 0020000
#define S_IFIFO	 0010000

/* linux/magic.h and, for some, the file system's own source */
#define ANON_INODE_FS_MAGIC 0x09041934
#define PIPEFS_MAGIC	    0x50495045
#define MQUEUE_MAGIC	    0x19800202
#define PROC_SUPER_MAGIC    0x9fa0
#define SYSFS_MAGIC	    0x62656572
#define CGROUP_SUPER_MAGIC  0x27e0eb
#define CGROUP2_SUPER_MAGIC 0x63677270
#define DEBUGFS_MAGIC	    0x64626720
#define TRACEFS_MAGIC	    0x74726163
#define SECURITYFS_MAGIC    0x73636673
#define PID_FS_MAGIC	    0x50494446

#define EVENTFD_NAME 0x6466746e6576655bull /* "[eventfd", little-endian */

/* Since v6.2 (a35b9af4ec2c). */
extern void *bpf_rdonly_cast(void *obj, u32 btf_id) __ksym __weak;

#define F_READ(fast, p, m) ((fast) ? (p)->m : BPF_CORE_READ(p, m))
#define F_CAST(fast, p, type)                                                                      \
	((fast) ? (struct type *)bpf_rdonly_cast((void *)(p),                                      \
						 bpf_core_type_id_kernel(struct type))             \
		: (struct type *)(p))

#define FMODE_WRITE 2 /* linux/fs.h */

struct ipc_object {
	u64 id;
	u32 space;
	u32 kind;
};

/*
 * NULL when the descriptor is not open. Another thread may have closed it meanwhile: not seen then.
 */
static __always_inline struct file *file_of_fd(u32 fd, const bool fast)
{
	struct task_struct___files *t;
	struct file *file = NULL;
	struct fdtable *fdt;
	void *slot;
	u32 max;

	if (fast) {
		t = (void *)bpf_get_current_task_btf();
		fdt = t->files->fdt;
	} else {
		t = (void *)bpf_get_current_task();
		fdt = BPF_CORE_READ(t, files, fdt);
	}
	max = F_READ(fast, fdt, max_fds);
	if (fd >= max)
		return NULL;
	slot = (void *)(F_READ(fast, fdt, fd) + fd);
	/* Any type that begins with a pointer lets a plain load read one. */
	if (fast)
		file = (void *)F_CAST(true, slot, hlist_node)->next;
	else
		bpf_probe_read_kernel(&file, sizeof(file), slot);
	return file ? F_CAST(fast, file, file) : NULL;
}

static __always_inline u32 fd_mode(u32 fd)
{
	struct file *file = file_of_fd(fd, false);

	return file ? BPF_CORE_READ(file, f_mode) : 0;
}

static __always_inline bool is_kernel_interface(unsigned long magic)
{
	switch (magic) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Generation of each eventfd number, counted up whenever one is made. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} eventfds SEC(".maps");

static __always_inline void eventfd_object(struct ipc_object *o, struct file *file, const bool fast)
{
	struct eventfd_ctx *e = F_CAST(fast, F_READ(fast, file, private_data), eventfd_ctx);
	u32 *generation, id = F_READ(fast, e, id);

	o->kind = IPC_EVENTFD;
	o->id = id;
	generation = bpf_map_lookup_elem(&eventfds, &id);
	o->space = generation ? *generation : 0;
}

static __always_inline bool is_eventfd(struct file *file, const bool fast)
{
	const unsigned char *name;
	u64 head = 0;

	if (fast) {
		/* As above: a type that begins with eight bytes to compare. */
		name = file->f_path.dentry->d_name.name;
		head = (u64)F_CAST(true, name, hlist_node)->next;
	} else {
		name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
		bpf_probe_read_kernel(&head, sizeof(head), name);
	}
	return head == EVENTFD_NAME;
}

/*
 * A regular file, or what has no file type; anonymous inodes are "regular" since v6.16
 * (cfd86ef7e8e7).
 */
static __always_inline void regular_object(struct ipc_object *o, struct file *file,
					   struct inode *inode, const bool fast)
{
	struct super_block *sb = F_READ(fast, inode, i_sb);
	unsigned long magic = F_READ(fast, sb, s_magic);

	if (magic == ANON_INODE_FS_MAGIC) {
		if (is_eventfd(file, fast))
			eventfd_object(o, file, fast);
		return;
	}
	o->id = F_READ(fast, inode, i_ino);
	if (magic == MQUEUE_MAGIC) {
		struct super_block___ipc *s = (void *)sb;
		struct ipc_namespace *ns = (void *)BPF_CORE_READ(s, s_fs_info);

		o->kind = IPC_POSIX_QUEUE;
		o->space = BPF_CORE_READ(ns, ns.inum);
	} else if (!is_kernel_interface(magic)) {
		o->kind = IPC_FILE;
		o->space = F_READ(fast, sb, s_dev);
	}
}

/* @o is zeroed. Kind IPC_OTHER: of no interest. */
static __always_inline void file_object(struct ipc_object *o, struct file *file, const bool fast)
{
	struct inode *inode = F_READ(fast, file, f_inode);
	u16 mode = F_READ(fast, inode, i_mode) & S_IFMT;

	if (mode == S_IFSOCK) {
		o->kind = IPC_SOCKET;
	} else if (mode == S_IFIFO) {
		struct super_block *sb = F_READ(fast, inode, i_sb);

		o->id = F_READ(fast, inode, i_ino);
		o->kind = F_READ(fast, sb, s_magic) == PIPEFS_MAGIC ? IPC_PIPE : IPC_FIFO;
		o->space = o->kind == IPC_FIFO ? F_READ(fast, sb, s_dev) : 0;
	} else if (mode == S_IFREG || !mode) {
		regular_object(o, file, inode, fast);
	} else if (mode == S_IFBLK) {
		o->kind = IPC_BLOCK;
		o->id = F_READ(fast, inode, i_rdev);
	}
}

/* What only a new entry needs to know. */
static __always_inline void file_facts(struct ipc_value *v, struct file *file, u32 kind)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	const unsigned char *name;

	if (kind == IPC_PIPE || kind == IPC_FIFO) {
		struct inode___pipe *p = (void *)inode;

		if (bpf_core_field_exists(struct pipe_inode_info, ring_size))
			v->extra = BPF_CORE_READ(p, i_pipe, ring_size);
	} else if (kind == IPC_FILE) {
		v->extra = BPF_CORE_READ(inode, i_size);
	} else if (kind == IPC_SOCKET) {
		struct socket *s = BPF_CORE_READ(file, private_data);

		v->extra = BPF_CORE_READ(s, sk, __sk_common.skc_cookie.counter);
	}
	name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	if (kind == IPC_FIFO || kind == IPC_FILE || kind == IPC_BLOCK || kind == IPC_POSIX_QUEUE ||
	    kind == IPC_DEVICE)
		bpf_probe_read_kernel_str(v->name, sizeof(v->name), name);
}
