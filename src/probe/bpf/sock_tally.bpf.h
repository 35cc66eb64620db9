#pragma once

/*
 * TCP, where every nanosecond a message counts: the sums lie beside the socket itself, one for each
 * direction, owned by the first thread that used it. That thread alone writes them, so nothing is
 * locked; other threads of the same socket are summed in the map of streams. The sums only grow: an
 * iterator hands over what was added since the time before, and the end of the connection the rest.
 */

/* What each message touches comes first and together: it is cold in a server of many connections. */
struct sock_side {
	struct task_ident owner; /* tid 0: nobody */
	u64 bytes, msgs;
	u64 tick;     /* jiffies at last_ns, 0: nothing since the last reading */
	u64 first_ns; /* since the last reading; 0: none */
	u64 last_ns;
	u64 read_bytes, read_msgs; /* handed over */
	char comm[TASK_COMM_BYTES];
};

struct sock_tally {
	struct sock_side sent, received;
	u32 closed; /* what comes now is summed elsewhere: nobody would read it here any more */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sock_tally);
} tallies SEC(".maps");

struct claim {
	u64 sk_id;
	u64 dir; /* enum sock_dir, or: */
};

#define CLAIM_READING 2 /* of both sides, by the iterator or the end of the connection */

/* Two threads may want to own one side at once, or two CPUs to hand it over: the map decides. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct claim);
	__type(value, u32);
} claims SEC(".maps");

static __noinline int side_claim(struct sock_side *s, u64 sk_id, u64 dir)
{
	struct claim k = {.sk_id = sk_id, .dir = dir};
	struct task_ident me = {};
	u32 one = 1;

	if (bpf_map_update_elem(&claims, &k, &one, BPF_NOEXIST))
		return 0;
	task_ident_read(&me, (void *)bpf_get_current_task());
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->owner.tgid = me.tgid;
	s->owner.start_ns = me.start_ns;
	s->owner.leader_start_ns = me.leader_start_ns;
	barrier();
	s->owner.tid = me.tid;
	return 1;
}

static __always_inline void side_release(struct sock_side *s, u64 sk_id, u64 dir)
{
	struct claim k = {.sk_id = sk_id, .dir = dir};

	s->owner.tid = 0;
	bpf_map_delete_elem(&claims, &k);
}

/* @return whether it was summed here */
static __always_inline bool tally_add(struct sock *sk, u64 bytes, enum sock_dir dir)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct task_struct *me = bpf_get_current_task_btf();
	u64 tick = bpf_jiffies64();
	struct sock_side *s;

	if (!t)
		return false;
	s = dir == SOCK_SENT ? &t->sent : &t->received;
	if (s->owner.tid != (u32)me->pid || s->owner.start_ns != me->start_boottime) {
		if (s->owner.tid || t->closed || !side_claim(s, sock_id(sk, false), dir))
			return false;
	}
	s->bytes += bytes;
	s->msgs++;
	if (s->tick == tick)
		return true;
	s->tick = tick;
	s->last_ns = bpf_ktime_get_boot_ns();
	if (!s->first_ns)
		s->first_ns = s->last_ns;
	return true;
}

/* What was added since the last reading; @p v is zeroed. */
static __always_inline void side_value(struct sock_value *v, const struct sock_side *s,
				       struct sock *sk, u64 bytes, u64 msgs)
{
	v->bytes = bytes - s->read_bytes;
	v->msgs = msgs - s->read_msgs;
	v->first_ns = s->first_ns;
	v->last_ns = s->last_ns;
	v->task = s->owner;
	__builtin_memcpy(v->comm, s->comm, sizeof(v->comm));
	sock_facts_read(&v->sock, sk, sock_id(sk, false), false);
	if (!v->sock.remote.port)
		v->sock.flags |= SOCK_PEER_UNKNOWN;
	sock_tcp_read(&v->tcp, sk, true);
}

