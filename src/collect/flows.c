/* What both ends of each socket did, joined into connections. */
#include "flows.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define NO PROC_NONE

/* Samples by splice(2) whose socket was not seen yet wait for it; beyond that they are dropped. */
#define SPLICED_MAX 1024

/* All that was moved in one direction of a socket with one peer. */
struct half {
	struct sock_facts sock;
	uint64_t key; /* tells apart the peers of one socket */
	uint8_t dir;
	bool lasting;  /* `link` holds for good: a connection keeps its peer */
	uint32_t self; /* number in known */
	uint32_t link; /* number in links as of the last round, NO: the peer is not known */
	struct shares by;
};

struct holder {
	uint32_t proc, next;
};

/* A socket seen at all: which facts, who holds it. */
struct known {
	struct sock_facts sock;
	uint32_t holders;     /* newest first */
	uint32_t retransmits; /* TCP's count at the last look */
	uint64_t used_ns;     /* CLOCK_BOOTTIME of the last traffic */
	uint32_t look;	      /* number of the last look that found it open */
	bool needed;	      /* while sweeping */
};

/* One direction between two sockets, or between a socket and an address without one. */
struct link {
	uint32_t from, to; /* numbers in known, NO: not on this host */
	struct sock_facts at; /* of the end that was seen, for the address of the other */
	uint8_t proto;
	struct shares sent, received; /* since nothing was under way */
	uint64_t last_ns;	      /* last use before */
	bool spread;		      /* parts of it are shared with other links */
	bool over;		      /* while sweeping, and settling */
};

struct spliced {
	uint64_t ino;
	uint32_t proc;
	struct moved m;
};

struct flows {
	VEC(struct half) halves;
	struct idmap half_by_key;
	VEC(struct known) known;
	VEC(struct holder) holders;
	struct idmap by_id, by_ino, by_tuple, by_local;
	VEC(struct link) links;
	struct idmap link_by_ends;
	VEC(struct spliced) spliced;
	uint32_t looks;
	bool want_holders;
};

struct flows *flows_new(void)
{
	return mem_alloc(sizeof(struct flows));
}

static void links_clear(struct flows *f)
{
	/* The links stay, so that halves can keep their numbers. */
	vec_for(&f->links, l) {
		vec_clear(&l->sent.list);
		vec_clear(&l->received.list);
		l->spread = false;
	}
}

static void link_done(struct link *l)
{
	vec_done(&l->sent.list);
	vec_done(&l->received.list);
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	vec_for(&f->halves, h)
		vec_done(&h->by.list);
	vec_for(&f->links, l)
		link_done(l);
	vec_done(&f->links);
	vec_done(&f->halves);
	vec_done(&f->known);
	vec_done(&f->holders);
	vec_done(&f->spliced);
	idmap_done(&f->half_by_key);
	idmap_done(&f->by_id);
	idmap_done(&f->by_ino);
	idmap_done(&f->by_tuple);
	idmap_done(&f->by_local);
	idmap_done(&f->link_by_ends);
	free(f);
}

static bool is_inet(const struct sock_facts *s)
{
	return s->proto == SOCK_PROTO_TCP || s->proto == SOCK_PROTO_UDP;
}

static uint64_t addr_hash(const struct sock_addr_abi *a)
{
	return hash_bytes(a->addr, sizeof(a->addr), a->port);
}

static bool addr_is_any(const struct sock_addr_abi *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->addr, zero, 16);
}

static bool addr_is_loopback(const struct sock_facts *s, const struct sock_addr_abi *a)
{
	static const uint8_t one6[16] = {[15] = 1};

	return s->family == AF_INET ? a->addr[0] == 127 : !memcmp(a->addr, one6, 16);
}

static uint64_t tuple_key(uint32_t netns, uint8_t proto, const struct sock_addr_abi *from,
			  const struct sock_addr_abi *to)
{
	return hash_bytes(to->addr, 16, addr_hash(from) ^ ((uint64_t)netns << 24) ^
					       ((uint64_t)proto << 16) ^ to->port);
}

