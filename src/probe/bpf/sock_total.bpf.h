#pragma once

/*
 * While TCP is watched in turns only, the kernel's own counters of each connection tell what went by unwatched. All that
 * a program has sent is acknowledged or waits for that: bytes_acked + (write_seq - snd_una); all that it has taken has
 * arrived and waits no more: bytes_received - (rcv_nxt - copied_seq). Calls that are under way are in it as far as they
 * have come. That holds for connections whose bytes are the program's own: not with an upper layer (TLS, MPTCP) or a
 * sockmap, which are watched always.
 */

#include "compat.bpf.h"
#include "health.bpf.h"
#include "runs.bpf.h"
#include "sock_facts.bpf.h"

const volatile bool can_turn = false; /* set before load */

__u32 tcp_watch = 0;   /* enum sock_watch */
__u32 tcp_settled = 0; /* 1: no program goes on that has not noticed the period yet */
__u32 tcp_met = 0;     /* sums made for connections that nobody has used yet */
/* Of sockets that user space has made to learn what plain ones have, by IPv4 and IPv6; 0: not learned. */
__u64 plain_id[2] = {0};
__u64 plain_prot[2] = {0};

#define MEET_MOST 65536

#define TCP_FIN_WAIT1 4 /* net/tcp_states.h */
#define TCP_FIN_WAIT2 5
#define TCP_TIME_WAIT 6
#define TCP_LAST_ACK  9
#define TCP_CLOSING   11
#define FIN_SENT                                                                                   \
	(1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | 1 << TCP_TIME_WAIT | 1 << TCP_LAST_ACK |        \
	 1 << TCP_CLOSING)

#define SOCK_DONE (1ul << 1) /* enum sock_flags of net/sock.h: the peer's FIN has come */

extern void *bpf_rdonly_cast(void *obj, u32 btf_id) __ksym __weak; /* since v6.2 (a35b9af4ec2c) */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common___total {
	volatile unsigned char skc_state;
	void *skc_prot;
	unsigned long skc_flags;
};

struct sock___total {
	struct sock_common___total __sk_common;
	struct {
		int owned;
	} sk_lock;
};

struct inet_connection_sock___total {
	const void *icsk_ulp_ops;
};

struct tcp_sock___total {
	volatile u64 bytes_received;
	volatile u64 bytes_acked;
	volatile u32 rcv_nxt;
	volatile u32 copied_seq;
	volatile u32 snd_una;
	volatile u32 write_seq;
};

#pragma clang attribute pop

static __always_inline bool is_tcp(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return (family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP;
}

/* Its functions are those of TCP itself: upper layers and sockmaps put their own in their place. */
static __always_inline bool has_plain_calls(struct sock *sk)
{
	u64 prot = (u64)((struct sock___total *)sk)->__sk_common.skc_prot;

	return prot == plain_prot[0] || prot == plain_prot[1];
}

/* What the program reads and writes is what the connection carries. Of MPTCP's own connections no program knows. */
static __always_inline bool is_plain(struct sock *sk)
{
	struct inet_connection_sock___total *c =
		bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct inet_connection_sock));

	return has_plain_calls(sk) && !c->icsk_ulp_ops;
}

static __always_inline bool is_plain_known(void)
{
	return can_turn && plain_prot[0];
}

/* If it is one of those that user space has made. */
static __always_inline void plain_learn(struct sock *sk, u64 sk_id)
{
	for (int i = 0; i < 2; i++)
		if (plain_id[i] == sk_id)
			plain_prot[i] = (u64)((struct sock___total *)sk)->__sk_common.skc_prot;
}

/* Whoever runs now uses the socket: it is not the network that does something to it. */
static __always_inline bool is_used_by_current(struct sock *sk)
{
	return ((struct sock___total *)sk)->sk_lock.owned;
}

/* What a connection has carried in one direction. */
struct carried {
	u64 bytes;  /* a SYN is one of them where it was counted */
	u32 sync;   /* the same for the life of a connection: two counters that grow together */
	bool fin;   /* the FIN is one of them */
};

static __always_inline void carried_sent(struct carried *r, struct sock *sk, bool fin_was_sent)
{
	struct tcp_sock___total *t = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 una = t->snd_una, seq;
	u64 acked = t->bytes_acked;
	u8 state;

	/* Last, so that it is not behind what was acknowledged: the sum is that of this moment. */
	seq = t->write_seq;
	r->bytes = acked + (u32)(seq - una);
	r->sync = (u32)acked - una;
	/* After that: a FIN that comes in between makes the sum too small for now, and never too large. */
	state = ((struct sock___total *)sk)->__sk_common.skc_state;
	r->fin = state == TCP_CLOSE ? fin_was_sent : FIN_SENT >> state & 1;
}

static __always_inline void carried_received(struct carried *r, struct sock *sk)
{
	struct tcp_sock___total *t = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	u32 seq = t->copied_seq, nxt;
	u64 received;

	nxt = t->rcv_nxt;
	received = t->bytes_received;
	r->bytes = received - (u32)(nxt - seq);
	r->sync = (u32)received - nxt;
	barrier();
	/* The last thing that comes: taken, when nothing is left. */
	r->fin = seq == nxt && ((struct sock___total *)sk)->__sk_common.skc_flags & SOCK_DONE;
}

static __always_inline void carried_once(struct carried *r, struct sock *sk, u64 dir, bool fin_was_sent)
{
	if (dir == SOCK_SENT)
		carried_sent(r, sk, fin_was_sent);
	else
		carried_received(r, sk);
	r->bytes -= r->fin;
}

#define READ_TRIES 4

/* Nobody holds the socket's lock meanwhile: two counters may be read of which one has grown and the other not yet. */
static __always_inline bool carried_read(struct carried *r, struct sock *sk, u64 dir, bool fin_was_sent, u32 sync)
{
	for (int i = 0; i < READ_TRIES; i++) {
		carried_once(r, sk, dir, fin_was_sent);
		if (r->sync == sync)
			return true;
	}
	return false;
}

/* Likewise, while it is not known yet what the counters have in common. */
static __always_inline bool carried_first(struct carried *r, struct sock *sk, u64 dir, bool fin_was_sent)
{
	carried_once(r, sk, dir, fin_was_sent);
	return carried_read(r, sk, dir, fin_was_sent, r->sync);
}
