/* The analysis of threads as a whole: its steps, the order of threads, sums, and what is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "hot_parts.h"

const char *thread_class_name(enum thread_class c)
{
	static const char *const names[] = {"other",  "compute",   "communication",
					    "driver", "framework", "mixed"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == CLASS_COUNT, "a class without a name");

	return names[c];
}

const char *hot_level_name(enum hot_level l)
{
	static const char *const names[] = {"normal", "light", "moderate", "severe"};

	return names[l];
}

const char *hot_cause_name(enum hot_cause c)
{
	static const char *const names[] = {
	    "none",          "unknown",         "compute", "memory", "waits for a CPU",
	    "communication", "synchronisation", "NUMA"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == HOT_CAUSE_COUNT,
		       "a cause without a name");

	return names[c];
}

const struct hot_thread *hot_of(const struct hot *h, uint32_t node)
{
	return node < h->n_nodes && h->of[node] != HOT_NONE ? &h->threads.v[h->of[node]] : NULL;
}

bool hot_runs(const struct hot *h, const struct hot_thread *t)
{
	double limit = h->limits.v[LIMIT_numa_cpu];

	if (hot_has(t->cpu_pct))
		return t->cpu_pct >= limit;
	return t->since.run_ns == UINT64_MAX ||
	       (double)t->since.run_ns * 100 >= limit * (double)h->since_run_ns;
}

static void list_threads(struct hot *h)
{
	h->n_nodes = h->g->nodes.n;
	h->of = mem_alloc((h->n_nodes + 1) * sizeof(*h->of));
	memset(h->of, 0xff, (h->n_nodes + 1) * sizeof(*h->of));
	for (uint32_t i = 0; i < h->n_nodes; i++) {
		if (h->g->nodes.v[i]->type != &thread_type)
			continue;
		h->of[i] = (uint32_t)h->threads.n;
		vec_add(&h->threads)->node = i;
	}
}

/* Ties by node: first seen first. */
static int by_heat(const void *a, const void *b)
{
	const struct hot_thread *x = a, *y = b;

	if (x->points != y->points)
		return x->points > y->points ? -1 : 1;
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns > y->weight_ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void sort_threads(struct hot *h)
{
	vec_for(&h->threads, t) {
		/* Many may wait for the same one; more than the window does not make it hotter. */
		uint64_t waited = t->waited_for_ns < t->base_ns ? t->waited_for_ns : t->base_ns;

		t->weight_ns = t->base_ns                      ? t->run_ns + t->runq_ns + waited
			       : t->since.run_ns != UINT64_MAX ? t->since.run_ns
							       : 0;
	}
	if (h->threads.n > 1)
		qsort(h->threads.v, h->threads.n, sizeof(*h->threads.v), by_heat);
	for (uint32_t i = 0; i < h->threads.n; i++)
		h->of[h->threads.v[i].node] = i;
}

/* CPU time that went with memory of other nodes. */
static double harm(const struct hot_thread *t)
{
	return (t->base_ns                      ? (double)t->run_ns
		: t->since.run_ns != UINT64_MAX ? (double)t->since.run_ns
						: 0) *
	       t->remote_pct;
}

static int by_affinity(const void *a, const void *b, void *ctx)
{
	const struct hot *h = ctx;
	const struct hot_thread *x = &h->threads.v[*(const uint32_t *)a],
				*y = &h->threads.v[*(const uint32_t *)b];

	if (harm(x) != harm(y))
		return harm(x) > harm(y) ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int by_switches(const void *a, const void *b, void *ctx)
{
	const struct hot *h = ctx;
	const struct hot_thread *x = &h->threads.v[*(const uint32_t *)a],
				*y = &h->threads.v[*(const uint32_t *)b];

	if (x->switches_s != y->switches_s)
		return x->switches_s > y->switches_s ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void list_sections(struct hot *h)
{
	for (uint32_t i = 0; i < h->threads.n; i++) {
		if (h->threads.v[i].affinity.listed)
			vec_push(&h->affinity, i);
		if (h->threads.v[i].switching.listed)
			vec_push(&h->switching, i);
	}
	if (h->affinity.n > 1)
		qsort_r(h->affinity.v, h->affinity.n, sizeof(*h->affinity.v), by_affinity, h);
	if (h->switching.n > 1)
		qsort_r(h->switching.v, h->switching.n, sizeof(*h->switching.v), by_switches, h);
}

static struct hot_node_sum *node_sum(struct hot *h, uint32_t numa)
{
	size_t at = 0;

	while (at < h->nodes.n && h->nodes.v[at].numa < numa)
		at++;
	if (at == h->nodes.n || h->nodes.v[at].numa != numa) {
		vec_add(&h->nodes);
		memmove(&h->nodes.v[at + 1], &h->nodes.v[at],
			(h->nodes.n - 1 - at) * sizeof(*h->nodes.v));
		h->nodes.v[at] = (struct hot_node_sum){.numa = numa, .cpu_pct = NAN};
	}
	return &h->nodes.v[at];
}

static void sum_thread(struct hot *h, const struct hot_thread *t)
{
	struct hot_class_sum *c = &h->classes[t->class];

	c->threads++;
	if (hot_has(t->cpu_pct) && hot_has(t->switches_s)) {
		c->measured++;
		c->cpu_pct += t->cpu_pct;
		c->switches_s += t->switches_s;
	}
	if (t->cpu_node != HOT_NONE) {
		struct hot_node_sum *s = node_sum(h, t->cpu_node);

		s->threads++;
		s->remote += hot_above(h, t->remote_pct, LIMIT_hot_remote);
	}
	for (size_t i = 0; t->base_ns && i < t->cpu.v.n; i++) {
		struct hot_node_sum *s = node_sum(h, t->cpu.v.v[i].node);
		double pct = t->cpu.v.v[i].amount * 100 / (double)h->observed_ns;

		s->cpu_pct = hot_has(s->cpu_pct) ? s->cpu_pct + pct : pct;
	}
}

static void sum_up(struct hot *h)
{
	uint64_t demand = 0;
	bool known = false;

	vec_for(&h->g->nodes, it)
		if ((*it)->type == &cpu_type && (!HAS(cpu, *it, online) || GET(cpu, *it, online)))
			h->cpus++;
	vec_for(&h->threads, t) {
		sum_thread(h, t);
		demand += t->run_ns + t->runq_ns;
		known |= hot_has(t->runq_pct);
	}
	h->demand_pct =
	    known && h->cpus ? (double)demand * 100 / (double)h->observed_ns / h->cpus : NAN;
}

/* What every thread lacks is said once, for all. */
static void list_missing(struct hot *h)
{
	if (!h->threads.n)
		return;
	vec_for(&h->threads.v[0].missing, m) {
		size_t n = 0;

		vec_for(&h->threads, t)
			vec_for(&t->missing, x)
				n += *x == *m;
		if (n == h->threads.n)
			vec_push(&h->missing, *m);
	}
}

static const char *reason_of(const struct graph *g, const char *source)
{
	vec_for(&g->status, s)
		if (!strcmp(s->source, source) && strcmp(s->state, "ok") && s->reason)
			return s->reason;
	return NULL;
}

/* What no thread has a figure of. */
static bool has_preempts(const struct graph *g)
{
	vec_for(&g->edges, d)
		if ((*d)->type == &preempts_type)
			return true;
	return false;
}

static void list_unseen(struct hot *h)
{
	bool rates = false, user = false, runq = false, waits = false, memory = false,
	     since = false;
	const char *pmu = reason_of(h->g, "counters core");

	vec_for(&h->threads, t) {
		rates |= t->base_ns != 0;
		user |= hot_has(t->user_pct);
		runq |= hot_has(t->runq_pct);
		h->has_switches |= hot_has(t->switches_s);
		waits |= t->waits.n || t->wakers.n;
		memory |= t->memory.v.n != 0;
		since |= t->since.voluntary != UINT64_MAX || t->since.run_ns != UINT64_MAX;
	}
	if (!rates)
		vec_push(&h->unseen, since ? "rates: the file has counters since the start of each "
					     "thread and no window, so "
					     "that CPU use and switches of a time cannot be told; "
					     "record with witty-profiler "
					     "for that"
					   : "rates: no thread has CPU time over a known window");
	if (rates && !user)
		vec_push(&h->unseen, "user and kernel mode: not told apart in this file");
	if (rates && !runq)
		vec_push(
		    &h->unseen,
		    "run queues and kinds of switches: the scheduler was not observed, only /proc");
	h->has_waits = waits;
	if (!waits)
		vec_push(&h->unseen, "waits: what threads wait for was not recorded");
	if (!memory)
		vec_push(
		    &h->unseen,
		    "remote memory: on which nodes processes have their memory was not recorded");
	vec_push(&h->unseen, pmu ? hot_text(h, "cache misses of threads: %s", pmu)
				 : "cache misses of threads: counters are read by NUMA node only");
	if (runq && !has_preempts(h->g))
		vec_push(&h->unseen, "who took a CPU from whom is not recorded: threads that ran "
				     "on the same CPUs are "
				     "named instead");
}

void hot_init(struct hot *h, struct graph *g, const struct limits *l)
{
	derive_numa(g);
	hot_init_completed(h, g, l);
}

void hot_init_completed(struct hot *h, struct graph *g, const struct limits *l)
{
	memset(h, 0, sizeof(*h));
	h->g = g;
	arena_init(&h->arena);
	if (l)
		h->limits = *l;
	else
		limits_init(&h->limits);
	h->window_ns = g->meta.window_ns;
	list_threads(h);
	hot_fill(h);
	hot_fill_places(h);
	hot_fill_rivals(h);
	vec_for(&h->threads, t)
		h->since_run_ns += t->since.run_ns != UINT64_MAX ? t->since.run_ns : 0;
	vec_for(&h->threads, t) {
		hot_classify(h, t);
		hot_score(h, t);
		hot_find_cause(h, t);
		hot_fill_affinity(h, t);
		hot_fill_switching(h, t);
	}
	sort_threads(h);
	list_sections(h);
	sum_up(h);
	list_missing(h);
	list_unseen(h);
}

static void thread_done(struct hot_thread *t)
{
	vec_done(&t->cpu.v);
	vec_done(&t->memory.v);
	vec_done(&t->waits);
	vec_done(&t->wakers);
	vec_done(&t->waiters);
	vec_done(&t->bytes);
	vec_done(&t->devices);
	vec_done(&t->rivals);
	vec_done(&t->reasons);
	vec_done(&t->rules);
	vec_done(&t->missing);
}

void hot_done(struct hot *h)
{
	vec_for(&h->threads, t)
		thread_done(t);
	vec_done(&h->threads);
	vec_done(&h->affinity);
	vec_done(&h->switching);
	vec_done(&h->nodes);
	vec_done(&h->unseen);
	vec_done(&h->missing);
	numa_rows_done(&h->processes);
	free(h->of);
	arena_done(&h->arena);
	memset(h, 0, sizeof(*h));
}
