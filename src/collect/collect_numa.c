/* Placement: on which NUMA nodes processes have their memory, and where their threads may run. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "collect_machine.h"
#include "placement_worker.h"

/* Looking costs one part in COST_SHARE of the time, and at first as much as CREDIT_NS. */
#define COST_SHARE   200
#define CREDIT_NS    (500 * NS_PER_MS)
#define GUESS_NS     (2 * NS_PER_MS) /* of CPU time for one process, until it is known */
#define SOON_NS	     NS_PER_SEC /* until the next look at a process that was just seen first */
#define AGAIN_NS     (5 * NS_PER_SEC)
#define STUCK_NS     (500 * NS_PER_MS)
#define LAST_WAIT_NS (300 * NS_PER_MS)
#define LIMIT_NS     (100 * NS_PER_MS) /* for one process */
#define BACK_OFF_NS  (30 * NS_PER_SEC) /* from a process whose memory map was locked */

#define PAGES	    4096
#define PAGES_SMALL 1024
#define SMALL_BYTES (64ull << 20)

#define SEGMENTS_MOST 4096
#define SEGMENT_OLD_NS (30 * NS_PER_SEC) /* a newer look counts, though it saw fewer pages */

#define STATUS_MOST   256 /* files read at one tick */
#define THREAD_LEAST  NS_PER_MS
#define STATUS_AGAIN  (30 * NS_PER_SEC)

/* One process or thread that was looked at. */
struct known {
	uint32_t id;
	uint64_t start_ns;
	uint64_t first_ns, next_ns; /* CLOCK_MONOTONIC: first look, and not before the next one */
	char *set;	  /* nodes of the set that its relation goes to: part of the relation's identity */
	bool waiting;
};

struct known_list {
	struct idmap ids;
	VEC(struct known) v;
};

/* Where the pages of a shared segment lie, by the best look at it so far. */
struct segment {
	struct placement_segment s;
	uint64_t pages; /* that were looked at */
	uint64_t at_ns; /* since 1970 */
	bool changed;	/* since it was emitted */
	/* Which entity it is, once a look at shared memory found it: its keys, and how much there is. */
	char *name, *dev;
	uint64_t inode, ipcns, resident_bytes;
	bool has_ipcns;
};

struct placements {
	VEC(struct segment) segments; /* SEGMENTS_MOST */
	struct idmap segment_ids;     /* by inode and device */
	struct placement_worker *worker;
	struct placement_options options;
	char why[400]; /* why there is no worker */
	struct known_list processes, threads;
	int64_t credit_ns;
	uint64_t credit_at_ns;
	uint64_t looks, cpu_ns, locked, unreadable, sampled_most_ns;
	struct collect *c; /* while answers are taken */
	struct graph *g;
};

struct placements *placements_new(bool exact, const struct machine *m)
{
	struct placements *n = mem_alloc(sizeof(*n));
	struct err e;

	n->options = (struct placement_options){.proc = "/proc", .pages = PAGES, .limit_ns = LIMIT_NS,
						.exact = exact,
						.one_node = idrange_count(&m->memory_nodes) == 1,
						.node = (uint32_t)idrange_next(&m->memory_nodes, 0)};
	n->credit_ns = CREDIT_NS;
	if (placement_worker_open(&n->worker, &n->options, exact ? 20 * STUCK_NS : STUCK_NS, &e) < 0)
		snprintf(n->why, sizeof(n->why), "%.390s", e.msg);
	return n;
}

static void known_done(struct known_list *l)
{
	vec_for(&l->v, k)
		free(k->set);
	vec_done(&l->v);
	idmap_done(&l->ids);
}

void placements_free(struct placements *n)
{
	if (!n)
		return;
	placement_worker_close(n->worker);
	known_done(&n->processes);
	known_done(&n->threads);
	vec_for(&n->segments, x) {
		free(x->name);
		free(x->dev);
	}
	vec_done(&n->segments);
	idmap_done(&n->segment_ids);
	free(n);
}

