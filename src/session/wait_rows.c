/* The newest waits one by one, from the probe into a recording. */
#include "wait_rows.h"

#include <stdlib.h>

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

int wait_rows_save(struct collect *c, const char *path, uint64_t since_ns, uint64_t offset_ns, struct err *e)
{
	struct wait_rows rows = {0};
	struct graph scratch;
	size_t kept = 0;
	uint64_t since;
	int rc;

	graph_init(&scratch);
	rc = wait_rows_read(c, &scratch, &rows, e);
	since = since_ns > offset_ns ? since_ns - offset_ns : 0;
	vec_for(&rows.v, row) {
		if (row->in_ns <= since)
			continue;
		if (row->out_ns < since)
			row->out_ns = since;
		if (row->wake_ns < since)
			row->wake_ns = since;
		rows.v.v[kept++] = *row;
	}
	if (!rc && kept)
		rc = segments_write(path, rows.v.v, kept, rows.from_ns > since ? rows.from_ns : since, offset_ns, e);
	vec_done(&rows.v);
	graph_done(&scratch);
	return rc;
}
