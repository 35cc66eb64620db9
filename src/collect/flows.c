/* Process-to-process flows out of what both ends of each socket did. */
#include "flows.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define NO UINT32_MAX

struct moved {
	uint64_t bytes, msgs, first_ns, last_ns;
};

/* One process's part in one direction of one socket, with one peer. */
struct share {
	uint32_t proc;
	struct moved m;
};

/* All that was moved in one direction of a socket with one peer. */
struct half {
	struct sock_facts sock;
	uint8_t dir;
	uint32_t self; /* number in known */
	uint32_t link; /* number in links, NO: the peer is not known, or may become another */
	VEC(struct share) by;
};

struct holder {
	uint64_t sk_id;
	uint32_t proc, next;
};

/* A socket seen at all: which facts, who holds it. */
struct known {
	struct sock_facts sock;
	uint32_t holders; /* newest first */
	uint32_t retransmits; /* TCP's count at the last look */
};

/* One direction between two sockets, or between a socket and an address without one. */
struct link {
	uint32_t from, to; /* numbers in known, NO: not on this host */
	struct sock_facts at; /* of the end that was seen, for the address of the other */
	uint8_t proto;
	VEC(struct share) sent, received;
};

struct total {
	uint32_t from, to; /* processes, NO: the endpoint */
	struct sock_facts at;
	uint8_t proto, at_is_target;
	struct moved sent, received;
	bool has_sent, has_received, estimated;
	uint64_t stamp; /* hash of what was emitted */
};

struct flows {
	struct procs *procs;
	VEC(struct half) halves;
	struct idmap half_by_key;
	VEC(struct known) known;
	VEC(struct holder) holders;
	struct idmap by_id, by_tuple, by_local;
	VEC(struct link) links;
	struct idmap link_by_ends;
	VEC(struct total) totals;
	struct idmap total_by_ends;
	bool changed, want_holders;
};

struct flows *flows_new(struct procs *p)
{
	struct flows *f = mem_alloc(sizeof(*f));

	f->procs = p;
	return f;
}

static void links_clear(struct flows *f)
{
	/* The links stay, so that halves can keep their numbers. */
	vec_for(&f->links, l) {
		vec_clear(&l->sent);
		vec_clear(&l->received);
	}
}

static void links_done(struct flows *f)
{
	vec_for(&f->links, l) {
		vec_done(&l->sent);
		vec_done(&l->received);
	}
	vec_done(&f->links);
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	vec_for(&f->halves, h)
		vec_done(&h->by);
	links_done(f);
	vec_done(&f->halves);
	vec_done(&f->known);
	vec_done(&f->holders);
	vec_done(&f->totals);
	idmap_done(&f->half_by_key);
	idmap_done(&f->by_id);
	idmap_done(&f->by_tuple);
	idmap_done(&f->by_local);
	idmap_done(&f->link_by_ends);
	idmap_done(&f->total_by_ends);
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
 * Under namespace 0: the one socket of the whole host with that address. Two networks of containers may
 * use the same addresses: then nobody can tell which is meant, and none is better than the wrong one.
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
		idmap_put(&f->by_tuple, tuple_key(s->netns, s->proto, &s->local, &s->remote), s->netns, i);
		if (!addr_is_loopback(s, &s->local))
			index_anywhere(f, &f->by_tuple, tuple_key(0, s->proto, &s->local, &s->remote), i);
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
	*h = (struct holder){s->sk_id, proc, k->holders};
	k->holders = (uint32_t)f->holders.n - 1;
	f->changed = true;
	return socket;
}

void flows_add_holder(struct flows *f, uint32_t proc, const struct sock_facts *s)
{
	add_holder(f, proc, s);
}

static void moved_add(struct moved *to, const struct moved *m)
{
	if (!to->first_ns || (m->first_ns && m->first_ns < to->first_ns))
		to->first_ns = m->first_ns;
	if (m->last_ns > to->last_ns)
		to->last_ns = m->last_ns;
	to->bytes += m->bytes;
	to->msgs += m->msgs;
}

#define shares_add(list, p, moved)                                                                 \
	do {                                                                                       \
		size_t i_ = 0;                                                                     \
		while (i_ < (list)->n && (list)->v[i_].proc != (p))                                \
			i_++;                                                                      \
		if (i_ == (list)->n)                                                               \
			vec_push(list, ((struct share){.proc = (p)}));                             \
		moved_add(&(list)->v[i_].m, moved);                                                \
	} while (0)

