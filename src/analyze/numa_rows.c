/* Lists processes and threads by how much they run away from their memory: see numa_rows.h. */
#include "numa_rows.h"

#include <stdlib.h>
#include <string.h>

static double sum_of(const struct by_node *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->v.n; i++)
		sum += b->v.v[i].amount;
	return sum;
}

static double run_ns_of(const struct node *n)
{
	if (n->type == &process_type)
		return HAS(process, n, cpu_ns) ? (double)GET(process, n, cpu_ns) : 0;
	return HAS(thread, n, run_ns) ? (double)GET(thread, n, run_ns) : 0;
}

static int by_harm(const void *a, const void *b)
{
	const struct numa_row *x = a, *y = b;

	if (x->remote_ns != y->remote_ns)
		return x->remote_ns > y->remote_ns ? -1 : 1;
	if (x->score.remote_share != y->score.remote_share)
		return x->score.remote_share > y->score.remote_share ? -1 : 1;
	if (x->run_ns != y->run_ns)
		return x->run_ns > y->run_ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void add_row(struct graph *g, const struct numa_places *p, const struct edge *d, const struct edge *memory,
		    struct numa_rows *ret)
{
	struct numa_row *r = vec_add(&ret->v);

	r->node = d->source;
	r->edge = d->index;
	numa_cpu_of(g, p, d, &r->cpu);
	if (memory)
		numa_memory_of(g, p, memory, &r->memory);
	r->score = numa_score_by_node(&r->cpu, &r->memory);
	r->verdict = numa_verdict(&r->score);
	r->run_ns = run_ns_of(g->nodes.v[d->source]);
	/* In files of the older tool the times by node are all that there is. */
	if (r->run_ns <= 0 && d->type == &access_with_proc_status_type)
		r->run_ns = sum_of(&r->cpu);
	r->samples = numa_samples(g->nodes.v[r->node]);
	r->measured = numa_measured_share(g->nodes.v[r->node]);
	r->remote_ns = r->measured >= 0 ? r->run_ns * r->measured
		       : r->score.known ? r->run_ns * r->score.remote_share
					: 0;
}

void numa_rows_of(struct graph *g, const struct type *type, struct numa_rows *ret)
{
	const struct type *wanted = type == &process_type ? &numa_access_type : &access_with_proc_status_type;
	uint32_t *access = mem_alloc((g->nodes.n + 1) * sizeof(*access));
	struct numa_places places = {0};

	memset(ret, 0, sizeof(*ret));
	memset(access, 0xff, (g->nodes.n + 1) * sizeof(*access));
	numa_places_of(g, &places);
	vec_for(&g->edges, it)
		if ((*it)->type == &numa_access_type)
			access[(*it)->source] = (*it)->index;
	vec_for(&g->edges, it) {
		const struct edge *d = *it;
		const struct node *n = g->nodes.v[d->source];
		uint32_t process = d->source;

		if (d->type != wanted || n->type != type)
			continue;
		if (type == &thread_type)
			process = HAS(thread, n, process) ? GET(thread, n, process) : (uint32_t)g->nodes.n;
		add_row(g, &places, d, access[process] == UINT32_MAX ? NULL : g->edges.v[access[process]], ret);
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_harm);
	vec_done(&places.v);
	free(access);
}

void numa_rows_done(struct numa_rows *r)
{
	vec_for(&r->v, row) {
		vec_done(&row->cpu.v);
		vec_done(&row->memory.v);
	}
	vec_done(&r->v);
}

static struct numa_sum *sum_at(struct numa_sums *s, uint32_t node)
{
	size_t i = 0;

	while (i < s->v.n && s->v.v[i].node < node)
		i++;
	if (i == s->v.n || s->v.v[i].node != node) {
		vec_push(&s->v, ((struct numa_sum){0}));
		memmove(&s->v.v[i + 1], &s->v.v[i], (s->v.n - 1 - i) * sizeof(s->v.v[0]));
		s->v.v[i] = (struct numa_sum){.node = node};
	}
	return &s->v.v[i];
}

void numa_sums_of(struct graph *g, const char *ns, struct numa_sums *ret)
{
	memset(ret, 0, sizeof(*ret));
	vec_for(&g->edges, it) {
		struct by_node b = {0};

		if ((*it)->type != &numa_access_type || g->nodes.v[(*it)->source]->ns != ns)
			continue;
		numa_private_of(*it, &b);
		vec_for(&b.v, x)
			sum_at(ret, x->node)->private_bytes += x->amount;
		vec_done(&b.v);
	}
	vec_for(&g->nodes, it) {
		struct by_node b = {0};

		if ((*it)->type != &shared_memory_type || (*it)->ns != ns || !HAS(shared_memory, *it, memory_bytes))
			continue;
		ret->segments++;
		numa_segment_of(*it, &b);
		vec_for(&b.v, x)
			sum_at(ret, x->node)->shared_bytes += x->amount;
		vec_done(&b.v);
	}
}

double numa_rate(const struct graph *g, const struct node *n, int field)
{
	if (!(n->measured >> field & 1) || !g->meta.window_ns)
		return -1;
	return (double)field_get(&n->type->fields[field], n->data).u64 * 1e9 / (double)g->meta.window_ns;
}

static double ratio(const struct node *n, int part, int whole)
{
	const struct field *f = n->type->fields;

	if (!(n->measured >> part & 1) || !(n->measured >> whole & 1) || !field_get(&f[whole], n->data).u64)
		return -1;
	return (double)field_get(&f[part], n->data).u64 / (double)field_get(&f[whole], n->data).u64;
}

void numa_counters_of(struct graph *g, const struct node *n, struct numa_counters *ret)
{
	static const struct {
		const struct type *type;
		const char *name;
	} kinds[5] = {{&ddr_bandwidth_type, "memory"}, {&hha_bandwidth_type, "home agent"},
		      {&hccs_bandwidth_type, "interconnect"}, {&l3c_bandwidth_type, "L3 cache"},
		      {&pa_bandwidth_type, "links"}};
	struct edge_list out = graph_out(g, n->index);
	double miss = ratio(n, numa_f_llc_misses, numa_f_llc_references);

	memset(ret, 0, sizeof(*ret));
	ret->ipc = ratio(n, numa_f_instructions, numa_f_cycles);
	ret->llc_miss_pct = miss < 0 ? -1 : miss * 100;
	ret->memory_bytes_s = ret->peak_pct = -1;
	ret->peak_bytes_s = HAS(numa, n, peak_bytes_s) ? (double)GET(numa, n, peak_bytes_s) : -1;
	for (size_t k = 0; k < 5; k++) {
		ret->rate_names[k] = kinds[k].name;
		for (size_t i = 0; i < out.n; i++) {
			const struct edge *d = g->edges.v[out.v[i]];

			/* Their first field is the same. */
			if (d->type == kinds[k].type && d->measured & 1)
				ret->rates[k] = field_get(&d->type->fields[0], d->data).str;
			if (d->type == &ddr_bandwidth_type && HAS(ddr_bandwidth, d, total_bytes) && g->meta.window_ns)
				ret->memory_bytes_s = (double)GET(ddr_bandwidth, d, total_bytes) * 1e9 /
						      (double)g->meta.window_ns;
		}
	}
	if (ret->memory_bytes_s >= 0 && ret->peak_bytes_s > 0)
		ret->peak_pct = ret->memory_bytes_s * 100 / ret->peak_bytes_s;
}
