/* Reads the topology of a machine through hwloc into plain tables: see topo.h. */
#include "topo.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"
#include "sysroot.h"

/* hwloc takes these from the environment only; a command that we run later must not see them. */
static const char *const hwloc_variables[] = {"HWLOC_FSROOT", "HWLOC_HIDE_ERRORS", "HWLOC_XMLFILE",
					      "HWLOC_SYNTHETIC", "HWLOC_COMPONENTS",
					      "HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES"};
#define NVARIABLES (sizeof(hwloc_variables) / sizeof(hwloc_variables[0]))

static void environment_set(char *saved[NVARIABLES], const char *fsroot)
{
	for (size_t i = 0; i < NVARIABLES; i++) {
		const char *old = getenv(hwloc_variables[i]);

		saved[i] = old ? mem_strdup(old) : NULL;
		unsetenv(hwloc_variables[i]);
	}
	if (fsroot)
		setenv("HWLOC_FSROOT", fsroot, 1);
	/* It would print what it finds odd in the tables of the firmware. */
	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	/* Pages of a program may lie in memory of a GPU that is a node. */
	setenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1", 1);
}

static void environment_restore(char *saved[NVARIABLES])
{
	for (size_t i = 0; i < NVARIABLES; i++) {
		if (saved[i])
			setenv(hwloc_variables[i], saved[i], 1);
		else
			unsetenv(hwloc_variables[i]);
		free(saved[i]);
	}
}

/*
 * Components that load vendor libraries could hang, "x86" runs on each CPU in turn, which the observed
 * program would feel, and "pci" reads the configuration of devices, which may sleep. What they know
 * comes from /sys too, but for names of products.
 */
static void leave_out(hwloc_topology_t t)
{
	static const char *const components[] = {"x86", "pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"};

	for (size_t i = 0; i < sizeof(components) / sizeof(components[0]); i++)
		hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, components[i]);
}

static int load(hwloc_topology_t *ret, const struct topo_source *from, struct err *e)
{
	const char *what = from->xml ?: from->fsroot ?: "this machine";
	hwloc_topology_t t;

	/*
	 * Plugins are loaded, and may start a vendor's driver, before they can be left out as components.
	 * PCI devices are found in /sys and XML is read without any of them.
	 */
	setenv("HWLOC_PLUGINS_BLACKLIST",
	       "hwloc_opencl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_rsmi.so,hwloc_levelzero.so,hwloc_gl.so,"
	       "hwloc_pci.so,hwloc_xml_libxml.so", 0);
	if (hwloc_topology_init(&t) < 0)
		return err_set(e, -errno, "start hwloc");
	/* A file brings no components of its own. */
	if (!from->xml)
		leave_out(t);
	hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	hwloc_topology_set_type_filter(t, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_NONE);
	errno = 0;
	if ((from->xml && hwloc_topology_set_xml(t, from->xml) < 0) || hwloc_topology_load(t) < 0) {
		int rc = errno ? -errno : -EINVAL;

		hwloc_topology_destroy(t);
		return err_set(e, rc, "read the topology of %s", what);
	}
	*ret = t;
	return 0;
}

static void set_of_bitmap(struct idrange *r, hwloc_const_bitmap_t b)
{
	int weight = b ? hwloc_bitmap_weight(b) : 0;

	/* Infinite: hwloc means "all there may ever be". */
	if (weight <= 0)
		return;
	for (int i = hwloc_bitmap_first(b); i >= 0; i = hwloc_bitmap_next(b, i))
		idrange_add(r, (uint32_t)i);
}

static uint32_t number_of(hwloc_topology_t t, hwloc_obj_t o, hwloc_obj_type_t type)
{
	hwloc_obj_t up = o->type == type ? o : hwloc_get_ancestor_obj_by_type(t, type, o);

	if (!up)
		return TOPO_UNKNOWN;
	return up->os_index == HWLOC_UNKNOWN_INDEX ? up->logical_index : up->os_index;
}

/* Packages are counted by hwloc, so that two of one number, as broken firmware has them, stay two. */
static uint32_t logical_of(hwloc_topology_t t, hwloc_obj_t o, hwloc_obj_type_t type)
{
	hwloc_obj_t up = hwloc_get_ancestor_obj_by_type(t, type, o);

	return up ? up->logical_index : TOPO_UNKNOWN;
}

