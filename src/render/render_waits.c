/* Waits as text and JSON: what each thread waits for, and who ends its waits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"
#include "text.h"
#include "waitfor.h"

/* What is waited for without anybody being late comes last: it would drown the rest. */
static unsigned idleness(const char *cause)
{
	static const char *const idle[] = {"poll", "child", "signal"};

	if (!strcmp(cause, "sleep"))
		return 2;
	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		if (!strcmp(cause, idle[i]))
			return 1;
	return 0;
}

/* A file from elsewhere may leave out what ours always have. */
static const char *cause_of(const struct edge *d)
{
	if (d->type == &waits_for_type)
		return HAS(waits_for, d, cause) ? GET(waits_for, d, cause) : "other";
	return HAS(wakes, d, cause) ? GET(wakes, d, cause) : "other";
}

static const char *kind_of(const struct node *n)
{
	return HAS(wait_object, n, kind) ? GET(wait_object, n, kind) : "other";
}

static uint64_t edge_ns(const struct edge *d)
{
	return d->type == &waits_for_type ? GET(waits_for, d, waited_ns) : GET(wakes, d, waited_ns);
}

static unsigned edge_idleness(const struct graph *g, const struct edge *d)
{
	const struct node *waker = g->nodes.v[d->source];

	if (d->type == &wakes_type && waker->type == &wait_object_type && !strcmp(kind_of(waker), "timer"))
		return 2;
	/* One wait that lasts from begin to end: nobody missed what it waits for. */
	if (d->type == &waits_for_type && GET(waits_for, d, waits) == 1 &&
	    edge_ns(d) > g->meta.window_ns / 100 * 95)
		return 2;
	return idleness(cause_of(d));
}

static int compare_waits(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct edge *x = g->edges.v[*(const uint32_t *)a], *y = g->edges.v[*(const uint32_t *)b];
	unsigned ix = edge_idleness(g, x), iy = edge_idleness(g, y);

	if (ix != iy)
		return ix < iy ? -1 : 1;
	if (edge_ns(x) != edge_ns(y))
		return edge_ns(x) < edge_ns(y) ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

static void edges_by_wait(const struct graph *g, const struct type *t, struct index_list *ret)
{
	memset(ret, 0, sizeof(*ret));
	vec_for(&g->edges, d)
		if ((*d)->type == t && edge_ns(*d))
			vec_push(&ret->v, (*d)->index);
	if (ret->v.n)
		qsort_r(ret->v.v, ret->v.n, sizeof(uint32_t), compare_waits, (void *)g);
}

static const struct node *process_of(const struct graph *g, const struct node *thread)
{
	return HAS(thread, thread, process) ? g->nodes.v[GET(thread, thread, process)] : NULL;
}

static const char *thread_name(const struct graph *g, const struct node *n)
{
	const struct node *p = process_of(g, n);

	if (HAS(thread, n, name))
		return GET(thread, n, name);
	return p && HAS(process, p, name) ? GET(process, p, name) : NULL;
}

/* "name[tid]", with the process where the thread is not its first one. */
static void add_party(struct graph *g, struct strbuf *b, uint32_t node, size_t width)
{
	const struct node *n = g->nodes.v[node], *p;
	size_t start = b->n;

	if (n->type == &wait_object_type) {
		text_clean(b, kind_of(n), 20);
		if (HAS(wait_object, n, name)) {
			strbuf_addc(b, ' ');
			text_clean(b, GET(wait_object, n, name), 28);
		}
	} else if (n->type == &thread_type) {
		text_clean(b, thread_name(g, n) ?: "?", 15);
		strbuf_addf(b, "[%" PRIu64 "]", GET(thread, n, tid));
		p = process_of(g, n);
		if (p && HAS(process, p, pid) && GET(process, p, pid) != GET(thread, n, tid))
			strbuf_addf(b, " of %" PRIu64, GET(process, p, pid));
	} else {
		text_end(g, b, node);
	}
	text_pad(b, start, width);
}

static void add_times(struct graph *g, struct strbuf *b, uint64_t count, uint64_t ns, uint64_t longest)
{
	size_t start = b->n;

	text_time(b, (double)ns);
	text_pad(b, start, 11);
	start = b->n;
	if (g->meta.window_ns)
		strbuf_addf(b, "%.1f %%", (double)ns * 100 / (double)g->meta.window_ns);
	text_pad(b, start, 9);
	start = b->n;
	strbuf_addf(b, "%" PRIu64 " wait%s, longest ", count, count == 1 ? "" : "s");
	text_pad(b, start, 24);
	text_time(b, (double)longest);
	strbuf_addc(b, '\n');
}

static void add_wait(struct graph *g, struct strbuf *b, const struct edge *d)
{
	size_t start;

	strbuf_add(b, "  ");
	add_party(g, b, d->source, 32);
	start = b->n;
	text_clean(b, cause_of(d), 10);
	text_pad(b, start, 11);
	add_party(g, b, d->target, 42);
	add_times(g, b, GET(waits_for, d, waits), GET(waits_for, d, waited_ns), GET(waits_for, d, longest_ns));
}

static void add_wake(struct graph *g, struct strbuf *b, const struct edge *d)
{
	size_t start;

	strbuf_add(b, "  ");
	add_party(g, b, d->target, 32);
	start = b->n;
	text_clean(b, cause_of(d), 10);
	text_pad(b, start, 11);
	strbuf_add(b, "<- ");
	add_party(g, b, d->source, 32);
	add_times(g, b, GET(wakes, d, wakeups), GET(wakes, d, waited_ns), GET(wakes, d, longest_ns));
}

static void render_list_text(struct graph *g, const struct type *t, uint64_t limit, struct strbuf *b)
{
	struct index_list list;
	size_t i = 0;

	edges_by_wait(g, t, &list);
	for (; i < list.v.n && (!limit || i < limit); i++) {
		const struct edge *d = g->edges.v[list.v.v[i]];

		if (t == &waits_for_type)
			add_wait(g, b, d);
		else
			add_wake(g, b, d);
	}
	text_omitted(b, i, list.v.n);
	if (!list.v.n)
		strbuf_add(b, waits_are_recorded(g) ? "  none\n" : "  not recorded\n");
	vec_done(&list.v);
}

void render_waits_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	render_list_text(g, &waits_for_type, s->limit, b);
}

