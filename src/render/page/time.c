/* The page's series: what happened in which part of the window. */
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "page_parts.h"
#include "timeline.h"

#define BUCKETS_MAX     120 /* steps of the pictures; more intervals are joined */
#define PROCESSES_SHOWN 7
#define THREADS_SHOWN   400
#define SENDERS_SHOWN   400
#define DEVICES_SHOWN   12
#define GAUGES_SHOWN    64 /* accelerators */

/* Sums by row and bucket. */
struct table {
	size_t rows, buckets;
	uint64_t *v;     /* [rows * buckets] */
	uint64_t *total; /* [rows] */
};

static void table_init(struct table *t, size_t rows, size_t buckets)
{
	*t = (struct table){rows, buckets, mem_alloc((rows * buckets + 1) * sizeof(*t->v)),
			    mem_alloc((rows + 1) * sizeof(*t->total))};
}

static void table_done(struct table *t)
{
	free(t->v);
	free(t->total);
}

static void table_add(struct table *t, size_t row, size_t bucket, uint64_t n)
{
	if (row >= t->rows || bucket >= t->buckets)
		return;
	t->v[row * t->buckets + bucket] += n;
	t->total[row] += n;
}

static void write_row(const struct table *t, size_t row, struct json_writer *w)
{
	json_write_array(w);
	for (size_t i = 0; i < t->buckets; i++)
		json_write_u64(w, t->v[row * t->buckets + i]);
	json_write_array_end(w);
}

/* Rows with something, most first. @return how many; at most @p most */
static size_t largest(const struct table *t, size_t most, uint32_t *ret)
{
	size_t n = 0;

	for (uint32_t row = 0; row < t->rows; row++) {
		size_t at;

		if (!t->total[row] || (n == most && t->total[ret[n - 1]] >= t->total[row]))
			continue;
		at = n < most ? n++ : n - 1;
		for (; at && t->total[ret[at - 1]] < t->total[row]; at--)
			ret[at] = ret[at - 1];
		ret[at] = row;
	}
	return n;
}

static size_t bucket_of(const struct page *p, size_t interval)
{
	return interval * p->buckets / p->s->time->intervals.n;
}

static uint32_t row_of_node(const struct page *p, uint32_t node)
{
	uint32_t process = process_of(p->g, node);
	uint32_t actor = process != NODE_NONE ? p->t->actor_of[process] : TOPO_NONE;

	return actor != TOPO_NONE ? p->row_of[actor] : PAGE_NONE;
}

static void begin_series(const char *name, struct json_writer *w)
{
	json_write_object(w);
	page_key_text(w, "name", name);
}

static void write_ends(struct page *p, struct json_writer *w)
{
	const struct timeline *time = p->s->time;
	size_t last = 0;

	json_write_key(w, "starts_ns");
	json_write_array(w);
	for (size_t i = 0; i < time->intervals.n; i++)
		if (!i || bucket_of(p, i) != bucket_of(p, i - 1))
			json_write_u64(w, time->intervals.v[i].start_ns);
	json_write_array_end(w);
	json_write_key(w, "ends_ns");
	json_write_array(w);
	for (size_t i = 1; i <= time->intervals.n; i++) {
		if (i < time->intervals.n && bucket_of(p, i) == bucket_of(p, last))
			continue;
		json_write_u64(w, time->intervals.v[i - 1].end_ns);
		last = i;
	}
	json_write_array_end(w);
}

/* Cores by process: the busiest one by one, the others together. */
static void write_cpu(struct page *p, struct json_writer *w)
{
	const struct timeline *time = p->s->time;
	size_t rows = p->kept.n + p->folds.n;
	uint32_t top[PROCESSES_SHOWN];
	struct table t, others;
	size_t n;

	table_init(&t, rows, p->buckets);
	table_init(&others, 1, p->buckets);
	vec_for(&time->slices, s)
		table_add(&t, row_of_node(p, s->thread), bucket_of(p, s->interval), s->run_ns);
	n = largest(&t, PROCESSES_SHOWN, top);
	for (size_t i = 0; i < n; i++) {
		begin_series(NULL, w);
		json_key_u64(w, "row", top[i]);
		json_write_key(w, "values");
		write_row(&t, top[i], w);
		json_write_object_end(w);
		t.total[top[i]] = 0;
	}
	for (size_t row = 0; row < rows; row++)
		for (size_t b = 0; t.total[row] && b < p->buckets; b++)
			table_add(&others, 0, b, t.v[row * p->buckets + b]);
	if (others.total[0]) {
		begin_series("all others", w);
		json_write_key(w, "values");
		write_row(&others, 0, w);
		json_write_object_end(w);
	}
	table_done(&others);
	table_done(&t);
}

