/* Shared memory: which objects several processes map, or can, and how each of them maps it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "collect.h"
#include "proc_maps.h"
#include "proc_probe.h"
#include "shm_kind.h"
#include "shm_look.h"
#include "utf8.h"

/*
 * Looks may cost one part in COST_SHARE of the time, and COST_FREE at once: a command that runs for some
 * seconds is looked at each second, also one of 16 processes with 500 mappings each, which take 5 ms
 * a look. That is a tenth of what loading the probes costs. The pause is well below a second, so that a
 * tick is not passed over that comes soon after a first sample, which takes its time.
 */
#define COST_SHARE  1000
#define COST_FREE   50000000ull
#define PAUSE_LEAST 500000000ull
#define PAUSE_MOST  60000000000ull

/* Of one look; and objects of one recording. */
#define OBJECTS_MOST 65536
#define USES_MOST    262144
#define RANGES_MOST  262144
#define NAMES_MOST   4096 /* half of them for objects that one process maps */

/* Page tables are walked for so long at one look, in steps that lock a memory map for some ms. */
#define WALK_NS	   50000000ull
#define WALK_BYTES (1ull << 30)

#define NOTHING	   UINT32_MAX
#define DEVICE_KEY (0xffffffffull << 32)
#define TEXT_BYTES 4352

/* What is kept of an object for the whole recording: its name, which is part of its identity. */
struct shm_name {
	enum shm_kind kind;
	uint32_t dev; /* as /proc shows it, with the number */
	uint64_t ino;
	char *name, *path, *fs_type, *source; /* all but the first: NULL when not known */
};

struct shm_object {
	struct proc_map m; /* one of its mappings */
	uint64_t key;	   /* with the inode number: identity */
	uint32_t uses, nuses;
	bool selected, written;
};

/* One process and one object. */
struct shm_use {
	uint32_t object, proc, next;
	uint32_t ranges;
	uint64_t bytes;
	uint8_t access;
	bool not_all; /* of its ranges are kept */
};

struct shm_range {
	uint64_t start, end;
	uint32_t next;
};

struct shm {
	struct shm_mounts mounts;
	struct idmap name_ids;
	VEC(struct shm_name) names;
	struct idmap object_ids, use_ids; /* from here on: of one look */
	VEC(struct shm_object) objects;
	VEC(struct shm_use) uses;
	VEC(struct shm_range) ranges;
	uint64_t walk_until_ns; /* as spent_ns() */
	struct shm_look look;
	uint64_t start_ns, last_ns; /* CLOCK_MONOTONIC of the first and the last look */
	uint64_t looks, cost_ns, last_cost_ns;
	uint64_t not_listed; /* objects and mappers beyond the limits above, once a look */
	uint64_t unreadable, failed;
	uint64_t page_bytes;
	bool by_proc;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* CPU time of this thread and of those that look for it. */
static uint64_t spent_ns(const struct shm *s)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID) + s->look.cpu_ns;
}

struct shm *shm_new(void)
{
	struct shm *s = mem_alloc(sizeof(*s));

	shm_mounts_find(&s->mounts);
	s->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	shm_look_init(&s->look, NULL);
	return s;
}

void shm_free(struct shm *s)
{
	if (!s)
		return;
	shm_look_done(&s->look);
	vec_for(&s->names, n) {
		free(n->name);
		free(n->path);
		free(n->fs_type);
		free(n->source);
	}
	vec_done(&s->names);
	idmap_done(&s->name_ids);
	idmap_done(&s->object_ids);
	idmap_done(&s->use_ids);
	vec_done(&s->objects);
	vec_done(&s->uses);
	vec_done(&s->ranges);
	free(s);
}

/*
 * Inode numbers are of a device; ids of System V segments of an IPC namespace, and may be equal to
 * inode numbers of the same device. Device files are one device whatever their inode.
 */
static uint64_t object_key(const struct shm *s, const struct proc_map *m, uint64_t *ret_ino)
{
	*ret_ino = m->ino;
	if (S_ISCHR(m->mode) || S_ISBLK(m->mode)) {
		*ret_ino = 0;
		return DEVICE_KEY | m->rdev;
	}
	return (shm_is_internal(&s->mounts, m->dev) ? (uint64_t)m->ipcns << 32 : 0) | m->dev;
}

