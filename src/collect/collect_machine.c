/* The machine: NUMA nodes, CPUs, caches and PCI devices, and what the kernel counts for each node. */
#include "collect_machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cleanup.h"
#include "peak_bandwidth.h"

static int by_id(const void *a, const void *b)
{
	const struct machine_node *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The kernel's list; hwloc leaves out nodes that it finds odd, but pages may lie there. */
static void list_nodes(struct machine *m)
{
	CLEANUP_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	if (sysroot_opendir(&m->root, &d, "/sys/devices/system/node") < 0)
		d = NULL;
	while (d && (de = readdir(d))) {
		unsigned long id;
		char *end;

		if (strncmp(de->d_name, "node", 4) || !isdigit((unsigned char)de->d_name[4]))
			continue;
		id = strtoul(de->d_name + 4, &end, 10);
		if (!*end && id <= IDRANGE_MAX)
			vec_push(&m->nodes, ((struct machine_node){.id = (uint32_t)id}));
	}
	if (m->nodes.n)
		qsort(m->nodes.v, m->nodes.n, sizeof(*m->nodes.v), by_id);
	/* A kernel without NUMA: hwloc makes one node of the machine. */
	for (size_t i = 0; !d && i < m->topo.nodes.n; i++)
		vec_push(&m->nodes, ((struct machine_node){.id = m->topo.nodes.v[i].id}));
}

struct machine *machine_new(const struct topo_source *from)
{
	struct machine *m = mem_alloc(sizeof(*m));
	struct topo_source here = {0};
	struct err e;

	from = from ?: &here;
	m->root.fd = -1;
	if (topo_load(&m->topo, from, &e) < 0 || sysroot_open(from->fsroot ?: "/", &m->root, &e) < 0) {
		snprintf(m->why, sizeof(m->why), "%.390s", e.msg);
		return m;
	}
	m->has_topo = true;
	list_nodes(m);
	vec_for(&m->topo.nodes, n)
		if (n->memory_bytes)
			idrange_add(&m->memory_nodes, n->id);
	return m;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	topo_done(&m->topo);
	sysroot_close(&m->root);
	idrange_done(&m->memory_nodes);
	vec_done(&m->nodes);
	free(m);
}

static const char *ranges_text(struct graph *g, const struct idrange *r)
{
	struct strbuf b = {0};
	const char *s;

	idrange_format(r, &b);
	s = graph_str(g, strbuf_str(&b));
	strbuf_done(&b);
	return s;
}

static struct node *numa_node(struct graph *g, uint32_t id)
{
	struct node *n = graph_new_node(g, &numa_type);

	SET(numa, n, numa_id, id);
	return n;
}

uint32_t machine_numa_set(struct graph *g, const struct idrange *nodes)
{
	struct node *set = graph_new_node(g, &numa_set_type);

	SET(numa_set, set, numa_id_str, ranges_text(g, nodes));
	set = graph_add_node(g, set);
	for (int64_t id = -1; (id = idrange_next(nodes, id + 1)) >= 0;)
		graph_link(g, &numa_set_contain_type, set->index, graph_add_node(g, numa_node(g, (uint32_t)id))->index);
	return set->index;
}

/* By the kernel, whose row has all nodes online in their order. */
static void set_distances(const struct machine *m, struct graph *g, struct node *n, uint32_t id)
{
	uint32_t row[1024];
	struct strbuf b = {0};
	int got = node_distances(&m->root, id, row, sizeof(row) / sizeof(row[0]));

	if (got <= 0 || (size_t)got != m->nodes.n)
		return;
	strbuf_addc(&b, '{');
	for (size_t i = 0; i < m->nodes.n; i++)
		strbuf_addf(&b, "%s\"%u\":%u", i ? "," : "", m->nodes.v[i].id, row[i]);
	strbuf_addc(&b, '}');
	SET(numa, n, distance_to_all_numa, graph_str(g, b.s));
	strbuf_done(&b);
}

static void set_node_facts(const struct machine *m, struct graph *g, struct node *n, uint32_t id)
{
	const struct topo_node *t = topo_node(&m->topo, id);
	struct strbuf b = {0};
	uint64_t latency_ns = idle_latency_ns(&m->root, id);
	struct peak peak;

	if (!node_cpulist(&m->root, id, &b))
		SET(numa, n, cpu_set, graph_str(g, strbuf_str(&b)));
	else if (t)
		SET(numa, n, cpu_set, ranges_text(g, &t->cpus));
	strbuf_clear(&b);
	if (node_memory_blocks(&m->root, id, &b))
		SET(numa, n, memory_set, graph_str(g, strbuf_str(&b)));
	strbuf_done(&b);
	set_distances(m, g, n, id);
	peak_bandwidth(&m->root, &m->topo, id, &peak);
	if (peak.bytes_s) {
		SET(numa, n, peak_bytes_s, peak.bytes_s);
		SET(numa, n, peak_source, peak.source);
	}
	if (latency_ns)
		SET(numa, n, read_latency_ns, latency_ns);
	if (!t)
		return;
	SET(numa, n, memory_bytes, t->memory_bytes);
	if (t->package != TOPO_UNKNOWN)
		SET(numa, n, package, t->package);
	if (t->kind)
		SET(numa, n, kind, graph_str(g, t->kind));
	if (!idrange_count(&t->cpus) && idrange_count(&t->near))
		SET(numa, n, near_cpus, ranges_text(g, &t->near));
}

static const char *counters_text(struct graph *g, const struct node_stats *s)
{
	struct strbuf b = {0};
	const char *ret;

	for (unsigned i = 0; i < NODE_COUNTERS; i++)
		if (s->counters[i] != NODE_STAT_UNKNOWN)
			strbuf_addf(&b, "%c\"%s\":%llu", b.n ? ',' : '{', node_counter_name(i),
				    (unsigned long long)s->counters[i]);
	strbuf_add(&b, b.n ? "}" : "{}");
	ret = graph_str(g, b.s);
	strbuf_done(&b);
	return ret;
}

/* What a counter gained; not when the kernel has none, or started it anew. */
static bool gained(uint64_t now, uint64_t *last, uint64_t *ret)
{
	bool known = now != NODE_STAT_UNKNOWN && *last != NODE_STAT_UNKNOWN && now >= *last;

	*ret = now - *last;
	*last = now;
	return known;
}

static void set_node_rates(struct machine_node *x, struct node *n, const struct node_stats *s)
{
	uint64_t v;

	if (gained(s->counters[NODE_HIT], &x->counters[NODE_HIT], &v))
		SET(numa, n, hit_pages, v);
	if (gained(s->counters[NODE_MISS], &x->counters[NODE_MISS], &v))
		SET(numa, n, miss_pages, v);
	if (gained(s->counters[NODE_FOREIGN], &x->counters[NODE_FOREIGN], &v))
		SET(numa, n, foreign_pages, v);
	if (gained(s->counters[NODE_INTERLEAVE], &x->counters[NODE_INTERLEAVE], &v))
		SET(numa, n, interleave_pages, v);
	if (gained(s->counters[NODE_LOCAL], &x->counters[NODE_LOCAL], &v))
		SET(numa, n, local_pages, v);
	if (gained(s->counters[NODE_OTHER], &x->counters[NODE_OTHER], &v))
		SET(numa, n, other_pages, v);
}

static void emit_node(struct machine *m, struct graph *g, struct machine_node *x, bool first)
{
	struct node *n = numa_node(g, x->id);
	struct node_stats s;

	if (first)
		set_node_facts(m, g, n, x->id);
	if (!node_stats_read(&m->root, x->id, &s)) {
		SET(numa, n, numa_stats, counters_text(g, &s));
		if (s.meminfo.n)
			SET(numa, n, mem_info, graph_str(g, s.meminfo.s));
		if (s.free_bytes != NODE_STAT_UNKNOWN)
			SET(numa, n, free_bytes, s.free_bytes);
		if (first)
			memcpy(x->counters, s.counters, sizeof(x->counters));
		else
			set_node_rates(x, n, &s);
		node_stats_done(&s);
	}
	graph_add_node(g, n);
}

static void emit_cpu(const struct machine *m, struct graph *g, const struct topo_cpu *c)
{
	struct node *n = graph_new_node(g, &cpu_type);

	SET(cpu, n, cpu_id, c->id);
	SET(cpu, n, online, c->online);
	if (c->node != TOPO_UNKNOWN)
		SET(cpu, n, node, c->node);
	if (c->package != TOPO_UNKNOWN)
		SET(cpu, n, package, c->package);
	if (c->die != TOPO_UNKNOWN)
		SET(cpu, n, die, c->die);
	if (c->core != TOPO_UNKNOWN)
		SET(cpu, n, core, c->core);
	if (c->kind != TOPO_UNKNOWN)
		SET(cpu, n, kind, c->kind);
	if (c->llc != TOPO_UNKNOWN) {
		const struct topo_cache *k = &m->topo.caches.v[c->llc];

		if (k->bytes)
			SET(cpu, n, llc_bytes, k->bytes);
		SET(cpu, n, llc_cpus, ranges_text(g, &k->cpus));
	}
	graph_add_node(g, n);
}

static void emit_device(struct graph *g, const struct topo_pci *p)
{
	struct node *n = graph_new_node(g, &device_type);
	struct strbuf b = {0};

	SET(device, n, device_id, graph_str(g, p->address));
	SET(device, n, pci_bus_id, graph_str(g, p->address));
	SET(device, n, device_type, graph_str(g, p->class_name));
	strbuf_addf(&b, "%04x:%04x", p->vendor, p->device);
	SET(device, n, vendor_id, graph_str(g, b.s));
	if (p->model) {
		strbuf_clear(&b);
		strbuf_addf(&b, "%s%s%s", p->vendor_name ?: "", p->vendor_name ? " " : "", p->model);
		SET(device, n, model, graph_str(g, b.s));
	}
	strbuf_clear(&b);
	vec_for(&p->os_devices, name)
		strbuf_addf(&b, "%s%s", b.n ? " " : "", *name);
	if (b.n)
		SET(device, n, os_devices, graph_str(g, b.s));
	strbuf_done(&b);
	if (p->link_bytes_s > 0)
		SET(device, n, link_bytes_s, p->link_bytes_s);
	if (idrange_count(&p->cpus))
		SET(device, n, local_cpus, ranges_text(g, &p->cpus));
	n = graph_add_node(g, n);
	if (idrange_count(&p->nodes))
		graph_link(g, &affinitative_to_numa_type, n->index, machine_numa_set(g, &p->nodes));
}

static void set_balancing(struct machine *m, struct node *n)
{
	uint64_t now[BALANCE_COUNTERS], v;

	if (balancing_read(&m->root, now) < 0)
		return;
	if (gained(now[BALANCE_PTE_UPDATES], &m->balancing[BALANCE_PTE_UPDATES], &v))
		SET(host, n, numa_pte_updates, v);
	if (gained(now[BALANCE_FAULTS], &m->balancing[BALANCE_FAULTS], &v))
		SET(host, n, numa_hint_faults, v);
	if (gained(now[BALANCE_FAULTS_LOCAL], &m->balancing[BALANCE_FAULTS_LOCAL], &v))
		SET(host, n, numa_hint_faults_local, v);
	if (gained(now[BALANCE_PAGES_MOVED], &m->balancing[BALANCE_PAGES_MOVED], &v))
		SET(host, n, numa_pages_migrated, v);
	if (gained(now[BALANCE_MOVES], &m->balancing[BALANCE_MOVES], &v))
		SET(host, n, pages_migrated, v);
	if (gained(now[BALANCE_MOVE_FAILURES], &m->balancing[BALANCE_MOVE_FAILURES], &v))
		SET(host, n, pages_not_migrated, v);
	if (gained(now[BALANCE_RECLAIMS], &m->balancing[BALANCE_RECLAIMS], &v))
		SET(host, n, zone_reclaims, v);
	if (gained(now[BALANCE_RECLAIM_FAILURES], &m->balancing[BALANCE_RECLAIM_FAILURES], &v))
		SET(host, n, zone_reclaims_failed, v);
}

static void emit_host(struct machine *m, struct graph *g, bool first)
{
	struct node *n = graph_new_node(g, &host_type);
	struct strbuf b = {0};
	struct utsname u;

	uname(&u);
	SET(host, n, hostname, graph_str(g, u.nodename));
	if (first) {
		balancing_read(&m->root, m->balancing);
		if (m->topo.packages)
			SET(host, n, packages, m->topo.packages);
		if (m->topo.cores)
			SET(host, n, cores, m->topo.cores);
		SET(host, n, numa_nodes, m->nodes.n);
	} else {
		set_balancing(m, n);
	}
	if (sysroot_read(&m->root, &b, "/proc/sys/kernel/numa_balancing") > 0)
		SET(host, n, numa_balancing, strtoull(b.s, NULL, 10));
	strbuf_done(&b);
	graph_add_node(g, n);
}

void machine_emit(struct machine *m, struct graph *g, bool first)
{
	if (!m->has_topo)
		return;
	emit_host(m, g, first);
	vec_for(&m->nodes, x)
		emit_node(m, g, x, first);
	if (!first)
		return;
	vec_for(&m->topo.cpus, c)
		emit_cpu(m, g, c);
	vec_for(&m->topo.pci, p)
		emit_device(g, p);
}