/* @return its place in the list, where it is put when it is new */
static uint32_t known_of(struct known_list *l, uint32_t id, uint64_t start_ns)
{
	uint32_t i = idmap_get(&l->ids, id, start_ns);

	if (i != IDMAP_NONE)
		return i;
	i = (uint32_t)l->v.n;
	vec_push(&l->v, ((struct known){.id = id, .start_ns = start_ns}));
	idmap_put(&l->ids, id, start_ns, i);
	return i;
}

/* What the status file says of where a task may run; it needs no lock. */
struct allowed {
	char cpus[1024], mems[256], preferred[1024];
	uint64_t voluntary, involuntary;
	bool has_switches;
};

static bool take_text(const char *line, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);

	if (strncmp(line, name, n))
		return false;
	line += n + strspn(line + n, " \t");
	snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
	return true;
}

static bool read_allowed(uint32_t pid, uint32_t tid, struct allowed *ret)
{
	char path[64], line[4096];
	unsigned long long v;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (take_text(line, "Cpus_allowed_list:", ret->cpus, sizeof(ret->cpus)) ||
		    take_text(line, "Mems_allowed_list:", ret->mems, sizeof(ret->mems)) ||
		    take_text(line, "Cpus_preferred_list:", ret->preferred, sizeof(ret->preferred)))
			continue;
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &v) == 1)
			ret->voluntary = v;
		if (sscanf(line, "nonvoluntary_ctxt_switches: %llu", &v) == 1) {
			ret->involuntary = v;
			ret->has_switches = true;
		}
	}
	return ret->cpus[0] != '\0';
}

/* The set of @p nodes, or the one that the relation went to before. */
static uint32_t set_of(struct graph *g, struct known *k, const struct idrange *nodes)
{
	struct idrange kept = {0};
	struct strbuf b = {0};
	uint32_t set;
	struct err e;

	if (!k->set) {
		idrange_format(nodes, &b);
		k->set = mem_strdup(strbuf_str(&b));
		strbuf_done(&b);
	}
	if (idrange_parse(k->set, &kept, &e) < 0)
		return NODE_NONE;
	set = machine_numa_set(g, &kept);
	idrange_done(&kept);
	return set;
}

static void set_allowed(struct graph *g, struct edge *d, const struct allowed *a)
{
	if (a->has_switches) {
		SET(numa_access, d, voluntary_ctxt_switches, a->voluntary);
		SET(numa_access, d, involuntary_ctxt_switches, a->involuntary);
	}
	SET(numa_access, d, cpus_allowed_list, graph_str(g, a->cpus));
	SET(numa_access, d, mems_allowed_list, graph_str(g, a->mems));
	if (a->preferred[0])
		SET(numa_access, d, cpus_preferred_list, graph_str(g, a->preferred));
}

static uint64_t class_pages(const struct placement_node *n, bool anon, bool file)
{
	uint64_t bytes = 0;

	if (anon)
		bytes += n->bytes[PAGES_ANON] + n->bytes[PAGES_HUGE];
	if (file)
		bytes += n->bytes[PAGES_FILE];
	if (anon && file)
		bytes += n->bytes[PAGES_SHARED];
	return bytes / 4096;
}

static const char *pages_map(struct graph *g, const struct placement *p, bool anon, bool file)
{
	struct strbuf b = {0};
	const char *s;

	strbuf_addc(&b, '{');
	for (uint32_t i = 0; i < p->nnodes; i++)
		if (class_pages(&p->nodes[i], anon, file))
			strbuf_addf(&b, "%s\"%u\":%" PRIu64, b.n > 1 ? "," : "", p->nodes[i].node,
				    class_pages(&p->nodes[i], anon, file));
	strbuf_addc(&b, '}');
	s = graph_str(g, b.s);
	strbuf_done(&b);
	return s;
}