static struct shm_object *object_of(struct shm *s, const struct proc_map *m, uint32_t *ret_i)
{
	uint64_t ino, key = object_key(s, m, &ino);
	uint32_t i = idmap_get(&s->object_ids, key, ino);
	struct shm_object *o;

	if (i == IDMAP_NONE) {
		if (s->objects.n >= OBJECTS_MOST) {
			s->not_listed++;
			return NULL;
		}
		o = vec_add(&s->objects);
		o->key = key;
		o->uses = NOTHING;
		i = (uint32_t)s->objects.n - 1;
		idmap_put(&s->object_ids, key, ino, i);
	}
	o = &s->objects.v[i];
	/* The one read last: a process that was read first may have ended since. */
	o->m = *m;
	*ret_i = i;
	return o;
}

static struct shm_use *use_of(struct shm *s, struct shm_object *o, uint32_t object, uint32_t proc)
{
	uint32_t i = idmap_get(&s->use_ids, object, proc);
	struct shm_use *u;

	if (i != IDMAP_NONE)
		return &s->uses.v[i];
	if (s->uses.n >= USES_MOST) {
		s->not_listed++;
		return NULL;
	}
	u = vec_add(&s->uses);
	u->object = object;
	u->proc = proc;
	u->ranges = NOTHING;
	u->next = o->uses;
	o->uses = (uint32_t)s->uses.n - 1;
	o->nuses++;
	idmap_put(&s->use_ids, object, proc, o->uses);
	return u;
}

static int on_map(void *ctx, const struct proc_map *m)
{
	struct collect *c = ctx;
	struct shm *s = c->shm;
	uint32_t i, proc;
	struct shm_object *o = object_of(s, m, &i);
	struct shm_use *u;
	struct shm_range *r;

	if (!o)
		return 0;
	proc = procs_get(&c->procs, m->tgid, m->leader_start_ns);
	o->selected |= c->procs.v.v[proc].selected;
	o->written |= m->access & PROC_MAP_WRITE;
	u = use_of(s, o, i, proc);
	if (!u)
		return 0;
	u->bytes += m->end - m->start;
	u->access |= m->access;
	u->not_all |= s->ranges.n >= RANGES_MOST;
	if (u->not_all)
		return 0;
	r = vec_add(&s->ranges);
	r->start = m->start;
	r->end = m->end;
	r->next = u->ranges;
	u->ranges = (uint32_t)s->ranges.n - 1;
	return 0;
}

/* Devices share such memory without that any process maps it: who has it open counts. */
static int on_dmabuf(void *ctx, const struct proc_file *f)
{
	struct collect *c = ctx;
	struct shm *s = c->shm;
	uint32_t i = idmap_get(&s->object_ids, f->dev, f->ino), proc;
	struct shm_use *u;

	if (i == IDMAP_NONE) {
		struct proc_map m = {.tgid = f->tgid, .dev = f->dev, .ino = f->ino, .magic = SHM_MAGIC_DMABUF,
				     .size_bytes = f->size_bytes, .cached_pages = MAP_UNKNOWN};

		if (!object_of(s, &m, &i))
			return 0;
	}
	proc = procs_get(&c->procs, f->tgid, f->leader_start_ns);
	s->objects.v[i].selected |= c->procs.v.v[proc].selected;
	s->objects.v[i].written |= f->access & PROC_MAP_WRITE;
	u = use_of(s, &s->objects.v[i], i, proc);
	/* A mapping tells more than what the descriptor would allow. */
	if (u && !u->bytes)
		u->access |= f->access & (PROC_MAP_READ | PROC_MAP_WRITE);
	return 0;
}

static int look_by_iter(struct collect *c, struct err *e)
{
	int rc = shm_look_all(&c->shm->look, on_map, c, e);

	if (rc)
		return rc;
	rc = proc_probe_files(c->proc_probe, PROC_FILES_DMABUFS, on_dmabuf, c, e);
	return rc == -ENOTSUP ? 0 : rc;
}

static void look_by_proc(struct collect *c)
{
	struct shm *s = c->shm;
	size_t n = c->procs.v.n;

	s->by_proc = true;
	for (size_t i = 0; i < n; i++) {
		uint32_t pid = c->procs.v.v[i].pid;
		int rc;

		if (!pid || c->procs.v.v[i].end_ns || c->procs.v.v[i].kthread)
			continue;
		rc = shm_look_process(&s->look, pid, c->procs.v.v[i].start_ns, on_map, c);
		s->unreadable += rc < 0 && rc != -ENOENT && rc != -ESRCH && rc != -ETIMEDOUT;
	}
}

