/* This host as it is now: what the sources tell, kept as a history. */
#include "live.h"

#include <stdlib.h>
#include <time.h>

#include "segments.h"
#include "wait_rows.h"

#define TOOL "witty-profiler " WITTY_VERSION

struct live {
	struct collect collect;
	struct history *history;
	uint64_t offset_ns; /* from CLOCK_MONOTONIC to the time since 1970, at the start */
};

static uint64_t clock_ns(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* @return until when it counts, ns since 1970 */
static uint64_t sample(struct live *l, struct graph *part)
{
	graph_init(part);
	collect_sample(&l->collect, part, false);
	return l->collect.read_ns + l->offset_ns;
}

int live_open(struct live **ret, const struct live_options *o, struct err *e)
{
	struct live *l = mem_alloc(sizeof(*l));
	struct graph first;
	uint64_t end_ns;
	int rc = collect_open(&l->collect, &o->collect, e);

	if (rc) {
		free(l);
		return rc;
	}
	l->collect.goes_on = true;
	collect_begin(&l->collect);
	l->offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	l->history = history_new(o->keep_ns, o->keep_bytes);
	end_ns = sample(l, &first);
	history_begin(l->history, &first, end_ns);
	graph_done(&first);
	collect_started(&l->collect);
	*ret = l;
	return 0;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	collect_close(&l->collect);
	history_free(l->history);
	free(l);
}

void live_tick(struct live *l)
{
	struct graph part;
	uint64_t end_ns = sample(l, &part);

	history_add(l->history, &part, end_ns);
}

uint64_t live_due_ns(const struct live *l)
{
	return collect_due_ns(&l->collect);
}

void live_due(struct live *l)
{
	collect_due(&l->collect);
}

struct history *live_history(struct live *l)
{
	return l->history;
}

void live_describe(struct live *l, struct graph *g)
{
	collect_describe(&l->collect, g);
}

/* The waits that ended in the intervals since then; none, and why in @p e, when they cannot be
 * read. */
static int read_waits(struct live *l, uint64_t since_ns, struct graph *scratch,
		      struct wait_rows *ret, struct err *e)
{
	size_t n = history_intervals(l->history);
	uint64_t until_ns = n ? history_interval(l->history, n - 1)->end_ns : 0;
	int rc = wait_rows_read(&l->collect, scratch, ret, e);

	if (!rc)
		wait_rows_cut(ret, since_ns > l->offset_ns ? since_ns - l->offset_ns : 0,
			      until_ns > l->offset_ns ? until_ns - l->offset_ns : 0);
	return rc;
}

int live_waits(struct live *l, struct graph *g, struct timeline *time, struct err *e)
{
	struct wait_rows rows = {0};
	struct graph scratch;
	int rc;

	graph_init(&scratch);
	rc = read_waits(l, g->meta.start_ns, &scratch, &rows, e);
	if (!rc)
		wait_rows_spans(&rows, g, l->offset_ns, time);
	vec_done(&rows.v);
	graph_done(&scratch);
	return rc;
}

static int save_waits(struct live *l, const char *path, uint64_t since_ns, struct err *e)
{
	struct wait_rows rows = {0};
	struct graph scratch;
	int rc;

	graph_init(&scratch);
	rc = read_waits(l, since_ns, &scratch, &rows, e);
	if (!rc && rows.v.n)
		rc = segments_write(path, rows.v.v, rows.v.n, rows.from_ns, l->offset_ns, e);
	vec_done(&rows.v);
	graph_done(&scratch);
	return rc;
}

int live_save(struct live *l, uint64_t since_ns, const char *path, bool force, const char *options,
	      struct err *e)
{
	struct graph about;
	int rc;

	graph_init(&about);
	about.meta.tool = TOOL;
	about.meta.options = options;
	about.meta.complete = true;
	live_describe(l, &about);
	rc = history_save(l->history, since_ns, path, force, &about, e);
	rc = rc ?: save_waits(l, path, about.meta.start_ns, e);
	graph_done(&about);
	return rc;
}