/* By ascending node of the machine, as the older tool lists them. */
static const char *pages_list(struct graph *g, const struct machine *m, const struct placement *p, uint64_t *ret_sum)
{
	struct strbuf b = {0};
	const char *s;

	*ret_sum = 0;
	strbuf_addc(&b, '[');
	for (size_t i = 0; i < m->nodes.n; i++) {
		uint64_t pages = 0;

		for (uint32_t k = 0; k < p->nnodes; k++)
			if (p->nodes[k].node == m->nodes.v[i].id)
				pages = class_pages(&p->nodes[k], true, false);
		strbuf_addf(&b, "%s%" PRIu64, i ? "," : "", pages);
		*ret_sum += pages;
	}
	strbuf_addc(&b, ']');
	s = graph_str(g, b.s);
	strbuf_done(&b);
	return s;
}

static const char *bytes_map(struct graph *g, const struct placement *p)
{
	struct strbuf b = {0};
	const char *s;

	strbuf_addc(&b, '{');
	for (uint32_t i = 0; i < p->nnodes; i++) {
		strbuf_addf(&b, "%s\"%u\":", i ? "," : "", p->nodes[i].node);
		for (unsigned c = 0; c < PAGE_CLASSES; c++)
			strbuf_addf(&b, "%c\"%s\":%" PRIu64, c ? ',' : '{', page_class_name(c),
				    p->nodes[i].bytes[c]);
		strbuf_addc(&b, '}');
	}
	strbuf_addc(&b, '}');
	s = graph_str(g, b.s);
	strbuf_done(&b);
	return s;
}

static void set_placement(struct graph *g, const struct machine *m, struct edge *d, const struct placement *p)
{
	uint64_t sum;

	SET(numa_access, d, memory_bytes, bytes_map(g, p));
	SET(numa_access, d, share_error, p->share_error);
	SET(numa_access, d, pages_sampled, p->sampled);
	SET(numa_access, d, memory_ns, clock_real_ns());
	SET(numa_access, d, read_only_pages, pages_map(g, p, false, true));
	SET(numa_access, d, dirty_anon_pages, pages_map(g, p, true, false));
	SET(numa_access, d, total_pages, pages_map(g, p, true, true));
	SET(numa_access, d, mem_pages_in_each_numa, pages_list(g, m, p, &sum));
	SET(numa_access, d, total_dirty_anon_pages, sum);
}

static void emit_process(struct placements *n, struct known *k, uint32_t proc, const struct placement *p)
{
	const struct machine *m = n->c->machine;
	struct idrange mems = {0}, nodes = {0};
	struct allowed a;
	struct edge *d;
	struct err e;
	uint32_t set;

	/* The kernel lists nodes that could be there, too. */
	if (read_allowed(k->id, k->id, &a) && !idrange_parse(a.mems, &mems, &e))
		for (int64_t id = -1; (id = idrange_next(&m->memory_nodes, id + 1)) >= 0;)
			if (idrange_has(&mems, (uint32_t)id))
				idrange_add(&nodes, (uint32_t)id);
	for (uint32_t i = 0; i < p->nnodes; i++)
		if (p->nodes[i].node <= IDRANGE_MAX)
			idrange_add(&nodes, p->nodes[i].node);
	set = set_of(n->g, k, &nodes);
	idrange_done(&mems);
	idrange_done(&nodes);
	if (set == NODE_NONE)
		return;
	d = graph_new_edge(n->g, &numa_access_type, procs_node(&n->c->procs, n->g, proc), set);
	if (a.cpus[0])
		set_allowed(n->g, d, &a);
	set_placement(n->g, m, d, p);
	graph_add_edge(n->g, d);
}

/* @return its place in the list, IDMAP_NONE: there are too many */
static uint32_t segment_at(struct placements *n, uint32_t dev, uint64_t ino)
{
	uint32_t at = idmap_get(&n->segment_ids, dev, ino);

	if (at != IDMAP_NONE || n->segments.n >= SEGMENTS_MOST)
		return at;
	at = (uint32_t)n->segments.n;
	vec_push(&n->segments, ((struct segment){0}));
	idmap_put(&n->segment_ids, dev, ino, at);
	return at;
}

