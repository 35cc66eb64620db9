/* Completes what a graph tells of placement on NUMA nodes: see numa_score.h. */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "idrange.h"
#include "json.h"
#include "numa_score.h"
#include "strbuf.h"

#define NODE_MOST 65535

static int by_host(const void *a, const void *b)
{
	const struct numa_place *x = a, *y = b;

	if (x->ns != y->ns)
		return (uintptr_t)x->ns < (uintptr_t)y->ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

void numa_places_of(const struct graph *g, struct numa_places *ret)
{
	vec_for(&g->nodes, it) {
		const struct node *n = *it;

		if (n->type == &numa_type && GET(numa, n, numa_id) <= NODE_MOST)
			vec_push(&ret->v, ((struct numa_place){n->ns, (uint32_t)GET(numa, n, numa_id)}));
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_host);
}

/* The host's first place, and how many there are. */
static const struct numa_place *places_of(const struct numa_places *p, const char *ns, size_t *ret_n)
{
	size_t lo = 0, hi = p->v.n, n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if ((uintptr_t)p->v.v[mid].ns < (uintptr_t)ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < p->v.n && p->v.v[lo + n].ns == ns)
		n++;
	*ret_n = n;
	return p->v.v + lo;
}

/* {"0":12,"3":4}; a member that is an object counts by those of its members that count. */
static void take_map(const char *text, bool (*counts)(const char *key), struct by_node *ret)
{
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_mem(text, strlen(text), "map", NULL);
	uint32_t node = 0;
	bool counting = true;
	struct err e;
	int token;

	while ((token = json_next(r, &e)) > JSON_EOF) {
		double v;

		if (token == JSON_KEY) {
			const char *key = json_text(r, NULL);
			char *end;
			unsigned long n = strtoul(key, &end, 10);

			counting = *key >= '0' && *key <= '9' && !*end ? n <= NODE_MOST : counts && counts(key);
			if (counting && !*end)
				node = (uint32_t)n;
		} else if (token == JSON_NUMBER && counting && !json_get_f64(r, &v) && v > 0) {
			*by_node_at(ret, node) += v;
		}
	}
}

static void take_list(const struct numa_places *p, const char *ns, const char *text, struct by_node *ret)
{
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_mem(text, strlen(text), "list", NULL);
	size_t i = 0, n;
	const struct numa_place *places = places_of(p, ns, &n);
	struct err e;
	int token;

	while ((token = json_next(r, &e)) > JSON_EOF) {
		double v;

		if (token != JSON_NUMBER)
			continue;
		if (i < n && !json_get_f64(r, &v) && v > 0)
			*by_node_at(ret, places[i].node) += v;
		i++;
	}
}

static bool counts_as_memory(const char *key)
{
	return strcmp(key, "file") != 0;
}

void numa_cpu_of(const struct graph *g, const struct numa_places *p, const struct edge *d, struct by_node *ret)
{
	if (d->type == &access_with_proc_status_type) {
		if (HAS(access_with_proc_status, d, numa_index_to_cpu_runtime))
			take_map(GET(access_with_proc_status, d, numa_index_to_cpu_runtime), NULL, ret);
		return;
	}
	/* The older tool's map is of the main thread, its list of the process. */
	if (HAS(numa_access, d, cpu_runtime_pct_in_each_numa))
		take_list(p, g->nodes.v[d->source]->ns, GET(numa_access, d, cpu_runtime_pct_in_each_numa), ret);
}

void numa_memory_of(const struct graph *g, const struct numa_places *p, const struct edge *d, struct by_node *ret)
{
	if (HAS(numa_access, d, memory_bytes))
		take_map(GET(numa_access, d, memory_bytes), counts_as_memory, ret);
	else if (HAS(numa_access, d, mem_pages_in_each_numa))
		take_list(p, g->nodes.v[d->source]->ns, GET(numa_access, d, mem_pages_in_each_numa), ret);
}

static bool counts_as_private(const char *key)
{
	return !strcmp(key, "anon");
}

void numa_private_of(const struct edge *d, struct by_node *ret)
{
	if (HAS(numa_access, d, memory_bytes))
		take_map(GET(numa_access, d, memory_bytes), counts_as_private, ret);
}

void numa_segment_of(const struct node *n, struct by_node *ret)
{
	if (HAS(shared_memory, n, memory_bytes))
		take_map(GET(shared_memory, n, memory_bytes), NULL, ret);
}

/* Time on CPUs of a thread, or of all threads of a process. */
struct use {
	struct by_node time;
	struct idrange cpus;
};

struct uses {
	struct use *v;	  /* [graph.nodes.n] */
	uint32_t *access; /* [graph.nodes.n] relation numa_access of a process */
	struct numa_places places;
};

static void add_time(struct graph *g, struct uses *u, const struct edge *d)
{
	const struct node *thread = g->nodes.v[d->source], *cpu = g->nodes.v[d->target];
	double ns = HAS(ran_on, d, run_ns) ? (double)GET(ran_on, d, run_ns) : 0;
	struct use *x = &u->v[thread->index];

	if (ns <= 0 || cpu->type != &cpu_type || GET(cpu, cpu, cpu_id) > IDRANGE_MAX)
		return;
	idrange_add(&x->cpus, (uint32_t)GET(cpu, cpu, cpu_id));
	if (!HAS(cpu, cpu, node) || GET(cpu, cpu, node) > NODE_MOST)
		return;
	*by_node_at(&x->time, (uint32_t)GET(cpu, cpu, node)) += ns;
	if (thread->type == &thread_type && HAS(thread, thread, process))
		*by_node_at(&u->v[GET(thread, thread, process)].time, (uint32_t)GET(cpu, cpu, node)) += ns;
}

static void uses_init(struct graph *g, struct uses *u)
{
	u->v = mem_alloc((g->nodes.n + 1) * sizeof(*u->v));
	u->access = mem_alloc((g->nodes.n + 1) * sizeof(*u->access));
	memset(u->access, 0xff, (g->nodes.n + 1) * sizeof(*u->access));
	numa_places_of(g, &u->places);
	vec_for(&g->edges, it) {
		const struct edge *d = *it;

		if (d->type == &ran_on_type)
			add_time(g, u, d);
		else if (d->type == &numa_access_type)
			u->access[d->source] = d->index;
	}
}

static void uses_done(const struct graph *g, struct uses *u)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		vec_done(&u->v[i].time.v);
		idrange_done(&u->v[i].cpus);
	}
	vec_done(&u->places.v);
	free(u->v);
	free(u->access);
}

