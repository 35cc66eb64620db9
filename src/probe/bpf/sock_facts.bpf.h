#pragma once

/*
 * Reading a socket. @raw says that the pointer comes from a kprobe or another socket's memory: the
 * verifier does not know its type, so every member is read with a helper and the cookie cannot be
 * asked for; otherwise members are plain loads.
 */

#include <linux/in.h>

#include <bpf/bpf_endian.h>

#include "compat.bpf.h"
#include "sock_abi.h"

#define AF_UNIX	 1
#define AF_INET	 2
#define AF_INET6 10
#define STREAM	 1 /* SOCK_STREAM … of linux/net.h */
#define DGRAM	 2
#define SEQPACKET 5

#define TCP_ESTABLISHED 1 /* net/tcp_states.h */
#define TCP_SYN_SENT	2
#define TCP_CLOSE	7
#define TCP_LISTEN	10

#define SK_READ(raw, p, member) ((raw) ? BPF_CORE_READ(p, member) : (p)->member)
#define SKC_READ(raw, p, member)                                                                   \
	((raw) ? BPF_CORE_READ(p, __sk_common.member) : (p)->__sk_common.member)

#define HAS_HELPER(name) bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_##name)

/* The cookie helper takes BTF pointers since v5.12 (c5dbb89fc2ac), as old as helper check_mtu. */
static __always_inline u64 sock_id(struct sock *sk, const bool raw)
{
	if (!raw && HAS_HELPER(check_mtu))
		return bpf_get_socket_cookie(sk);
	return (u64)sk;
}

static __always_inline bool sock_id_is_address(const bool raw)
{
	return raw || !HAS_HELPER(check_mtu);
}

static __always_inline enum sock_proto sock_proto_of(struct sock *sk, const bool raw)
{
	u16 family = SKC_READ(raw, sk, skc_family), type = SK_READ(raw, sk, sk_type);
	u16 protocol;

	if (family == AF_UNIX)
		return type == STREAM  ? SOCK_PROTO_UNIX_STREAM
		       : type == DGRAM ? SOCK_PROTO_UNIX_DGRAM
				       : SOCK_PROTO_UNIX_SEQPACKET;
	if (family != AF_INET && family != AF_INET6)
		return SOCK_PROTO_OTHER;
	protocol = SK_READ(raw, sk, sk_protocol);
	if (protocol == IPPROTO_TCP)
		return SOCK_PROTO_TCP;
	return protocol == IPPROTO_UDP ? SOCK_PROTO_UDP : SOCK_PROTO_INET_OTHER;
}

/* SOCK_INODE() of linux/net.h */
static __always_inline u64 sock_ino(struct sock *sk)
{
	struct socket_alloc *a = (void *)BPF_CORE_READ(sk, sk_socket);

	return a ? BPF_CORE_READ(a, vfs_inode.i_ino) : 0;
}

static __always_inline u64 sock_peer_id(struct sock *sk, const bool raw, struct sock **ret_peer)
{
	struct unix_sock *u;
	struct sock *peer;

	/* The cast came with v5.16 (9eeb3aa33ae0). */
	if (!raw && HAS_HELPER(skc_to_unix_sock)) {
		u = bpf_skc_to_unix_sock(sk);
		if (!u)
			return 0;
		peer = u->peer;
		*ret_peer = peer;
		return peer ? bpf_get_socket_cookie(peer) : 0;
	}
	u = (void *)sk;
	*ret_peer = BPF_CORE_READ(u, peer);
	return (u64)*ret_peer;
}

static __always_inline bool is_mapped(const u32 a[4])
{
	return !a[0] && !a[1] && a[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_any(const u32 a[4])
{
	return !a[0] && !a[1] && !a[2] && !a[3];
}

static __always_inline void addr_from_v6(struct sock_addr_abi *r, const u32 a[4], bool mapped)
{
	u32 *to = (u32 *)r->addr;

	to[0] = mapped ? a[3] : a[0];
	to[1] = mapped ? 0 : a[1];
	to[2] = mapped ? 0 : a[2];
	to[3] = mapped ? 0 : a[3];
}

static __always_inline void sock_facts_inet(struct sock_facts *f, struct sock *sk)
{
	struct in6_addr from, to;
	bool mapped;

	f->local.port = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (!f->local.port) /* unbound already, at the end of a connection */
		f->local.port = bpf_ntohs(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
	f->remote.port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (f->family == AF_INET) {
		*(u32 *)f->local.addr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		*(u32 *)f->remote.addr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		return;
	}
	BPF_CORE_READ_INTO(&from, sk, __sk_common.skc_v6_rcv_saddr);
	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr);
	mapped = is_mapped(to.in6_u.u6_addr32) ||
		 (is_any(to.in6_u.u6_addr32) && is_mapped(from.in6_u.u6_addr32));
	if (mapped) {
		f->flags |= SOCK_V4_MAPPED;
		f->family = AF_INET;
	}
	addr_from_v6(&f->local, from.in6_u.u6_addr32, mapped);
	addr_from_v6(&f->remote, to.in6_u.u6_addr32, mapped);
}

/* All but peer_id and the flag SOCK_PEER_UNKNOWN, which depend on the message; f is zeroed. */
static __always_inline void sock_facts_read(struct sock_facts *f, struct sock *sk, u64 sk_id,
					    bool id_is_address)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	f->sk_id = sk_id;
	f->ino = sock_ino(sk);
	f->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	f->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	f->proto = sock_proto_of(sk, true);
	f->type = BPF_CORE_READ(sk, sk_type);
	f->protocol = f->family == AF_UNIX ? 0 : BPF_CORE_READ(sk, sk_protocol);
	if (id_is_address)
		f->flags |= SOCK_ID_IS_ADDRESS;
	/* The states of other protocols use the numbers of TCP. */
	if (state == TCP_LISTEN)
		f->flags |= SOCK_LISTENING;
	if (state == TCP_ESTABLISHED)
		f->flags |= SOCK_CONNECTED;
	if (f->family != AF_UNIX)
		sock_facts_inet(f, sk);
}

static __always_inline void sock_tcp_read(struct sock_tcp *r, struct sock *sk, const bool raw)
{
	struct tcp_sock *t = raw ? (void *)sk : bpf_skc_to_tcp_sock(sk);

	r->state = SKC_READ(raw, sk, skc_state);
	if (!t)
		return;
	r->bytes_acked = SK_READ(raw, t, bytes_acked);
	r->bytes_received = SK_READ(raw, t, bytes_received);
	r->srtt_us = SK_READ(raw, t, srtt_us) >> 3; /* kept times eight */
	r->total_retrans = SK_READ(raw, t, total_retrans);
	r->write_seq = SK_READ(raw, t, write_seq);
	r->snd_nxt = SK_READ(raw, t, snd_nxt);
	r->snd_una = SK_READ(raw, t, snd_una);
	r->rcv_nxt = SK_READ(raw, t, rcv_nxt);
	r->copied_seq = SK_READ(raw, t, copied_seq);
}