static void keep_segments(struct placements *n, const struct placement *p)
{
	uint64_t now = clock_real_ns();

	for (uint32_t i = 0; i < p->nsegments; i++) {
		const struct placement_segment *s = &p->segments[i];
		uint32_t at = segment_at(n, s->dev, s->ino);
		struct segment *x = at == IDMAP_NONE ? NULL : &n->segments.v[at];
		uint64_t pages = 0;

		for (uint32_t k = 0; k < s->nnodes; k++)
			pages += s->on[k].pages;
		if (!x || (pages < x->pages && now - x->at_ns <= SEGMENT_OLD_NS))
			continue;
		x->s = *s;
		x->pages = pages;
		x->at_ns = now;
		x->changed = true;
	}
}

/* Of a simple sample of its pages, which a stratified one is no worse than; see settle_class() for the least. */
static double segment_error(const struct segment *x, uint64_t resident)
{
	double most = 0, n = (double)x->pages;

	if (x->pages * 4096 >= resident)
		return 0;
	for (uint32_t i = 0; i < x->s.nnodes; i++) {
		double share = x->s.on[i].pages / n, error = 1.96 * sqrt(share * (1 - share) / n);

		most = error > most ? error : most;
	}
	most = most > 3 / n ? most : 3 / n;
	return most > 1 ? 1 : most;
}