/* Kinds in the order in which they are seen first; there are few. */
struct kinds {
	VEC(const char *) v;
};

static size_t kind_number(struct kinds *k, const char *kind)
{
	for (size_t i = 0; i < k->v.n; i++)
		if (!strcmp(k->v.v[i], kind))
			return i;
	vec_push(&k->v, kind);
	return k->v.n - 1;
}

static void collect_kinds(const struct page *p, enum amount_what what, struct kinds *k)
{
	vec_for(&p->amounts->v, a)
		if (a->what == what && a->kind)
			kind_number(k, a->kind);
}

/* What senders gave by kind, in all or of one sender each. */
static void write_by_kind(struct page *p, enum amount_what what, struct json_writer *w)
{
	struct kinds k = {0};
	struct table t;
	uint32_t order[32];
	size_t n;

	collect_kinds(p, what, &k);
	table_init(&t, k.v.n, p->buckets);
	vec_for(&p->amounts->v, a)
		if (a->what == what && a->kind && a->interval < p->s->time->intervals.n)
			table_add(&t, kind_number(&k, a->kind), bucket_of(p, a->interval), a->n);
	n = largest(&t, sizeof(order) / sizeof(order[0]), order);
	for (size_t i = 0; i < n; i++) {
		begin_series(k.v.v[order[i]], w);
		json_write_key(w, "values");
		write_row(&t, order[i], w);
		json_write_object_end(w);
	}
	table_done(&t);
	vec_done(&k.v);
}

/* By sender and kind, so that the page can tell how much of a flow was when. */
static void write_senders(struct page *p, enum amount_what what, struct json_writer *w)
{
	struct kinds k = {0};
	size_t rows = p->kept.n + p->folds.n, n;
	uint32_t *top = mem_alloc(SENDERS_SHOWN * sizeof(*top));
	struct table t;

	collect_kinds(p, what, &k);
	table_init(&t, rows * k.v.n, p->buckets);
	vec_for(&p->amounts->v, a) {
		uint32_t row = a->what == what && a->kind && a->node != NODE_NONE
				   ? row_of_node(p, a->node)
				   : PAGE_NONE;

		if (row != PAGE_NONE && a->interval < p->s->time->intervals.n)
			table_add(&t, row * k.v.n + kind_number(&k, a->kind),
				  bucket_of(p, a->interval), a->n);
	}
	n = largest(&t, SENDERS_SHOWN, top);
	for (size_t i = 0; i < n; i++) {
		begin_series(k.v.v[top[i] % k.v.n], w);
		json_key_u64(w, "row", top[i] / k.v.n);
		json_write_key(w, "values");
		write_row(&t, top[i], w);
		json_write_object_end(w);
	}
	table_done(&t);
	vec_done(&k.v);
	free(top);
}

/* There are few disks and interfaces. */
struct nodes {
	VEC(uint32_t) v;
};

static size_t node_number(struct nodes *n, uint32_t node)
{
	for (size_t i = 0; i < n->v.n; i++)
		if (n->v.v[i] == node)
			return i;
	vec_push(&n->v, node);
	return n->v.n - 1;
}

/* As people call it, and its id. */
static void begin_device(struct page *p, uint32_t node, struct json_writer *w)
{
	const struct node *n = p->g->nodes.v[node];
	struct strbuf name = {0};

	if (n->type == &nic_type && HAS(nic, n, name))
		strbuf_addf(&name, "nic %s", GET(nic, n, name));
	else if (n->type == &block_device_type && HAS(block_device, n, name))
		strbuf_addf(&name, "disk %s", GET(block_device, n, name));
	begin_series(name.n ? name.s : graph_node_id(p->g, node), w);
	json_key_str(w, "id", graph_node_id(p->g, node));
	strbuf_done(&name);
}

static void write_devices(struct page *p, enum amount_what what, struct json_writer *w)
{
	struct nodes nodes = {0};
	uint32_t top[DEVICES_SHOWN];
	struct table t;
	size_t n;

	vec_for(&p->amounts->v, a)
		if (a->what == what && a->node != NODE_NONE)
			node_number(&nodes, a->node);
	table_init(&t, nodes.v.n, p->buckets);
	vec_for(&p->amounts->v, a)
		if (a->what == what && a->node != NODE_NONE &&
		    a->interval < p->s->time->intervals.n)
			table_add(&t, node_number(&nodes, a->node), bucket_of(p, a->interval),
				  a->n);
	n = largest(&t, DEVICES_SHOWN, top);
	for (size_t i = 0; i < n; i++) {
		begin_device(p, nodes.v.v[top[i]], w);
		json_write_key(w, "values");
		write_row(&t, top[i], w);
		json_write_object_end(w);
	}
	table_done(&t);
	vec_done(&nodes.v);
}