static const char *map_text(struct graph *g, const struct by_node *b)
{
	struct strbuf text = {0};
	const char *ret;

	strbuf_addc(&text, '{');
	for (size_t i = 0; i < b->v.n; i++) {
		strbuf_addf(&text, "%s\"%u\":", i ? "," : "", b->v.v[i].node);
		strbuf_add_u64(&text, (uint64_t)b->v.v[i].amount);
	}
	strbuf_addc(&text, '}');
	ret = graph_str(g, text.s);
	strbuf_done(&text);
	return ret;
}

static double total(const struct by_node *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->v.n; i++)
		sum += b->v.v[i].amount;
	return sum;
}

/* Shares by ascending node, as the older tool lists them. */
static const char *list_text(struct graph *g, const struct numa_places *p, const char *ns, struct by_node *b)
{
	double sum = total(b);
	struct strbuf text = {0};
	const char *ret;
	size_t n;
	const struct numa_place *places = places_of(p, ns, &n);

	strbuf_addc(&text, '[');
	for (size_t i = 0; i < n; i++) {
		strbuf_add(&text, i ? "," : "");
		strbuf_add_f64(&text, *by_node_at(b, places[i].node) / sum);
	}
	strbuf_addc(&text, ']');
	ret = graph_str(g, text.s);
	strbuf_done(&text);
	return ret;
}

static void set_thread_time(struct graph *g, struct edge *d, struct use *x)
{
	struct strbuf text = {0};

	SET(access_with_proc_status, d, numa_index_to_cpu_runtime, map_text(g, &x->time));
	idrange_format(&x->cpus, &text);
	SET(access_with_proc_status, d, cpus_accessed_list, graph_str(g, strbuf_str(&text)));
	strbuf_done(&text);
}

static void set_process_time(struct graph *g, const struct numa_places *p, struct edge *d, struct use *x)
{
	SET(numa_access, d, numa_index_to_cpu_runtime, map_text(g, &x->time));
	SET(numa_access, d, cpu_runtime_pct_in_each_numa, list_text(g, p, g->nodes.v[d->source]->ns, &x->time));
}

static void score_process(struct graph *g, const struct numa_places *p, struct edge *d)
{
	struct by_node cpu = {0}, memory = {0};
	struct numa_score s;

	numa_cpu_of(g, p, d, &cpu);
	numa_memory_of(g, p, d, &memory);
	s = numa_score_by_node(&cpu, &memory);
	d->measured &= ~(FIELD_BIT(numa_access, similarity) | FIELD_BIT(numa_access, local_share));
	if (s.known) {
		SET(numa_access, d, similarity, s.similarity);
		SET(numa_access, d, local_share, s.local_share);
	}
	vec_done(&cpu.v);
	vec_done(&memory.v);
}

static void score_thread(struct graph *g, const struct numa_places *p, struct edge *d, uint32_t access)
{
	struct by_node cpu = {0}, memory = {0};
	struct numa_score s;

	numa_cpu_of(g, p, d, &cpu);
	numa_memory_of(g, p, g->edges.v[access], &memory);
	s = numa_score_by_node(&cpu, &memory);
	d->measured &= ~(FIELD_BIT(access_with_proc_status, similarity) |
			 FIELD_BIT(access_with_proc_status, local_share));
	if (s.known) {
		SET(access_with_proc_status, d, similarity, s.similarity);
		SET(access_with_proc_status, d, local_share, s.local_share);
	}
	vec_done(&cpu.v);
	vec_done(&memory.v);
}

void derive_numa(struct graph *g)
{
	struct uses u = {0};

	uses_init(g, &u);
	for (size_t i = 0; i < g->edges.n; i++) {
		struct edge *d = g->edges.v[i];
		struct use *x = &u.v[d->source];

		if (d->type == &access_with_proc_status_type && x->time.v.n)
			set_thread_time(g, d, x);
		if (d->type != &numa_access_type)
			continue;
		if (x->time.v.n)
			set_process_time(g, &u.places, d, x);
		score_process(g, &u.places, d);
	}
	for (size_t i = 0; i < g->edges.n; i++) {
		struct edge *d = g->edges.v[i];
		const struct node *t = g->nodes.v[d->source];

		if (d->type != &access_with_proc_status_type || t->type != &thread_type ||
		    !HAS(thread, t, process) || u.access[GET(thread, t, process)] == UINT32_MAX)
			continue;
		score_thread(g, &u.places, d, u.access[GET(thread, t, process)]);
	}
	uses_done(g, &u);
}

void numa_forget_scores(struct graph *g)
{
	vec_for(&g->edges, it) {
		struct edge *d = *it;

		if (d->type == &access_with_proc_status_type)
			d->measured &= ~(FIELD_BIT(access_with_proc_status, similarity) |
					 FIELD_BIT(access_with_proc_status, local_share));
		if (d->type == &numa_access_type)
			d->measured &= ~(FIELD_BIT(numa_access, similarity) | FIELD_BIT(numa_access, local_share));
	}
}