static void add_nodes(struct topo *r, hwloc_topology_t t)
{
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o));) {
		struct topo_node *n = vec_add(&r->nodes);

		n->id = o->os_index;
		n->package = number_of(t, o, HWLOC_OBJ_PACKAGE);
		n->memory_bytes = o->attr->numanode.local_memory;
		if (o->subtype)
			n->kind = mem_strdup(o->subtype);
		set_of_bitmap(&n->near, o->cpuset);
	}
}

static int by_node_id(const void *a, const void *b)
{
	const struct topo_node *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_cpu_id(const void *a, const void *b)
{
	const struct topo_cpu *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_address(const void *a, const void *b)
{
	const struct topo_pci *x = a, *y = b;

	return strcmp(x->address, y->address);
}

static void add_cpus(struct topo *r, hwloc_topology_t t)
{
	hwloc_const_cpuset_t all = hwloc_topology_get_complete_cpuset(t);

	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, o));) {
		struct topo_cpu *c = vec_add(&r->cpus);

		*c = (struct topo_cpu){.id = o->os_index, .online = true, .node = TOPO_UNKNOWN,
				       .package = logical_of(t, o, HWLOC_OBJ_PACKAGE),
				       .die = logical_of(t, o, HWLOC_OBJ_DIE),
				       .core = number_of(t, o, HWLOC_OBJ_CORE),
				       .kind = TOPO_UNKNOWN, .llc = TOPO_UNKNOWN};
	}
	if (all && hwloc_bitmap_weight(all) > 0)
		for (int i = hwloc_bitmap_first(all); i >= 0; i = hwloc_bitmap_next(all, i)) {
			if (hwloc_get_pu_obj_by_os_index(t, (unsigned)i))
				continue;
			vec_push(&r->cpus, ((struct topo_cpu){.id = (uint32_t)i, .node = TOPO_UNKNOWN,
							      .package = TOPO_UNKNOWN, .die = TOPO_UNKNOWN,
							      .core = TOPO_UNKNOWN, .kind = TOPO_UNKNOWN,
							      .llc = TOPO_UNKNOWN}));
		}
	if (r->cpus.n)
		qsort(r->cpus.v, r->cpus.n, sizeof(*r->cpus.v), by_cpu_id);
}

static struct topo_cpu *cpu_of(const struct topo *r, uint32_t id)
{
	struct topo_cpu key = {.id = id};

	return r->cpus.n ? bsearch(&key, r->cpus.v, r->cpus.n, sizeof(key), by_cpu_id) : NULL;
}

/*
 * hwloc hangs memory where it is nearest: several nodes below one package each cover all of its CPUs.
 * A CPU belongs to the node with the fewest CPUs around it, DRAM before other memory, the first of
 * equals: with the kernel that is the node it has in /sys.
 */
static bool is_closer(const struct topo_node *a, const struct topo_node *b)
{
	size_t na = idrange_count(&a->near), nb = idrange_count(&b->near);
	bool dram_a = !a->kind || !strcmp(a->kind, "DRAM"), dram_b = !b->kind || !strcmp(b->kind, "DRAM");

	if (na != nb)
		return na < nb;
	if (dram_a != dram_b)
		return dram_a;
	return a->id < b->id;
}

static void give_cpus_to_nodes(struct topo *r)
{
	vec_for(&r->cpus, c) {
		struct topo_node *best = NULL;

		if (!c->online)
			continue;
		vec_for(&r->nodes, n)
			if (idrange_has(&n->near, c->id) && (!best || is_closer(n, best)))
				best = n;
		if (!best)
			continue;
		c->node = best->id;
		idrange_add(&best->cpus, c->id);
	}
}

static void add_cache(struct topo *r, hwloc_obj_t o)
{
	struct topo_cache *k = vec_add(&r->caches);
	uint32_t index = (uint32_t)r->caches.n - 1;

	k->level = o->attr->cache.depth;
	k->bytes = o->attr->cache.size;
	set_of_bitmap(&k->cpus, o->cpuset);
	for (int64_t id = -1; (id = idrange_next(&k->cpus, id + 1)) >= 0;) {
		struct topo_cpu *c = cpu_of(r, (uint32_t)id);

		if (c && (c->llc == TOPO_UNKNOWN || r->caches.v[c->llc].level < k->level))
			c->llc = index;
	}
}

