/* Containers and pods: which process is in which, what they are called, and what limits them. */
#include "collect_container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include "cgroup_path.h"
#include "cgroup_stats.h"
#include "clock.h"
#include "container_names.h"
#include "strtab.h"
#include "sysroot.h"

/* A container's name and its /dev change rarely; who has no name at first gets one soon. */
#define FACTS_EVERY_NS (10 * NS_PER_SEC)

struct box {
	const char *cgroup; /* of the table of paths */
	struct cgroup_name name;
	struct container_facts facts;
	struct cgroup_stats last;
	uint64_t facts_ns;
	bool is_container, has_last;
	bool is_plain;	    /* of no runtime: it counts when it or a group above it has a limit */
	uint32_t limited;   /* the box of that one; IDMAP_NONE: none has */
	uint64_t looked_ns; /* when that was found out */
};

struct containers {
	struct sysroot root;
	struct arena arena;
	struct strtab paths;
	VEC(struct box) boxes; /* one for each path seen; the last one is looked at first */
	struct idmap by_path;  /* of the string's address */
	bool host_has_rdma;
};

struct containers *containers_new(void)
{
	struct containers *c = mem_alloc(sizeof(*c));
	struct err e;

	if (sysroot_open("/", &c->root, &e) < 0)
		c->root.fd = -1;
	arena_init(&c->arena);
	strtab_init(&c->paths, &c->arena);
	return c;
}

void containers_free(struct containers *c)
{
	if (!c)
		return;
	vec_done(&c->boxes);
	idmap_done(&c->by_path);
	strtab_done(&c->paths);
	arena_done(&c->arena);
	sysroot_close(&c->root);
	free(c);
}

static bool has_entries(const struct sysroot *root, const char *folder)
{
	DIR *d;
	struct dirent *de;
	bool any = false;

	if (sysroot_opendir(root, &d, "%s", folder) < 0)
		return false;
	while (!any && (de = readdir(d)))
		any = de->d_name[0] != '.';
	closedir(d);
	return any;
}

/* The container's own group, of which that of a process may be a part: up to where its id is named. */
static const char *own_group(struct containers *c, const char *path, const char *id)
{
	const char *at = NULL, *end;

	for (const char *s = path; (s = strstr(s, id)); s++)
		at = s;
	end = at ? strchrnul(at, '/') : path + strlen(path);
	return strtab_intern(&c->paths, path, (size_t)(end - path));
}

/* The box of a path; made when it is new. @return its number */
static uint32_t box_of(struct containers *c, const char *cgroup)
{
	const char *path = strtab_add(&c->paths, cgroup);
	uint32_t box = idmap_get(&c->by_path, (uintptr_t)path, 0);
	struct box b = {.cgroup = path};

	if (box != IDMAP_NONE)
		return box;
	b.is_container = cgroup_parse(path, &b.name);
	if (b.is_container) {
		b.cgroup = own_group(c, path, b.name.id);
		box = idmap_get(&c->by_path, (uintptr_t)b.cgroup, 0);
	} else if (container_by_state(&c->root, path, b.name.id, sizeof(b.name.id))) {
		b.is_container = true;
		b.name.runtime = "runc";
	}
	b.is_plain = !b.is_container;
	if (box == IDMAP_NONE) {
		vec_push(&c->boxes, b);
		box = (uint32_t)c->boxes.n - 1;
		idmap_put(&c->by_path, (uintptr_t)b.cgroup, 0, box);
	}
	idmap_put(&c->by_path, (uintptr_t)path, 0, box);
	return box;
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n > k && !strcmp(s + n - k, suffix);
}

/* A group of no runtime becomes a container when something limits it: a service, a slice, one made by hand. */
static void name_plain(struct box *b)
{
	const char *last = strrchr(b->cgroup, '/');

	b->is_container = true;
	b->name.runtime = ends_with(b->cgroup, ".service") || ends_with(b->cgroup, ".slice") ||
			  ends_with(b->cgroup, ".scope") ? "systemd" : "cgroup";
	snprintf(b->name.id, sizeof(b->name.id), "%s", b->cgroup + 1);
	snprintf(b->facts.name, sizeof(b->facts.name), "%s", last ? last + 1 : b->cgroup);
}

