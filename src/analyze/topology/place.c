/* Devices with their users, and where processes run and their memory is. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "derive_flows.h"
#include "idrange.h"
#include "json.h"
#include "numa_score.h"
#include "topology_parts.h"

/* A NUMA node of a host; several hosts have nodes of the same numbers. */
struct host_node {
	const char *ns;
	uint32_t number;
};

struct numbers {
	VEC(struct host_node) nodes; /* by host, then ascending */
};

static void add_share(struct topo_place *p, bool cpu, uint32_t node, uint64_t amount, double share)
{
	struct topo_share s = {.node = node, .amount = amount, .share = share};

	if (!amount && share <= 0)
		return;
	if (cpu) {
		vec_for(&p->cpu, it) {
			if (it->node != node)
				continue;
			it->amount += amount;
			it->share += share;
			return;
		}
		vec_push(&p->cpu, s);
	} else {
		vec_push(&p->memory, s);
	}
}

/* A map of node to amount. */
static void read_map(struct topo_place *p, bool cpu, const char *json)
{
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "map", NULL);
	struct err e;
	int token = json_next(r, &e);

	if (token != JSON_OBJECT)
		return;
	while ((token = json_next(r, &e)) == JSON_KEY) {
		uint32_t node = (uint32_t)strtoul(json_text(r, NULL), NULL, 10);
		double v;

		if (json_next(r, &e) != JSON_NUMBER || json_get_f64(r, &v) < 0)
			return;
		add_share(p, cpu, node, v > 0 ? (uint64_t)v : 0, 0);
	}
}

uint32_t topo_top_of_map(const char *json)
{
	struct topo_place p = {0};
	uint32_t ret = TOPO_NONE;
	uint64_t most = 0;

	read_map(&p, true, json);
	vec_for(&p.cpu, c) {
		if (c->amount <= most)
			continue;
		most = c->amount;
		ret = c->node;
	}
	vec_done(&p.cpu);
	return ret;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct host_node *x = a, *y = b;
	int ns = x->ns == y->ns ? 0 : strcmp(x->ns, y->ns);

	return ns ? ns : x->number < y->number ? -1 : x->number > y->number;
}

/* The first node of a host, or where it would be. */
static size_t first_node(const struct numbers *k, const char *ns)
{
	struct host_node wanted = {.ns = ns};
	size_t low = 0, high = k->nodes.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare_nodes(&k->nodes.v[mid], &wanted) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* A list of shares by ascending node of the host. */
static void read_list(const struct numbers *k, const char *ns, struct topo_place *p, const char *json)
{
	CLEANUP(cleanup_json_reader)
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "list", NULL);
	struct err e;
	double v;

	if (json_next(r, &e) != JSON_ARRAY)
		return;
	for (size_t i = first_node(k, ns);
	     json_next(r, &e) == JSON_NUMBER && i < k->nodes.n && k->nodes.v[i].ns == ns; i++)
		if (!json_get_f64(r, &v))
			add_share(p, true, k->nodes.v[i].number, 0, v);
}

static void learn_numbers(struct topology *t, struct numbers *k)
{
	vec_for(&t->g->nodes, n)
		if ((*n)->type == &numa_type)
			vec_push(&k->nodes, ((struct host_node){(*n)->ns, (uint32_t)GET(numa, *n, numa_id)}));
	if (k->nodes.n)
		qsort(k->nodes.v, k->nodes.n, sizeof(*k->nodes.v), compare_nodes);
}

static void read_numa_access(struct topology *t, const struct numbers *k, const struct edge *d)
{
	uint32_t a = t->actor_of[d->source];
	struct topo_place *p;

	if (a == TOPO_NONE || a >= t->n_processes)
		return;
	p = &t->places.v[a];
	if (HAS(numa_access, d, cpus_allowed_list))
		p->cpus_allowed = GET(numa_access, d, cpus_allowed_list);
	if (!p->cpu.n && HAS(numa_access, d, cpu_runtime_pct_in_each_numa))
		read_list(k, t->g->nodes.v[d->source]->ns, p, GET(numa_access, d, cpu_runtime_pct_in_each_numa));
	if (!p->memory.n && HAS(numa_access, d, dirty_anon_pages))
		read_map(p, false, GET(numa_access, d, dirty_anon_pages));
}

