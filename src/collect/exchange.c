/* Totals of what processes gave each other, whatever the paths between them. */
#include "exchange.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Flows to and from outside: later endpoints are folded into one without an address. */
#define OUTSIDE_MAX 4096

struct tally {
	struct moved sent, received;
	bool has_sent, has_received, estimated;
};

struct total {
	uint32_t from, to; /* processes, PROC_NONE: the endpoint */
	struct sock_facts at;
	uint8_t kind;
	struct tally now;
	struct tally settled; /* the part of `now` that was added for good */
	uint64_t stamp;	      /* hash of what was emitted, 0: never */
	struct told {
		bool sent, received, estimated, blind;
	} told; /* what was emitted, and so has to be taken back when it is no longer true */
};

struct exchange {
	struct procs *procs;
	VEC(struct total) totals;
	struct idmap by_ends;
	size_t outside; /* totals with an endpoint */
};

void moved_add(struct moved *to, const struct moved *m)
{
	if (!to->first_ns || (m->first_ns && m->first_ns < to->first_ns))
		to->first_ns = m->first_ns;
	if (m->last_ns > to->last_ns)
		to->last_ns = m->last_ns;
	to->bytes += m->bytes;
	to->calls += m->calls;
}

void shares_add(struct shares *s, uint32_t proc, const struct moved *m)
{
	struct share *new;

	vec_for(&s->list, it)
		if (it->proc == proc) {
			moved_add(&it->m, m);
			return;
		}
	/* Mostly one process, in very many places: room for no more than that. */
	if (!s->list.cap) {
		s->list.v = mem_alloc(sizeof(*s->list.v));
		s->list.cap = 1;
	}
	new = vec_add(&s->list);
	*new = (struct share){proc, *m};
}

uint64_t shares_bytes(const struct shares *s)
{
	uint64_t sum = 0;

	vec_for(&s->list, it)
		sum += it->m.bytes;
	return sum;
}

uint64_t shares_last_ns(const struct shares *s)
{
	uint64_t last = 0;

	vec_for(&s->list, it)
		last = it->m.last_ns > last ? it->m.last_ns : last;
	return last;
}

struct exchange *exchange_new(struct procs *p)
{
	struct exchange *x = mem_alloc(sizeof(*x));

	x->procs = p;
	return x;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	vec_done(&x->totals);
	idmap_done(&x->by_ends);
	free(x);
}

void exchange_begin(struct exchange *x)
{
	vec_for(&x->totals, t)
		t->now = t->settled;
}

/* What tells totals of the same ends apart. */
static uint64_t key_of(const struct total *t)
{
	const struct sock_facts *s = &t->at;
	uint64_t other = 0;

	if (t->from == PROC_NONE || t->to == PROC_NONE)
		other = s->family == AF_UNIX
				? s->sk_id
				: hash_bytes(s->remote.addr, sizeof(s->remote.addr),
					     s->remote.port ^ ((uint64_t)s->netns << 16));
	return other ^ ((uint64_t)t->kind << 56);
}

static uint64_t ends_of(const struct total *t)
{
	return ((uint64_t)t->from << 32) | t->to;
}

static bool is_outside(const struct total *t)
{
	return t->from == PROC_NONE || t->to == PROC_NONE;
}

/* The endpoint that stands for all those beyond the limit. */
static void make_anybody(struct sock_facts *s)
{
	memset(&s->remote, 0, sizeof(s->remote));
	s->flags |= SOCK_PEER_UNKNOWN;
	s->sk_id = s->ino = s->peer_id = s->peer_ino = 0;
}

static struct total *total_of(struct exchange *x, const struct crossing *c, uint32_t from,
			      uint32_t to)
{
	struct total new = {.from = from, .to = to, .kind = (uint8_t)c->kind};
	uint32_t i;

	if (c->outside)
		new.at = *c->outside;
	i = idmap_get(&x->by_ends, ends_of(&new), key_of(&new));
	if (i == IDMAP_NONE && is_outside(&new) && x->outside >= OUTSIDE_MAX) {
		make_anybody(&new.at);
		i = idmap_get(&x->by_ends, ends_of(&new), key_of(&new));
	}
	if (i == IDMAP_NONE) {
		i = (uint32_t)x->totals.n;
		vec_push(&x->totals, new);
		x->outside += is_outside(&new);
		idmap_put(&x->by_ends, ends_of(&new), key_of(&new), i);
	}
	return &x->totals.v[i];
}