static int by_node_id(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void emit_segment(struct graph *g, struct segment *x)
{
	struct node *n = graph_new_node(g, &shared_memory_type);
	struct strbuf b = {0};

	SET(shared_memory, n, shm_name, graph_str(g, x->name));
	SET(shared_memory, n, inode, x->inode);
	SET(shared_memory, n, dev, graph_str(g, x->dev));
	if (x->has_ipcns)
		SET(shared_memory, n, ipcns, x->ipcns);
	qsort(x->s.on, x->s.nnodes, sizeof(x->s.on[0]), by_node_id);
	strbuf_addc(&b, '{');
	for (uint32_t i = 0; i < x->s.nnodes; i++)
		strbuf_addf(&b, "%s\"%u\":%" PRIu64, i ? "," : "", x->s.on[i].node,
			    (uint64_t)((double)x->resident_bytes * x->s.on[i].pages / (double)x->pages + .5));
	strbuf_addc(&b, '}');
	SET(shared_memory, n, memory_bytes, graph_str(g, b.s));
	SET(shared_memory, n, share_error, segment_error(x, x->resident_bytes));
	SET(shared_memory, n, memory_ns, x->at_ns);
	graph_add_node(g, n);
	strbuf_done(&b);
}

/* What this interval's look at shared memory found: which entity a segment is. */
static void learn_segment(struct placements *n, const struct node *x)
{
	unsigned major, minor;
	struct segment *s;
	uint32_t at;

	if (!HAS(shared_memory, x, resident_bytes) || !GET(shared_memory, x, resident_bytes) ||
	    sscanf(GET(shared_memory, x, dev), "%u:%u", &major, &minor) != 2)
		return;
	at = segment_at(n, major << 20 | minor, GET(shared_memory, x, inode));
	if (at == IDMAP_NONE)
		return;
	s = &n->segments.v[at];
	s->changed |= s->resident_bytes != GET(shared_memory, x, resident_bytes);
	s->resident_bytes = GET(shared_memory, x, resident_bytes);
	if (s->name)
		return;
	s->name = mem_strdup(GET(shared_memory, x, shm_name));
	s->dev = mem_strdup(GET(shared_memory, x, dev));
	s->inode = GET(shared_memory, x, inode);
	s->has_ipcns = HAS(shared_memory, x, ipcns);
	s->ipcns = GET(shared_memory, x, ipcns);
}

static void emit_segments(struct placements *n, struct graph *g)
{
	for (size_t i = 0; i < g->nodes.n; i++)
		if (g->nodes.v[i]->type == &shared_memory_type)
			learn_segment(n, g->nodes.v[i]);
	vec_for(&n->segments, x)
		if (x->changed && x->name && x->pages) {
			emit_segment(g, x);
			x->changed = false;
		}
}

static void on_answer(void *ctx, const struct placement *p)
{
	struct placements *n = ctx;
	struct known *k = &n->processes.v.v[p->tag];
	uint32_t proc = procs_live(&n->c->procs, k->id);
	uint64_t now = clock_mono_ns();

	k->waiting = false;
	k->first_ns = k->first_ns ?: now;
	/* One that has just begun is still growing. */
	k->next_ns = now + (now - k->first_ns < SOON_NS ? SOON_NS : now - k->first_ns);
	if (k->next_ns > now + AGAIN_NS)
		k->next_ns = now + AGAIN_NS;
	n->looks++;
	n->cpu_ns += p->cpu_ns;
	n->credit_ns -= (int64_t)p->cpu_ns;
	if (p->wall_ns > n->sampled_most_ns)
		n->sampled_most_ns = p->wall_ns;
	if (p->error == -ETIMEDOUT) {
		n->locked++;
		k->next_ns = now + BACK_OFF_NS;
	} else if (p->error && p->error != -ENOENT && p->error != -ESRCH) {
		n->unreadable++;
		k->next_ns = now + BACK_OFF_NS;
	}
	if (p->error || !p->nnodes || proc == IDMAP_NONE || n->c->procs.v.v[proc].start_ns != k->start_ns)
		return;
	keep_segments(n, p);
	emit_process(n, k, proc, p);
}

/* A process that could be looked at, and how much that is worth. */
struct candidate {
	uint32_t known, pid, pages;
	uint64_t due_ns, rss_bytes;
};

/* First those that nothing is known of, the largest first; then those that wait the longest. */
static int by_worth(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->due_ns != y->due_ns)
		return x->due_ns < y->due_ns ? -1 : 1;
	if (x->rss_bytes != y->rss_bytes)
		return x->rss_bytes > y->rss_bytes ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static bool is_due(const struct known *k, uint64_t now, bool last)
{
	if (k->waiting)
		return false;
	return k->next_ns <= now || (last && !k->set);
}

static void ask(struct placements *n, const struct procs *procs, bool last)
{
	uint64_t now = clock_mono_ns(), each = n->looks ? n->cpu_ns / n->looks : GUESS_NS;
	int64_t left = n->credit_ns - (int64_t)(placement_worker_waiting(n->worker) * each);
	VEC(struct candidate) v = {0};

	vec_for(&procs->v, p) {
		uint32_t i;

		if (!p->pid || p->end_ns || !p->selected || p->kthread)
			continue;
		i = known_of(&n->processes, p->pid, p->start_ns);
		if (!is_due(&n->processes.v.v[i], now, last))
			continue;
		vec_push(&v, ((struct candidate){i, p->pid, p->rss_bytes < SMALL_BYTES ? PAGES_SMALL : PAGES,
						 n->processes.v.v[i].next_ns, p->rss_bytes}));
	}
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), by_worth);
	for (size_t i = 0; i < v.n && left > 0; i++, left -= (int64_t)each) {
		if (placement_worker_ask(n->worker, v.v[i].pid, v.v[i].known, v.v[i].pages) < 0)
			break;
		n->processes.v.v[v.v[i].known].waiting = true;
	}
	vec_done(&v);
}

static void earn(struct placements *n)
{
	uint64_t now = clock_mono_ns();

	if (n->credit_at_ns)
		n->credit_ns += (int64_t)((now - n->credit_at_ns) / COST_SHARE);
	if (n->credit_ns > (int64_t)CREDIT_NS)
		n->credit_ns = CREDIT_NS;
	n->credit_at_ns = now;
}