static uint64_t local_key(uint32_t netns, uint8_t proto, const struct sock_addr_abi *a)
{
	return addr_hash(a) ^ ((uint64_t)netns << 24) ^ proto;
}

#define AMBIGUOUS (IDMAP_NONE - 1)

/*
 * Under namespace 0: the one socket of the whole host with that address. Two networks of containers
 * may use the same addresses: then nobody can tell which is meant, and none is better than the
 * wrong one.
 */
static void index_anywhere(struct flows *f, struct idmap *m, uint64_t key, uint32_t i)
{
	uint32_t have = idmap_get(m, key, 0);

	if (have == AMBIGUOUS)
		return;
	if (have != IDMAP_NONE && f->known.v[have].sock.netns != f->known.v[i].sock.netns)
		i = AMBIGUOUS;
	idmap_put(m, key, 0, i);
}

/* Addresses lead to the newest socket that has them. */
static void index_socket(struct flows *f, uint32_t i)
{
	const struct sock_facts *s = &f->known.v[i].sock;

	if (!is_inet(s))
		return;
	/* A TCP socket with a remote port keeps its peer through every state of closing. */
	if ((s->flags & SOCK_CONNECTED) || (s->proto == SOCK_PROTO_TCP && s->remote.port)) {
		idmap_put(&f->by_tuple, tuple_key(s->netns, s->proto, &s->local, &s->remote),
			  s->netns, i);
		if (!addr_is_loopback(s, &s->local))
			index_anywhere(f, &f->by_tuple,
				       tuple_key(0, s->proto, &s->local, &s->remote), i);
		if (s->proto == SOCK_PROTO_TCP)
			return;
	}
	if (!s->local.port)
		return;
	idmap_put(&f->by_local, local_key(s->netns, s->proto, &s->local), s->netns, i);
	if (!addr_is_any(&s->local) && !addr_is_loopback(s, &s->local))
		index_anywhere(f, &f->by_local, local_key(0, s->proto, &s->local), i);
}

static uint32_t know(struct flows *f, const struct sock_facts *s)
{
	uint32_t i = idmap_get(&f->by_id, s->sk_id, 0);
	struct known *k;

	if (i == IDMAP_NONE) {
		k = vec_add(&f->known);
		k->holders = NO;
		i = (uint32_t)f->known.n - 1;
		idmap_put(&f->by_id, s->sk_id, 0, i);
	}
	k = &f->known.v[i];
	if (s->ino)
		idmap_put(&f->by_ino, s->ino, 0, i);
	/* The peer that a message named is no property of the socket; its own address is. */
	if (!(s->flags & (SOCK_PEER_MESSAGE | SOCK_PEER_UNKNOWN)) || !k->sock.sk_id) {
		k->sock = *s;
		if (s->flags & (SOCK_PEER_MESSAGE | SOCK_PEER_UNKNOWN))
			k->sock.flags &= ~(uint32_t)SOCK_CONNECTED;
		index_socket(f, i);
	} else if (k->sock.local.port != s->local.port) {
		k->sock.local = s->local;
		index_socket(f, i);
	}
	return i;
}

static uint32_t add_holder(struct flows *f, uint32_t proc, const struct sock_facts *s)
{
	uint32_t socket = know(f, s);
	struct known *k = &f->known.v[socket];
	struct holder *h;

	for (uint32_t i = k->holders; i != NO; i = f->holders.v[i].next)
		if (f->holders.v[i].proc == proc)
			return socket;
	h = vec_add(&f->holders);
	*h = (struct holder){proc, k->holders};
	k->holders = (uint32_t)f->holders.n - 1;
	return socket;
}

void flows_add_holder(struct flows *f, uint32_t proc, const struct sock_facts *s)
{
	uint32_t socket = add_holder(f, proc, s);

	f->known.v[socket].look = f->looks;
}

static uint64_t peer_key(const struct sock_facts *s, enum sock_dir dir)
{
	return hash_bytes(&s->remote, 18, s->peer_id ^ ((uint64_t)dir << 60) ^
						  (s->flags & SOCK_PEER_UNKNOWN));
}

