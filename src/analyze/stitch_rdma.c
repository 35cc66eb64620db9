/* RDMA: queue pairs of different hosts that are connected with each other. */
#include <stdlib.h>

#include "idmap.h"
#include "stitch_parts.h"

#define NO UINT32_MAX

struct pairs {
	const struct graph *g;
	struct idmap first; /* own and remote number to the newest queue pair that has them */
	uint32_t *next;     /* [nodes] another one with the same numbers */
};

/* Does its other end have to be elsewhere? The one that its own host found is proved better. */
static bool is_connected(struct graph *g, const struct node *n)
{
	struct edge_list out;

	if (n->type != &rdma_qp_type || !HAS(rdma_qp, n, qpn) || !HAS(rdma_qp, n, rqpn) ||
	    !GET(rdma_qp, n, rqpn))
		return false;
	out = graph_out(g, n->index);
	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];

		if (d->type == &connect_to_type && g->nodes.v[d->target]->type == &rdma_qp_type)
			return false;
	}
	return true;
}

/* The only one of another host; NO: none or several. */
static uint32_t find_other(const struct pairs *x, const struct node *n, bool *ret_several)
{
	uint32_t found = NO;

	*ret_several = false;
	for (uint32_t i = idmap_get(&x->first, GET(rdma_qp, n, rqpn), GET(rdma_qp, n, qpn));
	     i != IDMAP_NONE; i = x->next[i]) {
		const struct node *o = x->g->nodes.v[i];

		if (o->ns == n->ns)
			continue;
		if (found != NO) {
			*ret_several = true;
			return NO;
		}
		found = i;
	}
	return found;
}

/* Its relation to a mere number is dropped, and the number with its last relation. */
static void join(struct stitch_work *w, uint32_t node, uint32_t other)
{
	struct edge_list out = graph_out(w->from, node), in;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = w->from->edges.v[out.v[i]];
		bool used = false;

		if (d->type != &connect_to_type ||
		    w->from->nodes.v[d->target]->type != &rdma_endpoint_type)
			continue;
		w->keep_edge[d->index] = false;
		in = graph_in(w->from, d->target);
		for (size_t k = 0; k < in.n; k++)
			used |= w->keep_edge[in.v[k]];
		w->keep_node[d->target] = used;
	}
	vec_push(&w->queue_pairs, ((struct stitch_link){node, other}));
}

void stitch_queue_pairs(struct stitch_work *w)
{
	struct graph *g = w->from;
	struct pairs x = {.g = g, .next = mem_alloc((g->nodes.n + 1) * sizeof(uint32_t))};
	size_t found = 0;

	vec_for(&g->nodes, n)
		if (is_connected(g, *n)) {
			uint64_t own = GET(rdma_qp, *n, qpn), other = GET(rdma_qp, *n, rqpn);

			x.next[(*n)->index] = idmap_get(&x.first, own, other);
			idmap_put(&x.first, own, other, (*n)->index);
			found++;
		}
	for (uint32_t i = 0; found && i < g->nodes.n; i++) {
		const struct node *n = g->nodes.v[i];
		bool several, back;
		uint32_t other;

		if (!is_connected(g, n))
			continue;
		other = find_other(&x, n, &several);
		w->ret->queue_pairs_ambiguous += several;
		if (other == NO || find_other(&x, g->nodes.v[other], &back) != i)
			continue;
		w->ret->queue_pairs++;
		join(w, i, other);
	}
	idmap_done(&x.first);
	free(x.next);
}
