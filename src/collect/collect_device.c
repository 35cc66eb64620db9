/* Accelerators: what they are and do, who uses them, and what they are linked to. */
#include "collect_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "collect_machine.h"

/* NVML may need seconds for its first answer where no other program keeps the driver awake. */
#define DEADLINE_NS (8 * NS_PER_SEC)
#define LAST_WAIT_NS (300 * NS_PER_MS)
/* To look for open files costs a look at every file of every process. */
#define HOLDERS_EVERY_NS (10 * NS_PER_SEC)

struct devices *devices_new(void)
{
	struct devices *d = mem_alloc(sizeof(*d));
	struct err e;

	for (size_t i = 0; i < ACCEL_SOURCES; i++)
		vec_push(&d->workers, accel_worker_new(accel_sources[i], DEADLINE_NS));
	if (sysroot_open("/", &d->root, &e) < 0)
		d->root.fd = -1;
	return d;
}

void devices_free(struct devices *d)
{
	if (!d)
		return;
	vec_for(&d->workers, w)
		accel_worker_free(*w);
	vec_done(&d->workers);
	vec_done(&d->totals);
	vec_done(&d->known);
	dev_holders_done(&d->holders);
	sysroot_close(&d->root);
	free(d);
}

static bool holds(const struct dev_holder *h, enum dev_family family, int32_t minor)
{
	return h->family == family && (minor < 0 || h->minor == (uint32_t)minor);
}

/* The one holder whose pid is @pid in its own namespace; IDMAP_NONE: none, or several. */
static uint32_t by_nspid(const struct procs *p, const struct dev_holders *holders, enum dev_family family,
			 int32_t minor, uint32_t pid)
{
	uint32_t ret = IDMAP_NONE;

	vec_for(&holders->v, h) {
		uint32_t proc = holds(h, family, minor) ? procs_live(p, h->pid) : IDMAP_NONE;

		if (proc == IDMAP_NONE || !p->v.v[proc].has_namespaces || p->v.v[proc].nspid != pid)
			continue;
		if (ret != IDMAP_NONE && ret != proc)
			return IDMAP_NONE;
		ret = proc;
	}
	return ret;
}

uint32_t device_process(const struct procs *p, const struct dev_holders *holders, enum dev_family family,
			int32_t minor, uint32_t pid, double *ret_confidence)
{
	uint32_t direct = procs_live(p, pid), inner;
	bool anyone = false, is_holder = false;

	vec_for(&holders->v, h) {
		anyone |= holds(h, family, minor);
		is_holder |= holds(h, family, minor) && h->pid == pid;
	}
	if (direct != IDMAP_NONE && is_holder) {
		*ret_confidence = 1;
		return direct;
	}
	inner = by_nspid(p, holders, family, minor, pid);
	if (inner != IDMAP_NONE) {
		*ret_confidence = 0.9;
		return inner;
	}
	/* Nobody has it open as far as can be seen: nothing speaks against the driver. */
	*ret_confidence = anyone ? 0.3 : 0.6;
	return direct;
}

static const char *throttle_text(struct graph *g, uint64_t bits)
{
	/* Bits of nvmlClocksEventReasons; those that are no limit (idle, a set clock) are left out. */
	static const struct {
		uint64_t bit;
		const char *name;
	} reasons[] = {
		{0x4, "power_cap"},	  {0x8, "hw_slowdown"},	       {0x20, "sw_thermal"},
		{0x40, "hw_thermal"},	  {0x80, "hw_power_brake"},    {0x10, "sync_boost"},
		{0x100, "display_clock"},
	};
	struct strbuf b = {0};
	const char *s;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (bits & reasons[i].bit)
			strbuf_addf(&b, "%s%s", b.n ? "," : "", reasons[i].name);
	s = graph_str(g, b.n ? b.s : "none");
	strbuf_done(&b);
	return s;
}

