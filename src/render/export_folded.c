/* Where the time of threads went, in the format of folded stacks: process, thread, state, cause, object. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "export.h"

#define NAME_MOST 60 /* code points */

/* A frame ends at a semicolon, the stack at the last blank of the line. */
static void add_frame(struct strbuf *b, const char *s)
{
	size_t start = b->n;

	clean_add(b, s, NAME_MOST);
	for (size_t i = start; i < b->n; i++)
		if (b->s[i] == ';')
			b->s[i] = ',';
	strbuf_addc(b, ';');
}

static void add_task(struct strbuf *b, const char *name, uint64_t id)
{
	struct strbuf s = {0};

	strbuf_addf(&s, "%s[%" PRIu64 "]", name, id);
	add_frame(b, s.s);
	strbuf_done(&s);
}

static void add_thread(struct strbuf *b, const struct graph *g, const struct node *n)
{
	const struct node *p = HAS(thread, n, process) ? g->nodes.v[GET(thread, n, process)] : NULL;

	if (p)
		add_task(b, HAS(process, p, name) ? GET(process, p, name) : "?", GET(process, p, pid));
	else
		add_frame(b, "unknown process");
	add_task(b, HAS(thread, n, name) ? GET(thread, n, name) : "?", GET(thread, n, tid));
}

/* One line; counts are microseconds, and what takes less has none. */
static void add_line(struct strbuf *b, const struct strbuf *thread, const char *state, const char *cause,
		     const char *object, uint64_t ns)
{
	if (ns < 1000)
		return;
	strbuf_addn(b, thread->s, thread->n);
	add_frame(b, state);
	if (cause)
		add_frame(b, cause);
	if (object)
		add_frame(b, object);
	b->n--;
	strbuf_addf(b, " %" PRIu64 "\n", ns / 1000);
}

static uint64_t add_waits(struct strbuf *b, struct graph *g, const struct node *n, const struct strbuf *thread)
{
	struct edge_list out = graph_out(g, n->index);
	uint64_t sum = 0;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];

		if (d->type != &waits_for_type || !HAS(waits_for, d, waited_ns))
			continue;
		sum += GET(waits_for, d, waited_ns);
		add_line(b, thread, "blocked", HAS(waits_for, d, cause) ? GET(waits_for, d, cause) : "other",
			 graph_node_id(g, d->target), GET(waits_for, d, waited_ns));
	}
	return sum;
}

static void add_times(struct strbuf *b, struct graph *g, const struct node *n)
{
	struct strbuf thread = {0};
	uint64_t waited;

	add_thread(&thread, g, n);
	if (HAS(thread, n, run_ns))
		add_line(b, &thread, "on CPU", NULL, NULL, GET(thread, n, run_ns));
	if (HAS(thread, n, runq_ns))
		add_line(b, &thread, "waits for a CPU", NULL, NULL, GET(thread, n, runq_ns));
	waited = add_waits(b, g, n, &thread);
	if (HAS(thread, n, blocked_ns) && GET(thread, n, blocked_ns) > waited)
		add_line(b, &thread, "blocked", "not known", NULL, GET(thread, n, blocked_ns) - waited);
	strbuf_done(&thread);
}

static int compare_threads(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct node *x = g->nodes.v[*(const uint32_t *)a], *y = g->nodes.v[*(const uint32_t *)b];
	uint32_t p = HAS(thread, x, process) ? GET(thread, x, process) : NODE_NONE,
		 q = HAS(thread, y, process) ? GET(thread, y, process) : NODE_NONE;

	if (p != q)
		return p < q ? -1 : 1;
	if (GET(thread, x, tid) != GET(thread, y, tid))
		return GET(thread, x, tid) < GET(thread, y, tid) ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

int export_folded(const struct export_input *in, struct strbuf *b, struct err *e)
{
	struct graph *g = in->g;
	VEC(uint32_t) threads = {0};
	size_t before = b->n;

	vec_for(&g->nodes, n)
		if ((*n)->type == &thread_type)
			vec_push(&threads, (*n)->index);
	if (threads.n)
		qsort_r(threads.v, threads.n, sizeof(*threads.v), compare_threads, g);
	vec_for(&threads, i)
		add_times(b, g, g->nodes.v[*i]);
	vec_done(&threads);
	if (b->n > before)
		return 0;
	err_msg(e, -ENODATA, "no thread has times: there is nothing to fold");
	return err_hint(e, "files that this program recorded have them; call stacks are not recorded");
}