/* Names from the host may hold any bytes; texts are UTF-8. */
static char *text_of(const char *s, size_t n)
{
	char *copy = mem_alloc(n + 1);

	memcpy(copy, s, n);
	for (size_t i = 0; i < n;) {
		int len = utf8_seq((const unsigned char *)copy + i, n - i);

		if (len > 0) {
			i += (size_t)len;
			continue;
		}
		copy[i++] = '?';
	}
	return copy;
}

static char *text_or_null(const char *s)
{
	return *s ? text_of(s, strlen(s)) : NULL;
}

static char *object_name(enum shm_kind kind, const struct proc_map *m, bool internal,
			 const char *path)
{
	char made[48];
	const char *below = path;

	snprintf(made, sizeof(made), "%s:%llu", shm_kind_name(kind), (unsigned long long)m->ino);
	switch (kind) {
	case SHM_POSIX:
		for (const char *p = path; p && (p = strstr(p, "/dev/shm/"));)
			below = p += strlen("/dev/shm/");
		break;
	case SHM_MEMFD:
		below = path && *path == '/' ? path + 1 : path;
		break;
	case SHM_SYSV:
		below = NULL;
		break;
	case SHM_ANONYMOUS:
	case SHM_DMABUF:
	case SHM_OTHER:
		return mem_strdup(made);
	case SHM_HUGETLB:
		if (internal)
			return mem_strdup(made);
		break;
	default:
		break;
	}
	if (below)
		return text_of(below, strlen(below));
	return m->name_bytes ? text_of(m->name, m->name_bytes) : mem_strdup(made);
}

/* Once an object: hard links, renaming and removal change the path, and the identity must not. */
static const struct shm_name *name_make(struct shm *s, const struct shm_object *o,
					enum shm_kind kind, const char *path)
{
	uint64_t ino, key = object_key(s, &o->m, &ino);
	bool internal = shm_is_internal(&s->mounts, o->m.dev);
	char fs_type[128], source[128];
	struct shm_name *n;

	if (s->names.n >= (o->nuses >= 2 ? NAMES_MOST : NAMES_MOST / 2)) {
		s->not_listed++;
		return NULL;
	}
	n = vec_add(&s->names);
	n->kind = kind;
	n->dev = o->m.dev;
	n->ino = o->m.ino;
	if (kind == SHM_FILE)
		proc_maps_shown(&o->m, &n->dev, &n->ino);
	n->name = object_name(kind, &o->m, internal, path);
	if (path && !internal)
		n->path = text_of(path, strlen(path));
	if (internal) {
		n->fs_type = mem_strdup(o->m.dev == s->mounts.shmem ? "tmpfs" : "hugetlbfs");
	} else if (kind != SHM_DEVICE) {
		shm_find_mount(o->m.tgid, o->m.dev, fs_type, source, sizeof(fs_type));
		n->fs_type = text_or_null(fs_type);
		n->source = text_or_null(source);
	}
	idmap_put(&s->name_ids, key, ino, (uint32_t)s->names.n - 1);
	return n;
}

/* NULL: not one to be listed. */
static const struct shm_name *name_of(struct shm *s, const struct shm_object *o)
{
	uint64_t ino, key = object_key(s, &o->m, &ino);
	uint32_t i = idmap_get(&s->name_ids, key, ino);
	enum shm_kind kind = shm_kind_of(&s->mounts, &o->m, NULL);
	char path[TEXT_BYTES];
	const char *known = NULL;

	if (i != IDMAP_NONE)
		return &s->names.v[i];
	/* Most are files that one process maps: what they are called does not matter. */
	if (o->nuses < 2 && (kind == SHM_FILE || kind == SHM_DEVICE))
		return NULL;
	if (shm_look_path(&s->look, &o->m, shm_is_internal(&s->mounts, o->m.dev), path, sizeof(path)) > 0)
		known = path;
	kind = shm_kind_of(&s->mounts, &o->m, known);
	if (kind == SHM_NONE || (o->nuses < 2 && !shm_kind_is_shareable(kind)))
		return NULL;
	return name_make(s, o, kind, known);
}

static bool is_huge(const struct shm *s, const struct shm_object *o, enum shm_kind kind)
{
	uint32_t dev = o->m.dev;

	return kind == SHM_HUGETLB || (shm_is_internal(&s->mounts, dev) && dev != s->mounts.shmem);
}