/* What a total gained since the last look; the second look is the first that knows. */
static bool link_gain(struct devices *d, const struct accel *a, uint64_t *ret_rx, uint64_t *ret_tx)
{
	struct link_total *t = NULL;
	double rx = a->facts[ACCEL_LINK_RX_BYTES], tx = a->facts[ACCEL_LINK_TX_BYTES];
	bool known;

	vec_for(&d->totals, x)
		if (!strcmp(x->pci, a->pci))
			t = x;
	known = t && rx >= t->rx && tx >= t->tx;
	if (!t) {
		t = vec_add(&d->totals);
		memcpy(t->pci, a->pci, sizeof(t->pci));
	}
	*ret_rx = known ? (uint64_t)(rx - t->rx) : 0;
	*ret_tx = known ? (uint64_t)(tx - t->tx) : 0;
	t->rx = rx;
	t->tx = tx;
	return known;
}

/* The fields that both kinds have. */
#define SET_FACT(T, n, a, fact, field)                                                             \
	do {                                                                                       \
		if (accel_has(a, fact))                                                            \
			SET(T, n, field, (a)->facts[fact]);                                        \
	} while (0)
#define SET_COUNT(T, n, a, fact, field)                                                            \
	do {                                                                                       \
		if (accel_has(a, fact))                                                            \
			SET(T, n, field, (uint64_t)(a)->facts[fact]);                              \
	} while (0)
#define SET_TEXT(T, n, text, field)                                                                \
	do {                                                                                       \
		if ((text)[0])                                                                     \
			SET(T, n, field, graph_str(g, text));                                      \
	} while (0)
#define SET_LOAD(T, n, a)                                                                          \
	do {                                                                                       \
		SET_FACT(T, n, a, ACCEL_UTIL_PCT, utilization_pct);                                \
		SET_FACT(T, n, a, ACCEL_MEM_UTIL_PCT, memory_util_pct);                            \
		SET_COUNT(T, n, a, ACCEL_MEM_TOTAL_BYTES, memory_total_bytes);                     \
		SET_COUNT(T, n, a, ACCEL_MEM_USED_BYTES, memory_used_bytes);                       \
		SET_COUNT(T, n, a, ACCEL_POWER_MW, power_mw);                                      \
		SET_COUNT(T, n, a, ACCEL_POWER_LIMIT_MW, power_limit_mw);                          \
		SET_FACT(T, n, a, ACCEL_TEMPERATURE_C, temperature_c);                             \
		SET_COUNT(T, n, a, ACCEL_CLOCK_MAX_KHZ, clock_max_khz);                            \
		SET_COUNT(T, n, a, ACCEL_MEM_CLOCK_KHZ, memory_clock_khz);                         \
		SET_COUNT(T, n, a, ACCEL_ECC_ERRORS, ecc_errors);                                  \
	} while (0)
#define SET_PCIE(T, n, a)                                                                          \
	do {                                                                                       \
		SET_COUNT(T, n, a, ACCEL_PCIE_GEN, pcie_gen);                                      \
		SET_COUNT(T, n, a, ACCEL_PCIE_GEN_MAX, pcie_gen_max);                              \
		SET_COUNT(T, n, a, ACCEL_PCIE_WIDTH, pcie_width);                                  \
		SET_COUNT(T, n, a, ACCEL_PCIE_WIDTH_MAX, pcie_width_max);                          \
		SET_FACT(T, n, a, ACCEL_PCIE_RX_BYTES_S, pcie_rx_bytes_s);                         \
		SET_FACT(T, n, a, ACCEL_PCIE_TX_BYTES_S, pcie_tx_bytes_s);                         \
	} while (0)
#define SET_IDENTITY(T, n, a, head)                                                                \
	do {                                                                                       \
		SET_TEXT(T, n, (a)->uuid, device_id);                                              \
		SET_TEXT(T, n, (a)->model, model);                                                 \
		SET_TEXT(T, n, (a)->health, health);                                               \
		SET_TEXT(T, n, (a)->state, state);                                                 \
		SET_TEXT(T, n, (head)->driver, driver);                                            \
		SET_TEXT(T, n, (head)->rung, told_by);                                             \
	} while (0)

static const struct topo_pci *topo_of(const struct collect *c, const char *pci)
{
	for (size_t i = 0; pci[0] && i < c->machine->topo.pci.n; i++)
		if (!strcmp(c->machine->topo.pci.v[i].address, pci))
			return &c->machine->topo.pci.v[i];
	return NULL;
}

