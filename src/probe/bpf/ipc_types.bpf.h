#pragma once

/* The kernel's types that only the programs about system calls read, by CO-RE. */

#include "kernel_types.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The members of struct pt_regs that hold the number and the arguments of a system call. */
struct pt_regs___amd64 {
	unsigned long bx, cx, di, si, dx, r10, r8, orig_ax;
};

struct pt_regs___a64 {
	u64 regs[31];
	u64 orig_x0;
	int syscallno;
};

struct thread_info___x86 {
	u32 status;
};

struct thread_info___arm64 {
	unsigned long flags;
};

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

struct nsproxy___ipc {
	struct ipc_namespace *ipc_ns;
};

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

struct task_struct___files {
	struct files_struct *files;
	struct nsproxy___ipc *nsproxy;
};

/* With CONFIG_TASK_XACCT. */
struct task_io_accounting {
	u64 rchar, wchar; /* bytes that calls returned which read and write, sockets and terminals too */
};

struct task_struct___io {
	struct task_io_accounting ioac;
};

struct super_block___ipc {
	void *s_fs_info;
};

struct inode___private {
	void *i_private;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct pid___tasks {
	struct hlist_head tasks[4];
};

/* Since v4.19 (2c4704756cab). */
struct task_struct___links {
	struct hlist_node pid_links[4];
};

struct io_uring_cqe {
	s32 res;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
};

struct io_splice {
	int splice_fd_in;
	unsigned int flags;
};

struct pipe_inode_info {
	unsigned int ring_size; /* since v5.5 (6718b6f855a0) */
};

struct inode___pipe {
	struct pipe_inode_info *i_pipe;
};

struct eventfd_ctx {
	int id; /* since v5.2 (b556db17b0e7) */
};

#pragma clang attribute pop
