#pragma once

/*
 * The kernel's types as far as the programs read them. Offsets are relocated at load (CO-RE), so
 * order and size do not matter, only names; renamed members are in compat.bpf.h.
 */

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;

#define PF_KTHREAD 0x00200000 /* linux/sched.h */
#define TASK_RUNNING 0
#define TASK_DEAD    0x80 /* linux/sched.h, since v4.14 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace;

/* An array of these is indexed by hand, so the layout must be the kernel's: it is, since v4.19. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct pid_namespace {
	struct ns_common ns;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long long counter;
} atomic64_t;

typedef struct {
	int refs_counter;
} refcount_t;

struct signal_struct {
	atomic_t live;
	int nr_threads;
	int group_exit_code;
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

struct task_struct {
	unsigned int flags;
	int on_cpu;
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	int static_prio;
	unsigned int rt_priority, policy;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 utime, stime;
	unsigned long min_flt, maj_flt;
	u64 start_boottime; /* since v5.5 (cf25e24db61c), before: real_start_time */
	const struct cred *real_cred;
	char comm[16];
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct css_set *cgroups;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	struct {
		u32 skc_daddr;
		u32 skc_rcv_saddr;
	};
	struct {
		u16 skc_dport;
		u16 skc_num;
	};
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sk_buff_head {
	u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct {
		atomic_t rmem_alloc;
		int len;
	} sk_backlog;
	struct socket *sk_socket;
	u16 sk_type;
	u16 sk_protocol; /* a bit field before v5.6 (bf9765145b85) */
	u32 sk_ack_backlog;
	refcount_t sk_wmem_alloc;
};

struct inet_sock {
	struct sock sk;
	u32 inet_saddr;
	u16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_received;
	u64 bytes_acked;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_nxt;
	u32 snd_una;
	u32 srtt_us;
	u32 write_seq;
	u32 total_retrans;
};

struct sockaddr_un {
	u16 sun_family;
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_rdev;
	long long i_size;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file_operations;

struct file {
	const struct file_operations *f_op;
	void *private_data;
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_mode;
	struct path f_path;
	long long f_pos;
};

struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop
