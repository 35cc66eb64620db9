#pragma once

/*
 * TCP, where every nanosecond a message counts: the sums lie beside the socket itself, one for each
 * direction, owned by the first thread that used it. That thread alone writes them, so nothing is
 * locked; other threads of the same socket are summed in the map of streams. The sums only grow: an
 * iterator hands over what was added since the time before, and the end of the connection the rest.
 *
 * Once it was watched in turns, what is told is what the connection carried (sock_total.bpf.h), and what was seen is
 * told beside, to split that: so each byte is told of once, whether somebody looked or not.
 */

enum side_mode {
	SIDE_CALLS = 0,	 /* what calls return is told */
	SIDE_TOTAL = 1,	 /* what the connection carries is, from the first period of turns on that it is used in */
	SIDE_EXEMPT = 2, /* never will be */
};

enum side_based { BASED_NOT = 0, BASED_AT_A_LOOK = 1, BASED_WELL = 2 };

/* What each message touches comes first and together: it is cold in a server of many connections. */
struct sock_side {
	struct task_ident owner; /* tid 0: nobody */
	u64 bytes, msgs;	 /* of the owner's calls, in SIDE_CALLS and SIDE_EXEMPT */
	u64 tick;		 /* jiffies at last_ns, 0: nothing since the last reading */
	u8 mode, based;		 /* enum side_mode, side_based */
	u16 pad;
	u32 sync;     /* of struct carried */
	u64 first_ns; /* since the last reading; 0: none */
	u64 last_ns;
	u64 read_bytes, read_msgs; /* handed over */
	char comm[TASK_COMM_BYTES];
	/* In SIDE_TOTAL, but for `others`. */
	u64 seen_bytes, seen_msgs; /* of the owner's calls */
	u64 read_seen_bytes, read_seen_msgs;
	u64 base;	 /* carried when nothing had been told of */
	u64 others;	 /* of calls of other threads, in SIDE_CALLS: told by the map of streams */
	u64 told;	 /* of what was carried, beside what calls returned in SIDE_CALLS */
	u64 told_ns;	 /* when */
};

struct sock_tally {
	struct sock_side sent, received;
	u32 closed; /* what comes now is summed elsewhere: nobody would read it here any more */
	u32 fin_sent; /* when it was closed */
	struct task_ident user; /* who closed it, tid 0: not known */
	char user_comm[TASK_COMM_BYTES];
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

static __always_inline struct sock_side *side_of(struct sock_tally *t, u64 what)
{
	return (what & 1) == SOCK_SENT ? &t->sent : &t->received;
}

/* Bytes, and messages where they are counted, that are to be told. */
struct part {
	u64 bytes, msgs;
};

/* @what: enum sock_dir | enum sock_what << 1; @p v is zeroed. */
static __always_inline void side_value(struct sock_value *v, struct sock_tally *t, struct sock *sk, u64 what,
				       const struct part *p)
{
	const struct sock_side *s = side_of(t, what);

	v->bytes = p->bytes;
	v->msgs = p->msgs;
	if (what >> 1 == SOCK_TOTAL) {
		v->first_ns = s->told_ns;
		v->last_ns = bpf_ktime_get_boot_ns();
		v->task = t->user;
		__builtin_memcpy(v->comm, t->user_comm, sizeof(v->comm));
	} else {
		v->first_ns = s->first_ns;
		v->last_ns = s->last_ns;
		v->task = s->owner;
		__builtin_memcpy(v->comm, s->comm, sizeof(v->comm));
	}
	sock_facts_read(&v->sock, sk, sock_id(sk, false), false);
	if (!v->sock.remote.port)
		v->sock.flags |= SOCK_PEER_UNKNOWN;
	sock_tcp_read(&v->tcp, sk, true);
}

/* To the map of streams, for what will not be asked for any more. */
static __noinline int part_put(struct sock_tally *t, struct sock *sk, u64 what, const struct part *p)
{
	struct stream_key k = {.dir = what};
	struct sock_value fresh = {}, *v;
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&streams, &zero);

	if (!map)
		return 0;
	k.sk_id = sock_id(sk, false);
	side_value(&fresh, t, sk, what, p);
	k.tid = fresh.task.tid;
	k.start_ns = fresh.task.start_ns;
	v = bpf_map_lookup_elem(map, &k);
	if (v) {
		v->bytes += fresh.bytes;
		v->msgs += fresh.msgs;
		v->last_ns = fresh.last_ns;
	} else if (bpf_map_update_elem(map, &k, &fresh, BPF_NOEXIST)) {
		rest_add(SOCK_PROTO_TCP, what, fresh.bytes);
	}
	return 0;
}

/* Told so far, or about to be by the map of streams. */
static __always_inline u64 side_given(const struct sock_side *s)
{
	return s->bytes + s->others + s->told;
}

/* From here on what is carried is told of: @carried so far, but for @new bytes of a call that has just ended. */
static __always_inline void side_base(struct sock_side *s, const struct carried *c, u64 new, enum side_based how)
{
	s->base = c->bytes - new - side_given(s);
	s->sync = c->sync;
	if (!s->told_ns)
		s->told_ns = bpf_ktime_get_boot_ns();
	s->based = how;
}

/* In a period of turns all have gone over, used or not: what went by may have gone by unwatched. */
static __always_inline void side_turn(struct sock_side *s, bool plain)
{
	if (s->mode == SIDE_CALLS && s->based)
		s->mode = plain ? SIDE_TOTAL : SIDE_EXEMPT;
}

static __always_inline void tally_turn(struct sock_tally *t, bool plain)
{
	if (!can_turn || !tcp_settled)
		return;
	side_turn(&t->sent, plain);
	side_turn(&t->received, plain);
}

/* What was carried and not told of. A call that is under way is in it as far as it has come. */
static __always_inline u64 side_gain(struct sock_tally *t, struct sock *sk, u64 dir)
{
	struct sock_side *s = side_of(t, dir);
	struct carried c;
	u64 gain;

	if (!can_turn || s->mode != SIDE_TOTAL || !carried_read(&c, sk, dir, t->fin_sent, s->sync))
		return 0;
	gain = c.bytes - s->base - side_given(s);
	return (__s64)gain > 0 ? gain : 0;
}

static __always_inline void side_told(struct sock_side *s, u64 bytes)
{
	s->told += bytes;
	s->told_ns = bpf_ktime_get_boot_ns();
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

static __always_inline void gain_flush(struct sock_tally *t, struct sock *sk, u64 dir)
{
	struct part p = {.bytes = side_gain(t, sk, dir)};

	if (!p.bytes)
		return;
	part_put(t, sk, dir | SOCK_TOTAL << 1, &p);
	side_told(side_of(t, dir), p.bytes);
}

/* The upper layer that takes over now sends something else than the program writes. */
static __noinline int tally_exempt(struct sock_tally *t, struct sock *sk, u32 tell)
{
	u64 sk_id = sock_id(sk, false);

	if (tell && reading_begin(sk_id)) {
		gain_flush(t, sk, SOCK_SENT);
		gain_flush(t, sk, SOCK_RECEIVED);
		reading_end(sk_id);
	}
	t->sent.mode = t->received.mode = SIDE_EXEMPT;
	t->sent.based = t->received.based = BASED_WELL;
	return 0;
}

/* The first call on this side that is watched, or one in a period of turns: it has moved @bytes. */
static __noinline int side_prepare(struct sock_tally *t, struct sock *sk, u64 bytes, u64 dir)
{
	struct sock_side *s = side_of(t, dir);
	u64 base = s->base;
	struct carried c;

	if (s->mode == SIDE_EXEMPT)
		return 0;
	if (!is_plain(sk)) {
		/* This call is told of by itself. */
		s->base += bytes;
		return tally_exempt(t, sk, s->mode == SIDE_TOTAL);
	}
	if (s->based != BASED_WELL && !(s->based && s->mode == SIDE_TOTAL) &&
	    carried_first(&c, sk, dir, t->fin_sent)) {
		bool met = s->based;

		side_base(s, &c, bytes, BASED_WELL);
		/* A call that was under way at the look counts in full, as any that ends; one that is now, later. */
		if (met && (__s64)(base - s->base) < 0)
			s->base = base;
	}
	if (tcp_watch && s->based)
		s->mode = SIDE_TOTAL;
	return 0;
}

enum tally_result {
	TALLY_NOT,   /* to be summed in the map of streams */
	TALLY_ADDED,
	TALLY_SEEN, /* likewise, as part of the total */
};

static __always_inline enum tally_result tally_add(struct sock *sk, u64 bytes, enum sock_dir dir)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct task_struct *me = bpf_get_current_task_btf();
	u64 tick = bpf_jiffies64();
	struct sock_side *s;

	if (!t)
		return TALLY_NOT;
	s = dir == SOCK_SENT ? &t->sent : &t->received;
	if (can_turn) {
		run_count();
		if ((s->based != BASED_WELL || s->mode == SIDE_TOTAL || tcp_watch) && is_plain_known())
			side_prepare(t, sk, bytes, dir);
	}
	if (s->owner.tid != (u32)me->pid || s->owner.start_ns != me->start_boottime) {
		if (s->owner.tid || t->closed || !side_claim(s, sock_id(sk, false), dir)) {
			if (s->mode == SIDE_TOTAL)
				return TALLY_SEEN;
			if (can_turn)
				__sync_fetch_and_add(&s->others, bytes);
			return TALLY_NOT;
		}
	}
	if (s->mode == SIDE_TOTAL) {
		s->seen_bytes += bytes;
		s->seen_msgs++;
	} else {
		s->bytes += bytes;
		s->msgs++;
	}
	if (s->tick == tick)
		return TALLY_ADDED;
	s->tick = tick;
	s->last_ns = bpf_ktime_get_boot_ns();
	if (!s->first_ns)
		s->first_ns = s->last_ns;
	return TALLY_ADDED;
}

