/* In a graph of several hosts: who is at the other end of a socket, so that a wait for the network goes on there. */
#include <stdlib.h>
#include <string.h>

#include "waitfor/parts.h"

/* The thread of a process that sent most through one of two sockets; without word of that, the busiest. */
struct sender {
	uint32_t thread;
	uint64_t sent, active;
};

struct beyond {
	struct wf *x;
	uint32_t *process; /* [nodes] of a socket: who sends most to it from another host; NODE_NONE */
	uint32_t *peer;	   /* [nodes] the socket that it is sent from */
	uint64_t *bytes;   /* [nodes] so much */
};

/* A connection whose other end is known leads from the sender's socket to the one where it is waited for. */
static bool find_processes(struct beyond *b)
{
	const struct graph *g = b->x->g;
	bool any = false;

	vec_for(&g->edges, it) {
		const struct edge *d = *it;
		const struct node *from = g->nodes.v[d->source], *to = g->nodes.v[d->target];
		uint64_t sent;

		if (d->type != &connection_type || from->ns == to->ns || to->type != &socket_type ||
		    !HAS(connection, d, process) || (HAS(socket, to, external) && GET(socket, to, external)))
			continue;
		sent = HAS(connection, d, bytes_sent) ? GET(connection, d, bytes_sent) : 0;
		if (b->process[to->index] != NODE_NONE && sent <= b->bytes[to->index])
			continue;
		b->process[to->index] = GET(connection, d, process);
		b->peer[to->index] = from->index;
		b->bytes[to->index] = sent;
		any = true;
	}
	return any;
}

static uint64_t sent_by(const struct wf *x, uint32_t thread, uint32_t own, uint32_t other)
{
	struct edge_list out = graph_out(x->g, x->threads.v[thread].node);
	uint64_t sum = 0;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = x->g->edges.v[out.v[i]];

		if (d->type == &send_to_socket_type && (d->target == own || d->target == other) &&
		    HAS(send_to_socket, d, data_size))
			sum += GET(send_to_socket, d, data_size);
	}
	return sum;
}

static bool is_better(const struct sender *a, const struct sender *b)
{
	return b->thread == NODE_NONE || a->sent > b->sent || (a->sent == b->sent && a->active > b->active);
}

/* Threads stand process by process, as their nodes do; each is looked at for the sockets of its own process. */
static void find_threads(struct beyond *b)
{
	struct wf *x = b->x;
	size_t n = x->g->nodes.n;
	uint32_t *first = mem_alloc((n + 1) * sizeof(*first)), *next = mem_alloc((x->threads.n + 1) * sizeof(*next));

	memset(first, 0xff, (n + 1) * sizeof(*first));
	for (uint32_t i = (uint32_t)x->threads.n; i-- > 0;) {
		uint32_t p = x->threads.v[i].process;

		if (p == NODE_NONE)
			continue;
		next[i] = first[p];
		first[p] = i;
	}
	for (uint32_t s = 0; s < n; s++) {
		struct sender best = {.thread = NODE_NONE};

		if (b->process[s] == NODE_NONE)
			continue;
		for (uint32_t i = first[b->process[s]]; i != NODE_NONE; i = next[i]) {
			const struct wf_thread *t = &x->threads.v[i];
			struct sender one = {i, sent_by(x, i, b->peer[s], s), t->run_ns + t->runq_ns};

			if (is_better(&one, &best))
				best = one;
		}
		x->beyond[s] = best.thread;
	}
	free(first);
	free(next);
}

void wf_add_beyond(struct wf *x)
{
	size_t n = x->g->nodes.n + 1;
	struct beyond b = {.x = x, .process = mem_alloc(n * sizeof(*b.process)), .peer = mem_alloc(n * sizeof(*b.peer)),
			   .bytes = mem_alloc(n * sizeof(*b.bytes))};

	memset(b.process, 0xff, n * sizeof(*b.process));
	if (find_processes(&b)) {
		x->beyond = mem_alloc(n * sizeof(*x->beyond));
		memset(x->beyond, 0xff, n * sizeof(*x->beyond));
		find_threads(&b);
	}
	free(b.process);
	free(b.peer);
	free(b.bytes);
}

uint32_t wf_beyond(const struct wf *x, const struct wf_span *s)
{
	if (!x->beyond || s->ender != ENDER_NETWORK || s->object == NODE_NONE || s->charged != NODE_NONE)
		return s->charged;
	return x->beyond[s->object];
}