static void add_half(struct flows *f, uint32_t proc, const struct sock_facts *s, enum sock_dir dir,
		     const struct moved *m)
{
	uint64_t key = peer_key(s, dir);
	uint32_t i = idmap_get(&f->half_by_key, s->sk_id, key);
	/* Who used it holds it, also when it only ever receives by splice(2), or never. */
	uint32_t self = add_holder(f, proc, s);
	struct half *h;

	f->known.v[self].used_ns = m->last_ns;
	f->known.v[self].look = f->looks;
	if (i == IDMAP_NONE) {
		h = vec_add(&f->halves);
		h->key = key;
		h->self = self;
		h->link = NO;
		i = (uint32_t)f->halves.n - 1;
		idmap_put(&f->half_by_key, s->sk_id, key, i);
	}
	h = &f->halves.v[i];
	h->sock = *s;
	h->dir = (uint8_t)dir;
	shares_add(&h->by, proc, m);
}

void flows_add(struct flows *f, uint32_t proc, const struct sock_sample *s)
{
	struct moved m = {s->v.bytes, s->v.msgs, s->v.first_ns, s->v.last_ns};

	add_half(f, proc, &s->v.sock, s->dir, &m);
}

void flows_add_spliced(struct flows *f, uint32_t proc, uint64_t ino, const struct moved *m)
{
	uint32_t i = idmap_get(&f->by_ino, ino, 0);

	if (i != IDMAP_NONE) {
		/* A copy: the list may move. */
		struct sock_facts s = f->known.v[i].sock;

		add_half(f, proc, &s, SOCK_RECEIVED, m);
	} else if (f->spliced.n < SPLICED_MAX) {
		vec_push(&f->spliced, ((struct spliced){ino, proc, *m}));
		f->want_holders = true;
	}
}

static void add_waiting_spliced(struct flows *f)
{
	size_t n = f->spliced.n;
	struct spliced *v = f->spliced.v;

	memset(&f->spliced, 0, sizeof(f->spliced));
	for (size_t i = 0; i < n; i++)
		flows_add_spliced(f, v[i].proc, v[i].ino, &v[i].m);
	free(v);
}

static uint32_t find_inet_peer(const struct flows *f, const struct sock_facts *s)
{
	uint64_t back = tuple_key(s->netns, s->proto, &s->remote, &s->local);
	struct sock_addr_abi any = {.port = s->remote.port};
	uint32_t i = idmap_get(&f->by_tuple, back, s->netns);
	bool local = addr_is_loopback(s, &s->remote);

	if (i == IDMAP_NONE && !local)
		i = idmap_get(&f->by_tuple, tuple_key(0, s->proto, &s->remote, &s->local), 0);
	if (i == AMBIGUOUS)
		return NO;
	if (i != IDMAP_NONE || s->proto == SOCK_PROTO_TCP)
		return i;
	i = idmap_get(&f->by_local, local_key(s->netns, s->proto, &s->remote), s->netns);
	if (i == IDMAP_NONE && !local)
		i = idmap_get(&f->by_local, local_key(0, s->proto, &s->remote), 0);
	if (i == AMBIGUOUS)
		return NO;
	/* Bound to any address: only in its own namespace can we tell that it is meant. */
	if (i == IDMAP_NONE)
		i = idmap_get(&f->by_local, local_key(s->netns, s->proto, &any), s->netns);
	return i;
}

static uint32_t find_peer(const struct flows *f, const struct sock_facts *s)
{
	if (s->peer_id)
		return idmap_get(&f->by_id, s->peer_id, 0);
	if (!is_inet(s) || (s->flags & SOCK_PEER_UNKNOWN) || !s->remote.port)
		return NO;
	return find_inet_peer(f, s);
}

bool flows_leaves(const struct flows *f, const struct sock_facts *s)
{
	return is_inet(s) && s->remote.port && s->local.port && !(s->flags & SOCK_PEER_UNKNOWN) &&
	       !addr_is_loopback(s, &s->remote) && find_peer(f, s) == NO;
}

static uint64_t link_other(const struct sock_facts *s, uint32_t from, uint32_t to)
{
	return from == NO || to == NO ? addr_hash(&s->remote) ^ s->netns : 0;
}