/* The connection ends: the rest goes to the map of streams. */
static __always_inline void side_flush(struct sock_tally *t, struct sock *sk, u64 dir)
{
	struct sock_side *s = side_of(t, dir);
	struct part p = {s->bytes - s->read_bytes, s->msgs - s->read_msgs};

	if (p.msgs) {
		part_put(t, sk, dir, &p);
		s->read_bytes += p.bytes;
		s->read_msgs += p.msgs;
	}
	p.bytes = s->seen_bytes - s->read_seen_bytes;
	p.msgs = s->seen_msgs - s->read_seen_msgs;
	if (p.msgs) {
		part_put(t, sk, dir | SOCK_SEEN << 1, &p);
		s->read_seen_bytes += p.bytes;
		s->read_seen_msgs += p.msgs;
	}
	gain_flush(t, sk, dir);
}

static __noinline int tally_flush(struct sock_tally *t, struct sock *sk)
{
	u64 sk_id = sock_id(sk, false);

	if (!t || !reading_begin(sk_id))
		return 0;
	side_flush(t, sk, SOCK_SENT);
	side_flush(t, sk, SOCK_RECEIVED);
	if (t->sent.owner.tid)
		side_release(&t->sent, sk_id, SOCK_SENT);
	if (t->received.owner.tid)
		side_release(&t->received, sk_id, SOCK_RECEIVED);
	reading_end(sk_id);
	return 0;
}

/* @old: the state that it is closed in */
static __always_inline void tally_close(struct sock *sk, u32 old)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, 0);

	if (!t)
		return;
	t->fin_sent = FIN_SENT >> (old & 31) & 1;
	tally_turn(t, can_turn && is_plain(sk));
	/* Closed before: a socket may be connected anew. */
	if (t->closed && t->sent.mode != SIDE_TOTAL && t->received.mode != SIDE_TOTAL)
		return;
	t->closed = 1;
	barrier();
	/* While the iterator reads it, that does the rest. */
	tally_flush(t, sk);
}

/* Nobody uses it any more; what had arrived when it was closed could still be read until now. */
static __always_inline void tally_end(struct sock *sk)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, 0);

	if (!t)
		return;
	tally_turn(t, is_plain(sk));
	if (t->sent.mode != SIDE_TOTAL && t->received.mode != SIDE_TOTAL)
		return;
	t->closed = 1;
	barrier();
	tally_flush(t, sk);
}

/* A connection is there, and nothing has gone through it yet. */
static __always_inline void tally_open(struct sock *sk, u32 old)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct carried c;

	if (!t) {
		health_count(HEALTH_READ_FAULT);
		return;
	}
	t->fin_sent = 0;
	carried_once(&c, sk, SOCK_SENT, false);
	/* Whoever opens it has its SYN counted; what it sent with that is the program's. */
	if (c.bytes > 1)
		c.bytes = old == TCP_SYN_SENT;
	side_base(&t->sent, &c, 0, BASED_WELL);
	carried_once(&c, sk, SOCK_RECEIVED, false);
	c.bytes = 0;
	side_base(&t->received, &c, 0, BASED_WELL);
}

/* One that was there before. */
static __always_inline void tally_meet(struct sock *sk)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, 0);
	struct carried c;

	if (!t && tcp_met++ < MEET_MOST)
		t = bpf_sk_storage_get(&tallies, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!t)
		return;
	if (!t->sent.based && carried_first(&c, sk, SOCK_SENT, t->fin_sent))
		side_base(&t->sent, &c, 0, BASED_AT_A_LOOK);
	if (!t->received.based && carried_first(&c, sk, SOCK_RECEIVED, t->fin_sent))
		side_base(&t->received, &c, 0, BASED_AT_A_LOOK);
}

