// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Bytes and messages that sockets move, summed by thread, socket, direction and peer. */
#include "kernel_types.bpf.h"

#include "compat.bpf.h"
#include "health.bpf.h"
#include "sock_abi.h"
#include "sock_facts.bpf.h"
#include "sock_total.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* linux/socket.h: what such a call returns stays in the queue, or is no data of the peer. */
#define MSG_PEEK     2
#define MSG_ERRQUEUE 0x2000

/* tcp_recvmsg() and its like lost their argument `noblock` in v5.19 (ec095263a965). */
const volatile bool recv_has_noblock = false;
/* The tracepoint does not see splice(2) from a socket; the functions of the other rungs do. */
const volatile bool recv_by_tracepoint = false;
/* TCP is summed beside the socket. */
const volatile bool use_tallies = false;

struct flow_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sock_key);
	__type(value, struct sock_value);
} flows_0 SEC(".maps"), flows_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct flow_map);
} flows SEC(".maps") = {
	.values = {&flows_0},
};

struct stream_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct stream_key);
	__type(value, struct sock_value);
} streams_0 SEC(".maps"), streams_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct stream_map);
} streams SEC(".maps") = {
	.values = {&streams_0},
};

/* What did not fit, by protocol and direction. */
struct rest {
	u64 bytes, msgs;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCK_PROTO_N * 2);
	__type(key, u32);
	__type(value, struct rest);
} rests SEC(".maps");

/* The peer that the message now under way names, by thread and direction. */
struct pending {
	u64 sk_id;
	u64 peer_id;
	u64 peer_ino;
	u8 addr[16];
	u16 port;
	u16 family;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct pending);
} pendings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

static __always_inline u64 pending_key(enum sock_dir dir)
{
	return (u64)dir << 32 | (u32)bpf_get_current_pid_tgid();
}

/* @what: enum sock_dir | enum sock_what << 1 */
static __always_inline void rest_add(enum sock_proto proto, u32 what, u64 bytes)
{
	u32 key = proto * 2 + (what & 1);
	struct rest *r = bpf_map_lookup_elem(&rests, &key);

	health_count(HEALTH_MAP_FULL);
	/* What was seen of a total is not lost with it. */
	if (!r || what >> 1 == SOCK_SEEN)
		return;
	__sync_fetch_and_add(&r->bytes, bytes);
	__sync_fetch_and_add(&r->msgs, 1);
}

struct moved {
	struct sock *sk;
	u64 bytes;
	u32 dir; /* enum sock_dir | enum sock_what << 1 */
	enum sock_proto proto;
	u64 peer_id;	       /* of the named or the connected peer */
	struct sock *peer;     /* unix: the connected peer */
	struct pending *named; /* the peer that the message names, NULL: none */
};

static __always_inline void flow_new(struct sock_value *v, u64 sk_id, const struct moved *m,
				     const bool raw)
{
	v->first_ns = v->last_ns = bpf_ktime_get_boot_ns();
	v->tick = bpf_jiffies64();
	v->bytes = m->bytes;
	v->msgs = 1;
	task_ident_read(&v->task, (void *)bpf_get_current_task());
	bpf_get_current_comm(v->comm, sizeof(v->comm));
	sock_facts_read(&v->sock, m->sk, sk_id, sock_id_is_address(raw));
	v->sock.peer_id = m->peer_id;
	if (m->named && m->named->family == AF_UNIX) {
		v->sock.peer_ino = m->named->peer_ino;
	} else if (m->named) {
		__builtin_memcpy(v->sock.remote.addr, m->named->addr, 16);
		v->sock.remote.port = m->named->port;
		v->sock.family = m->named->family;
	} else if (m->peer) {
		v->sock.peer_ino = sock_ino(m->peer);
	}
	if (m->peer_id && sock_id_is_address(raw))
		v->sock.flags |= SOCK_PEER_ID_ADDRESS;
	if (m->named)
		v->sock.flags |= SOCK_PEER_MESSAGE;
	else if (v->sock.family == AF_UNIX ? !m->peer_id : !v->sock.remote.port)
		v->sock.flags |= SOCK_PEER_UNKNOWN;
	if (m->proto == SOCK_PROTO_TCP)
		sock_tcp_read(&v->tcp, m->sk, raw);
}

