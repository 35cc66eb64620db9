#pragma once

/* The kernel's types as far as waits are read from them; see kernel_types.bpf.h. */

#include "kernel_types.bpf.h"

#define S_IFMT	 0170000 /* linux/stat.h */
#define S_IFSOCK 0140000
#define S_IFCHR	 0020000
#define S_IFIFO	 0010000

#define ANON_INODE_FS_MAGIC 0x09041934 /* linux/magic.h */
#define PIPEFS_MAGIC	    0x50495045
#define MQUEUE_MAGIC	    0x19800202 /* ipc/mqueue.c */

#define PF_IO_WORKER   0x00000010 /* linux/sched.h */
#define PF_USER_WORKER 0x00004000 /* since v6.4 */
#define TASK_STOPPED   0x4
#define TASK_TRACED    0x8
#define TASK_WAKING    0x200 /* since v4.14 */

#define FUTEX_PRIVATE  128 /* linux/futex.h */
#define FUTEX_CMD_MASK 127
#define FUTEX_WAIT	  0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI  6
#define FUTEX_LOCK_PI2 13
#define F_SETLKW       7 /* linux/fcntl.h */
#define F_OFD_SETLKW   38
#define WAITID_PID     1 /* P_PID of linux/wait.h */

#define SOFTIRQ_SERVING 0x00000100 /* linux/preempt.h */
#define HARDIRQ_MASK	0x00ff0000 /* and NMI */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct ipc_namespace {
	struct ns_common ns;
};

struct nsproxy___wait {
	struct ipc_namespace *ipc_ns;
};

struct task_struct___wait {
	unsigned int in_iowait : 1;
	struct files_struct *files;
	struct nsproxy___wait *nsproxy;
	u64 start_time;
};

struct eventfd_ctx {
	int id; /* since v5.2 */
};

struct pt_regs___wait_x86 {
	unsigned long r10;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long cs; /* narrower since v6.9 */
};

struct pt_regs___wait_arm64 {
	u64 regs[31];
	u64 pstate;
	u64 orig_x0;
	s32 syscallno;
};

struct rq {
	u64 clock; /* of sched_clock() at the last change of the queue */
};

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long run_delay;	/* ns in run queues, without the one that it is in */
	unsigned long long last_queued; /* by rq.clock; 0: is not in a run queue, or runs */
};

struct task_struct___sched {
	struct sched_entity se;
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
};

/* Any type that begins with a pointer, and any that is a number: to load from an address. */
struct llist_node {
	struct llist_node *next;
};

struct seqcount {
	unsigned int sequence;
};

struct pcpu_hot___wait {
	int preempt_count;
};

struct thread_preempt___arm64 {
	u32 count;
};

struct thread_info___arm64 {
	struct thread_preempt___arm64 preempt;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

/* Only where the kernel accounts for I/O: CONFIG_TASK_XACCT, CONFIG_TASK_IO_ACCOUNTING. */
struct task_io_accounting {
	u64 rchar, wchar;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

struct task_struct___io {
	struct task_io_accounting ioac;
};

#pragma clang attribute pop

extern void *bpf_rdonly_cast(void *obj, u32 btf_id) __ksym __weak; /* since v6.2 (a35b9af4ec2c) */