static void read_ran_on(struct topology *t, const struct edge *d)
{
	uint32_t p = process_of(t->g, d->source);
	const struct node *cpu = t->g->nodes.v[d->target];
	uint32_t a = p != NODE_NONE ? t->actor_of[p] : TOPO_NONE;

	if (a != TOPO_NONE && a < t->n_processes && cpu->type == &cpu_type && HAS(cpu, cpu, node))
		add_share(&t->places.v[a], true, (uint32_t)GET(cpu, cpu, node), GET(ran_on, d, run_ns), 0);
}

static int compare_shares(const void *a, const void *b)
{
	const struct topo_share *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void normalise(struct topo_share *v, size_t n)
{
	double sum = 0;
	bool amounts = false;

	for (size_t i = 0; i < n; i++)
		amounts |= v[i].amount != 0;
	for (size_t i = 0; i < n; i++)
		sum += amounts ? (double)v[i].amount : v[i].share;
	for (size_t i = 0; i < n; i++)
		v[i].share = sum > 0 ? (amounts ? (double)v[i].amount : v[i].share) / sum : 0;
	if (n)
		qsort(v, n, sizeof(*v), compare_shares);
}

static void compare_vectors(struct topo_place *p)
{
	double dot = 0, cc = 0, mm = 0;

	p->cosine = p->remote = -1;
	vec_for(&p->cpu, c) {
		cc += c->share * c->share;
		vec_for(&p->memory, m)
			dot += c->node == m->node ? c->share * m->share : 0;
	}
	vec_for(&p->memory, m)
		mm += m->share * m->share;
	if (cc <= 0 || mm <= 0)
		return;
	p->cosine = dot / sqrt(cc * mm);
	p->remote = 1 - dot;
	p->mode = p->cosine > 0.8    ? "local"
		  : p->cosine >= 0.5 ? "mixed"
		  : p->cosine >= 0.3 ? "cross"
				     : "remote";
}

/* What was sampled comes before what is expected, also where nothing can be. */
static void take_samples(struct topology *t, struct topo_place *p)
{
	const struct node *n = t->g->nodes.v[t->actors.v[p->actor].node];
	double share = numa_measured_share(n);

	p->samples = numa_samples(n);
	p->remote_measured = share >= 0;
	if (p->remote_measured)
		p->remote = share;
}

double topo_cpu_share(const struct topo_place *p, uint32_t numa_node)
{
	vec_for(&p->cpu, c)
		if (c->node == numa_node)
			return c->share;
	return 0;
}

/* Nodes whose CPUs are among those near the device. */
static const char *nodes_of_cpus(struct topology *t, const char *cpus)
{
	struct idrange want = {0}, nodes = {0};
	struct strbuf b = {0};
	const char *ret = NULL;
	struct err e;

	if (!cpus || idrange_parse(cpus, &want, &e) < 0)
		return NULL;
	vec_for(&t->g->nodes, n) {
		struct idrange have = {0};
		const char *set = (*n)->type == &numa_type ? topo_str(*n, numa_f_cpu_set) : NULL;

		if (!set || idrange_parse(set, &have, &e) < 0 ||
		    GET(numa, *n, numa_id) > IDRANGE_MAX)
			continue;
		for (int64_t c = -1; (c = idrange_next(&have, c + 1)) >= 0;)
			if (idrange_has(&want, (uint32_t)c))
				idrange_add(&nodes, (uint32_t)GET(numa, *n, numa_id));
		idrange_done(&have);
	}
	idrange_format(&nodes, &b);
	if (b.n)
		ret = arena_strdup(&t->arena, b.s);
	strbuf_done(&b);
	idrange_done(&want);
	idrange_done(&nodes);
	return ret;
}

static const char *near_nodes(struct topology *t, const struct node *n, const char *cpus)
{
	struct edge_list out = graph_out(t->g, n->index);
	const char *numa;

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = t->g->edges.v[out.v[i]];
		const struct node *set = t->g->nodes.v[d->target];

		if (d->type == &affinitative_to_numa_type && set->type == &numa_set_type)
			return topo_str(set, numa_set_f_numa_id_str);
	}
	numa = n->type == &gpu_type ? topo_str(n, gpu_f_numa_affinity) : NULL;
	return numa && *numa ? numa : nodes_of_cpus(t, cpus);
}