/* One addition, for this round or for all later ones. */
struct addition {
	struct exchange *x;
	const struct crossing *c;
	bool for_good;
};

static void add_sent(const struct addition *a, uint32_t from, uint32_t to, const struct moved *m)
{
	struct total *t;
	struct tally *y;

	if (to == PROC_NONE && !a->c->outside)
		return;
	t = total_of(a->x, a->c, from, to);
	y = a->for_good ? &t->settled : &t->now;
	moved_add(&y->sent, m);
	y->has_sent = true;
}

static void add_received(const struct addition *a, uint32_t from, uint32_t to,
			 const struct moved *m, bool estimated)
{
	struct total *t;
	struct tally *y;

	if (from == PROC_NONE && !a->c->outside)
		return;
	t = total_of(a->x, a->c, from, to);
	y = a->for_good ? &t->settled : &t->now;
	moved_add(&y->received, m);
	y->has_received = true;
	y->estimated |= estimated;
}

/* What each of several has of a whole: of the bytes, or of the calls where there are no bytes. */
static uint64_t weight(const struct share *s, bool by_calls)
{
	return by_calls ? s->m.calls : s->m.bytes;
}

static uint64_t weights(const struct shares *s, bool by_calls)
{
	uint64_t sum = 0;

	vec_for(&s->list, it)
		sum += weight(it, by_calls);
	return sum;
}

/*
 * The part of @p all for those from @p before to @p before + @p own of @p whole: parts add up to
 * all.
 */
static uint64_t part(uint64_t all, uint64_t before, uint64_t own, uint64_t whole)
{
	unsigned __int128 to = (unsigned __int128)all * (before + own) + whole / 2;
	unsigned __int128 from = (unsigned __int128)all * before + whole / 2;

	return whole ? (uint64_t)(to / whole) - (uint64_t)(from / whole) : before ? 0 : all;
}

static struct moved portion(const struct moved *m, uint64_t before, uint64_t own, uint64_t whole)
{
	struct moved r = *m;

	r.bytes = part(m->bytes, before, own, whole);
	r.calls = part(m->calls, before, own, whole);
	return r;
}

/* Several receivers of one stream: each sender's bytes went to them as they took them. */
static void split(const struct addition *a)
{
	const struct shares *sent = a->c->sent, *received = a->c->received;
	bool by_calls = !shares_bytes(sent) && !shares_bytes(received);
	uint64_t put = weights(sent, by_calls), got = weights(received, by_calls);
	bool estimated = sent->list.n > 1 && received->list.n > 1;
	uint64_t put_before = 0, got_before;

	vec_for(&sent->list, s) {
		got_before = 0;
		vec_for(&received->list, r) {
			struct moved to = portion(&s->m, got_before, weight(r, by_calls), got);
			struct moved in = portion(&r->m, put_before, weight(s, by_calls), put);

			add_sent(a, s->proc, r->proc, &to);
			add_received(a, s->proc, r->proc, &in, estimated);
			got_before += weight(r, by_calls);
		}
		put_before += weight(s, by_calls);
	}
}