/*
 * The clock costs as much as all the rest, and the state of the connection more: once a tick, and
 * once in 16 ticks, is enough.
 */
static __always_inline void flow_refresh(struct sock_value *v, const struct moved *m,
					 const bool raw)
{
	u64 tick = bpf_jiffies64(), changed = tick ^ v->tick;

	if (!changed)
		return;
	v->tick = tick;
	v->last_ns = bpf_ktime_get_boot_ns();
	if (changed >> 4 && m->proto == SOCK_PROTO_TCP)
		sock_tcp_read(&v->tcp, m->sk, raw);
}

/*
 * A function of its own, so that those that find their flow need not clear the room for a new one.
 */
static __noinline int flow_begin(void *map, const void *key, u64 sk_id, const struct moved *m,
				 const bool raw)
{
	struct sock_value fresh = {};

	flow_new(&fresh, sk_id, m, raw);
	if (bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST))
		rest_add(m->proto, m->dir, m->bytes);
	else
		health_count(HEALTH_EMITTED);
	return 0;
}

static __always_inline void flow_add(void *map, const void *key, u64 sk_id, const struct moved *m,
				     const bool raw)
{
	struct sock_value *v;

	if (!map)
		return;
	v = bpf_map_lookup_elem(map, key);
	if (!v) {
		flow_begin(map, key, sk_id, m, raw);
		return;
	}
	/* The key names the thread, and that runs on one CPU at a time. */
	v->bytes += m->bytes;
	v->msgs++;
	flow_refresh(v, m, raw);
}

static __always_inline u64 current_start_ns(void)
{
	if (HAS_HELPER(get_current_task_btf))
		return bpf_get_current_task_btf()->start_boottime;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), start_boottime);
}

#include "sock_tally.bpf.h"

static __always_inline bool counts(enum sock_proto proto, s32 ret)
{
	if (proto == SOCK_PROTO_OTHER)
		return false;
	/* A datagram may be empty; elsewhere 0 is the end of the stream. */
	return ret > 0 || (ret == 0 && (proto == SOCK_PROTO_UDP || proto == SOCK_PROTO_UNIX_DGRAM));
}

static __always_inline bool is_stream(enum sock_proto proto, const bool raw)
{
	return !sock_id_is_address(raw) &&
	       (proto == SOCK_PROTO_TCP || proto == SOCK_PROTO_UNIX_STREAM ||
		proto == SOCK_PROTO_UNIX_SEQPACKET);
}

static __always_inline void stream_add(struct moved *m)
{
	struct stream_key k = {.dir = m->dir};
	u32 zero = 0;

	k.sk_id = sock_id(m->sk, false);
	k.tid = bpf_get_current_pid_tgid();
	k.start_ns = current_start_ns();
	if (m->proto != SOCK_PROTO_TCP)
		m->peer_id = sock_peer_id(m->sk, false, &m->peer);
	flow_add(bpf_map_lookup_elem(&streams, &zero), &k, k.sk_id, m, false);
}

static __always_inline void message_add(struct moved *m, u64 sk_id, const bool raw)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct sock_key k = {.sk_id = sk_id, .dir = m->dir};
	u32 zero = 0;

	if (sock_id_is_address(raw))
		k.ino = sock_ino(m->sk);
	k.tid = bpf_get_current_pid_tgid();
	k.start_ns = BPF_CORE_READ(t, start_boottime);
	if (m->named) {
		k.known = 1;
		m->peer_id = m->named->peer_id;
		k.port = m->named->port;
		__builtin_memcpy(k.addr, m->named->addr, 16);
	} else if (m->proto >= SOCK_PROTO_UNIX_STREAM && m->proto <= SOCK_PROTO_UNIX_SEQPACKET) {
		m->peer_id = sock_peer_id(m->sk, raw, &m->peer);
	}
	k.peer_id = m->peer_id;
	flow_add(bpf_map_lookup_elem(&flows, &zero), &k, sk_id, m, raw);
}