/* The box of the lowest group, from this one upwards, that has a limit. Limits may be set at any time. */
static uint32_t limited_box(struct containers *c, uint32_t box)
{
	uint64_t now = clock_mono_ns();
	const char *path = c->boxes.v[box].cgroup, *slash;
	size_t n = strlen(path);
	uint32_t found = IDMAP_NONE;

	if (c->boxes.v[box].looked_ns && now - c->boxes.v[box].looked_ns < FACTS_EVERY_NS)
		return c->boxes.v[box].limited;
	for (; n > 1 && found == IDMAP_NONE; n = slash ? (size_t)(slash - path) : 0) {
		const char *group = strtab_intern(&c->paths, path, n);

		if (cgroup_has_limit(&c->root, group)) {
			found = box_of(c, group);
			if (c->boxes.v[found].is_plain && !c->boxes.v[found].is_container)
				name_plain(&c->boxes.v[found]);
		}
		slash = memrchr(path, '/', n - 1);
	}
	c->boxes.v[box].limited = found;
	c->boxes.v[box].looked_ns = now;
	return found;
}

static uint32_t pod_node(struct graph *g, const struct box *b)
{
	const struct container_facts *f = &b->facts;
	const char *id = b->name.pod[0] ? b->name.pod : f->pod_id;
	struct node *n;

	if (!id[0])
		return NODE_NONE;
	n = graph_new_node(g, &pod_type);
	SET(pod, n, pod_id, graph_str(g, id));
	if (f->pod_name[0])
		SET(pod, n, name, graph_str(g, f->pod_name));
	if (f->pod_namespace[0])
		SET(pod, n, pod_namespace, graph_str(g, f->pod_namespace));
	if (b->name.qos)
		SET(pod, n, qos, graph_str(g, b->name.qos));
	return graph_add_node(g, n)->index;
}

static bool gained(uint64_t now, uint64_t last, bool has_last, uint64_t *ret)
{
	*ret = now - last;
	return has_last && now != CGROUP_UNKNOWN && last != CGROUP_UNKNOWN && now >= last;
}

static void set_stats(struct containers *c, struct graph *g, struct node *n, struct box *b)
{
	struct cgroup_stats s;
	uint64_t v;

	cgroup_stats_read(&c->root, b->cgroup, &s);
	if (s.cpu_limit_cores > 0)
		SET(container, n, cpu_limit_cores, s.cpu_limit_cores);
	if (s.cpuset[0])
		SET(container, n, cpuset, graph_str(g, s.cpuset));
	if (s.memory_limit_bytes != CGROUP_UNKNOWN)
		SET(container, n, memory_limit_bytes, s.memory_limit_bytes);
	if (s.memory_bytes != CGROUP_UNKNOWN)
		SET(container, n, memory_bytes, s.memory_bytes);
	if (s.page_cache_bytes != CGROUP_UNKNOWN)
		SET(container, n, page_cache_bytes, s.page_cache_bytes);
	if (s.dirty_bytes != CGROUP_UNKNOWN)
		SET(container, n, dirty_bytes, s.dirty_bytes);
	if (s.writeback_bytes != CGROUP_UNKNOWN)
		SET(container, n, writeback_bytes, s.writeback_bytes);
	if (gained(s.cpu_ns, b->last.cpu_ns, b->has_last, &v))
		SET(container, n, cpu_ns, v);
	if (gained(s.throttled_ns, b->last.throttled_ns, b->has_last, &v))
		SET(container, n, throttled_ns, v);
	if (gained(s.throttled_periods, b->last.throttled_periods, b->has_last, &v))
		SET(container, n, throttled_periods, v);
	if (gained(s.cpu_stalled_ns, b->last.cpu_stalled_ns, b->has_last, &v))
		SET(container, n, cpu_stalled_ns, v);
	if (gained(s.memory_stalled_ns, b->last.memory_stalled_ns, b->has_last, &v))
		SET(container, n, memory_stalled_ns, v);
	if (gained(s.io_stalled_ns, b->last.io_stalled_ns, b->has_last, &v))
		SET(container, n, io_stalled_ns, v);
	b->last = s;
	b->has_last = true;
}