/* How accelerators stood on average of each step; null where nothing was measured in it. */
static void write_gauges(struct page *p, enum amount_what what, struct json_writer *w)
{
	struct nodes nodes = {0};
	struct table sum, seen;

	vec_for(&p->amounts->v, a)
		if (a->what == what && a->node != NODE_NONE)
			node_number(&nodes, a->node);
	table_init(&sum, nodes.v.n, p->buckets);
	table_init(&seen, nodes.v.n, p->buckets);
	vec_for(&p->amounts->v, a) {
		size_t row, bucket;

		if (a->what != what || a->node == NODE_NONE ||
		    a->interval >= p->s->time->intervals.n)
			continue;
		row = node_number(&nodes, a->node);
		bucket = bucket_of(p, a->interval);
		table_add(&sum, row, bucket, a->n);
		table_add(&seen, row, bucket, 1);
	}
	for (size_t i = 0; i < nodes.v.n && i < GAUGES_SHOWN; i++) {
		begin_device(p, nodes.v.v[i], w);
		json_write_key(w, "values");
		json_write_array(w);
		for (size_t b = i * p->buckets; b < (i + 1) * p->buckets; b++)
			if (seen.v[b])
				json_write_u64(w, sum.v[b] / seen.v[b]);
			else
				json_write_null(w);
		json_write_array_end(w);
		json_write_object_end(w);
	}
	table_done(&seen);
	table_done(&sum);
	vec_done(&nodes.v);
}

static void write_list(struct page *p, const char *key,
		       void (*list)(struct page *p, enum amount_what what, struct json_writer *w),
		       enum amount_what what, struct json_writer *w)
{
	json_write_key(w, key);
	json_write_array(w);
	if (p->amounts)
		list(p, what, w);
	json_write_array_end(w);
}

static void write_threads(struct page *p, struct json_writer *w)
{
	const struct timeline *time = p->s->time;

	json_write_key(w, "threads");
	json_write_array(w);
	for (size_t i = 0; i < p->threads.n && i < THREADS_SHOWN; i++) {
		size_t n;
		const struct thread_slice *s = timeline_slices(time, p->threads.v[i], &n);
		struct table t;

		table_init(&t, 3, p->buckets);
		for (size_t k = 0; k < n; k++) {
			size_t bucket = bucket_of(p, s[k].interval);

			/* Microseconds: a third of the digits, and more than any picture shows. */
			table_add(&t, 0, bucket, s[k].run_ns / 1000);
			table_add(&t, 1, bucket, s[k].runq_ns / 1000);
			table_add(&t, 2, bucket, s[k].blocked_ns / 1000);
		}
		json_write_array(w);
		for (size_t k = 0; k < 3; k++)
			write_row(&t, k, w);
		json_write_array_end(w);
		table_done(&t);
	}
	json_write_array_end(w);
}

void page_write_time(struct page *p, struct json_writer *w)
{
	const struct timeline *time = p->s->time;

	/* A graph that became a recording has an interval, and nothing in it. */
	if (!time || !time->intervals.n || (!time->slices.n && !(p->amounts && p->amounts->v.n)))
		return;
	p->buckets = time->intervals.n < BUCKETS_MAX ? time->intervals.n : BUCKETS_MAX;
	json_write_key(w, "time");
	json_write_object(w);
	write_ends(p, w);
	json_write_key(w, "cpu");
	json_write_array(w);
	write_cpu(p, w);
	json_write_array_end(w);
	write_threads(p, w);
	write_list(p, "flows", write_by_kind, AMOUNT_SENT, w);
	write_list(p, "reads", write_by_kind, AMOUNT_READ, w);
	write_list(p, "waits", write_by_kind, AMOUNT_WAITED, w);
	write_list(p, "sent", write_senders, AMOUNT_SENT, w);
	write_list(p, "read", write_senders, AMOUNT_READ, w);
	write_list(p, "moved", write_devices, AMOUNT_MOVED, w);
	write_list(p, "busy", write_devices, AMOUNT_BUSY, w);
	write_list(p, "use", write_gauges, AMOUNT_USE, w);
	write_list(p, "held", write_gauges, AMOUNT_HELD, w);
	json_write_object_end(w);
}
