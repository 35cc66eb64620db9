#pragma once

/* Open files of all processes; a socket's record carries its facts, whatever its namespace. */

#include "compat.bpf.h"
#include "proc_abi.h"
#include "sock_facts.bpf.h"

#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFCHR	 0020000
#define S_IFIFO	 0010000

#define ANON_INODE_FS_MAGIC 0x09041934 /* linux/magic.h */
#define DMA_BUF_MAGIC	    0x444d4142
#define FILE_BASE	    __builtin_offsetof(struct proc_file, sock)

__u32 files_wanted = 0; /* PROC_FILES_… of the listing that is being read */

static __always_inline bool starts(const char *s, const char *with, int n)
{
	for (int i = 0; i < n; i++)
		if (s[i] != with[i])
			return false;
	return true;
}

static __always_inline u8 anon_kind(const char *name)
{
	if (starts(name, "[eventfd", 8))
		return PROC_FILE_EVENTFD;
	return starts(name, "[eventpoll", 10) ? PROC_FILE_EPOLL : PROC_FILE_ANON;
}

static __always_inline u8 file_kind(u16 mode, const char *name)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return starts(name, "memfd:", 6) ? PROC_FILE_MEMFD : PROC_FILE_REGULAR;
	case S_IFDIR:
		return PROC_FILE_DIRECTORY;
	case S_IFCHR:
		return PROC_FILE_CHAR;
	case S_IFBLK:
		return PROC_FILE_BLOCK;
	case S_IFIFO:
		return PROC_FILE_FIFO;
	default:
		return PROC_FILE_OTHER;
	}
}

/* The bound path, or the abstract name after its leading NUL. */
static __always_inline void unix_name(struct proc_file *r, struct sock *sk)
{
	struct unix_address *a = BPF_CORE_READ((struct unix_sock *)sk, addr);
	int len = a ? BPF_CORE_READ(a, len) : 0;
	/* sockaddr_un: the family, then the path. */
	char *from = (char *)a + bpf_core_field_offset(struct unix_address, name) + sizeof(u16);
	u64 n = len - sizeof(u16);
	char first = 0;

	if (len <= (int)sizeof(u16))
		return;
	bpf_probe_read_kernel(&first, 1, from);
	if (!first) {
		r->sock.flags |= SOCK_ABSTRACT;
		from++;
		n--;
	}
	if (n > PROC_PATH_BYTES)
		n = PROC_PATH_BYTES;
	asm volatile("" : "+r"(n));
	if (n > PROC_PATH_BYTES)
		n = PROC_PATH_BYTES;
	if (bpf_probe_read_kernel(r->name, n, from))
		return;
	r->name_bytes = n;
	/* A path is counted with its final NUL. */
	if (first && n && n <= PROC_PATH_BYTES && !r->name[(n - 1) & 127])
		r->name_bytes = n - 1;
}

static __always_inline void file_socket(struct proc_file *r, struct file *file)
{
	struct socket *s = bpf_sock_from_file(file);
	struct sock *sk = s ? s->sk : NULL, *peer = NULL;

	if (!sk)
		return;
	sock_facts_read(&r->sock, sk, sock_id(sk, false), sock_id_is_address(false));
	if (r->sock.family == AF_UNIX) {
		r->sock.peer_id = sock_peer_id(sk, false, &peer);
		if (peer)
			r->sock.peer_ino = sock_ino(peer);
		unix_name(r, sk);
	}
	if (r->sock.proto == SOCK_PROTO_TCP)
		sock_tcp_read(&r->tcp, sk, false);
	if (r->sock.flags & SOCK_LISTENING)
		r->rx_queue_bytes = BPF_CORE_READ(sk, sk_ack_backlog);
	else if (r->sock.proto == SOCK_PROTO_TCP)
		r->rx_queue_bytes = r->tcp.rcv_nxt - r->tcp.copied_seq;
	else
		r->rx_queue_bytes = BPF_CORE_READ(sk, sk_backlog.rmem_alloc.counter);
	if (r->sock.proto == SOCK_PROTO_TCP && !(r->sock.flags & SOCK_LISTENING))
		r->tx_queue_bytes = r->tcp.write_seq - r->tcp.snd_una;
}

static __always_inline void file_read(struct proc_file *r, struct file *file,
				      struct task_struct *t, u32 fd)
{
	struct inode *inode = file->f_inode;
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);

	r->size = FILE_BASE;
	r->access = file->f_mode & 3;
	r->tgid = t->tgid;
	r->fd = fd;
	r->leader_start_ns = BPF_CORE_READ(t, group_leader, start_boottime);
	r->ino = BPF_CORE_READ(inode, i_ino);
	r->size_bytes = BPF_CORE_READ(inode, i_size);
	r->pos = file->f_pos;
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->rdev = BPF_CORE_READ(inode, i_rdev);
	r->flags = file->f_flags;
	r->name_bytes = 0;
	if (name) {
		long n = bpf_probe_read_kernel_str(r->name, sizeof(r->name), name);

		r->name_bytes = n > 0 ? n - 1 : 0;
	}
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		r->kind = anon_kind(r->name);
	else
		r->kind = file_kind(BPF_CORE_READ(inode, i_mode), r->name);
}

static __always_inline bool is_wanted_dmabuf(struct file *file)
{
	return (files_wanted & 4) && BPF_CORE_READ(file, f_inode, i_sb, s_magic) == DMA_BUF_MAGIC;
}

SEC("iter/task_file")
int list_files(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct task_struct *t = ctx->task;
	struct proc_file r = {};
	bool is_socket;

	/* Threads share the files of their process: one of them tells. */
	if (!t || !file || t->pid != t->tgid)
		return 0;
	is_socket = (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK;
	if (!(files_wanted & (is_socket ? 1 : 2)) && (is_socket || !is_wanted_dmabuf(file)))
		return 0;
	file_read(&r, file, t, ctx->fd);
	if (is_socket) {
		__builtin_memset(r.name, 0, sizeof(r.name));
		r.name_bytes = 0;
		r.kind = PROC_FILE_SOCKET;
		r.size = sizeof(r);
		file_socket(&r, file);
		bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
		return 0;
	}
	bpf_seq_write(ctx->meta->seq, &r, FILE_BASE);
	return 0;
}