/* What its processes find in /dev, through the root of one of them. */
static void set_dev(struct containers *c, struct node *n, const struct proc *x)
{
	char path[64];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%u/root/dev/shm", x->pid);
	/* A folder of the root file system has no size of its own. */
	if (!statfs(path, &fs) && fs.f_type == 0x01021994) {
		SET(container, n, shm_bytes, (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize);
		SET(container, n, shm_free_bytes, (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize);
	}
	if (c->host_has_rdma) {
		snprintf(path, sizeof(path), "/proc/%u/root/dev/infiniband", x->pid);
		SET(container, n, has_rdma, has_entries(&c->root, path));
	}
	if (x->has_namespaces)
		SET(container, n, pidns, x->pidns);
}

static uint32_t container_node(struct containers *c, struct graph *g, struct box *b, const struct proc *x)
{
	struct node *n = graph_new_node(g, &container_type);
	uint64_t now = clock_mono_ns();
	uint32_t pod;

	SET(container, n, container_id, graph_str(g, b->name.id));
	SET(container, n, container_type, graph_str(g, b->name.runtime));
	SET(container, n, cgroup, graph_str(g, b->cgroup));
	/* Its processes may be in several containers, so that /dev is no fact of it. */
	if (!b->is_plain && (!b->facts_ns || now - b->facts_ns >= FACTS_EVERY_NS)) {
		b->facts_ns = now;
		container_facts_read(&c->root, b->name.runtime, b->name.id, b->name.pod, &b->facts);
		set_dev(c, n, x);
	}
	if (b->facts.name[0])
		SET(container, n, container_name, graph_str(g, b->facts.name));
	else if (!strcmp(b->name.runtime, "lxc") || !strcmp(b->name.runtime, "runc") ||
		 !strcmp(b->name.runtime, "nspawn"))
		SET(container, n, container_name, graph_str(g, b->name.id));
	if (b->facts.image[0])
		SET(container, n, image, graph_str(g, b->facts.image));
	SET(container, n, sandbox, b->facts.sandbox);
	pod = pod_node(g, b);
	if (pod != NODE_NONE)
		SET(container, n, pod, pod);
	set_stats(c, g, n, b);
	return graph_add_node(g, n)->index;
}

void collect_containers(struct collect *c, struct graph *g)
{
	struct containers *s = c->containers;
	VEC(uint32_t) nodes = {0}; /* of each box in this interval */

	if (!c->ticks)
		s->host_has_rdma = has_entries(&s->root, "/sys/class/infiniband");
	for (uint32_t i = 0; i < c->procs.v.n; i++) {
		const struct proc *x = &c->procs.v.v[i];
		uint32_t box, process;

		if (!x->pid || x->end_ns || !x->selected || !x->cgroup)
			continue;
		box = box_of(s, x->cgroup);
		if (s->boxes.v[box].is_plain)
			box = limited_box(s, box);
		if (box == IDMAP_NONE)
			continue;
		while (nodes.n <= box)
			vec_push(&nodes, NODE_NONE);
		if (nodes.v[box] == NODE_NONE)
			nodes.v[box] = container_node(s, g, &s->boxes.v[box], x);
		process = procs_node(&c->procs, g, i);
		graph_link(g, &run_on_type, process, nodes.v[box]);
		graph_link(g, &host_of_type, nodes.v[box], process);
	}
	vec_done(&nodes);
}