static const char *ranges(struct graph *g, const struct idrange *r)
{
	struct strbuf b = {0};
	const char *s;

	idrange_format(r, &b);
	s = graph_str(g, strbuf_str(&b));
	strbuf_done(&b);
	return s;
}

static struct node *gpu_node(struct collect *c, struct graph *g, const struct accel_head *head,
			     const struct accel *a)
{
	struct node *n = graph_new_node(g, &gpu_type);
	const struct topo_pci *where = topo_of(c, a->pci);
	uint64_t rx, tx;

	SET(gpu, n, id, a->index);
	SET_TEXT(gpu, n, a->pci, pci_bus_id);
	SET_TEXT(gpu, n, a->instance, instance);
	SET_IDENTITY(gpu, n, a, head);
	SET_LOAD(gpu, n, a);
	SET_PCIE(gpu, n, a);
	SET_COUNT(gpu, n, a, ACCEL_CLOCK_KHZ, clock_khz);
	if (accel_has(a, ACCEL_THROTTLE_BITS))
		SET(gpu, n, throttle, throttle_text(g, (uint64_t)a->facts[ACCEL_THROTTLE_BITS]));
	if (a->instance[0])
		SET(gpu, n, device_type, graph_str(g, "mig"));
	if (accel_has(a, ACCEL_LINK_RX_BYTES) && link_gain(c->devices, a, &rx, &tx)) {
		SET(gpu, n, link_rx_bytes, rx);
		SET(gpu, n, link_tx_bytes, tx);
	}
	if (where && idrange_count(&where->cpus))
		SET(gpu, n, cpu_affinity, ranges(g, &where->cpus));
	if (where && idrange_count(&where->nodes))
		SET(gpu, n, numa_affinity, ranges(g, &where->nodes));
	return n;
}

static struct node *npu_node(struct collect *c, struct graph *g, const struct accel_head *head,
			     const struct accel *a)
{
	struct node *n = graph_new_node(g, &npu_type);
	const struct topo_pci *where = topo_of(c, a->pci);

	SET(npu, n, id, a->index);
	SET(npu, n, chip, a->chip);
	SET_TEXT(npu, n, a->pci, pci_bus_id);
	SET_IDENTITY(npu, n, a, head);
	SET_LOAD(npu, n, a);
	SET_PCIE(npu, n, a);
	if (a->cpus[0])
		SET(npu, n, cpu_affinity, graph_str(g, a->cpus));
	else if (where && idrange_count(&where->cpus))
		SET(npu, n, cpu_affinity, ranges(g, &where->cpus));
	return n;
}

/* Near which nodes: what the machine's topology says, else by the CPUs that the vendor names. */
static void link_numa(struct collect *c, struct graph *g, uint32_t node, const struct accel *a)
{
	const struct topo_pci *where = topo_of(c, a->pci);
	struct idrange cpus = {0}, nodes = {0};
	struct err e;

	if (where && idrange_count(&where->nodes)) {
		graph_link(g, &affinitative_to_numa_type, node, machine_numa_set(g, &where->nodes));
		return;
	}
	if (a->cpus[0] && !idrange_parse(a->cpus, &cpus, &e))
		topo_nodes_of_cpus(&c->machine->topo, &cpus, &nodes);
	if (idrange_count(&nodes))
		graph_link(g, &affinitative_to_numa_type, node, machine_numa_set(g, &nodes));
	idrange_done(&cpus);
	idrange_done(&nodes);
}

static enum dev_family family_of(const struct accel *a, const char *source)
{
	if (!strcmp(source, "nvidia"))
		return DEV_NVIDIA;
	return a->kind == ACCEL_NPU ? DEV_ASCEND : a->accel_class ? DEV_ACCEL : DEV_RENDER;
}

static void emit_access(struct collect *c, struct graph *g, uint32_t proc, uint32_t node, uint32_t opened,
			double confidence, const struct accel_process *p)
{
	struct edge *x;

	if (!c->procs.v.v[proc].selected)
		return;
	x = graph_new_edge(g, &access_type, procs_node(&c->procs, g, proc), node);
	if (p && p->has_memory)
		SET(access, x, memory_bytes, p->memory_bytes);
	if (p && p->has_util)
		SET(access, x, utilization_pct, p->util_pct);
	if (opened)
		SET(access, x, open_files, opened);
	SET(access, x, confidence, confidence);
	graph_add_edge(g, x);
}