/* The connection ends: the rest goes to the map of streams, under its owner's name. */
static __noinline int side_flush(struct sock_side *s, struct sock *sk, u64 dir)
{
	struct stream_key k = {.dir = dir, .tid = s->owner.tid, .start_ns = s->owner.start_ns};
	struct sock_value fresh = {}, *v;
	u64 bytes = s->bytes, msgs = s->msgs;
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&streams, &zero);

	k.sk_id = sock_id(sk, false);
	if (msgs == s->read_msgs || !map)
		return 0;
	side_value(&fresh, s, sk, bytes, msgs);
	v = bpf_map_lookup_elem(map, &k);
	if (v) {
		v->bytes += fresh.bytes;
		v->msgs += fresh.msgs;
		v->last_ns = fresh.last_ns;
	} else if (bpf_map_update_elem(map, &k, &fresh, BPF_NOEXIST)) {
		rest_add(SOCK_PROTO_TCP, dir, fresh.bytes);
	}
	s->read_bytes = bytes;
	s->read_msgs = msgs;
	return 0;
}

/* @return whether nobody else hands over what this socket has; the others have to leave it then */
static __always_inline bool reading_begin(u64 sk_id)
{
	struct claim k = {.sk_id = sk_id, .dir = CLAIM_READING};
	u32 one = 1;

	return !bpf_map_update_elem(&claims, &k, &one, BPF_NOEXIST);
}

static __always_inline void reading_end(u64 sk_id)
{
	struct claim k = {.sk_id = sk_id, .dir = CLAIM_READING};

	bpf_map_delete_elem(&claims, &k);
}

static __noinline int tally_flush(struct sock_tally *t, struct sock *sk)
{
	u64 sk_id = sock_id(sk, false);

	if (!t || !reading_begin(sk_id))
		return 0;
	side_flush(&t->sent, sk, SOCK_SENT);
	side_flush(&t->received, sk, SOCK_RECEIVED);
	side_release(&t->sent, sk_id, SOCK_SENT);
	side_release(&t->received, sk_id, SOCK_RECEIVED);
	reading_end(sk_id);
	return 0;
}

static __always_inline void tally_close(struct sock *sk)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, 0);

	if (!t || t->closed)
		return;
	t->closed = 1;
	barrier();
	/* While the iterator reads it, that does the rest. */
	tally_flush(t, sk);
}

/* What a side stood at when it was written. */
struct side_mark {
	u64 bytes, msgs;
};

/* @return 0, or not where the buffer is full */
static __noinline int side_write(struct seq_file *seq, struct sock *sk, struct sock_side *s, u64 dir,
				 struct side_mark *ret)
{
	struct sock_tally_record r = {.dir = dir};

	ret->bytes = s->bytes;
	ret->msgs = s->msgs;
	if (ret->msgs == s->read_msgs)
		return 0;
	side_value(&r.v, s, sk, ret->bytes, ret->msgs);
	return bpf_seq_write(seq, &r, sizeof(r)) != 0;
}

static __always_inline void side_handed_over(struct sock_side *s, struct sock *sk, u64 dir,
					     const struct side_mark *m)
{
	if (m->msgs == s->read_msgs) {
		/* Idle: who uses it next may be another thread. */
		if (s->owner.tid)
			side_release(s, sock_id(sk, false), dir);
		return;
	}
	s->read_bytes = m->bytes;
	s->read_msgs = m->msgs;
	s->first_ns = s->tick = 0;
}

/* Nothing new since the last reading, nor anybody who would have to give it up. */
static __always_inline bool side_rests(const struct sock_side *s)
{
	return s->msgs == s->read_msgs && !s->owner.tid;
}

static __always_inline void tally_read(struct seq_file *seq, struct sock *sk, struct sock_tally *t)
{
	struct side_mark sent, received;

	/*
	 * Of a full buffer the kernel drops all that this call wrote, and asks again: neither side is handed
	 * over before both are written.
	 */
	if (side_write(seq, sk, &t->sent, SOCK_SENT, &sent) ||
	    side_write(seq, sk, &t->received, SOCK_RECEIVED, &received))
		return;
	side_handed_over(&t->sent, sk, SOCK_SENT, &sent);
	side_handed_over(&t->received, sk, SOCK_RECEIVED, &received);
}

SEC("iter/bpf_sk_storage_map")
int read_tallies(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock_tally *t = ctx->value;
	struct sock *sk = ctx->sk;
	u64 sk_id;

	if (!sk || !t || (side_rests(&t->sent) && side_rests(&t->received)))
		return 0;
	sk_id = sock_id(sk, false);
	if (!reading_begin(sk_id))
		return 0;
	tally_read(ctx->meta->seq, sk, t);
	reading_end(sk_id);
	barrier();
	if (t->closed)
		tally_flush(t, sk);
	return 0;
}
