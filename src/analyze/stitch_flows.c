/* Flows between hosts, out of flows to addresses and what each connection moved. */
#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "stitch_parts.h"

#define NO UINT32_MAX

/* An amount of one direction. */
struct amount {
	uint64_t bytes, messages;
	bool known;
};

/* All that one process sent to another, over all connections between them. */
struct between {
	uint32_t from, to; /* nodes of the source graph */
	const char *kind;
	struct amount sent, received;
	uint64_t first_ns, last_ns;
};

/* What of a flow to or from an address is accounted for by such connections. */
struct accounted {
	uint64_t bytes, messages;
};

struct flows_work {
	struct stitch_work *w;
	VEC(struct between) list;
	struct idmap by_ends;
	VEC(struct accounted) parts;
	struct idmap by_flow; /* process and external socket, by direction */
};

static void add_amount(struct amount *a, bool known, uint64_t bytes, uint64_t messages)
{
	if (!known)
		return;
	a->known = true;
	a->bytes += bytes;
	a->messages += messages;
}

static struct between *between_of(struct flows_work *x, uint32_t from, uint32_t to,
				  const char *kind)
{
	uint64_t key = (uint64_t)from << 32 | to;
	uint32_t i = idmap_get(&x->by_ends, key, *kind == 't');
	struct between *b;

	if (i == IDMAP_NONE) {
		i = (uint32_t)x->list.n;
		idmap_put(&x->by_ends, key, *kind == 't', i);
		b = vec_add(&x->list);
		*b = (struct between){.from = from, .to = to, .kind = kind};
	}
	return &x->list.v[i];
}

static struct accounted *accounted_of(struct flows_work *x, uint32_t process, uint32_t socket,
				      bool sent)
{
	uint64_t key = (uint64_t)process << 32 | socket;
	uint32_t i = idmap_get(&x->by_flow, key, sent);

	if (i == IDMAP_NONE) {
		i = (uint32_t)x->parts.n;
		idmap_put(&x->by_flow, key, sent, i);
		vec_add(&x->parts);
	}
	return &x->parts.v[i];
}

static void learn_times(struct between *b, const struct edge *d)
{
	if (HAS(connection, d, first_ns) &&
	    (!b->first_ns || GET(connection, d, first_ns) < b->first_ns))
		b->first_ns = GET(connection, d, first_ns);
	if (HAS(connection, d, last_ns) && GET(connection, d, last_ns) > b->last_ns)
		b->last_ns = GET(connection, d, last_ns);
}

/* What end @p d sent to end @p o. */
static void add_direction(struct flows_work *x, const struct edge *d, const struct edge *o)
{
	const struct node *socket = x->w->from->nodes.v[d->source];
	const char *kind =
	    HAS(socket, socket, socket_type) && !strcmp(GET(socket, socket, socket_type), "UDP")
		? "udp"
		: "tcp";
	uint32_t from = GET(connection, d, process), to = GET(connection, o, process);
	bool sent = HAS(connection, d, bytes_sent), received = HAS(connection, o, bytes_received);
	struct accounted *a;
	struct between *b;

	if (!sent && !received)
		return;
	b = between_of(x, from, to, kind);
	add_amount(&b->sent, sent, GET(connection, d, bytes_sent),
		   GET(connection, d, messages_sent));
	add_amount(&b->received, received, GET(connection, o, bytes_received),
		   GET(connection, o, messages_received));
	learn_times(b, sent ? d : o);
	if (sent) {
		a = accounted_of(x, from, d->target, true);
		a->bytes += GET(connection, d, bytes_sent);
		a->messages += GET(connection, d, messages_sent);
	}
	if (received) {
		a = accounted_of(x, to, o->target, false);
		a->bytes += GET(connection, o, bytes_received);
		a->messages += GET(connection, o, messages_received);
	}
}

static void learn(struct flows_work *x)
{
	for (uint32_t i = 0; i < x->w->n_ends; i++) {
		const struct stitch_end *e = &x->w->ends[i];
		const struct edge *o;

		if (e->match == NO)
			continue;
		o = x->w->ends[e->match].edge;
		if (HAS(connection, e->edge, process) && HAS(connection, o, process))
			add_direction(x, e->edge, o);
	}
}