static uint32_t opened_by(const struct dev_holders *holders, enum dev_family family, int32_t minor, uint32_t pid)
{
	uint32_t n = 0;

	vec_for(&holders->v, h)
		if (h->pid == pid && holds(h, family, minor))
			n += h->opened;
	return n;
}

struct emitting {
	struct collect *c;
	struct graph *g;
	const struct accel_report *r;
	const char *source;
	VEC(uint32_t) nodes; /* of r->devices */
	VEC(struct told {
		uint32_t proc;
		uint32_t device;
	}) told;
};

static bool was_told(const struct emitting *x, uint32_t proc, const struct accel *whole)
{
	vec_for(&x->told, t) {
		const struct accel *a = &x->r->devices.v[t->device];

		if (t->proc == proc && a->minor == whole->minor && a->kind == whole->kind)
			return true;
	}
	return false;
}

static void emit_processes(struct emitting *x)
{
	struct devices *d = x->c->devices;

	vec_for(&x->r->processes, p) {
		const struct accel *a = &x->r->devices.v[p->device];
		enum dev_family family = family_of(a, x->source);
		double confidence;
		uint32_t proc = device_process(&x->c->procs, &d->holders, family, a->minor, p->pid, &confidence);

		if (proc == IDMAP_NONE) {
			d->unresolved++;
			continue;
		}
		vec_push(&x->told, ((struct told){.proc = proc, .device = p->device}));
		emit_access(x->c, x->g, proc, x->nodes.v[p->device],
			    opened_by(&d->holders, family, a->minor, x->c->procs.v.v[proc].pid), confidence, p);
	}
}

static void set_open_files(struct graph *g, uint32_t node, uint64_t opened)
{
	struct node *n = g->nodes.v[node];

	if (n->type == &npu_type)
		SET(npu, n, open_files, opened);
	else
		SET(gpu, n, open_files, opened);
}

/* Who has a device open without being named by its driver. */
static void emit_holders(struct emitting *x)
{
	struct devices *d = x->c->devices;

	for (size_t i = 0; i < x->r->devices.n; i++) {
		const struct accel *a = &x->r->devices.v[i];
		enum dev_family family = family_of(a, x->source);
		uint64_t opened = 0;

		if (a->parent >= 0 || a->minor < 0)
			continue;
		vec_for(&d->holders.v, h) {
			uint32_t proc = holds(h, family, a->minor) ? procs_live(&x->c->procs, h->pid) : IDMAP_NONE;

			if (proc == IDMAP_NONE)
				continue;
			opened += h->opened;
			if (!was_told(x, proc, a))
				emit_access(x->c, x->g, proc, x->nodes.v[i], h->opened, 0.8, NULL);
		}
		set_open_files(x->g, x->nodes.v[i], opened);
	}
}

static uint32_t peer_node(struct emitting *x, const struct accel_link *l)
{
	struct node *n;

	if (l->peer_device >= 0 && (size_t)l->peer_device < x->nodes.n)
		return x->nodes.v[l->peer_device];
	for (size_t i = 0; l->peer_pci[0] && i < x->r->devices.n; i++)
		if (x->r->devices.v[i].parent < 0 && !strcmp(x->r->devices.v[i].pci, l->peer_pci))
			return x->nodes.v[i];
	/* A switch of links, or one that does not say what is behind it. */
	n = graph_new_node(x->g, &device_type);
	SET(device, n, device_id, graph_str(x->g, l->peer_pci[0] ? l->peer_pci : "link-peer-unknown"));
	if (l->peer_pci[0])
		SET(device, n, pci_bus_id, graph_str(x->g, l->peer_pci));
	return graph_add_node(x->g, n)->index;
}

