/* Flows between processes out of the edges to and from sockets. */
#include "derive_flows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

uint32_t process_of(const struct graph *g, uint32_t node)
{
	const struct node *n = g->nodes.v[node];

	if (n->type == &process_type)
		return node;
	if (n->type == &thread_type && HAS(thread, n, process))
		return GET(thread, n, process);
	return NODE_NONE;
}

static uint32_t owner_of(struct graph *g, uint32_t socket)
{
	struct edge_list out = graph_out(g, socket);

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];
		uint32_t p = d->type == &belong_type ? process_of(g, d->target) : NODE_NONE;

		if (p != NODE_NONE)
			return p;
	}
	return socket;
}

static const char *kind_of(struct graph *g, const struct edge *d)
{
	char kind[16] = "unknown";

	if (HAS(send_to_socket, d, connection_type))
		snprintf(kind, sizeof(kind), "%s", GET(send_to_socket, d, connection_type));
	for (char *s = kind; *s; s++)
		*s = (char)(*s == '_' ? '\0' : tolower((unsigned char)*s));
	return graph_str(g, kind);
}

struct pending {
	uint32_t from, to;
	const struct edge *d;
};

static void add_flow(struct graph *g, const struct pending *p)
{
	struct edge *f = graph_new_edge(g, &flow_type, p->from, p->to), *have;
	uint64_t bytes = HAS(send_to_socket, p->d, data_size) ? GET(send_to_socket, p->d, data_size) : 0;
	uint64_t calls = HAS(send_to_socket, p->d, packets_cnt) ? GET(send_to_socket, p->d, packets_cnt) : 0;
	size_t before = g->edges.n;

	SET(flow, f, kind, kind_of(g, p->d));
	have = graph_add_edge(g, f);
	if (g->edges.n != before) {
		SET(flow, have, bytes, 0);
		SET(flow, have, messages, 0);
	}
	SET(flow, have, bytes, GET(flow, have, bytes) + bytes);
	SET(flow, have, messages, GET(flow, have, messages) + calls);
	SET(flow, have, bytes_sent, GET(flow, have, bytes));
	SET(flow, have, messages_sent, GET(flow, have, messages));
	if (HAS(send_to_socket, p->d, start_time) &&
	    (!HAS(flow, have, first_ns) || GET(send_to_socket, p->d, start_time) < GET(flow, have, first_ns)))
		SET(flow, have, first_ns, GET(send_to_socket, p->d, start_time));
	if (HAS(send_to_socket, p->d, end_time) &&
	    (!HAS(flow, have, last_ns) || GET(send_to_socket, p->d, end_time) > GET(flow, have, last_ns)))
		SET(flow, have, last_ns, GET(send_to_socket, p->d, end_time));
}

void derive_flows(struct graph *g)
{
	VEC(struct pending) list = {0};

	vec_for(&g->edges, d) {
		uint32_t from;

		if ((*d)->type == &flow_type) {
			vec_done(&list);
			return;
		}
		from = (*d)->type == &send_to_socket_type ? process_of(g, (*d)->source) : NODE_NONE;
		if (from != NODE_NONE)
			vec_push(&list, ((struct pending){from, owner_of(g, (*d)->target), *d}));
	}
	vec_for(&list, p)
		add_flow(g, p);
	vec_done(&list);
}
