/* Single waits and intervals over time, in the JSON that Perfetto and chrome://tracing read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "export.h"
#include "json.h"
#include "timeline.h"

#define NAME_MOST 60 /* code points */

/* Times within the trace count from its first event: microseconds, as the format wants them. */
struct tracer {
	struct graph *g;
	const struct timeline *t;
	struct json_writer w;
	uint64_t zero_ns;
	uint64_t *free_ns; /* [nodes] end of what a thread's track has so far; 0: nothing */
	bool *named;	   /* [nodes] */
};

static void put_text(struct json_writer *w, const char *key, const char *s)
{
	struct strbuf b = {0};

	json_write_key(w, key);
	clean_add(&b, s, NAME_MOST);
	json_write_str(w, strbuf_str(&b));
	strbuf_done(&b);
}

static const struct node *process_of(const struct graph *g, uint32_t thread)
{
	const struct node *n = g->nodes.v[thread];

	return n->type == &thread_type && HAS(thread, n, process) ? g->nodes.v[GET(thread, n, process)] : NULL;
}

static uint64_t pid_of(const struct graph *g, uint32_t thread)
{
	const struct node *p = process_of(g, thread);

	return p && HAS(process, p, pid) ? GET(process, p, pid) : 0;
}

static void begin(struct tracer *x, const char *phase, const char *name, uint64_t pid, uint64_t tid)
{
	json_write_object(&x->w);
	json_key_str(&x->w, "ph", phase);
	put_text(&x->w, "name", name);
	json_key_u64(&x->w, "pid", pid);
	json_key_u64(&x->w, "tid", tid);
}

static void put_time(struct tracer *x, const char *key, uint64_t ns)
{
	json_write_key(&x->w, key);
	json_write_f64(&x->w, (double)ns / 1000);
}

static void name_track(struct tracer *x, const char *what, const char *name, uint64_t pid, uint64_t tid)
{
	begin(x, "M", what, pid, tid);
	json_write_key(&x->w, "args");
	json_write_object(&x->w);
	put_text(&x->w, "name", name);
	json_write_object_end(&x->w);
	json_write_object_end(&x->w);
}

static void name_thread(struct tracer *x, uint32_t thread)
{
	const struct node *n = x->g->nodes.v[thread], *p = process_of(x->g, thread);

	if (x->named[thread] || n->type != &thread_type)
		return;
	x->named[thread] = true;
	if (p && !x->named[p->index]) {
		x->named[p->index] = true;
		name_track(x, "process_name", HAS(process, p, name) ? GET(process, p, name) : "?",
			   GET(process, p, pid), GET(process, p, pid));
	}
	name_track(x, "thread_name", HAS(thread, n, name) ? GET(thread, n, name) : "?", pid_of(x->g, thread),
		   GET(thread, n, tid));
}

/* A piece of a thread's track. */
static void begin_piece(struct tracer *x, uint32_t thread, const char *name, const char *category, uint64_t from_ns,
			uint64_t to_ns)
{
	const struct node *n = x->g->nodes.v[thread];

	begin(x, "X", name, pid_of(x->g, thread), GET(thread, n, tid));
	json_key_str(&x->w, "cat", category);
	put_time(x, "ts", from_ns - x->zero_ns);
	put_time(x, "dur", to_ns - from_ns);
}

static void add_wait(struct tracer *x, const struct wait_span *s)
{
	begin_piece(x, s->waiter, wait_cause_name(s->cause), "wait", s->out_ns, s->wake_ns);
	json_write_key(&x->w, "args");
	json_write_object(&x->w);
	if (s->object != NODE_NONE)
		put_text(&x->w, "object", graph_node_id(x->g, s->object));
	if (s->ender != ENDER_UNKNOWN)
		put_text(&x->w, "ended by",
			 s->waker != NODE_NONE ? graph_node_id(x->g, s->waker) : wait_ender_name(s->ender));
	json_write_object_end(&x->w);
	json_write_object_end(&x->w);
	if (s->in_ns > s->wake_ns) {
		begin_piece(x, s->waiter, "waits for a CPU", "runq", s->wake_ns, s->in_ns);
		json_write_object_end(&x->w);
	}
}

/* Between two waits that were kept the thread ran, was preempted, or waited too briefly to be kept. */
static void add_active(struct tracer *x, const struct wait_span *s)
{
	uint64_t from = x->free_ns[s->waiter];

	if (from && from < s->out_ns) {
		begin_piece(x, s->waiter, "runs, or waits briefly", "active", from, s->out_ns);
		json_write_object_end(&x->w);
	}
	x->free_ns[s->waiter] = s->in_ns;
}

static void add_arrow_end(struct tracer *x, const char *phase, uint32_t thread, uint64_t ns, uint64_t id)
{
	begin(x, phase, "wakes", pid_of(x->g, thread), GET(thread, x->g->nodes.v[thread], tid));
	json_key_str(&x->w, "cat", "wake");
	json_key_u64(&x->w, "id", id);
	put_time(x, "ts", ns - x->zero_ns);
	if (*phase == 'f') {
		json_key_str(&x->w, "bp", "e");
	}
	json_write_object_end(&x->w);
}

