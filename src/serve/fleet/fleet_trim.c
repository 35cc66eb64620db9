/* What matters most of a host, where a fleet has no room for all of it. */
#include "fleet/fleet_trim.h"

#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "mem.h"

/* Above all times and bytes, in this order. */
#define RANK_MACHINE 1e30
#define RANK_LEAVES  1e25
#define RANK_WAITED  1e20

struct ranked {
	uint32_t node;
	double rank;
};

/* What comes and goes with programs; all else is the machine. */
static bool is_of_programs(const struct type *t)
{
	static const struct type *const types[] = {
		&process_type,	   &thread_type,     &socket_type,	&unix_socket_type, &file_type,
		&pipe_inode_type,  &eventfd_type,    &futex_type,	&posix_queue_type, &sysv_queue_type,
		&sysv_sem_type,	   &shared_memory_type, &wait_object_type, &rdma_endpoint_type};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i] == t)
			return true;
	return false;
}

static double rank_of(const struct node *n)
{
	if (!is_of_programs(n->type))
		return RANK_MACHINE;
	if (n->type == &wait_object_type)
		return RANK_WAITED;
	if (n->type == &process_type)
		return HAS(process, n, cpu_ns) ? (double)GET(process, n, cpu_ns) : 0;
	if (n->type == &thread_type)
		return (double)(GET(thread, n, run_ns) + GET(thread, n, runq_ns));
	return 0;
}

/* Both ends of a connection, and the process that uses it. */
static void rank_connections(const struct graph *g, struct ranked *r)
{
	vec_for(&g->edges, it) {
		const struct edge *d = *it;
		uint32_t nodes[3] = {d->source, d->target, NODE_NONE};
		double bytes = 0;

		if (d->type != &connection_type)
			continue;
		bytes += HAS(connection, d, bytes_sent) ? (double)GET(connection, d, bytes_sent) : 0;
		bytes += HAS(connection, d, bytes_received) ? (double)GET(connection, d, bytes_received) : 0;
		if (HAS(connection, d, process))
			nodes[2] = GET(connection, d, process);
		for (int i = 0; i < 3; i++)
			if (nodes[i] != NODE_NONE && r[nodes[i]].rank < RANK_LEAVES + bytes * 1e9)
				r[nodes[i]].rank = RANK_LEAVES + bytes * 1e9;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

void fleet_trim(const struct graph *g, size_t limit, struct graph *ret)
{
	size_t n = g->nodes.n;
	struct ranked *r = mem_alloc((n + 1) * sizeof(*r));
	bool *nodes = mem_alloc(n + 1), *edges = mem_alloc(g->edges.n + 1);
	uint32_t *to = mem_alloc((n + 1) * sizeof(*to)), *unused = mem_alloc((g->edges.n + 1) * sizeof(*unused));

	for (uint32_t i = 0; i < n; i++)
		r[i] = (struct ranked){i, rank_of(g->nodes.v[i])};
	rank_connections(g, r);
	if (n)
		qsort(r, n, sizeof(*r), by_rank);
	for (size_t i = 0; i < n && i < limit; i++)
		nodes[r[i].node] = true;
	for (size_t i = 0; i < g->edges.n; i++)
		edges[i] = nodes[g->edges.v[i]->source] && nodes[g->edges.v[i]->target];
	graph_merge_some(ret, g, nodes, edges, to, unused);
	hosts_copy_about(ret, g);
	if (ret->nodes.n < n)
		graph_add_loss(ret, "publisher", "entities_left_out", n - ret->nodes.n);
	free(r);
	free(nodes);
	free(edges);
	free(to);
	free(unused);
}