static void add_caches(struct topo *r, hwloc_topology_t t)
{
	static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
						 HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, types[i], o));)
			add_cache(r, o);
}

static void add_kinds(struct topo *r, hwloc_topology_t t)
{
	int n = hwloc_cpukinds_get_nr(t, 0);
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	for (int i = 0; n > 1 && set && i < n; i++) {
		int efficiency = -1;

		if (hwloc_cpukinds_get_info(t, (unsigned)i, set, &efficiency, NULL, NULL, 0) < 0)
			continue;
		for (int id = hwloc_bitmap_first(set); id >= 0; id = hwloc_bitmap_next(set, id)) {
			struct topo_cpu *c = cpu_of(r, (uint32_t)id);

			if (c && c->online)
				c->kind = (uint32_t)(efficiency >= 0 ? efficiency : i);
		}
	}
	hwloc_bitmap_free(set);
}

static size_t node_index(const struct topo *r, uint32_t id)
{
	const struct topo_node *n = topo_node(r, id);

	return n ? (size_t)(n - r->nodes.v) : SIZE_MAX;
}

static void add_distances(struct topo *r, hwloc_topology_t t)
{
	struct hwloc_distances_s *d;
	unsigned n = 1;

	if (hwloc_distances_get_by_name(t, "NUMALatency", &n, &d, 0) < 0 || !n)
		return;
	r->distances = mem_alloc(r->nodes.n * r->nodes.n * sizeof(*r->distances));
	for (unsigned i = 0; i < d->nbobjs; i++)
		for (unsigned j = 0; j < d->nbobjs; j++) {
			size_t a = node_index(r, d->objs[i]->os_index), b = node_index(r, d->objs[j]->os_index);

			if (a != SIZE_MAX && b != SIZE_MAX)
				r->distances[a * r->nodes.n + b] = d->values[i * d->nbobjs + j];
		}
	hwloc_distances_release(t, d);
}

/* https://pci-ids.ucw.cz: base classes, and the subclasses that are something else. */
static const char *class_name(uint16_t class_id)
{
	static const struct {
		uint16_t id, mask;
		const char *name;
	} names[] = {
		{0x0108, 0xffff, "nvme"},	 {0x0b40, 0xffff, "co-processor"}, {0x0c06, 0xffff, "infiniband"},
		{0x0207, 0xffff, "infiniband"},	 {0x0302, 0xffff, "3d"},	   {0x0502, 0xffff, "cxl"},
		{0x0100, 0xff00, "storage"},	 {0x0200, 0xff00, "network"},	   {0x0300, 0xff00, "display"},
		{0x0500, 0xff00, "memory"},	 {0x0b00, 0xff00, "processor"},	   {0x1200, 0xff00, "accelerator"},
		{0x0c00, 0xff00, "serial-bus"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((class_id & names[i].mask) == names[i].id)
			return names[i].name;
	return "other";
}

static char *info_of(hwloc_obj_t o, const char *name)
{
	const char *text = hwloc_obj_get_info_by_name(o, name);

	return text && *text ? mem_strdup(text) : NULL;
}

static void set_locality(struct topo *r, hwloc_topology_t t, hwloc_obj_t o, struct topo_pci *p)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(t, o);

	if (!near || !near->cpuset)
		return;
	set_of_bitmap(&p->cpus, near->cpuset);
	/* Below the root: the firmware told nothing, or the machine has but one node. */
	if (near->parent)
		set_of_bitmap(&p->nodes, near->nodeset);
	else if (r->nodes.n == 1)
		idrange_add(&p->nodes, r->nodes.v[0].id);
}

static void add_pci(struct topo *r, hwloc_topology_t t)
{
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(t, o));) {
		const struct hwloc_pcidev_attr_s *a = &o->attr->pcidev;
		struct topo_pci *p = vec_add(&r->pci);

		snprintf(p->address, sizeof(p->address), "%04x:%02x:%02x.%01x", a->domain, a->bus, a->dev,
			 a->func & 15u);
		p->class_id = a->class_id;
		p->vendor = a->vendor_id;
		p->device = a->device_id;
		p->class_name = class_name(a->class_id);
		p->vendor_name = info_of(o, "PCIVendor");
		p->model = info_of(o, "PCIDevice");
		/* hwloc counts in GB/s. */
		p->link_bytes_s = a->linkspeed > 0 ? (double)a->linkspeed * 1e9 : 0;
		set_locality(r, t, o, p);
		for (hwloc_obj_t d = o->io_first_child; d; d = d->next_sibling)
			if (d->type == HWLOC_OBJ_OS_DEVICE && d->name)
				vec_push(&p->os_devices, mem_strdup(d->name));
	}
	if (r->pci.n)
		qsort(r->pci.v, r->pci.n, sizeof(*r->pci.v), by_address);
}

