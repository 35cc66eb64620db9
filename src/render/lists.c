/* Orders and counts that several renderers share. */
#include <stdlib.h>
#include <string.h>

#include "render.h"

static int compare_flows(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct edge *x = g->edges.v[*(const uint32_t *)a], *y = g->edges.v[*(const uint32_t *)b];
	uint64_t bx = GET(flow, x, bytes), by = GET(flow, y, bytes);

	if (bx != by)
		return bx < by ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

void flows_by_bytes(const struct graph *g, struct index_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	/* With nothing: its other end became known later, and it counts there. */
	vec_for(&g->edges, d)
		if ((*d)->type == &flow_type && !(HAS(flow, *d, messages) && !GET(flow, *d, messages) && !GET(flow, *d, bytes)))
			vec_push(&ret->v, (*d)->index);
	if (ret->v.n)
		qsort_r(ret->v.v, ret->v.n, sizeof(uint32_t), compare_flows, (void *)g);
}

static int compare_threads(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct node *x = g->nodes.v[*(const uint32_t *)a], *y = g->nodes.v[*(const uint32_t *)b];
	uint64_t rx = GET(thread, x, run_ns), ry = GET(thread, y, run_ns);

	if (rx != ry)
		return rx < ry ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

void threads_by_time(const struct graph *g, struct index_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	vec_for(&g->nodes, n)
		if ((*n)->type == &thread_type && HAS(thread, *n, run_ns))
			vec_push(&ret->v, (*n)->index);
	if (ret->v.n)
		qsort_r(ret->v.v, ret->v.n, sizeof(uint32_t), compare_threads, (void *)g);
}

void count_types(const struct graph *g, uint64_t *entities, uint64_t *edges)
{
	vec_for(&g->nodes, n)
		entities[(*n)->type->number]++;
	vec_for(&g->edges, d)
		edges[(*d)->type->number]++;
}