static void add_device(struct topology *t, const struct node *n)
{
	struct topo_device *d = vec_add(&t->devices);
	bool npu = n->type == &npu_type;
	char *end = NULL;

	d->node = n->index;
	d->cpu_affinity = topo_str(n, npu ? npu_f_cpu_affinity : gpu_f_cpu_affinity);
	d->label = npu               ? topo_text(t, "npu %" PRIu64, GET(npu, n, id))
		   : HAS(gpu, n, id) ? topo_text(t, "gpu %" PRIu64, GET(gpu, n, id))
				     : topo_text(t, "gpu %s", topo_str(n, gpu_f_pci_bus_id) ?: "?");
	d->numa = near_nodes(t, n, d->cpu_affinity);
	d->numa_node = d->numa && *d->numa ? (uint32_t)strtoul(d->numa, &end, 10) : TOPO_NONE;
	if (end && *end)
		d->numa_node = TOPO_NONE;
}

static uint64_t device_number(const struct node *n)
{
	return n->type == &npu_type ? GET(npu, n, id) : GET(gpu, n, id);
}

static int compare_devices(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct node *x = g->nodes.v[((const struct topo_device *)a)->node];
	const struct node *y = g->nodes.v[((const struct topo_device *)b)->node];

	if (x->type != y->type)
		return x->type->number < y->type->number ? -1 : 1;
	if (x->ns != y->ns && strcmp(x->ns, y->ns))
		return strcmp(x->ns, y->ns);
	if (device_number(x) != device_number(y))
		return device_number(x) < device_number(y) ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static void add_devices(struct topology *t)
{
	vec_for(&t->g->nodes, n)
		if ((*n)->type == &npu_type || (*n)->type == &gpu_type)
			add_device(t, *n);
	if (t->devices.n)
		qsort_r(t->devices.v, t->devices.n, sizeof(*t->devices.v), compare_devices, t->g);
	for (uint32_t i = 0; i < t->devices.n; i++) {
		uint32_t a = t->actor_of[t->devices.v[i].node];

		if (a == TOPO_NONE)
			continue;
		t->actors.v[a].label = t->devices.v[i].label;
		t->actors.v[a].rank = i;
	}
	vec_for(&t->links, l)
		if (t->actors.v[l->to].kind == ACTOR_DEVICE)
			vec_push(&t->devices.v[t->actors.v[l->to].rank].users, l->from);
}

static uint32_t main_node(const struct topology *t, uint32_t actor)
{
	const struct topo_actor *a = &t->actors.v[actor];

	if (a->kind == ACTOR_DEVICE)
		return t->devices.v[a->rank].numa_node;
	return a->kind == ACTOR_PROCESS && t->places.v[actor].cpu.n
		   ? t->places.v[actor].cpu.v[0].node
		   : TOPO_NONE;
}

void topo_add_places(struct topology *t)
{
	struct numbers k = {0};

	add_devices(t);
	learn_numbers(t, &k);
	vec_reserve(&t->places, t->n_processes + 1);
	for (uint32_t i = 0; i < t->n_processes; i++)
		vec_push(&t->places, ((struct topo_place){.actor = i}));
	vec_for(&t->g->edges, d) {
		if ((*d)->type == &numa_access_type)
			read_numa_access(t, &k, *d);
		else if ((*d)->type == &ran_on_type)
			read_ran_on(t, *d);
	}
	vec_for(&t->places, p) {
		normalise(p->cpu.v, p->cpu.n);
		normalise(p->memory.v, p->memory.n);
		compare_vectors(p);
		take_samples(t, p);
	}
	vec_for(&t->links, l) {
		l->from_node = main_node(t, l->from);
		l->to_node = main_node(t, l->to);
	}
	vec_done(&k.nodes);
}