static __always_inline void tally_used(struct sock *sk)
{
	struct sock_tally *t = bpf_sk_storage_get(&tallies, sk, 0, 0);

	if (!t || t->user.tid || bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return;
	task_ident_read(&t->user, (void *)bpf_get_current_task());
	bpf_get_current_comm(t->user_comm, sizeof(t->user_comm));
}

/* What a side stood at when it was written. */
struct side_mark {
	struct part moved, seen;
	u64 gain;
};

static __always_inline void side_mark(struct side_mark *m, struct sock_tally *t, struct sock *sk, u64 dir)
{
	struct sock_side *s = side_of(t, dir);

	m->moved.bytes = s->bytes;
	m->moved.msgs = s->msgs;
	m->seen.bytes = s->seen_bytes;
	m->seen.msgs = s->seen_msgs;
	m->gain = side_gain(t, sk, dir);
}

/* @return 0, or not where the buffer is full */
static __noinline int part_write(struct seq_file *seq, struct sock *sk, struct sock_tally *t, u64 what,
				 const struct part *p)
{
	struct sock_tally_record r = {.dir = what};

	side_value(&r.v, t, sk, what, p);
	return bpf_seq_write(seq, &r, sizeof(r)) != 0;
}

static __always_inline int side_write(struct seq_file *seq, struct sock *sk, struct sock_tally *t, u64 dir,
				      const struct side_mark *m)
{
	struct sock_side *s = side_of(t, dir);
	struct part moved = {m->moved.bytes - s->read_bytes, m->moved.msgs - s->read_msgs};
	struct part seen = {m->seen.bytes - s->read_seen_bytes, m->seen.msgs - s->read_seen_msgs};
	struct part gain = {.bytes = m->gain};

	return (moved.msgs && part_write(seq, sk, t, dir, &moved)) ||
	       (seen.msgs && part_write(seq, sk, t, dir | SOCK_SEEN << 1, &seen)) ||
	       (gain.bytes && part_write(seq, sk, t, dir | SOCK_TOTAL << 1, &gain));
}

static __always_inline void side_handed_over(struct sock_side *s, struct sock *sk, u64 dir,
					     const struct side_mark *m)
{
	if (m->gain)
		side_told(s, m->gain);
	if (m->moved.msgs == s->read_msgs && m->seen.msgs == s->read_seen_msgs) {
		/* Idle: who uses it next may be another thread. */
		if (s->owner.tid)
			side_release(s, sock_id(sk, false), dir);
		return;
	}
	s->read_bytes = m->moved.bytes;
	s->read_msgs = m->moved.msgs;
	s->read_seen_bytes = m->seen.bytes;
	s->read_seen_msgs = m->seen.msgs;
	s->first_ns = s->tick = 0;
}

/* Nothing new since the last reading, nor anybody who would have to give it up. */
static __always_inline bool side_rests(struct sock_tally *t, struct sock *sk, u64 dir)
{
	struct sock_side *s = side_of(t, dir);

	return s->msgs == s->read_msgs && s->seen_msgs == s->read_seen_msgs && !s->owner.tid &&
	       !side_gain(t, sk, dir);
}

static __always_inline void tally_read(struct seq_file *seq, struct sock *sk, struct sock_tally *t)
{
	struct side_mark sent, received;

	side_mark(&sent, t, sk, SOCK_SENT);
	side_mark(&received, t, sk, SOCK_RECEIVED);
	/*
	 * Of a full buffer the kernel drops all that this call wrote, and asks again: neither side is handed
	 * over before both are written.
	 */
	if (side_write(seq, sk, t, SOCK_SENT, &sent) || side_write(seq, sk, t, SOCK_RECEIVED, &received))
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

	if (!sk || !t)
		return 0;
	tally_turn(t, can_turn && is_plain(sk));
	if (side_rests(t, sk, SOCK_SENT) && side_rests(t, sk, SOCK_RECEIVED))
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

/* The connections that are there already: what they have carried until now. */
SEC("iter/task_file")
int meet_connections(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *s;
	struct sock *sk;
	u8 state;

	if (!can_turn || !file)
		return 0;
	s = bpf_sock_from_file(file);
	sk = s ? s->sk : NULL;
	if (!sk || !is_tcp(sk))
		return 0;
	if (plain_id[0] || plain_id[1]) {
		plain_learn(sk, sock_id(sk, false));
		return 0;
	}
	if (!is_plain_known() || !is_plain(sk))
		return 0;
	state = sk->__sk_common.skc_state;
	if (state != TCP_LISTEN && state != TCP_CLOSE && state != TCP_SYN_SENT)
		tally_meet(sk);
	return 0;
}
