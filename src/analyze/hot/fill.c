/* Profiles of threads from a graph: rates, waits by cause, wakers and waiters, data moved, devices.
 */
#include <stdlib.h>
#include <string.h>

#include "hot_parts.h"

#define MODES_LEAST_NS                                                                             \
	40000000 /* ten ticks of 4 ms: less gives no ratio of user and kernel mode                 \
		  */

#define REFERENCES_LEAST 1000
#define CYCLES_LEAST     1000000

bool hot_idle_cause(const char *cause)
{
	static const char *const idle[] = {"sleep", "poll", "child", "signal"};

	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		if (!strcmp(cause, idle[i]))
			return true;
	return false;
}

double hot_share_of(const struct hot_thread *t, uint64_t ns)
{
	return t->base_ns ? (double)ns * 100 / (double)t->base_ns : NAN;
}

static double rate(const struct hot_thread *t, uint64_t n)
{
	return t->base_ns ? (double)n * 1e9 / (double)t->base_ns : NAN;
}

static struct hot_thread *thread_of(struct hot *h, uint32_t node)
{
	return h->of[node] == HOT_NONE ? NULL : &h->threads.v[h->of[node]];
}

/* Probes are attached within the window: threads are observed for less of it than it has. */
static uint64_t observed(const struct hot *h)
{
	uint64_t longest = 0;

	vec_for(&h->threads, t) {
		const struct node *n = h->g->nodes.v[t->node];

		if (HAS(thread, n, observed_ns) && GET(thread, n, observed_ns) > longest)
			longest = GET(thread, n, observed_ns);
	}
	return longest && longest < h->window_ns ? longest : h->window_ns;
}

/* Rates of a thread that lived for a moment would be those of a burst. */
static void set_base(struct hot *h, struct hot_thread *t, const struct node *n)
{
	uint64_t least = (uint64_t)((double)h->observed_ns * h->limits.v[LIMIT_hot_alive] / 100);

	if (!h->window_ns || !HAS(thread, n, run_ns))
		return;
	t->observed_ns = HAS(thread, n, observed_ns) ? GET(thread, n, observed_ns) : 0;
	t->base_ns = t->observed_ns ?: h->observed_ns;
	if (t->base_ns < least)
		t->base_ns = least;
}

/* A ratio of few references says nothing of the thread. */
static void take_counters(struct hot_thread *t, const struct node *n)
{
	if (HAS(thread, n, llc_references) && HAS(thread, n, llc_misses) &&
	    GET(thread, n, llc_references) >= REFERENCES_LEAST)
		t->llc_miss_pct = (double)GET(thread, n, llc_misses) * 100 /
				  (double)GET(thread, n, llc_references);
	if (HAS(thread, n, instructions) && HAS(thread, n, cycles) &&
	    GET(thread, n, cycles) >= CYCLES_LEAST)
		t->ipc = (double)GET(thread, n, instructions) / (double)GET(thread, n, cycles);
}

static void take_thread(struct hot *h, struct hot_thread *t, const struct node *n)
{
	t->process = HAS(thread, n, process) ? GET(thread, n, process) : HOT_NONE;
	t->cpu_pct = t->user_pct = t->runq_pct = t->blocked_pct = NAN;
	t->voluntary_s = t->involuntary_s = t->switches_s = t->migrations_s = t->wakeups_s = NAN;
	t->similarity = t->remote_pct = t->llc_miss_pct = t->ipc = t->bytes_s = NAN;
	t->cpu_node_pct = t->memory_node_pct = t->minor_faults_s = t->major_faults_s = NAN;
	t->cpu_node = t->memory_node = t->root = HOT_NONE;
	t->root_pct = NAN;
	t->since = (struct hot_since_start){UINT64_MAX, UINT64_MAX, UINT64_MAX};
	set_base(h, t, n);
	if (!t->base_ns)
		return;
	t->run_ns = GET(thread, n, run_ns);
	t->cpu_pct = hot_share_of(t, t->run_ns);
	if (HAS(thread, n, runq_ns)) {
		t->runq_ns = GET(thread, n, runq_ns);
		t->runq_pct = hot_share_of(t, t->runq_ns);
	}
	if (HAS(thread, n, blocked_ns)) {
		t->blocked_ns = GET(thread, n, blocked_ns);
		t->blocked_pct = hot_share_of(t, t->blocked_ns);
	}
	/* By clock ticks on many kernels: their ratio is what they tell. */
	if (HAS(thread, n, user_ns) && HAS(thread, n, system_ns) &&
	    GET(thread, n, user_ns) + GET(thread, n, system_ns) >= MODES_LEAST_NS)
		t->user_pct = (double)GET(thread, n, user_ns) * 100 /
			      (double)(GET(thread, n, user_ns) + GET(thread, n, system_ns));
	if (HAS(thread, n, minor_faults))
		t->minor_faults_s = rate(t, GET(thread, n, minor_faults));
	if (HAS(thread, n, major_faults))
		t->major_faults_s = rate(t, GET(thread, n, major_faults));
	if (HAS(thread, n, voluntary_switches) && HAS(thread, n, involuntary_switches)) {
		t->voluntary_s = rate(t, GET(thread, n, voluntary_switches));
		t->involuntary_s = rate(t, GET(thread, n, involuntary_switches));
		t->switches_s = t->voluntary_s + t->involuntary_s;
	}
	take_counters(t, n);
	if (HAS(thread, n, migrations))
		t->migrations_s = rate(t, GET(thread, n, migrations));
	if (HAS(thread, n, wakeups))
		t->wakeups_s = rate(t, GET(thread, n, wakeups));
}

