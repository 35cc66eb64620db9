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
	int rc = collect_segments(c, scratch, on_row, ret, e);

	if (!rc && ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_time);
	return rc;
}

int wait_rows_save(struct collect *c, const char *path, uint64_t since_ns, uint64_t offset_ns, struct err *e)
{
	struct wait_rows rows = {0};
	struct graph scratch;
	size_t first = 0;
	int rc;

	graph_init(&scratch);
	rc = wait_rows_read(c, &scratch, &rows, e);
	while (first < rows.v.n && rows.v.v[first].out_ns + offset_ns < since_ns)
		first++;
	if (!rc && first < rows.v.n)
		rc = segments_write(path, rows.v.v + first, rows.v.n - first, offset_ns, e);
	vec_done(&rows.v);
	graph_done(&scratch);
	return rc;
}
