/* What each interval in memory added, for pictures over time: as store/stored_amounts.c reads it of recordings. */
#include "history_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"

#define KIND_MAX_BYTES 32

static void add(struct window_amounts *x, enum amount_what what, uint32_t node, const char *kind, uint64_t n)
{
	if (n && node != NODE_NONE)
		vec_push(&x->ret->v, ((struct interval_amount){.node = x->nodes[node],
							       .interval = x->interval,
							       .what = what,
							       .kind = kind ? graph_str(x->window, kind) : NULL,
							       .n = n}));
}

/* How something stood: 0 says something. */
static void add_gauge(struct window_amounts *x, enum amount_what what, uint32_t node, uint64_t n)
{
	vec_push(&x->ret->v,
		 ((struct interval_amount){.node = x->nodes[node], .interval = x->interval, .what = what, .n = n}));
}

static void add_sent(struct window_amounts *x, const struct edge *d)
{
	const char *type = HAS(send_to_socket, d, connection_type) ? GET(send_to_socket, d, connection_type) : NULL;
	char kind[KIND_MAX_BYTES] = "unix";

	if (!type || !HAS(send_to_socket, d, data_size))
		return;
	if (strncmp(type, "UNIX", 4)) {
		size_t i = 0;

		for (; type[i] && i + 1 < sizeof(kind); i++)
			kind[i] = (char)tolower((unsigned char)type[i]);
		kind[i] = '\0';
	}
	add(x, AMOUNT_SENT, process_of(x->part, d->source), kind, GET(send_to_socket, d, data_size));
}

/* The kind of what a thread writes to, as flows have it. */
static const char *kind_of(const struct node *n)
{
	return n->type == &pipe_inode_type ? "pipe" : n->type == &file_type ? "storage" : n->type->name;
}

static void add_waited(struct window_amounts *x, const struct edge *d)
{
	if (!HAS(waits_for, d, waited_ns))
		return;
	vec_push(&x->waits, ((struct waited){.thread = x->nodes[d->source],
					     .ns = GET(waits_for, d, waited_ns),
					     .interval = x->interval,
					     .cause = wait_cause_find(GET(waits_for, d, cause))}));
}

static void add_edge(struct window_amounts *x, const struct edge *d)
{
	const struct node *const *nodes = (const struct node *const *)x->part->nodes.v;

	if (d->type == &send_to_socket_type)
		add_sent(x, d);
	else if (d->type == &write_to_type && HAS(write_to, d, bytes))
		add(x, AMOUNT_SENT, process_of(x->part, d->source), kind_of(nodes[d->target]), GET(write_to, d, bytes));
	else if (d->type == &read_from_type && HAS(read_from, d, bytes) && nodes[d->source]->type == &file_type)
		add(x, AMOUNT_READ, process_of(x->part, d->target), "storage", GET(read_from, d, bytes));
	else if (d->type == &waits_for_type)
		add_waited(x, d);
}

#define GAUGES(x, TYPE, n)                                                                                             \
	do {                                                                                                           \
		if (HAS(TYPE, n, utilization_pct))                                                                     \
			add_gauge(x, AMOUNT_USE, (n)->index, (uint64_t)(GET(TYPE, n, utilization_pct) * 100 + 0.5));   \
		if (HAS(TYPE, n, memory_used_bytes))                                                                   \
			add_gauge(x, AMOUNT_HELD, (n)->index, GET(TYPE, n, memory_used_bytes));                        \
	} while (0)

static void add_node(struct window_amounts *x, const struct node *n)
{
	if (n->type == &nic_type) {
		add(x, AMOUNT_MOVED, n->index, NULL,
		    (HAS(nic, n, rx_bytes) ? GET(nic, n, rx_bytes) : 0) + (HAS(nic, n, tx_bytes) ? GET(nic, n, tx_bytes) : 0));
	} else if (n->type == &block_device_type) {
		add(x, AMOUNT_MOVED, n->index, NULL,
		    (HAS(block_device, n, read_bytes) ? GET(block_device, n, read_bytes) : 0) +
			(HAS(block_device, n, written_bytes) ? GET(block_device, n, written_bytes) : 0));
		add(x, AMOUNT_BUSY, n->index, NULL, HAS(block_device, n, busy_ns) ? GET(block_device, n, busy_ns) : 0);
	} else if (n->type == &gpu_type) {
		GAUGES(x, gpu, n);
	} else if (n->type == &npu_type) {
		GAUGES(x, npu, n);
	}
}

static int order_of_waits(const void *a, const void *b)
{
	const struct waited *p = a, *q = b;

	if (p->thread != q->thread)
		return p->thread < q->thread ? -1 : 1;
	if (p->cause != q->cause)
		return p->cause < q->cause ? -1 : 1;
	return (p->interval < q->interval) - (p->interval > q->interval);
}

static void spread_waits(struct window_amounts *x)
{
	const struct waited *last = NULL;

	if (x->waits.n)
		qsort(x->waits.v, x->waits.n, sizeof(*x->waits.v), order_of_waits);
	wait_spread_begin(&x->spread);
	vec_for(&x->waits, it) {
		if (!last || last->thread != it->thread || last->cause != it->cause)
			wait_spread_next(&x->spread, it->cause);
		wait_spread_add(&x->spread, it->interval, it->ns);
		last = it;
	}
	wait_spread_end(&x->spread, x->window, x->ret);
}

static int order_of_amounts(const void *a, const void *b)
{
	const struct interval_amount *p = a, *q = b;

	if (p->what != q->what)
		return p->what < q->what ? -1 : 1;
	if (p->interval != q->interval)
		return p->interval < q->interval ? -1 : 1;
	if (p->node != q->node)
		return p->node < q->node ? -1 : 1;
	return p->kind && q->kind ? strcmp(p->kind, q->kind) : (p->kind != NULL) - (q->kind != NULL);
}

/* One for each node, kind and interval. */
static void join_equal(struct interval_amounts *a)
{
	size_t n = 0;

	if (a->v.n)
		qsort(a->v.v, a->v.n, sizeof(*a->v.v), order_of_amounts);
	for (size_t i = 0; i < a->v.n; i++) {
		if (n && !order_of_amounts(&a->v.v[n - 1], &a->v.v[i]))
			a->v.v[n - 1].n += a->v.v[i].n;
		else
			a->v.v[n++] = a->v.v[i];
	}
	a->v.n = n;
}

void window_amounts_add(struct window_amounts *x, const struct history_interval *from, const uint32_t *nodes)
{
	x->part = &from->part;
	x->nodes = nodes;
	x->interval = (uint32_t)x->spread.length_ns.n;
	vec_push(&x->spread.length_ns, from->end_ns > from->start_ns ? from->end_ns - from->start_ns : 0);
	vec_for(&from->part.nodes, n)
		add_node(x, *n);
	vec_for(&from->part.edges, d)
		add_edge(x, *d);
}

void window_amounts_end(struct window_amounts *x)
{
	join_equal(x->ret);
	spread_waits(x);
	vec_done(&x->waits);
}
