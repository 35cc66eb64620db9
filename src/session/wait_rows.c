/* The newest waits one by one, from the probe into a recording or a timeline. */
#include "wait_rows.h"

#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "segments.h"

static int on_row(void *ctx, const struct wait_row *row)
{
	struct wait_rows *rows = ctx;

	vec_push(&rows->v, *row);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;

	return x->out_ns < y->out_ns ? -1 : x->out_ns > y->out_ns;
}

int wait_rows_read(struct collect *c, struct graph *scratch, struct wait_rows *ret, struct err *e)
{
	int rc = collect_segments(c, scratch, on_row, ret, &ret->from_ns, e);

	if (!rc && ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_time);
	return rc;
}

void wait_rows_cut(struct wait_rows *rows, uint64_t since_ns, uint64_t until_ns)
{
	size_t kept = 0;

	vec_for(&rows->v, row) {
		if (row->in_ns <= since_ns || row->in_ns > until_ns)
			continue;
		if (row->out_ns < since_ns)
			row->out_ns = since_ns;
		if (row->wake_ns < since_ns)
			row->wake_ns = since_ns;
		rows->v.v[kept++] = *row;
	}
	rows->v.n = kept;
	if (rows->from_ns < since_ns)
		rows->from_ns = since_ns;
}

static uint32_t find_thread(const struct idmap *threads, uint64_t tid, uint64_t start_ns)
{
	uint32_t at = tid ? idmap_get(threads, tid, start_ns) : IDMAP_NONE;

	return at == IDMAP_NONE ? NODE_NONE : at;
}

static void index_threads(const struct graph *g, struct idmap *ret)
{
	vec_for(&g->nodes, it) {
		const struct node *n = *it;

		if (n->type == &thread_type && HAS(thread, n, tid) && HAS(thread, n, start_ns))
			idmap_put(ret, GET(thread, n, tid), GET(thread, n, start_ns), n->index);
	}
}

void wait_rows_spans(const struct wait_rows *rows, struct graph *g, uint64_t offset_ns,
		     struct timeline *t)
{
	struct idmap threads = {0};
	const char *last = NULL; /* most waits have the object of the one before */
	uint32_t object = NODE_NONE;

	index_threads(g, &threads);
	vec_for(&rows->v, row) {
		struct wait_span s = {
		    .out_ns = row->out_ns + offset_ns,
		    .wake_ns = row->wake_ns + offset_ns,
		    .in_ns = row->in_ns + offset_ns,
		    .waiter = find_thread(&threads, row->waiter_tid, row->waiter_start_ns),
		    .waker = find_thread(&threads, row->waker_tid, row->waker_start_ns),
		    .cause = (uint8_t)wait_cause_find(row->cause),
		    .ender = (uint8_t)wait_ender_find(row->waker),
		};

		if (!last || strcmp(last, row->object))
			object = graph_find(g, row->object);
		last = row->object;
		s.object = object;
		timeline_add_span(t, &s);
	}
	t->spans_from_ns = rows->v.n ? rows->from_ns + offset_ns : 0;
	timeline_sort(t);
	idmap_done(&threads);
}
