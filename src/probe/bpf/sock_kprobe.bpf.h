#pragma once

/*
 * The rung below fexit, for kernels without BPF trampolines (arm64 before v6.0): what entry and
 * return of a function know is joined by thread and function. Included by sock.bpf.c once
 * on_moved() and on_unix_ready() are known.
 */

#include <linux/ptrace.h>

enum call_id {
	CALL_TCP_SENDMSG = 1,
	CALL_TCP_SENDPAGE,
	CALL_TCP_RECVMSG,
	CALL_TCP_SPLICE_READ,
	CALL_UDP_SENDMSG,
	CALL_UDP_RECVMSG,
	CALL_UDPV6_SENDMSG,
	CALL_UDPV6_RECVMSG,
	CALL_STREAM_SENDMSG,
	CALL_STREAM_SENDPAGE,
	CALL_STREAM_RECVMSG,
	CALL_STREAM_SPLICE_READ,
	CALL_DGRAM_SENDMSG,
	CALL_DGRAM_RECVMSG,
	CALL_SEQPACKET_SENDMSG,
	CALL_SEQPACKET_RECVMSG,
};

struct call {
	struct sock *sk;
	u64 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline int call_begin(enum call_id id, struct sock *sk, u32 flags)
{
	u64 key = (u64)id << 32 | (u32)bpf_get_current_pid_tgid();
	struct call c = {.sk = sk, .flags = flags};

	/*
	 * Still there: its return was not reported. A kretprobe follows max(10, 2 * CPUs) calls at
	 * a time, and threads that block in one use them up.
	 */
	if (bpf_map_lookup_elem(&calls, &key))
		health_count(HEALTH_READ_FAULT);
	if (bpf_map_update_elem(&calls, &key, &c, BPF_ANY))
		health_count(HEALTH_MAP_FULL);
	return 0;
}

/* Once for all functions: it is long. */
static __noinline int on_moved_raw(struct sock *sk, s32 ret, u32 flags, u32 dir)
{
	return on_moved(sk, ret, flags, dir, true);
}

static __always_inline int call_end(enum call_id id, s32 ret, enum sock_dir dir)
{
	u64 key = (u64)id << 32 | (u32)bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calls, &key);
	struct sock *sk;
	u32 flags;

	if (!c)
		return 0;
	sk = c->sk;
	flags = c->flags;
	bpf_map_delete_elem(&calls, &key);
	return on_moved_raw(sk, ret, flags, dir);
}

static __always_inline struct sock *arg_sk(struct pt_regs *ctx)
{
	return (void *)PT_REGS_PARM1(ctx);
}

static __always_inline struct sock *arg_socket_sk(struct pt_regs *ctx)
{
	struct socket *s = (void *)PT_REGS_PARM1(ctx);

	return BPF_CORE_READ(s, sk);
}

static __always_inline bool is_dgram(struct pt_regs *ctx)
{
	struct socket *s = (void *)PT_REGS_PARM1(ctx);

	return BPF_CORE_READ(s, type) == DGRAM;
}

static __always_inline u32 recv_flags(struct pt_regs *ctx)
{
	u64 fourth = PT_REGS_PARM4(ctx), fifth = PT_REGS_PARM5(ctx);

	/* Both are loaded first: the verifier refuses a load at an offset that was chosen. */
	barrier_var(fourth);
	barrier_var(fifth);
	return recv_has_noblock ? fifth : fourth;
}

#define KPROBE_PAIR(fn, id, when, sk, flags, dir)                                                  \
	SEC("kprobe/" #fn)                                                                         \
	int fn##_entry(struct pt_regs *ctx)                                                        \
	{                                                                                          \
		return when ? call_begin(id, sk(ctx), flags) : 0;                                  \
	}                                                                                          \
	SEC("kretprobe/" #fn)                                                                      \
	int fn##_return(struct pt_regs *ctx)                                                       \
	{                                                                                          \
		return call_end(id, PT_REGS_RC(ctx), dir);                                         \
	}

/* The same functions, and the same cases that are counted elsewhere, as on the rung fexit. */
#define IS_INET (BPF_CORE_READ(arg_sk(ctx), __sk_common.skc_family) == AF_INET)
#define UNIX_FLAGS PT_REGS_PARM4(ctx)

KPROBE_PAIR(tcp_sendmsg, CALL_TCP_SENDMSG, true, arg_sk, 0, SOCK_SENT)
KPROBE_PAIR(tcp_sendpage, CALL_TCP_SENDPAGE, true, arg_sk, 0, SOCK_SENT)
KPROBE_PAIR(tcp_recvmsg, CALL_TCP_RECVMSG, true, arg_sk, recv_flags(ctx), SOCK_RECEIVED)
KPROBE_PAIR(tcp_splice_read, CALL_TCP_SPLICE_READ, true, arg_socket_sk, 0, SOCK_RECEIVED)
KPROBE_PAIR(udp_sendmsg, CALL_UDP_SENDMSG, IS_INET, arg_sk, 0, SOCK_SENT)
KPROBE_PAIR(udp_recvmsg, CALL_UDP_RECVMSG, true, arg_sk, recv_flags(ctx), SOCK_RECEIVED)
KPROBE_PAIR(udpv6_sendmsg, CALL_UDPV6_SENDMSG, true, arg_sk, 0, SOCK_SENT)
KPROBE_PAIR(udpv6_recvmsg, CALL_UDPV6_RECVMSG, true, arg_sk, recv_flags(ctx), SOCK_RECEIVED)
KPROBE_PAIR(unix_stream_sendmsg, CALL_STREAM_SENDMSG, true, arg_socket_sk, 0, SOCK_SENT)
KPROBE_PAIR(unix_stream_sendpage, CALL_STREAM_SENDPAGE, true, arg_socket_sk, 0, SOCK_SENT)
KPROBE_PAIR(unix_stream_recvmsg, CALL_STREAM_RECVMSG, true, arg_socket_sk, UNIX_FLAGS,
	    SOCK_RECEIVED)
KPROBE_PAIR(unix_stream_splice_read, CALL_STREAM_SPLICE_READ, true, arg_socket_sk, 0, SOCK_RECEIVED)
KPROBE_PAIR(unix_dgram_sendmsg, CALL_DGRAM_SENDMSG, is_dgram(ctx), arg_socket_sk, 0, SOCK_SENT)
KPROBE_PAIR(unix_dgram_recvmsg, CALL_DGRAM_RECVMSG, is_dgram(ctx), arg_socket_sk, UNIX_FLAGS,
	    SOCK_RECEIVED)
KPROBE_PAIR(unix_seqpacket_sendmsg, CALL_SEQPACKET_SENDMSG, true, arg_socket_sk, 0, SOCK_SENT)
KPROBE_PAIR(unix_seqpacket_recvmsg, CALL_SEQPACKET_RECVMSG, true, arg_socket_sk, UNIX_FLAGS,
	    SOCK_RECEIVED)

SEC("kprobe/sock_def_readable")
int unix_ready_kprobe(struct pt_regs *ctx)
{
	return on_unix_ready(arg_sk(ctx), true);
}