static void add_spans(struct tracer *x)
{
	uint64_t id = 0;

	vec_for(&x->t->spans, s) {
		/* A track cannot be in two states at once. */
		if (x->free_ns[s->waiter] > s->out_ns)
			continue;
		name_thread(x, s->waiter);
		add_active(x, s);
		add_wait(x, s);
		if (s->waker == NODE_NONE || s->ender != ENDER_THREAD)
			continue;
		name_thread(x, s->waker);
		add_arrow_end(x, "s", s->waker, s->wake_ns, ++id);
		add_arrow_end(x, "f", s->waiter, s->wake_ns, id);
	}
}

static void add_intervals(struct tracer *x)
{
	uint64_t n = 0;

	if (x->t->intervals.n)
		name_track(x, "process_name", "recording", 0, 0);
	vec_for(&x->t->intervals, i) {
		begin(x, "X", "interval", 0, 0);
		json_key_str(&x->w, "cat", "interval");
		put_time(x, "ts", i->start_ns - x->zero_ns);
		put_time(x, "dur", i->end_ns - i->start_ns);
		json_write_key(&x->w, "args");
		json_write_object(&x->w);
		json_key_u64(&x->w, "number", n++);
		json_write_object_end(&x->w);
		json_write_object_end(&x->w);
	}
}

struct use {
	uint32_t process, interval;
	uint64_t run_ns, runq_ns;
};

static int compare_uses(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->interval < y->interval ? -1 : x->interval > y->interval;
}

static void add_counter(struct tracer *x, const struct use *u)
{
	const struct time_span *i = &x->t->intervals.v[u->interval];
	double length = (double)(i->end_ns - i->start_ns);

	if (length <= 0)
		return;
	begin(x, "C", "CPU %", GET(process, x->g->nodes.v[u->process], pid), 0);
	put_time(x, "ts", i->start_ns - x->zero_ns);
	json_write_key(&x->w, "args");
	json_write_object(&x->w);
	json_write_key(&x->w, "on CPU");
	json_write_f64(&x->w, 100 * (double)u->run_ns / length);
	json_write_key(&x->w, "waiting for a CPU");
	json_write_f64(&x->w, 100 * (double)u->runq_ns / length);
	json_write_object_end(&x->w);
	json_write_object_end(&x->w);
}

/* What each interval added to the threads of a process; none is where nothing happened. */
static void add_uses(struct tracer *x)
{
	VEC(struct use) uses = {0};
	size_t n = 0;

	vec_for(&x->t->slices, s) {
		const struct node *p = process_of(x->g, s->thread);

		if (p)
			vec_push(&uses, ((struct use){p->index, s->interval, s->run_ns, s->runq_ns}));
	}
	if (uses.n)
		qsort(uses.v, uses.n, sizeof(*uses.v), compare_uses);
	for (size_t i = 0; i < uses.n; i++) {
		if (n && !compare_uses(&uses.v[n - 1], &uses.v[i])) {
			uses.v[n - 1].run_ns += uses.v[i].run_ns;
			uses.v[n - 1].runq_ns += uses.v[i].runq_ns;
		} else {
			uses.v[n++] = uses.v[i];
		}
	}
	for (size_t i = 0; i < n; i++) {
		struct use none = {.process = uses.v[i].process, .interval = uses.v[i].interval + 1};

		add_counter(x, &uses.v[i]);
		/* Nothing in the interval behind it: back to zero there. */
		if (none.interval < x->t->intervals.n && (i + 1 == n || compare_uses(&uses.v[i + 1], &none)))
			add_counter(x, &none);
	}
	vec_done(&uses);
}

static uint64_t first_ns(const struct timeline *t)
{
	uint64_t first = t->intervals.n ? t->intervals.v[0].start_ns : UINT64_MAX;

	if (t->spans.n && t->spans.v[0].out_ns < first)
		first = t->spans.v[0].out_ns;
	return first;
}

int export_trace(const struct export_input *in, struct strbuf *b, struct err *e)
{
	struct tracer x = {.g = in->g, .t = in->time};

	if (!x.t || (!x.t->spans.n && !x.t->intervals.n)) {
		err_msg(e, -ENODATA, "the file has neither single waits nor intervals: there is nothing to trace");
		return err_hint(e, "recordings (.wpdb) have them; graph files have totals only");
	}
	x.zero_ns = first_ns(x.t);
	x.free_ns = mem_alloc((x.g->nodes.n + 1) * sizeof(*x.free_ns));
	x.named = mem_alloc(x.g->nodes.n + 1);
	json_writer_init_strbuf(&x.w, b, 0);
	json_write_object(&x.w);
	json_key_str(&x.w, "displayTimeUnit", "ms");
	json_write_key(&x.w, "otherData");
	json_write_object(&x.w);
	json_key_u64(&x.w, "start_ns_since_1970", x.zero_ns);
	json_key_u64(&x.w, "single_waits_from_ns", x.t->spans_from_ns);
	json_write_object_end(&x.w);
	json_write_key(&x.w, "traceEvents");
	json_write_array(&x.w);
	add_intervals(&x);
	add_spans(&x);
	add_uses(&x);
	json_write_array_end(&x.w);
	json_write_object_end(&x.w);
	free(x.free_ns);
	free(x.named);
	if (json_writer_finish(&x.w, e) < 0)
		return e->code;
	strbuf_addc(b, '\n');
	return 0;
}