static void emit_links(struct emitting *x)
{
	vec_for(&x->r->links, l) {
		uint32_t peer = peer_node(x, l);
		struct edge *k = graph_new_edge(x->g, &device_link_type, x->nodes.v[l->device], peer);

		SET(device_link, k, kind, graph_str(x->g, l->kind));
		if (l->links) {
			SET(device_link, k, links, l->links);
			SET(device_link, k, active, l->active);
		}
		if (l->version)
			SET(device_link, k, version, l->version);
		graph_add_edge(x->g, k);
	}
}

static void keep_known(struct devices *d, const struct accel *a, enum dev_family family)
{
	struct known_device *k = NULL;

	if (a->parent >= 0 || a->minor < 0)
		return;
	vec_for(&d->known, x)
		if (x->family == family && x->minor == a->minor)
			k = x;
	k = k ?: vec_add(&d->known);
	*k = (struct known_device){.family = family, .minor = a->minor, .kind = a->kind, .index = a->index,
				   .chip = a->chip};
	memcpy(k->pci, a->pci, sizeof(k->pci));
}

uint32_t devices_node(const struct devices *d, struct graph *g, enum dev_family family, uint32_t minor)
{
	vec_for(&d->known, k) {
		struct node *n;

		if (k->family != family || k->minor != (int32_t)minor)
			continue;
		n = graph_new_node(g, k->kind == ACCEL_NPU ? &npu_type : &gpu_type);
		if (k->kind == ACCEL_NPU) {
			SET(npu, n, id, k->index);
			SET(npu, n, chip, k->chip);
		} else {
			SET(gpu, n, id, k->index);
			SET_TEXT(gpu, n, k->pci, pci_bus_id);
		}
		return graph_add_node(g, n)->index;
	}
	return NODE_NONE;
}

static void emit(struct collect *c, struct graph *g, const struct accel_report *r, const char *source)
{
	struct emitting x = {.c = c, .g = g, .r = r, .source = source};

	vec_for(&r->devices, a) {
		struct node *n = a->kind == ACCEL_NPU ? npu_node(c, g, &r->head, a) : gpu_node(c, g, &r->head, a);

		if (a->parent >= 0 && (size_t)a->parent < x.nodes.n) {
			const struct node *whole = g->nodes.v[x.nodes.v[a->parent]];

			if (whole->type == &gpu_type && HAS(gpu, whole, device_id))
				SET(gpu, n, part_of, GET(gpu, whole, device_id));
		}
		n = graph_add_node(g, n);
		vec_push(&x.nodes, n->index);
		keep_known(c->devices, a, family_of(a, source));
		link_numa(c, g, n->index, a);
	}
	emit_processes(&x);
	emit_holders(&x);
	emit_links(&x);
	vec_done(&x.nodes);
	vec_done(&x.told);
}

static void look_for_holders(struct devices *d)
{
	uint64_t now = clock_mono_ns();

	if (d->holders_ns && now - d->holders_ns < HOLDERS_EVERY_NS)
		return;
	d->holders_ns = now;
	dev_holders_done(&d->holders);
	dev_holders_read(&d->root, NULL, 0, &d->holders);
}

void collect_devices(struct collect *c, struct graph *g, bool last)
{
	struct devices *d = c->devices;

	vec_for(&d->workers, w) {
		const struct accel_report *r = accel_worker_take(*w, last ? LAST_WAIT_NS : 0);

		if (r && r->devices.n) {
			look_for_holders(d);
			emit(c, g, r, accel_worker_source(*w)->name);
		}
		if (!last)
			accel_worker_ask(*w);
	}
}

void collect_devices_describe(const struct collect *c, struct graph *g)
{
	static const char *const states[] = {"ok", "reduced", "off", "off"};

	vec_for(&c->devices->workers, w) {
		const struct accel_head *h = accel_worker_head(*w);
		char source[64];

		snprintf(source, sizeof(source), "device %s", accel_worker_source(*w)->name);
		graph_add_status(g, source, states[h->state], h->rung[0] ? h->rung : NULL,
				 h->why[0] ? h->why : NULL);
	}
	graph_add_loss(g, "collector device", "process_unknown", c->devices->unresolved);
	graph_add_loss(g, "collector device", "unreadable", c->devices->holders.unreadable);
}
