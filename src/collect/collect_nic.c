/* Network interfaces: what they move and drop, how fast they are and where they are attached. */
#include "collect_nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "collect_machine.h"
#include "nic_stats.h"

#define FACTS_EVERY_NS (10 * NS_PER_SEC)
/* Of one more namespace each tick costs a file; a host has one, or one for each pod. */
#define NAMESPACES_MOST 256

struct nic_seen {
	struct nic_stats last;
	uint64_t netns;
	uint64_t facts_ns;
	bool is_new;
};

struct nics {
	struct sysroot root;
	uint64_t own_netns;
	VEC(struct nic_seen) seen;
};

struct nics *nics_new(void)
{
	struct nics *n = mem_alloc(sizeof(*n));
	struct stat st;
	struct err e;

	if (sysroot_open("/", &n->root, &e) < 0)
		n->root.fd = -1;
	if (!stat("/proc/self/ns/net", &st))
		n->own_netns = st.st_ino;
	return n;
}

void nics_free(struct nics *n)
{
	if (!n)
		return;
	vec_done(&n->seen);
	sysroot_close(&n->root);
	free(n);
}

static struct nic_seen *find(struct nics *n, uint64_t netns, const struct nic_stats *now)
{
	struct nic_seen *s;

	vec_for(&n->seen, x)
		if (x->netns == netns && !strcmp(x->last.name, now->name))
			return x;
	s = vec_add(&n->seen);
	s->netns = netns;
	s->last = *now;
	s->is_new = true;
	return s;
}

static void set_rates(struct node *n, const struct nic_seen *s, const struct nic_stats *now)
{
	uint64_t d[NIC_COUNTERS];

	/* All or none: one that is smaller than before belongs to another interface of that name. */
	for (int i = 0; i < NIC_COUNTERS; i++) {
		if (now->counters[i] < s->last.counters[i])
			return;
		d[i] = now->counters[i] - s->last.counters[i];
	}
	SET(nic, n, rx_bytes, d[NIC_RX_BYTES]);
	SET(nic, n, tx_bytes, d[NIC_TX_BYTES]);
	SET(nic, n, rx_packets, d[NIC_RX_PACKETS]);
	SET(nic, n, tx_packets, d[NIC_TX_PACKETS]);
	SET(nic, n, rx_errors, d[NIC_RX_ERRORS]);
	SET(nic, n, tx_errors, d[NIC_TX_ERRORS]);
	SET(nic, n, rx_drops, d[NIC_RX_DROPS]);
	SET(nic, n, tx_drops, d[NIC_TX_DROPS]);
}

/* @return its NUMA node, -1: none */
static int set_facts(struct nics *s, struct graph *g, struct node *n, const char *name)
{
	struct nic_facts f;
	struct strbuf b = {0};
	int node;

	if (!nic_facts_read(&s->root, name, &f))
		return -1;
	if (f.mac[0])
		SET(nic, n, mac, graph_str(g, f.mac));
	if (f.state[0])
		SET(nic, n, state, graph_str(g, f.state));
	if (f.pci[0])
		SET(nic, n, pci_bus_id, graph_str(g, f.pci));
	if (f.speed_bytes_s)
		SET(nic, n, speed_bytes_s, f.speed_bytes_s);
	if (f.mtu)
		SET(nic, n, mtu, f.mtu);
	if (f.numa_node >= 0)
		SET(nic, n, numa_node, (uint64_t)f.numa_node);
	idrange_format(&f.irq_cpus, &b);
	if (b.n)
		SET(nic, n, irq_cpus, graph_str(g, b.s));
	node = f.numa_node;
	strbuf_done(&b);
	nic_facts_done(&f);
	return node;
}

static void emit(struct nics *s, struct graph *g, uint64_t netns, const struct nic_stats *now)
{
	struct nic_seen *x = find(s, netns, now);
	uint64_t clock = clock_mono_ns();
	struct node *n;
	int numa = -1;

	/* Most kernels have a dozen interfaces that nobody uses. */
	if (!now->counters[NIC_RX_PACKETS] && !now->counters[NIC_TX_PACKETS])
		return;
	n = graph_new_node(g, &nic_type);
	SET(nic, n, name, graph_str(g, now->name));
	SET(nic, n, netns, netns);
	if (!x->is_new)
		set_rates(n, x, now);
	if (netns == s->own_netns && (!x->facts_ns || clock - x->facts_ns >= FACTS_EVERY_NS)) {
		x->facts_ns = clock;
		numa = set_facts(s, g, n, now->name);
	}
	x->last = *now;
	x->is_new = false;
	n = graph_add_node(g, n);
	if (numa >= 0) {
		struct idrange nodes = {0};

		idrange_add(&nodes, (uint32_t)numa);
		graph_link(g, &affinitative_to_numa_type, n->index, machine_numa_set(g, &nodes));
		idrange_done(&nodes);
	}
}

static void read_namespace(struct nics *s, struct graph *g, uint64_t netns, const char *path)
{
	struct nic_list list = {0};
	struct strbuf b = {0};

	if (sysroot_read(&s->root, &b, "%s", path) > 0)
		nic_parse(b.s, &list);
	vec_for(&list.v, now)
		emit(s, g, netns, now);
	vec_done(&list.v);
	strbuf_done(&b);
}

void collect_nics(struct collect *c, struct graph *g)
{
	struct nics *s = c->nics;
	VEC(uint64_t) done = {0};

	read_namespace(s, g, s->own_netns, "/proc/self/net/dev");
	vec_push(&done, s->own_netns);
	vec_for(&c->procs.v, x) {
		char path[64];
		bool known = false;

		if (!x->pid || x->end_ns || !x->selected || !x->netns || done.n > NAMESPACES_MOST)
			continue;
		vec_for(&done, d)
			known |= *d == x->netns;
		if (known)
			continue;
		vec_push(&done, x->netns);
		snprintf(path, sizeof(path), "/proc/%u/net/dev", x->pid);
		read_namespace(s, g, x->netns, path);
	}
	vec_done(&done);
}