void render_wakes_text(struct graph *g, const struct selection *s, struct strbuf *b)
{
	render_list_text(g, &wakes_type, s->limit, b);
}

static void write_party(struct graph *g, const char *key, uint32_t node, struct json_writer *w)
{
	const struct node *n = g->nodes.v[node], *p;

	json_write_key(w, key);
	json_write_object(w);
	json_key_str(w, "id", graph_node_id(g, node));
	json_key_str(w, "type", n->type->name);
	if (n->type == &thread_type) {
		p = process_of(g, n);
		json_write_key(w, "pid");
		if (p && HAS(process, p, pid))
			json_write_u64(w, GET(process, p, pid));
		else
			json_write_null(w);
		json_write_key(w, "tid");
		json_write_u64(w, GET(thread, n, tid));
		json_key_str(w, "name", thread_name(g, n));
	} else if (n->type == &wait_object_type) {
		json_key_str(w, "kind", kind_of(n));
		json_key_str(w, "name", HAS(wait_object, n, name) ? GET(wait_object, n, name) : NULL);
	}
	json_write_object_end(w);
}

static void write_number(struct json_writer *w, const char *key, uint64_t v)
{
	json_write_key(w, key);
	json_write_u64(w, v);
}

static void render_list_json(struct graph *g, const struct type *t, uint64_t limit, struct json_writer *w)
{
	struct index_list list;

	edges_by_wait(g, t, &list);
	json_write_array(w);
	for (size_t i = 0; i < list.v.n && (!limit || i < limit); i++) {
		const struct edge *d = g->edges.v[list.v.v[i]];
		bool wake = t == &wakes_type;

		json_write_object(w);
		write_party(g, "waiter", wake ? d->target : d->source, w);
		write_party(g, wake ? "waker" : "object", wake ? d->source : d->target, w);
		json_key_str(w, "cause", cause_of(d));
		write_number(w, "waits", wake ? GET(wakes, d, wakeups) : GET(waits_for, d, waits));
		write_number(w, "waited_ns", edge_ns(d));
		write_number(w, "longest_ns", wake ? GET(wakes, d, longest_ns) : GET(waits_for, d, longest_ns));
		json_write_object_end(w);
	}
	json_write_array_end(w);
	vec_done(&list.v);
}

void render_waits_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	render_list_json(g, &waits_for_type, s->limit, w);
}

void render_wakes_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	render_list_json(g, &wakes_type, s->limit, w);
}
