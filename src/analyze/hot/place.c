/* Where threads ran and where the memory of their process is; on which CPUs they may run. */
#include <stdlib.h>
#include <string.h>

#include "hot_parts.h"
#include "idrange.h"

static double total(const struct by_node *b)
{
	double sum = 0;

	vec_for(&b->v, x)
		sum += x->amount;
	return sum;
}

static uint32_t most(const struct by_node *b, double *ret_pct)
{
	const struct node_amount *best = NULL;
	double sum = total(b);

	if (sum <= 0)
		return HOT_NONE;
	vec_for(&b->v, x)
		if (!best || x->amount > best->amount)
			best = x;
	*ret_pct = best->amount * 100 / sum;
	return best->node;
}

/* CPUs allowed and used, and the counters that the kernel keeps since the start. */
static void take_status(struct hot_thread *t, const struct edge *d)
{
	struct idrange cpus = {0};
	struct err e;

	if (HAS(access_with_proc_status, d, voluntary_ctxt_switches))
		t->since.voluntary = GET(access_with_proc_status, d, voluntary_ctxt_switches);
	if (HAS(access_with_proc_status, d, involuntary_ctxt_switches))
		t->since.involuntary = GET(access_with_proc_status, d, involuntary_ctxt_switches);
	if (!HAS(access_with_proc_status, d, cpus_allowed_list))
		return;
	t->cpus_allowed = GET(access_with_proc_status, d, cpus_allowed_list);
	if (!idrange_parse(t->cpus_allowed, &cpus, &e))
		t->cpus_allowed_n = (uint32_t)idrange_count(&cpus);
	idrange_done(&cpus);
}

static void take_rows(struct hot *h)
{
	struct numa_rows rows;

	numa_rows_of(h->g, &thread_type, &rows);
	vec_for(&rows.v, r) {
		struct hot_thread *t = &h->threads.v[h->of[r->node]];

		take_status(t, h->g->edges.v[r->edge]);
		if (t->cpu.v.n || t->memory.v.n)
			continue;
		/* Moved: numa_rows_done() frees what is left. */
		t->cpu = r->cpu;
		t->memory = r->memory;
		memset(&r->cpu, 0, sizeof(r->cpu));
		memset(&r->memory, 0, sizeof(r->memory));
		if (!t->base_ns)
			t->since.run_ns = (uint64_t)total(&t->cpu);
	}
	numa_rows_done(&rows);
}

/* The status file of a thread is read only when it ran for a while; its CPUs are known of each. */
static void take_cpus(struct hot *h, bool *has_row)
{
	vec_for(&h->g->edges, it) {
		const struct edge *d = *it;
		const struct node *cpu = h->g->nodes.v[d->target];
		struct hot_thread *t;

		if (d->type != &ran_on_type || cpu->type != &cpu_type ||
		    h->of[d->source] == HOT_NONE || !HAS(ran_on, d, run_ns) ||
		    !GET(ran_on, d, run_ns))
			continue;
		t = &h->threads.v[h->of[d->source]];
		t->cpus_used_n++;
		if (!has_row[h->of[d->source]] && HAS(cpu, cpu, node) &&
		    GET(cpu, cpu, node) <= IDRANGE_MAX)
			*by_node_at(&t->cpu, (uint32_t)GET(cpu, cpu, node)) +=
			    (double)GET(ran_on, d, run_ns);
	}
}

static void take_memory(struct hot *h, const bool *has_row)
{
	struct numa_places places = {0};
	uint32_t *access = mem_alloc((h->g->nodes.n + 1) * sizeof(*access));

	numa_places_of(h->g, &places);
	memset(access, 0xff, (h->g->nodes.n + 1) * sizeof(*access));
	vec_for(&h->g->edges, it)
		if ((*it)->type == &numa_access_type)
			access[(*it)->source] = (*it)->index;
	for (size_t i = 0; i < h->threads.n; i++) {
		struct hot_thread *t = &h->threads.v[i];

		if (has_row[i] || t->process == HOT_NONE || access[t->process] == UINT32_MAX)
			continue;
		numa_memory_of(h->g, &places, h->g->edges.v[access[t->process]], &t->memory);
	}
	vec_done(&places.v);
	free(access);
}

/* Nodes of the thread's host; with one, everything is local. */
static void take_score(struct hot_thread *t, const struct hot *h, size_t nodes)
{
	struct numa_score s = numa_score_by_node(&t->cpu, &t->memory);

	t->cpu_node = most(&t->cpu, &t->cpu_node_pct);
	t->memory_node = most(&t->memory, &t->memory_node_pct);
	if (s.known) {
		t->similarity = s.similarity;
		t->remote_pct = s.remote_share * 100;
	} else if (nodes == 1 && t->base_ns && t->run_ns && h->window_ns) {
		t->similarity = 1;
		t->remote_pct = 0;
	}
}

/* Where enough accesses were sampled, they tell what placement lets only expect. */
static void take_samples(struct hot_thread *t, const struct hot *h)
{
	const struct node *n = h->g->nodes.v[t->node];
	double share = numa_measured_share(n);

	if (share < 0 && HAS(thread, n, process))
		share = numa_measured_share(h->g->nodes.v[GET(thread, n, process)]);
	if (share < 0)
		return;
	t->remote_pct = share * 100;
	t->remote_measured = true;
}

static size_t nodes_of(const struct numa_places *p, const char *ns)
{
	size_t n = 0;

	vec_for(&p->v, x)
		n += x->ns == ns;
	return n;
}

void hot_fill_places(struct hot *h)
{
	bool *has_row = mem_alloc(h->threads.n + 1);
	struct numa_places places = {0};
	const char *ns = NULL;
	size_t nodes = 0;

	take_rows(h);
	for (size_t i = 0; i < h->threads.n; i++)
		has_row[i] = h->threads.v[i].cpu.v.n != 0;
	take_cpus(h, has_row);
	for (size_t i = 0; i < h->threads.n; i++)
		has_row[i] = h->threads.v[i].memory.v.n != 0;
	take_memory(h, has_row);
	numa_places_of(h->g, &places);
	vec_for(&h->threads, t) {
		const char *of = h->g->nodes.v[t->node]->ns;

		if (of != ns || !nodes)
			nodes = nodes_of(&places, of);
		ns = of;
		h->numa_nodes = nodes > h->numa_nodes ? nodes : h->numa_nodes;
		take_score(t, h, nodes);
		take_samples(t, h);
	}
	vec_done(&places.v);
	free(has_row);
	numa_rows_of(h->g, &process_type, &h->processes);
}