static uint32_t link_of(struct flows *f, const struct half *h, uint32_t from, uint32_t to)
{
	uint64_t other = link_other(&h->sock, from, to);
	uint32_t i = idmap_get(&f->link_by_ends, ((uint64_t)from << 32) | to, other);
	struct link *l;

	if (i == IDMAP_NONE) {
		l = vec_add(&f->links);
		*l = (struct link){.from = from, .to = to, .at = h->sock, .proto = h->sock.proto};
		i = (uint32_t)f->links.n - 1;
		idmap_put(&f->link_by_ends, ((uint64_t)from << 32) | to, other, i);
	}
	return i;
}

/* A datagram's receiver that knows nothing of its sender. */
static bool is_unknown(const struct half *h, uint32_t peer)
{
	return h->dir == SOCK_RECEIVED && peer == NO && h->sock.proto != SOCK_PROTO_TCP &&
	       !h->sock.remote.port;
}

/* A datagram socket that does not know who sent: its links share what it got in proportion. */
static void spread_unknown(struct flows *f, const struct half *h)
{
	uint64_t sum = 0, n = 0;
	struct link *last = NULL;

	vec_for(&f->links, l)
		if (l->to == h->self && l->sent.list.n) {
			l->spread = true;
			sum += shares_bytes(&l->sent);
			n += l->sent.list.n;
			last = l;
		}
	vec_for(&h->by.list, s) {
		if (n == 1 || (n && !sum)) {
			shares_add(&last->received, s->proc, &s->m);
			continue;
		}
		vec_for(&f->links, l) {
			struct moved part = s->m;
			double own = (double)shares_bytes(&l->sent) / (double)sum;

			if (l->to != h->self || !l->sent.list.n)
				continue;
			part.bytes = (uint64_t)((double)s->m.bytes * own + 0.5);
			part.calls = (uint64_t)((double)s->m.calls * own + 0.5);
			shares_add(&l->received, s->proc, &part);
		}
	}
}

/* The link that a half belongs to, NO for one that spread_unknown() has to share out. */
static uint32_t link_of_half(struct flows *f, struct half *h)
{
	uint32_t peer;

	if (h->lasting)
		return h->link;
	peer = find_peer(f, &h->sock);
	if (is_unknown(h, peer))
		return h->link = NO;
	h->link = h->dir == SOCK_SENT ? link_of(f, h, h->self, peer) : link_of(f, h, peer, h->self);
	/* A connection keeps its peer, also when its addresses are used again by a later one. */
	h->lasting = peer != NO && (h->sock.peer_id || h->sock.proto == SOCK_PROTO_TCP);
	return h->link;
}

static void make_links(struct flows *f)
{
	bool unknown = false;

	links_clear(f);
	vec_for(&f->halves, h) {
		uint32_t i = link_of_half(f, h);
		struct link *l;

		if (i == NO) {
			unknown = true;
			continue;
		}
		l = &f->links.v[i];
		vec_for(&h->by.list, s)
			shares_add(h->dir == SOCK_SENT ? &l->sent : &l->received, s->proc, &s->m);
	}
	if (!unknown)
		return;
	/* Those need the links of all senders. */
	vec_for(&f->halves, h)
		if (h->link == NO)
			spread_unknown(f, h);
}

/* The receiver that a link has without anybody having received: who holds the socket. */
static uint32_t holder_of(struct flows *f, const struct link *l)
{
	uint32_t h = l->to == NO ? NO : f->known.v[l->to].holders;

	if (l->to != NO && h == NO)
		f->want_holders = true;
	return h == NO ? NO : f->holders.v[h].proc;
}

static void contribute(struct flows *f, const struct link *l, struct exchange *x, bool for_good)
{
	static const enum flow_kind kinds[SOCK_PROTO_N] = {
		FLOW_OTHER, FLOW_TCP, FLOW_UDP, FLOW_UNIX, FLOW_UNIX, FLOW_UNIX, FLOW_IP,
	};
	struct crossing c = {.kind = kinds[l->proto], .sent = &l->sent, .received = &l->received,
			     .holder = PROC_NONE, .outside = &l->at};

	if (!l->received.list.n)
		c.holder = holder_of(f, l);
	exchange_add(x, &c, for_good);
}