/* Part of a flow between a process and an address; NULL: it is none, or nothing is accounted for.
 */
static const struct accounted *part_of(const struct flows_work *x, const struct edge *d)
{
	const struct graph *g = x->w->from;
	bool sent = g->nodes.v[d->target]->type == &socket_type;
	uint32_t process = sent ? d->source : d->target, socket = sent ? d->target : d->source, i;

	if (d->type != &flow_type || g->nodes.v[socket]->type != &socket_type)
		return NULL;
	i = idmap_get(&x->by_flow, (uint64_t)process << 32 | socket, sent);
	return i == IDMAP_NONE ? NULL : &x->parts.v[i];
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What went to the same address, and is of no connection that was joined. */
static void add_rest(struct flows_work *x, const struct edge *d, const struct accounted *a)
{
	struct graph *into = x->w->into;
	struct edge *f = graph_new_edge(into, &flow_type, x->w->nodes[x->w->stands[d->source]],
					x->w->nodes[x->w->stands[d->target]]);
	uint64_t bytes = minus(GET(flow, d, bytes), a->bytes),
		 messages = minus(GET(flow, d, messages), a->messages);

	SET(flow, f, kind, graph_str(into, HAS(flow, d, kind) ? GET(flow, d, kind) : "other"));
	SET(flow, f, bytes, bytes);
	SET(flow, f, messages, messages);
	if (HAS(flow, d, bytes_sent)) {
		SET(flow, f, bytes_sent, bytes);
		SET(flow, f, messages_sent, messages);
	}
	if (HAS(flow, d, bytes_received)) {
		SET(flow, f, bytes_received, bytes);
		SET(flow, f, messages_received, messages);
	}
	if (HAS(flow, d, first_ns))
		SET(flow, f, first_ns, GET(flow, d, first_ns));
	if (HAS(flow, d, last_ns))
		SET(flow, f, last_ns, GET(flow, d, last_ns));
	graph_add_edge(into, f);
}

static void add_flow(struct flows_work *x, const struct between *b)
{
	struct graph *into = x->w->into;
	struct edge *f = graph_new_edge(into, &flow_type, x->w->nodes[b->from], x->w->nodes[b->to]);
	const struct amount *a = b->sent.known ? &b->sent : &b->received;

	SET(flow, f, kind, graph_str(into, b->kind));
	SET(flow, f, bytes, a->bytes);
	SET(flow, f, messages, a->messages);
	if (b->sent.known) {
		SET(flow, f, bytes_sent, b->sent.bytes);
		SET(flow, f, messages_sent, b->sent.messages);
	}
	if (b->received.known) {
		SET(flow, f, bytes_received, b->received.bytes);
		SET(flow, f, messages_received, b->received.messages);
	}
	if (b->first_ns)
		SET(flow, f, first_ns, b->first_ns);
	if (b->last_ns)
		SET(flow, f, last_ns, b->last_ns);
	graph_add_edge(into, f);
	x->w->ret->flows++;
}

void stitch_copy(struct stitch_work *w)
{
	struct flows_work x = {.w = w};

	learn(&x);
	vec_for(&w->from->edges, d)
		if (part_of(&x, *d))
			w->keep_edge[(*d)->index] = false;
	for (size_t i = 0; i < w->from->nodes.n; i++)
		if (w->stands[i] != i)
			w->keep_node[i] = false;
	graph_merge_joined(w->into, w->from, w->keep_node, w->keep_edge, w->stands, w->nodes);
	vec_for(&w->from->edges, d) {
		const struct accounted *a = part_of(&x, *d);

		if (a && GET(flow, *d, bytes) > a->bytes)
			add_rest(&x, *d, a);
	}
	vec_for(&x.list, b)
		add_flow(&x, b);
	vec_for(&w->queue_pairs, l)
		graph_link(w->into, &connect_to_type, w->nodes[l->from], w->nodes[l->to]);
	vec_done(&x.list);
	vec_done(&x.parts);
	idmap_done(&x.by_ends);
	idmap_done(&x.by_flow);
}