static __always_inline int on_any_moved(struct sock *sk, s32 ret, u32 flags, enum sock_dir dir,
					const bool raw)
{
	struct moved m = {.sk = sk, .bytes = ret, .dir = dir};
	u64 pk = pending_key(dir), sk_id;
	bool is_data;

	m.proto = sock_proto_of(sk, raw);
	if (m.proto == SOCK_PROTO_OTHER)
		return 0;
	is_data = counts(m.proto, ret) &&
		  !(dir == SOCK_RECEIVED && flags & (MSG_PEEK | MSG_ERRQUEUE));
	if (is_stream(m.proto, raw)) {
		if (is_data)
			stream_add(&m);
		return 0;
	}
	sk_id = sock_id(sk, raw);
	if (m.proto == SOCK_PROTO_UDP || m.proto == SOCK_PROTO_UNIX_DGRAM)
		m.named = bpf_map_lookup_elem(&pendings, &pk);
	if (m.named && m.named->sk_id && m.named->sk_id != sk_id && !sock_id_is_address(raw))
		m.named = NULL;
	if (is_data)
		message_add(&m, sk_id, raw);
	if (m.named)
		bpf_map_delete_elem(&pendings, &pk);
	return 0;
}

/* A function of its own, so that those that are summed beside their socket do not pay for its room. */
static __noinline int on_rest_moved(struct sock *sk, s32 ret, u32 flags, enum sock_dir dir)
{
	return on_any_moved(sk, ret, flags, dir, false);
}

static __noinline int on_tcp_seen(struct sock *sk, s32 ret, u32 dir)
{
	struct moved m = {.sk = sk, .bytes = ret, .dir = dir | SOCK_SEEN << 1, .proto = SOCK_PROTO_TCP};

	stream_add(&m);
	return 0;
}

static __always_inline bool is_tcp_data(struct sock *sk, s32 ret, u32 flags, enum sock_dir dir)
{
	return ret > 0 && is_tcp(sk) && !(dir == SOCK_RECEIVED && flags & (MSG_PEEK | MSG_ERRQUEUE));
}

static __always_inline bool on_tcp_moved(struct sock *sk, s32 ret, enum sock_dir dir)
{
	/* Before anything else is touched: the connection has it. */
	if (can_turn && tcp_watch == SOCK_WATCH_NOT && has_plain_calls(sk))
		return true;
	switch (tally_add(sk, ret, dir)) {
	case TALLY_ADDED:
		return true;
	case TALLY_SEEN:
		on_tcp_seen(sk, ret, dir);
		return true;
	default:
		return false;
	}
}

static __always_inline int on_moved(struct sock *sk, s32 ret, u32 flags, enum sock_dir dir,
				    const bool raw)
{
	if (raw)
		return on_any_moved(sk, ret, flags, dir, true);
	if (use_tallies && is_tcp_data(sk, ret, flags, dir) && on_tcp_moved(sk, ret, dir))
		return 0;
	return on_rest_moved(sk, ret, flags, dir);
}

SEC("tp_btf/sock_send_length")
int send_btf(u64 *ctx)
{
	return on_moved((void *)ctx[0], ctx[1], ctx[2], SOCK_SENT, false);
}

SEC("tp_btf/sock_recv_length")
int recv_btf(u64 *ctx)
{
	return on_moved((void *)ctx[0], ctx[1], ctx[2], SOCK_RECEIVED, false);
}

/*
 * fexit: the return value follows the arguments. Functions of inet take a sock, of unix a socket.
 */