static bool resident_bytes(const struct shm *s, const struct shm_object *o, enum shm_kind kind,
			   uint64_t *ret)
{
	const struct proc_map *m = &o->m;

	if (kind == SHM_DEVICE || kind == SHM_DMABUF || kind == SHM_OTHER)
		return false;
	/* Kernels before v6.7 count a huge page as one page of the cache, later ones as many. */
	if (m->cached_pages != MAP_UNKNOWN && !is_huge(s, o, kind)) {
		*ret = m->cached_pages * s->page_bytes;
		return true;
	}
	*ret = m->blocks * 512;
	return m->blocks != MAP_UNKNOWN && kind != SHM_FILE;
}

static void set_facts(struct shm *s, struct graph *g, struct node *n, const struct shm_object *o,
		      const struct shm_name *name)
{
	bool limited = name->path && (name->kind == SHM_POSIX || name->kind == SHM_TMPFS ||
				      name->kind == SHM_HUGETLB);
	bool has_name = !shm_is_internal(&s->mounts, o->m.dev) && name->kind != SHM_DEVICE &&
			name->kind != SHM_DMABUF && name->kind != SHM_OTHER;
	uint64_t resident, room, used;
	unsigned key;

	SET(shared_memory, n, kind, graph_str(g, shm_kind_name(name->kind)));
	if (name->kind != SHM_DEVICE && name->kind != SHM_OTHER && o->m.size_bytes <= INT64_MAX)
		SET(shared_memory, n, shm_size, o->m.size_bytes);
	if (resident_bytes(s, o, name->kind, &resident))
		SET(shared_memory, n, resident_bytes, resident);
	if (name->path)
		SET(shared_memory, n, path, graph_str(g, name->path));
	if (name->fs_type)
		SET(shared_memory, n, fs_type, graph_str(g, name->fs_type));
	if (name->source)
		SET(shared_memory, n, source, graph_str(g, name->source));
	if (limited && !proc_maps_space(&o->m, &room, &used) && room) {
		SET(shared_memory, n, fs_bytes, room);
		SET(shared_memory, n, fs_used_bytes, used);
	}
	if (has_name && o->m.size_bytes != MAP_UNKNOWN)
		SET(shared_memory, n, unlinked, !o->m.links);
	if (name->kind == SHM_SYSV && sscanf(name->name, "SYSV%8x", &key) == 1)
		SET(shared_memory, n, ipc_key, (int32_t)key);
}

static uint32_t object_node(struct shm *s, struct graph *g, const struct shm_object *o,
			    const struct shm_name *name)
{
	bool device = name->kind == SHM_DEVICE && (S_ISCHR(o->m.mode) || S_ISBLK(o->m.mode));
	uint32_t dev = device ? o->m.rdev : name->dev;
	struct node *n = graph_new_node(g, &shared_memory_type);
	char text[24];

	snprintf(text, sizeof(text), "%u:%u", dev >> 20, dev & 0xfffff);
	SET(shared_memory, n, shm_name, graph_str(g, name->name));
	/* A recording holds 63 bits. */
	SET(shared_memory, n, inode, device ? 0 : name->ino & INT64_MAX);
	SET(shared_memory, n, dev, graph_str(g, text));
	if (name->kind == SHM_SYSV && o->m.ipcns)
		SET(shared_memory, n, ipcns, o->m.ipcns);
	set_facts(s, g, n, o, name);
	return graph_add_node(g, n)->index;
}

static bool range_resident(struct shm *s, const struct shm_range *r, uint32_t pid,
			   uint64_t *sum)
{
	uint64_t bytes;

	for (uint64_t at = r->start, end; at < r->end; at = end) {
		end = r->end - at > WALK_BYTES ? at + WALK_BYTES : r->end;
		if (spent_ns(s) > s->walk_until_ns ||
		    shm_look_resident(&s->look, pid, at, end, &bytes))
			return false;
		*sum += bytes;
	}
	return true;
}

/* @return false: not measured, for want of rights or because it would take too long */
static bool use_resident(struct shm *s, const struct shm_use *u, uint32_t pid,
			 uint64_t *ret_bytes)
{
	uint64_t sum = 0;

	for (uint32_t r = u->ranges; r != NOTHING; r = s->ranges.v[r].next)
		if (!range_resident(s, &s->ranges.v[r], pid, &sum))
			return false;
	*ret_bytes = sum;
	return !u->not_all;
}