static uint64_t last_use(const struct link *l)
{
	uint64_t sent = shares_last_ns(&l->sent), received = shares_last_ns(&l->received);
	uint64_t last = sent > received ? sent : received;

	return last > l->last_ns ? last : l->last_ns;
}

/* All that was sent is received: what comes later is not of those that were here. */
static bool is_drained(const struct link *l)
{
	uint64_t sent = shares_bytes(&l->sent);

	return sent && sent == shares_bytes(&l->received) && !l->spread;
}

void flows_contribute(struct flows *f, struct exchange *x)
{
	f->want_holders = false;
	add_waiting_spliced(f);
	make_links(f);
	vec_for(&f->links, l) {
		contribute(f, l, x, false);
		l->over = is_drained(l);
		if (l->over)
			contribute(f, l, x, true);
	}
	vec_for(&f->halves, h)
		if (h->link != NO && f->links.v[h->link].over)
			vec_clear(&h->by.list);
	vec_for(&f->links, l)
		if (l->over) {
			l->last_ns = last_use(l);
			vec_clear(&l->sent.list);
			vec_clear(&l->received.list);
		}
}

bool flows_knows(const struct flows *f, const struct sock_facts *s)
{
	return idmap_get(&f->by_id, s->sk_id, 0) != IDMAP_NONE;
}

uint32_t flows_holder(const struct flows *f, const struct sock_facts *s)
{
	uint32_t i = idmap_get(&f->by_id, s->sk_id, 0), h = i == IDMAP_NONE ? NO : f->known.v[i].holders;

	return h == NO ? NO : f->holders.v[h].proc;
}

const struct sock_facts *flows_socket(const struct flows *f, uint64_t ino)
{
	uint32_t i = idmap_get(&f->by_ino, ino, 0);

	return i == IDMAP_NONE ? NULL : &f->known.v[i].sock;
}

uint32_t flows_retransmits(struct flows *f, const struct sock_facts *s, uint32_t total)
{
	uint32_t i = idmap_get(&f->by_id, s->sk_id, 0), before;

	if (i == IDMAP_NONE)
		return 0;
	before = f->known.v[i].retransmits;
	f->known.v[i].retransmits = total;
	return total > before ? total - before : 0;
}

bool flows_want_holders(const struct flows *f)
{
	return f->want_holders;
}

void flows_look(struct flows *f)
{
	f->looks++;
}

size_t flows_size(const struct flows *f)
{
	return f->known.n + f->halves.n + f->links.n;
}

/* Not found open by the last two looks: one may have begun while the socket was being passed on. */
static bool is_closed(const struct flows *f, uint32_t socket, uint64_t before_ns)
{
	const struct known *k = &f->known.v[socket];

	return k->used_ns < before_ns && k->look + 2 <= f->looks;
}

/*
 * Everything that was sent was received, or one end is no socket of this host: what comes later
 * adds to it as well from the beginning. Unread data may still be read, while somebody has the
 * socket.
 */
static bool is_over(const struct flows *f, const struct link *l, uint64_t before_ns)
{
	if (last_use(l) >= before_ns)
		return false;
	if (l->from == NO || l->to == NO)
		return !addr_is_loopback(&l->at, &l->at.remote) ||
		       is_closed(f, l->from == NO ? l->to : l->from, before_ns);
	return shares_bytes(&l->sent) == shares_bytes(&l->received) ||
	       is_closed(f, l->to, before_ns);
}

/* Links to a socket that cannot say from whom it received share that: they stay, and end, together. */
static void keep_shared(struct flows *f, uint64_t before_ns)
{
	vec_for(&f->halves, h) {
		bool over = is_closed(f, h->self, before_ns);

		if (h->link != NO)
			continue;
		vec_for(&f->links, l)
			if (l->to == h->self)
				l->over = over;
	}
}

static void settle_links(struct flows *f, struct exchange *x, uint64_t before_ns)
{
	vec_for(&f->links, l)
		l->over = is_over(f, l, before_ns);
	keep_shared(f, before_ns);
	vec_for(&f->links, l)
		if (l->over)
			contribute(f, l, x, true);
}