void flows_add(struct flows *f, uint32_t proc, const struct sock_sample *s)
{
	const struct sock_facts *x = &s->v.sock;
	uint64_t key = hash_bytes(&x->remote, 18, x->peer_id ^ ((uint64_t)s->dir << 60) ^
							  (x->flags & SOCK_PEER_UNKNOWN));
	struct moved m = {s->v.bytes, s->v.msgs, s->v.first_ns, s->v.last_ns};
	uint32_t i = idmap_get(&f->half_by_key, x->sk_id, key);
	/* Who used it holds it, also when it only ever receives by splice(2), or never. */
	uint32_t self = add_holder(f, proc, x);
	struct half *h;

	if (i == IDMAP_NONE) {
		h = vec_add(&f->halves);
		h->self = self;
		h->link = NO;
		i = (uint32_t)f->halves.n - 1;
		idmap_put(&f->half_by_key, x->sk_id, key, i);
	}
	h = &f->halves.v[i];
	h->sock = *x;
	h->dir = (uint8_t)s->dir;
	shares_add(&h->by, proc, &m);
	f->changed = true;
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

static uint32_t link_of(struct flows *f, const struct half *h, uint32_t from, uint32_t to)
{
	uint64_t other = from == NO || to == NO ? addr_hash(&h->sock.remote) ^ h->sock.netns : 0;
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
static bool spread_unknown(struct flows *f, const struct half *h, uint32_t self)
{
	uint64_t sum = 0, n = 0, last = 0;

	for (size_t i = 0; i < f->links.n; i++)
		for (size_t k = 0; f->links.v[i].to == self && k < f->links.v[i].sent.n; k++) {
			sum += f->links.v[i].sent.v[k].m.bytes;
			n++;
			last = i;
		}
	if (!n)
		return false;
	vec_for(&h->by, s) {
		if (f->links.v[last].sent.n && (n == 1 || !sum)) {
			shares_add(&f->links.v[last].received, s->proc, &s->m);
			continue;
		}
		for (size_t i = 0; i < f->links.n; i++) {
			struct link *l = &f->links.v[i];
			struct moved part = s->m;
			uint64_t own = 0;

			if (l->to != self)
				continue;
			vec_for(&l->sent, x)
				own += x->m.bytes;
			part.bytes = (uint64_t)((double)s->m.bytes * (double)own / (double)sum + 0.5);
			part.msgs = (uint64_t)((double)s->m.msgs * (double)own / (double)sum + 0.5);
			shares_add(&l->received, s->proc, &part);
		}
	}
	return true;
}

/* The link that a half belongs to, NO for one that spread_unknown() has to share out. */
static uint32_t link_of_half(struct flows *f, struct half *h)
{
	uint32_t peer, i;

	if (h->link != NO)
		return h->link;
	peer = find_peer(f, &h->sock);
	if (is_unknown(h, peer))
		return NO;
	i = h->dir == SOCK_SENT ? link_of(f, h, h->self, peer) : link_of(f, h, peer, h->self);
	/* A connection keeps its peer, also when its addresses are used again by a later one. */
	if (peer != NO && (h->sock.peer_id || h->sock.proto == SOCK_PROTO_TCP))
		h->link = i;
	return i;
}

static void make_links(struct flows *f)
{
	bool unknown = false;

	links_clear(f);
	vec_for(&f->halves, h) {
		uint32_t i = link_of_half(f, h);

		if (i == NO) {
			unknown = true;
			continue;
		}
		vec_for(&h->by, s) {
			if (h->dir == SOCK_SENT)
				shares_add(&f->links.v[i].sent, s->proc, &s->m);
			else
				shares_add(&f->links.v[i].received, s->proc, &s->m);
		}
	}
	if (!unknown)
		return;
	/* Those need the links of all senders. */
	vec_for(&f->halves, h)
		if (h->link == NO && is_unknown(h, find_peer(f, &h->sock)))
			spread_unknown(f, h, h->self);
}

static struct total *total_of(struct flows *f, const struct link *l, uint32_t from, uint32_t to)
{
	uint64_t other = from == NO || to == NO ? addr_hash(&l->at.remote) ^ l->at.netns : 0;
	uint8_t kind = l->proto >= SOCK_PROTO_UNIX_STREAM ? SOCK_PROTO_UNIX_STREAM : l->proto;
	uint32_t i;
	struct total *t;

	if (kind == SOCK_PROTO_UNIX_STREAM && (from == NO || to == NO))
		other = l->at.sk_id;
	i = idmap_get(&f->total_by_ends, ((uint64_t)from << 32) | to, other ^ ((uint64_t)kind << 56));
	if (i == IDMAP_NONE) {
		t = vec_add(&f->totals);
		*t = (struct total){.from = from, .to = to, .at = l->at, .proto = kind};
		i = (uint32_t)f->totals.n - 1;
		idmap_put(&f->total_by_ends, ((uint64_t)from << 32) | to,
			  other ^ ((uint64_t)kind << 56), i);
	}
	t = &f->totals.v[i];
	t->at_is_target = to == NO;
	return t;
}

static struct moved portion(const struct moved *m, uint64_t part, uint64_t whole)
{
	struct moved r = *m;

	r.bytes = (uint64_t)((double)m->bytes * (double)part / (double)whole + 0.5);
	r.msgs = (uint64_t)((double)m->msgs * (double)part / (double)whole + 0.5);
	return r;
}

/* The receiver that a link has without anybody having received: who holds the socket. */
static uint32_t holder_of(struct flows *f, const struct link *l)
{
	uint32_t h = l->to == NO ? NO : f->known.v[l->to].holders;

	if (l->to != NO && h == NO)
		f->want_holders = true;
	return h == NO ? NO : f->holders.v[h].proc;
}

static void add_sent(struct flows *f, const struct link *l, uint32_t from, uint32_t to,
		     const struct moved *m)
{
	struct total *t = total_of(f, l, from, to);

	moved_add(&t->sent, m);
	t->has_sent = true;
}

static void add_received(struct flows *f, const struct link *l, uint32_t from, uint32_t to,
			 const struct moved *m, bool estimated)
{
	struct total *t = total_of(f, l, from, to);

	moved_add(&t->received, m);
	t->has_received = true;
	t->estimated |= estimated;
}

static uint64_t share_sum(const struct share *v, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].m.bytes;
	return sum;
}

/* Several receivers of one stream: each sender's bytes went to them as they took them. */
static void split_link(struct flows *f, const struct link *l)
{
	uint64_t sent = share_sum(l->sent.v, l->sent.n), got = share_sum(l->received.v, l->received.n);
	bool estimated = l->sent.n > 1 && l->received.n > 1;

	vec_for(&l->sent, s)
		vec_for(&l->received, r) {
			struct moved to = got ? portion(&s->m, r->m.bytes, got) : s->m;
			struct moved in = sent ? portion(&r->m, s->m.bytes, sent) : r->m;

			add_sent(f, l, s->proc, r->proc, &to);
			add_received(f, l, s->proc, r->proc, &in, estimated);
		}
}

static void add_link(struct flows *f, const struct link *l)
{
	if (l->sent.n && l->received.n) {
		split_link(f, l);
		return;
	}
	vec_for(&l->sent, s)
		add_sent(f, l, s->proc, holder_of(f, l), &s->m);
	vec_for(&l->received, r)
		add_received(f, l, NO, r->proc, &r->m, false);
}

bool flows_knows(const struct flows *f, const struct sock_facts *s)
{
	return idmap_get(&f->by_id, s->sk_id, 0) != IDMAP_NONE;
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

const char *sock_proto_name(unsigned proto)
{
	static const char *const names[SOCK_PROTO_N] = {
		"OTHER", "TCP", "UDP", "UNIX_STREAM", "UNIX_DGRAM", "UNIX_SEQPACKET", "IP"};

	return proto < SOCK_PROTO_N ? names[proto] : names[0];
}

static uint32_t unix_node(struct graph *g, const struct sock_facts *s, bool remote)
{
	struct node *n = graph_new_node(g, &unix_socket_type);

	SET(unix_socket, n, inode, remote ? s->peer_ino : s->ino);
	SET(unix_socket, n, cookie, remote ? s->peer_id : s->sk_id);
	SET(unix_socket, n, netns, s->netns);
	if (s->proto >= SOCK_PROTO_UNIX_STREAM && s->proto <= SOCK_PROTO_UNIX_SEQPACKET) {
		static const char *const names[] = {"stream", "dgram", "seqpacket"};

		SET(unix_socket, n, socket_type, graph_str(g, names[s->proto - SOCK_PROTO_UNIX_STREAM]));
	}
	return graph_add_node(g, n)->index;
}

uint32_t endpoint_node(struct graph *g, const struct sock_facts *s, bool remote, bool external)
{
	const struct sock_addr_abi *a = remote ? &s->remote : &s->local;
	char text[INET6_ADDRSTRLEN] = "?";
	struct node *n;

	if (s->family == AF_UNIX)
		return unix_node(g, s, remote);
	n = graph_new_node(g, &socket_type);
	inet_ntop(s->family == AF_INET6 ? AF_INET6 : AF_INET, a->addr, text, sizeof(text));
	SET(socket, n, socket_type, graph_str(g, sock_proto_name(s->proto)));
	if (!remote || !(s->flags & SOCK_PEER_UNKNOWN)) {
		SET(socket, n, socket_addr, graph_str(g, text));
		SET(socket, n, socket_port, a->port);
	}
	/* The namespace that sees it: the same address may be another host in another one. */
	SET(socket, n, netns, s->netns);
	if (external)
		SET(socket, n, external, true);
	return graph_add_node(g, n)->index;
}

static void set_flow(struct graph *g, struct edge *d, const struct total *t, uint64_t offset)
{
	const struct moved *m = t->has_sent ? &t->sent : &t->received;
	uint64_t first = t->sent.first_ns, last = t->sent.last_ns;

	if (!t->has_sent || (t->has_received && t->received.first_ns < first))
		first = t->received.first_ns;
	if (t->received.last_ns > last)
		last = t->received.last_ns;
	SET(flow, d, bytes, m->bytes);
	SET(flow, d, messages, m->msgs);
	SET(flow, d, first_ns, first + offset);
	SET(flow, d, last_ns, last + offset);
	if (t->has_sent) {
		SET(flow, d, bytes_sent, t->sent.bytes);
		SET(flow, d, messages_sent, t->sent.msgs);
	}
	if (t->has_received) {
		SET(flow, d, bytes_received, t->received.bytes);
		SET(flow, d, messages_received, t->received.msgs);
	}
	if (t->estimated)
		SET(flow, d, estimated, true);
	if (t->has_sent && !t->has_received && t->to != NO)
		SET(flow, d, blind, graph_str(g, "receive: nothing was read, or read by splice(2)"));
}

static bool is_selected(const struct flows *f, const struct total *t)
{
	return (t->from != NO && f->procs->v.v[t->from].selected) ||
	       (t->to != NO && f->procs->v.v[t->to].selected);
}

static void emit_total(struct flows *f, struct graph *g, struct total *t, uint64_t offset)
{
	static const char *const kinds[] = {"other", "tcp", "udp", "unix", "unix", "unix", "ip"};
	uint64_t stamp = hash_bytes(&t->sent, 2 * sizeof(t->sent), 1 + t->has_sent + 2 * t->has_received);
	uint32_t from, to;
	struct edge *d;

	if (stamp == t->stamp || !is_selected(f, t))
		return;
	t->stamp = stamp;
	from = t->from != NO ? procs_node(f->procs, g, t->from) : endpoint_node(g, &t->at, true, true);
	to = t->to != NO ? procs_node(f->procs, g, t->to) : endpoint_node(g, &t->at, true, true);
	d = graph_new_edge(g, &flow_type, from, to);
	SET(flow, d, kind, graph_str(g, kinds[t->proto]));
	set_flow(g, d, t, offset);
	graph_add_edge(g, d);
}

void flows_emit(struct flows *f, struct graph *g, uint64_t realtime_offset_ns)
{
	if (!f->changed)
		return;
	f->changed = f->want_holders = false;
	make_links(f);
	vec_for(&f->totals, t) {
		memset(&t->sent, 0, sizeof(t->sent));
		memset(&t->received, 0, sizeof(t->received));
		t->has_sent = t->has_received = t->estimated = false;
	}
	vec_for(&f->links, l)
		add_link(f, l);
	/* One that was emitted and has nothing now was found to be another's: it ends with 0 messages. */
	vec_for(&f->totals, t)
		if (t->has_sent || t->has_received || t->stamp)
			emit_total(f, g, t, realtime_offset_ns);
}