#define FEXIT_SK(fn, ret_arg, dir)                                                                 \
	SEC("fexit/" #fn)                                                                          \
	int fn##_fexit(u64 *ctx)                                                                   \
	{                                                                                          \
		return on_moved((void *)ctx[0], ctx[ret_arg], 0, dir, false);                      \
	}
#define FEXIT_SOCKET(fn, ret_arg, flags, dir)                                                      \
	SEC("fexit/" #fn)                                                                          \
	int fn##_fexit(u64 *ctx)                                                                   \
	{                                                                                          \
		struct socket *s = (void *)ctx[0];                                                 \
                                                                                                   \
		return on_moved(s->sk, ctx[ret_arg], flags, dir, false);                           \
	}
#define FEXIT_RECV(fn)                                                                             \
	SEC("fexit/" #fn)                                                                          \
	int fn##_fexit(u64 *ctx)                                                                   \
	{                                                                                          \
		if (recv_has_noblock)                                                              \
			return on_moved((void *)ctx[0], ctx[6], ctx[4], SOCK_RECEIVED, false);     \
		return on_moved((void *)ctx[0], ctx[5], ctx[3], SOCK_RECEIVED, false);             \
	}

FEXIT_SK(tcp_sendmsg, 3, SOCK_SENT)
FEXIT_SK(tcp_sendpage, 5, SOCK_SENT) /* until v6.5 (1d7e4538a546) */
FEXIT_SK(udpv6_sendmsg, 3, SOCK_SENT)
FEXIT_RECV(tcp_recvmsg)
FEXIT_RECV(udp_recvmsg)
FEXIT_RECV(udpv6_recvmsg)
FEXIT_SOCKET(tcp_splice_read, 5, 0, SOCK_RECEIVED)
FEXIT_SOCKET(unix_stream_sendmsg, 3, 0, SOCK_SENT)
FEXIT_SOCKET(unix_stream_sendpage, 5, 0, SOCK_SENT) /* until v6.5 (57d44a354a43) */
FEXIT_SOCKET(unix_stream_recvmsg, 4, ctx[3], SOCK_RECEIVED)
FEXIT_SOCKET(unix_stream_splice_read, 5, 0, SOCK_RECEIVED)

#define FEXIT_SPLICE(fn)                                                                           \
	SEC("fexit/" #fn)                                                                          \
	int fn##_beside(u64 *ctx)                                                                  \
	{                                                                                          \
		struct socket *s = (void *)ctx[0];                                                 \
                                                                                                   \
		if (!recv_by_tracepoint)                                                           \
			return 0;                                                                  \
		return on_moved(s->sk, ctx[5], 0, SOCK_RECEIVED, false);                           \
	}

FEXIT_SPLICE(tcp_splice_read)
FEXIT_SPLICE(unix_stream_splice_read)

FEXIT_SOCKET(unix_seqpacket_sendmsg, 3, 0, SOCK_SENT)
FEXIT_SOCKET(unix_seqpacket_recvmsg, 4, ctx[3], SOCK_RECEIVED)

/*
 * The functions of seqpacket call these, inlined or not: what is not a datagram is counted there.
 */
SEC("fexit/unix_dgram_sendmsg")
int unix_dgram_sendmsg_fexit(u64 *ctx)
{
	struct socket *s = (void *)ctx[0];

	return s->type == DGRAM ? on_moved(s->sk, ctx[3], 0, SOCK_SENT, false) : 0;
}

SEC("fexit/unix_dgram_recvmsg")
int unix_dgram_recvmsg_fexit(u64 *ctx)
{
	struct socket *s = (void *)ctx[0];

	return s->type == DGRAM ? on_moved(s->sk, ctx[4], ctx[3], SOCK_RECEIVED, false) : 0;
}

/* udpv6_sendmsg() hands v4-mapped messages on to this one: they were counted there. */
SEC("fexit/udp_sendmsg")
int udp_sendmsg_fexit(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	if (sk->__sk_common.skc_family != AF_INET)
		return 0;
	return on_moved(sk, ctx[3], 0, SOCK_SENT, false);
}

static __always_inline int on_unix_ready(struct sock *sk, const bool raw)
{
	struct pending p = {.family = AF_UNIX};
	u64 pk = pending_key(SOCK_SENT);

	if (SKC_READ(raw, sk, skc_family) != AF_UNIX || SK_READ(raw, sk, sk_type) != DGRAM)
		return 0;
	p.peer_id = sock_id(sk, raw);
	p.peer_ino = sock_ino(sk);
	bpf_map_update_elem(&pendings, &pk, &p, BPF_ANY);
	return 0;
}

/* In the sender's context, with the receiver: since v6.4 (40e0b0908142). */
SEC("tp_btf/sk_data_ready")
int unix_ready_btf(u64 *ctx)
{
	return on_unix_ready((void *)ctx[0], false);
}

SEC("fentry/sock_def_readable")
int unix_ready_fentry(u64 *ctx)
{
	return on_unix_ready((void *)ctx[0], false);
}

#include "sock_kprobe.bpf.h"

static __always_inline int on_udp_v4(struct bpf_sock_addr *ctx, enum sock_dir dir)
{
	struct pending p = {.family = AF_INET};
	u64 pk = pending_key(dir);

	p.sk_id = bpf_get_socket_cookie(ctx);
	p.port = bpf_ntohs(ctx->user_port);
	*(u32 *)p.addr = ctx->user_ip4;
	bpf_map_update_elem(&pendings, &pk, &p, BPF_ANY);
	return 1;
}

static __always_inline int on_udp_v6(struct bpf_sock_addr *ctx, enum sock_dir dir)
{
	u32 a[4] = {ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]};
	struct pending p = {};
	u64 pk = pending_key(dir);
	bool mapped = is_mapped(a);
	struct sock_addr_abi to = {};

	addr_from_v6(&to, a, mapped);
	p.family = mapped ? AF_INET : AF_INET6;
	p.sk_id = bpf_get_socket_cookie(ctx);
	p.port = bpf_ntohs(ctx->user_port);
	__builtin_memcpy(p.addr, to.addr, 16);
	bpf_map_update_elem(&pendings, &pk, &p, BPF_ANY);
	return 1;
}

SEC("cgroup/sendmsg4")
int udp_send4(struct bpf_sock_addr *ctx)
{
	return on_udp_v4(ctx, SOCK_SENT);
}

SEC("cgroup/sendmsg6")
int udp_send6(struct bpf_sock_addr *ctx)
{
	return on_udp_v6(ctx, SOCK_SENT);
}

SEC("cgroup/recvmsg4")
int udp_recv4(struct bpf_sock_addr *ctx)
{
	return on_udp_v4(ctx, SOCK_RECEIVED);
}

SEC("cgroup/recvmsg6")
int udp_recv6(struct bpf_sock_addr *ctx)
{
	return on_udp_v6(ctx, SOCK_RECEIVED);
}

static __always_inline void on_tcp_state(struct sock *sk, u32 old, u32 new)
{
	if (can_turn && (new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK || new == TCP_CLOSE) && is_used_by_current(sk))
		tally_used(sk);
	if (is_plain_known() && new == TCP_ESTABLISHED && is_tcp(sk) && is_plain(sk))
		tally_open(sk, old);
	if (new == TCP_CLOSE)
		tally_close(sk, old);
}

SEC("tp_btf/inet_sock_set_state")
int state_btf(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u32 old = ctx[1], new = ctx[2];
	struct sock_event *ev;

	if (use_tallies && sk->sk_protocol == IPPROTO_TCP)
		on_tcp_state(sk, old, new);
	if (sk->sk_protocol != IPPROTO_TCP ||
	    (new != TCP_ESTABLISHED && new != TCP_LISTEN && new != TCP_CLOSE))
		return 0;
	ev = bpf_ringbuf_reserve(&events, sizeof(*ev), 0);
	if (!ev) {
		health_count(HEALTH_RING_FULL);
		return 0;
	}
	__builtin_memset(ev, 0, sizeof(*ev));
	ev->time_ns = bpf_ktime_get_boot_ns();
	ev->old_state = old;
	ev->new_state = new;
	ev->active = old == TCP_SYN_SENT;
	sock_facts_read(&ev->sock, sk, sock_id(sk, false), sock_id_is_address(false));
	sock_tcp_read(&ev->tcp, sk, false);
	bpf_ringbuf_submit(ev, 0);
	health_count(HEALTH_EMITTED);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int end_btf(u64 *ctx)
{
	if (can_turn)
		tally_end((void *)ctx[0]);
	return 0;
}

/* Its caller has the socket's lock, and nothing has gone through the upper layer yet. */
SEC("fexit/tcp_set_ulp")
int tcp_set_ulp_fexit(u64 *ctx)
{
	struct sock_tally *t;

	if (!can_turn || (s32)ctx[2])
		return 0;
	t = bpf_sk_storage_get(&tallies, (struct sock *)ctx[0], 0, 0);
	if (!t)
		return 0;
	/* Until now it was plain. */
	tally_turn(t, true);
	tally_exempt(t, (void *)ctx[0], 1);
	return 0;
}