static void take_wait(struct hot *h, const struct edge *d)
{
	struct hot_thread *t = thread_of(h, d->source);
	const char *cause = HAS(waits_for, d, cause) ? GET(waits_for, d, cause) : "other";
	uint64_t ns = GET(waits_for, d, waited_ns), longest = GET(waits_for, d, longest_ns);
	bool endless =
	    GET(waits_for, d, waits) == 1 && h->observed_ns && ns > h->observed_ns / 100 * 95;
	bool idle = endless || hot_idle_cause(cause);
	struct hot_wait *w = NULL;

	if (!t || !HAS(waits_for, d, waited_ns))
		return;
	vec_for(&t->waits, x)
		if (!strcmp(x->cause, cause) && x->idle == idle)
			w = x;
	if (!w) {
		w = vec_add(&t->waits);
		w->cause = cause;
		w->object = HOT_NONE;
		w->idle = idle;
	}
	if (w->object == HOT_NONE || ns > GET(waits_for, h->g->edges.v[w->edge], waited_ns)) {
		w->object = d->target;
		w->edge = d->index;
	}
	w->waits += GET(waits_for, d, waits);
	w->waited_ns += ns;
	w->longest_ns = longest > w->longest_ns ? longest : w->longest_ns;
	t->late_blocked_ns += idle ? 0 : ns;
}

static bool is_timer(const struct node *n)
{
	return n->type == &wait_object_type && HAS(wait_object, n, kind) &&
	       !strcmp(GET(wait_object, n, kind), "timer");
}

/* Relations of the same two come one after the other only by chance: they are joined when sorted.
 */
static struct hot_party party(const struct hot *h, const struct edge *d, uint32_t other)
{
	const char *cause = HAS(wakes, d, cause) ? GET(wakes, d, cause) : "other";
	uint64_t ns = GET(wakes, d, waited_ns);
	bool idle = hot_idle_cause(cause) || is_timer(h->g->nodes.v[d->source]);

	return (struct hot_party){.node = other,
				  .cause = cause,
				  .wakeups = GET(wakes, d, wakeups),
				  .waited_ns = ns,
				  .longest_ns = GET(wakes, d, longest_ns),
				  .idle_ns = idle ? ns : 0};
}

static void take_wake(struct hot *h, const struct edge *d)
{
	struct hot_thread *woken = thread_of(h, d->target), *waker = thread_of(h, d->source);

	if (!HAS(wakes, d, waited_ns))
		return;
	if (woken)
		vec_push(&woken->wakers, party(h, d, d->source));
	if (waker && waker != woken) {
		struct hot_party p = party(h, d, d->target);

		vec_push(&waker->waiters, p);
		waker->waited_for_ns += p.waited_ns - p.idle_ns;
	}
}

static void add_bytes(struct hot_thread *t, const char *kind, uint64_t in, uint64_t out,
		      uint64_t calls)
{
	struct hot_bytes *b = NULL;

	vec_for(&t->bytes, x)
		if (!strcmp(x->kind, kind))
			b = x;
	if (!b) {
		b = vec_add(&t->bytes);
		b->kind = kind;
	}
	b->in_bytes += in;
	b->out_bytes += out;
	b->calls += calls;
}

static const char *socket_kind(const char *connection)
{
	if (!strncmp(connection, "UNIX", 4))
		return "unix";
	return !strcmp(connection, "TCP") ? "tcp" : !strcmp(connection, "UDP") ? "udp" : "socket";
}

static const char *object_kind(const struct node *n)
{
	const struct type *t = n->type;

	return t == &pipe_inode_type                             ? "pipe"
	       : t == &file_type                                 ? "file"
	       : t == &eventfd_type                              ? "eventfd"
	       : t == &posix_queue_type || t == &sysv_queue_type ? "queue"
	       : t == &sysv_sem_type                             ? "semaphore"
								 : t->name;
}

