#pragma once

/* Memory that is mapped shared, of all processes: what several of them can exchange data through. */

#include "compat.bpf.h"
#include "proc_abi.h"

#define VM_READ	    0x01 /* linux/mm.h */
#define VM_WRITE    0x02
#define VM_MAYSHARE 0x80 /* MAP_SHARED, also where a read-only file took VM_SHARED away */

#define SYSV_NAME_BYTES 12 /* "SYSV%08x" */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

struct address_space___maps {
	unsigned long nrpages;
};

struct inode___maps {
	unsigned int i_nlink;
	u64 i_blocks;
	struct address_space___maps *i_mapping;
};

struct ipc_namespace___maps {
	struct ns_common ns;
};

struct shm_file_data___maps {
	struct ipc_namespace___maps *ns;
};

#pragma clang attribute pop

/* A name that begins so may also be a file's: user space trusts it only on the kernel's own mounts. */
static __always_inline bool named_sysv(const struct proc_map *r)
{
	return r->name_bytes == SYSV_NAME_BYTES && r->name[0] == 'S' && r->name[1] == 'Y' &&
	       r->name[2] == 'S' && r->name[3] == 'V';
}

static __always_inline void map_file(struct proc_map *r, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct inode___maps *more = (void *)inode;
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	struct shm_file_data___maps *sysv;
	long n = 0;

	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	r->ino = BPF_CORE_READ(inode, i_ino);
	r->rdev = BPF_CORE_READ(inode, i_rdev);
	r->size_bytes = BPF_CORE_READ(inode, i_size);
	r->mode = BPF_CORE_READ(inode, i_mode);
	r->links = BPF_CORE_READ(more, i_nlink);
	r->blocks = BPF_CORE_READ(more, i_blocks);
	r->cached_pages = BPF_CORE_READ(more, i_mapping, nrpages);
	if (name)
		n = bpf_probe_read_kernel_str(r->name, sizeof(r->name), name);
	r->name_bytes = n > 0 ? n - 1 : 0;
	if (!named_sysv(r))
		return;
	/* ipc/shm.c: the file of an attached segment points to its namespace. */
	sysv = BPF_CORE_READ(file, private_data);
	if (sysv)
		r->ipcns = BPF_CORE_READ(sysv, ns, ns.inum);
}

/* The iterator itself passes over threads that share the files of their process. */
SEC("iter/task_vma")
int list_maps(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *t = ctx->task;
	struct proc_map r;
	struct file *file;

	if (!t || !vma || !(vma->vm_flags & VM_MAYSHARE) || t->pid != t->tgid)
		return 0;
	file = vma->vm_file;
	if (!file)
		return 0;
	__builtin_memset(&r, 0, sizeof(r));
	r.size = sizeof(r);
	r.tgid = t->tgid;
	r.leader_start_ns = BPF_CORE_READ(t, group_leader, start_boottime);
	r.start = vma->vm_start;
	r.end = vma->vm_end;
	r.offset_pages = vma->vm_pgoff;
	r.access = (vma->vm_flags & VM_READ ? PROC_MAP_READ : 0) |
		   (vma->vm_flags & VM_WRITE ? PROC_MAP_WRITE : 0);
	map_file(&r, file);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