void exchange_add(struct exchange *x, const struct crossing *c, bool for_good)
{
	struct addition a = {x, c, for_good};

	if (c->sent->list.n && c->received->list.n) {
		split(&a);
		return;
	}
	vec_for(&c->sent->list, s)
		add_sent(&a, s->proc, c->holder, &s->m);
	vec_for(&c->received->list, r)
		add_received(&a, PROC_NONE, r->proc, &r->m, false);
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

		SET(unix_socket, n, socket_type,
		    graph_str(g, names[s->proto - SOCK_PROTO_UNIX_STREAM]));
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

static void set_sides(struct edge *d, const struct tally *y, struct told *told)
{
	if (y->has_sent || told->sent) {
		SET(flow, d, bytes_sent, y->sent.bytes);
		SET(flow, d, messages_sent, y->sent.calls);
		told->sent = true;
	}
	if (y->has_received || told->received) {
		SET(flow, d, bytes_received, y->received.bytes);
		SET(flow, d, messages_received, y->received.calls);
		told->received = true;
	}
}

static void set_flow(struct graph *g, struct edge *d, struct total *t, uint64_t offset)
{
	const struct tally *y = &t->now;
	const struct moved *m = y->has_sent ? &y->sent : &y->received;
	uint64_t first = y->sent.first_ns, last = y->sent.last_ns;
	bool unread = y->has_sent && !y->has_received && t->to != PROC_NONE;

	if (!y->has_sent || (y->has_received && y->received.first_ns < first))
		first = y->received.first_ns;
	if (y->received.last_ns > last)
		last = y->received.last_ns;
	SET(flow, d, bytes, m->bytes);
	SET(flow, d, messages, m->calls);
	SET(flow, d, first_ns, first + offset);
	SET(flow, d, last_ns, last + offset);
	set_sides(d, y, &t->told);
	if (y->estimated || t->told.estimated)
		SET(flow, d, estimated, y->estimated);
	t->told.estimated |= y->estimated;
	if (unread || t->told.blind)
		SET(flow, d, blind,
		    graph_str(g, unread ? "receive: nothing was read, or read by splice(2)" : ""));
	t->told.blind |= unread;
}

static bool is_selected(const struct exchange *x, const struct total *t)
{
	return (t->from != PROC_NONE && x->procs->v.v[t->from].selected) ||
	       (t->to != PROC_NONE && x->procs->v.v[t->to].selected);
}

static uint64_t stamp_of(const struct tally *y)
{
	return hash_bytes(&y->sent, sizeof(y->sent),
			  hash_bytes(&y->received, sizeof(y->received),
				     1 + y->has_sent + 2 * y->has_received)) | 1;
}

static void emit_total(struct exchange *x, struct graph *g, struct total *t, uint64_t offset)
{
	static const char *const kinds[FLOW_KINDS] = {
		"other", "tcp", "udp", "unix", "ip", "pipe", "fifo", "eventfd", "posix_queue",
		"sysv_queue", "memory_copy"};
	uint64_t stamp = stamp_of(&t->now);
	uint32_t from, to;
	struct edge *d;

	if (stamp == t->stamp || !is_selected(x, t))
		return;
	t->stamp = stamp;
	from = t->from != PROC_NONE ? procs_node(x->procs, g, t->from)
				    : endpoint_node(g, &t->at, true, true);
	to = t->to != PROC_NONE ? procs_node(x->procs, g, t->to)
				: endpoint_node(g, &t->at, true, true);
	d = graph_new_edge(g, &flow_type, from, to);
	SET(flow, d, kind, graph_str(g, kinds[t->kind]));
	set_flow(g, d, t, offset);
	graph_add_edge(g, d);
}

void exchange_emit(struct exchange *x, struct graph *g, uint64_t realtime_offset_ns)
{
	/*
	 * One that was emitted and has nothing now was found to be another's: it ends with 0
	 * messages.
	 */
	vec_for(&x->totals, t)
		if (t->now.has_sent || t->now.has_received || t->stamp)
			emit_total(x, g, t, realtime_offset_ns);
}

static bool is_over(const struct exchange *x, uint32_t proc, const uint64_t *used)
{
	return proc != PROC_NONE && x->procs->v.v[proc].end_ns && !procs_bit(used, proc);
}

void exchange_sweep(struct exchange *x, uint64_t *used)
{
	size_t kept = 0;

	idmap_clear(&x->by_ends);
	x->outside = 0;
	vec_for(&x->totals, t) {
		/* A change that was not emitted yet keeps it until the next sweep. */
		if ((is_over(x, t->from, used) || is_over(x, t->to, used)) &&
		    (t->stamp == stamp_of(&t->settled) || !is_selected(x, t)))
			continue;
		x->totals.v[kept++] = *t;
	}
	x->totals.n = kept;
	for (uint32_t i = 0; i < kept; i++) {
		const struct total *t = &x->totals.v[i];

		idmap_put(&x->by_ends, ends_of(t), key_of(t), i);
		x->outside += is_outside(t);
		if (t->from != PROC_NONE)
			procs_set_bit(used, t->from);
		if (t->to != PROC_NONE)
			procs_set_bit(used, t->to);
	}
}