static void take_transfer(struct hot *h, const struct edge *d)
{
	const struct node *const *n = (const struct node *const *)h->g->nodes.v;
	struct hot_thread *t;

	if (d->type == &send_to_socket_type && (t = thread_of(h, d->source)))
		add_bytes(t,
			  socket_kind(HAS(send_to_socket, d, connection_type)
					  ? GET(send_to_socket, d, connection_type)
					  : ""),
			  0, GET(send_to_socket, d, data_size),
			  GET(send_to_socket, d, packets_cnt));
	else if (d->type == &receive_from_socket_type && (t = thread_of(h, d->target)))
		add_bytes(t,
			  socket_kind(HAS(receive_from_socket, d, connection_type)
					  ? GET(receive_from_socket, d, connection_type)
					  : ""),
			  GET(receive_from_socket, d, data_size), 0,
			  GET(receive_from_socket, d, packets_cnt));
	else if (d->type == &write_to_type && (t = thread_of(h, d->source)))
		add_bytes(t, object_kind(n[d->target]), 0, GET(write_to, d, bytes),
			  GET(write_to, d, calls));
	else if (d->type == &read_from_type && (t = thread_of(h, d->target)))
		add_bytes(t, object_kind(n[d->source]), GET(read_from, d, bytes), 0,
			  GET(read_from, d, calls));
}

static int by_wait(const void *a, const void *b)
{
	const struct hot_wait *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return strcmp(x->cause, y->cause);
}

static int by_node_and_time(const void *a, const void *b)
{
	const struct hot_party *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return strcmp(x->cause, y->cause);
}

static int by_time(const void *a, const void *b)
{
	const struct hot_party *x = a, *y = b;
	uint64_t i = x->waited_ns - x->idle_ns, j = y->waited_ns - y->idle_ns;

	if (i != j)
		return i > j ? -1 : 1;
	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* One item for each party; the cause is that of most of the time. @return how many are left */
static size_t join(struct hot_party *v, size_t n)
{
	size_t to = 0;

	if (n > 1)
		qsort(v, n, sizeof(*v), by_node_and_time);
	for (size_t i = 0; i < n; i++) {
		if (to && v[to - 1].node == v[i].node) {
			struct hot_party *p = &v[to - 1];

			p->wakeups += v[i].wakeups;
			p->waited_ns += v[i].waited_ns;
			p->idle_ns += v[i].idle_ns;
			p->longest_ns =
			    v[i].longest_ns > p->longest_ns ? v[i].longest_ns : p->longest_ns;
		} else {
			v[to++] = v[i];
		}
	}
	if (to > 1)
		qsort(v, to, sizeof(*v), by_time);
	return to;
}

static int by_bytes(const void *a, const void *b)
{
	const struct hot_bytes *x = a, *y = b;
	uint64_t i = x->in_bytes + x->out_bytes, j = y->in_bytes + y->out_bytes;

	if (i != j)
		return i > j ? -1 : 1;
	return strcmp(x->kind, y->kind);
}

static bool is_accelerator(const struct node *n)
{
	return n->type == &npu_type || n->type == &gpu_type || n->type == &device_type;
}

/* A device is its process's: which thread used it is not known. */
static void fill_devices(struct hot *h)
{
	const struct graph *g = h->g;
	VEC(uint32_t) uses = {0};
	uint32_t *first = mem_alloc((g->nodes.n + 1) * sizeof(*first));

	/* Chains of relations by process, newest first; then each thread walks its process's. */
	memset(first, 0xff, (g->nodes.n + 1) * sizeof(*first));
	for (uint32_t i = 0; i < g->edges.n; i++) {
		const struct edge *d = g->edges.v[i];

		if (d->type != &access_type || !is_accelerator(g->nodes.v[d->target]))
			continue;
		vec_push(&uses, d->target);
		vec_push(&uses, first[d->source]);
		first[d->source] = (uint32_t)uses.n - 2;
	}
	vec_for(&h->threads, t) {
		if (t->process == HOT_NONE)
			continue;
		for (uint32_t at = first[t->process]; at != UINT32_MAX; at = uses.v[at + 1])
			vec_push(&t->devices, uses.v[at]);
		for (size_t i = 0, n = t->devices.n; i < n / 2; i++) {
			uint32_t x = t->devices.v[i];

			t->devices.v[i] = t->devices.v[n - 1 - i];
			t->devices.v[n - 1 - i] = x;
		}
	}
	vec_done(&uses);
	free(first);
}

void hot_fill(struct hot *h)
{
	h->observed_ns = observed(h);
	vec_for(&h->threads, t)
		take_thread(h, t, h->g->nodes.v[t->node]);
	vec_for(&h->g->edges, it) {
		const struct edge *d = *it;

		if (d->type == &waits_for_type)
			take_wait(h, d);
		else if (d->type == &wakes_type)
			take_wake(h, d);
		else
			take_transfer(h, d);
	}
	fill_devices(h);
	vec_for(&h->threads, t) {
		uint64_t bytes = 0;

		if (t->waits.n > 1)
			qsort(t->waits.v, t->waits.n, sizeof(*t->waits.v), by_wait);
		t->wakers.n = join(t->wakers.v, t->wakers.n);
		t->waiters.n = join(t->waiters.v, t->waiters.n);
		if (t->bytes.n > 1)
			qsort(t->bytes.v, t->bytes.n, sizeof(*t->bytes.v), by_bytes);
		vec_for(&t->bytes, b)
			bytes += b->in_bytes + b->out_bytes;
		t->bytes_s = rate(t, bytes);
	}
}