static void emit_thread(struct collect *c, struct graph *g, struct known *k, struct node *thread)
{
	const struct node *process = g->nodes.v[GET(thread, thread, process)];
	struct idrange cpus = {0}, nodes = {0};
	struct allowed a;
	struct edge *d;
	struct err e;
	uint32_t set;

	if (!read_allowed((uint32_t)GET(process, process, pid), k->id, &a))
		return;
	if (!idrange_parse(a.cpus, &cpus, &e))
		topo_nodes_of_cpus(&c->machine->topo, &cpus, &nodes);
	set = set_of(g, k, &nodes);
	idrange_done(&cpus);
	idrange_done(&nodes);
	if (set == NODE_NONE)
		return;
	d = graph_new_edge(g, &access_with_proc_status_type, thread->index, set);
	if (a.has_switches) {
		SET(access_with_proc_status, d, voluntary_ctxt_switches, a.voluntary);
		SET(access_with_proc_status, d, involuntary_ctxt_switches, a.involuntary);
	}
	SET(access_with_proc_status, d, cpus_allowed_list, graph_str(g, a.cpus));
	SET(access_with_proc_status, d, mems_allowed_list, graph_str(g, a.mems));
	if (a.preferred[0])
		SET(access_with_proc_status, d, cpus_preferred_list, graph_str(g, a.preferred));
	graph_add_edge(g, d);
}

/* Threads that ran in this interval: those that did next to nothing are left out. */
static void emit_threads(struct collect *c, struct graph *g, bool last)
{
	struct placements *n = c->placements;
	uint64_t now = clock_mono_ns();
	size_t nodes = g->nodes.n, left = STATUS_MOST;

	for (size_t i = 0; i < nodes && left; i++) {
		struct node *t = g->nodes.v[i];
		struct known *k;
		uint32_t at;

		if (t->type != &thread_type || !HAS(thread, t, run_ns) || !HAS(thread, t, process) ||
		    GET(thread, t, run_ns) < THREAD_LEAST)
			continue;
		at = known_of(&n->threads, (uint32_t)GET(thread, t, tid), GET(thread, t, start_ns));
		k = &n->threads.v.v[at];
		if (k->next_ns > now && !last)
			continue;
		k->next_ns = now + STATUS_AGAIN;
		emit_thread(c, g, k, t);
		left--;
	}
}

void collect_numa(struct collect *c, struct graph *g, bool last)
{
	struct placements *n = c->placements;

	machine_emit(c->machine, g, !c->ticks);
	if (!c->machine->has_topo)
		return;
	emit_threads(c, g, last);
	if (!n->worker)
		return;
	earn(n);
	n->c = c;
	n->g = g;
	if (placement_worker_take(n->worker, 0, on_answer, n) < 0)
		n->unreadable++;
	ask(n, &c->procs, last);
	if (last && placement_worker_take(n->worker, LAST_WAIT_NS, on_answer, n) < 0)
		n->unreadable++;
	emit_segments(n, g);
}

void collect_numa_describe(const struct collect *c, struct graph *g)
{
	const struct placements *n = c->placements;

	if (!c->machine->has_topo)
		graph_add_status(g, "collector machine", "off", NULL, c->machine->why);
	else
		graph_add_status(g, "collector machine", "ok", "hwloc", NULL);
	if (!n->worker)
		graph_add_status(g, "collector numa", "off", NULL, n->why);
	else
		graph_add_status(g, "collector numa", "ok",
				 n->options.exact      ? "numa_maps"
				 : n->options.one_node ? "one node"
						       : "move_pages",
				 NULL);
	graph_add_loss(g, "collector numa", "memory_map_locked", n->locked);
	graph_add_loss(g, "collector numa", "unreadable", n->unreadable);
	graph_add_cost(g, "placement", "ns", (double)n->cpu_ns);
	graph_add_cost(g, "placement looks", "runs", (double)n->looks);
}