static void emit_use(struct collect *c, struct graph *g, const struct shm_use *u, uint32_t node,
		     bool measure)
{
	static const char *const modes[] = {"none", "r", "w", "rw"};
	uint32_t process = procs_node(&c->procs, g, u->proc);
	struct edge *d = graph_new_edge(g, &access_type, process, node);
	uint64_t resident;

	if (u->bytes)
		SET(access, d, memory_bytes, u->bytes);
	SET(access, d, mode, graph_str(g, modes[u->access & 3]));
	if (measure && use_resident(c->shm, u, c->procs.v.v[u->proc].pid, &resident))
		SET(access, d, resident_bytes, resident);
	graph_add_edge(g, d);
}

static void emit_object(struct collect *c, struct graph *g, const struct shm_object *o)
{
	struct shm *s = c->shm;
	const struct shm_name *name = name_of(s, o);
	uint32_t node;
	bool measure;

	if (!name)
		return;
	/* Devices' memory is not counted in pages. */
	measure = o->nuses >= 2 && name->kind != SHM_DEVICE && name->kind != SHM_DMABUF;
	node = object_node(s, g, o, name);
	for (uint32_t u = o->uses; u != NOTHING; u = s->uses.v[u].next)
		/* What nobody writes says nothing of processes that were not asked for. */
		if (o->written || c->procs.v.v[s->uses.v[u].proc].selected)
			emit_use(c, g, &s->uses.v[u], node, measure);
}

static void look(struct collect *c, struct graph *g)
{
	struct shm *s = c->shm;
	struct err e;
	int rc;

	s->look.probe = c->proc_probe;
	idmap_clear(&s->object_ids);
	idmap_clear(&s->use_ids);
	vec_clear(&s->objects);
	vec_clear(&s->uses);
	vec_clear(&s->ranges);
	s->by_proc = false;
	rc = look_by_iter(c, &e);
	if (rc == -ENOTSUP)
		look_by_proc(c);
	else
		/* What was read until then is true; the next look may do better. */
		s->failed += rc < 0 && rc != -ETIMEDOUT;
	s->walk_until_ns = spent_ns(s) + WALK_NS;
	/* Those that are shared indeed come first, while there is room. */
	for (int shared = 1; shared >= 0; shared--)
		vec_for(&s->objects, o)
			if (o->selected && (o->nuses >= 2) == shared)
				emit_object(c, g, o);
}

static bool is_time(const struct shm *s, uint64_t now)
{
	uint64_t since = now - s->last_ns;

	if (!s->looks || since >= PAUSE_MOST)
		return true;
	return since >= PAUSE_LEAST &&
	       s->cost_ns + s->last_cost_ns <= COST_FREE + (now - s->start_ns) / COST_SHARE;
}

void collect_shm(struct collect *c, struct graph *g, bool last)
{
	struct shm *s = c->shm;
	uint64_t start = spent_ns(s), now = now_ns(CLOCK_MONOTONIC), cost;

	if (!last && !is_time(s, now))
		return;
	look(c, g);
	cost = spent_ns(s) - start;
	if (!s->looks++)
		s->start_ns = now;
	s->last_ns = now;
	s->last_cost_ns = cost;
	s->cost_ns += cost;
}

void collect_shm_describe(const struct collect *c, struct graph *g)
{
	const struct shm *s = c->shm;

	graph_add_status(g, "collector shm", s->by_proc ? "reduced" : "ok", s->by_proc ? "/proc" : "iter",
			 s->by_proc ? "no iterator over mappings: a look takes longer, and it is not known "
				      "what part of files is resident, nor who has a dma-buf open "
				      "without mapping it"
				    : NULL);
	graph_add_status(g, "collector shm", "blind", NULL,
			 "memory that is mapped and unmapped between two looks is not seen; looks are "
			 "1 s to 60 s apart, so that they cost a thousandth of the time");
	graph_add_loss(g, "collector shm", "not_listed", s->not_listed);
	graph_add_loss(g, "collector shm", "failed_looks", s->failed);
	graph_add_loss(g, "collector shm", "unreadable", s->unreadable);
	graph_add_loss(g, "collector shm", "memory_map_locked", s->look.stuck);
	graph_add_cost(g, "collector shm looks", "runs", (double)s->looks);
	graph_add_cost(g, "collector shm time", "ns", (double)s->cost_ns);
}