static void need(struct flows *f, uint32_t socket)
{
	if (socket != NO)
		f->known.v[socket].needed = true;
}

static void drop_halves(struct flows *f, uint64_t before_ns, uint64_t *used)
{
	size_t kept = 0;

	idmap_clear(&f->half_by_key);
	vec_for(&f->halves, h) {
		bool over = h->link != NO ? f->links.v[h->link].over
					  : is_closed(f, h->self, before_ns);

		if (over) {
			vec_done(&h->by.list);
			continue;
		}
		need(f, h->self);
		vec_for(&h->by.list, s)
			procs_set_bit(used, s->proc);
		idmap_put(&f->half_by_key, h->sock.sk_id, h->key, (uint32_t)kept);
		f->halves.v[kept++] = *h;
	}
	f->halves.n = kept;
}

/* @param ret_moved [links] the new number of each */
static void drop_links(struct flows *f, uint32_t *ret_moved)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->links.n; i++) {
		struct link *l = &f->links.v[i];

		ret_moved[i] = NO;
		if (l->over) {
			link_done(l);
			continue;
		}
		need(f, l->from);
		need(f, l->to);
		ret_moved[i] = kept;
		f->links.v[kept++] = *l;
	}
	f->links.n = kept;
	vec_for(&f->halves, h)
		if (h->link != NO)
			h->link = ret_moved[h->link];
}

static void keep_holders(struct flows *f, struct known *k, const struct holder *old, uint64_t *used)
{
	uint32_t last = NO;

	for (uint32_t i = k->holders; i != NO; i = old[i].next) {
		uint32_t new = (uint32_t)f->holders.n;

		vec_push(&f->holders, ((struct holder){old[i].proc, NO}));
		procs_set_bit(used, old[i].proc);
		if (last == NO)
			k->holders = new;
		else
			f->holders.v[last].next = new;
		last = new;
	}
}

/* @param ret_moved [known] the new number of each */
static void drop_known(struct flows *f, uint32_t *ret_moved, uint64_t before_ns, uint64_t *used)
{
	struct holder *old = f->holders.v;
	uint32_t kept = 0;

	memset(&f->holders, 0, sizeof(f->holders));
	idmap_clear(&f->by_id);
	idmap_clear(&f->by_ino);
	idmap_clear(&f->by_tuple);
	idmap_clear(&f->by_local);
	for (uint32_t i = 0; i < f->known.n; i++) {
		struct known *k = &f->known.v[i];

		ret_moved[i] = NO;
		if (!k->needed && is_closed(f, i, before_ns))
			continue;
		k->needed = false;
		keep_holders(f, k, old, used);
		ret_moved[i] = kept;
		f->known.v[kept] = *k;
		idmap_put(&f->by_id, k->sock.sk_id, 0, kept);
		if (k->sock.ino)
			idmap_put(&f->by_ino, k->sock.ino, 0, kept);
		index_socket(f, kept++);
	}
	f->known.n = kept;
	free(old);
}

void flows_sweep(struct flows *f, struct exchange *x, uint64_t before_ns, uint64_t *used)
{
	size_t most = f->links.n > f->known.n ? f->links.n : f->known.n;
	uint32_t *moved = mem_alloc((most + 1) * sizeof(*moved));

	settle_links(f, x, before_ns);
	drop_halves(f, before_ns, used);
	drop_links(f, moved);
	drop_known(f, moved, before_ns, used);
	vec_for(&f->halves, h)
		h->self = moved[h->self];
	idmap_clear(&f->link_by_ends);
	for (uint32_t i = 0; i < f->links.n; i++) {
		struct link *l = &f->links.v[i];

		l->from = l->from == NO ? NO : moved[l->from];
		l->to = l->to == NO ? NO : moved[l->to];
		idmap_put(&f->link_by_ends, ((uint64_t)l->from << 32) | l->to,
			  link_other(&l->at, l->from, l->to), i);
	}
	vec_for(&f->spliced, s)
		procs_set_bit(used, s->proc);
	free(moved);
}