/* hwloc goes by local_cpus, which some firmware leaves at "all" where numa_node tells the node. */
static void refine_locality(struct topo *r, const struct topo_source *from)
{
	struct strbuf text = {0};
	struct sysroot root;
	struct err e;

	if (from->xml || sysroot_open(from->fsroot ?: "/", &root, &e) < 0)
		return;
	vec_for(&r->pci, p) {
		const struct topo_node *n;
		long id = -1;

		strbuf_clear(&text);
		if (!idrange_count(&p->nodes) &&
		    sysroot_read(&root, &text, "/sys/bus/pci/devices/%s/numa_node", p->address) > 0)
			id = strtol(text.s, NULL, 10);
		n = id >= 0 ? topo_node(r, (uint32_t)id) : NULL;
		if (!n)
			continue;
		idrange_add(&p->nodes, n->id);
		idrange_done(&p->cpus);
		for (int64_t c = -1; (c = idrange_next(&n->near, c + 1)) >= 0;)
			idrange_add(&p->cpus, (uint32_t)c);
	}
	strbuf_done(&text);
	sysroot_close(&root);
}

static uint32_t count(hwloc_topology_t t, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_by_type(t, type);

	return n > 0 ? (uint32_t)n : 0;
}

int topo_load(struct topo *ret, const struct topo_source *from, struct err *e)
{
	char *saved[NVARIABLES];
	hwloc_topology_t t = NULL;
	int rc;

	memset(ret, 0, sizeof(*ret));
	environment_set(saved, from->fsroot);
	rc = load(&t, from, e);
	environment_restore(saved);
	if (rc < 0)
		return rc;
	add_nodes(ret, t);
	if (ret->nodes.n)
		qsort(ret->nodes.v, ret->nodes.n, sizeof(*ret->nodes.v), by_node_id);
	add_cpus(ret, t);
	give_cpus_to_nodes(ret);
	add_caches(ret, t);
	add_kinds(ret, t);
	add_distances(ret, t);
	add_pci(ret, t);
	refine_locality(ret, from);
	ret->packages = count(t, HWLOC_OBJ_PACKAGE);
	ret->dies = count(t, HWLOC_OBJ_DIE);
	ret->cores = count(t, HWLOC_OBJ_CORE);
	hwloc_topology_destroy(t);
	return 0;
}

void topo_done(struct topo *t)
{
	vec_for(&t->nodes, n) {
		idrange_done(&n->cpus);
		idrange_done(&n->near);
		free(n->kind);
	}
	vec_for(&t->caches, k)
		idrange_done(&k->cpus);
	vec_for(&t->pci, p) {
		idrange_done(&p->cpus);
		idrange_done(&p->nodes);
		vec_for(&p->os_devices, name)
			free(*name);
		vec_done(&p->os_devices);
		free(p->vendor_name);
		free(p->model);
	}
	vec_done(&t->nodes);
	vec_done(&t->cpus);
	vec_done(&t->caches);
	vec_done(&t->pci);
	free(t->distances);
	memset(t, 0, sizeof(*t));
}

const struct topo_node *topo_node(const struct topo *t, uint32_t id)
{
	struct topo_node key = {.id = id};

	return t->nodes.n ? bsearch(&key, t->nodes.v, t->nodes.n, sizeof(key), by_node_id) : NULL;
}

uint32_t topo_cpu_node(const struct topo *t, uint32_t cpu)
{
	const struct topo_cpu *c = cpu_of(t, cpu);

	return c ? c->node : TOPO_UNKNOWN;
}

void topo_nodes_of_cpus(const struct topo *t, const struct idrange *cpus, struct idrange *ret)
{
	for (int64_t id = -1; (id = idrange_next(cpus, id + 1)) >= 0;) {
		uint32_t node = topo_cpu_node(t, (uint32_t)id);

		if (node != TOPO_UNKNOWN)
			idrange_add(ret, node);
	}
}
