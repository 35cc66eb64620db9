/* Problems of placement, transport and declaration, and what the graph cannot tell. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "idmap.h"
#include "shared_memory.h"
#include "topology_parts.h"

/* Less of its time on the device's node than this, and a process counts as running elsewhere. */
#define HOME_SHARE 0.5
/* RULES: the expected share of accesses to other nodes above which it is a finding, and a grave
 * one. */
#define REMOTE_FINDING 0.3
#define REMOTE_GRAVE   0.5
/* The busiest stage or rank against the mean of all. */
#define UNEVEN_RATIO 1.5

static struct topo_problem *new_problem(struct topology *t, const char *id, enum severity severity,
					unsigned pct)
{
	struct topo_problem *p = vec_add(&t->problems);

	p->id = id;
	p->severity = severity;
	p->pct = pct;
	return p;
}

static void add_shares(struct strbuf *b, const struct topo_share *v, size_t n)
{
	for (size_t i = 0; i < n && i < 3; i++)
		if (v[i].share >= 0.01)
			strbuf_addf(b, "%s%.0f %% on node %" PRIu32, i ? ", " : "",
				    v[i].share * 100, v[i].node);
}

static const char *keep(struct topology *t, struct strbuf *b)
{
	const char *ret = arena_strdup(&t->arena, strbuf_str(b));

	strbuf_done(b);
	return ret;
}

/* Users of devices whose CPU time is mostly on other nodes than the device's. */
static void find_off_device(struct topology *t)
{
	struct strbuf text = {0}, advice = {0};
	VEC(uint32_t) off = {0};
	size_t known = 0;

	vec_for(&t->devices, d) {
		vec_for(&d->users, u) {
			const struct topo_place *p = &t->places.v[*u];

			if (d->numa_node == TOPO_NONE || !p->cpu.n)
				continue;
			known++;
			if (topo_cpu_share(p, d->numa_node) >= HOME_SHARE)
				continue;
			strbuf_addf(&text, "%s%s uses %s on node %" PRIu32 " and runs ",
				    off.n ? "; " : "", t->actors.v[*u].label, d->label,
				    d->numa_node);
			add_shares(&text, p->cpu.v, p->cpu.n);
			if (!off.n)
				strbuf_addf(&advice,
					    "start each on the node of its device: numactl "
					    "--cpunodebind=%" PRIu32 " --membind=%" PRIu32
					    " for %s",
					    d->numa_node, d->numa_node, t->actors.v[*u].label);
			vec_push(&off, *u);
		}
	}
	if (off.n) {
		struct topo_problem *p = new_problem(t, "off-device-node", SEVERITY_WARNING, 90);

		p->text =
		    off.n == known
			? topo_text(t, "none of the %zu processes runs on its device's node: %s",
				    known, text.s)
			: topo_text(t, "%zu of %zu processes do not run on their device's node: %s",
				    off.n, known, text.s);
		p->advice = keep(t, &advice);
		vec_for(&off, u)
			vec_push(&p->actors, *u);
	}
	strbuf_done(&text);
	strbuf_done(&advice);
	vec_done(&off);
}

/* Whose placement matters: those who do the host's work. */
static bool matters(const struct topo_actor *a)
{
	return a->group != TOPO_NONE || a->role == ROLE_ENGINE || a->role == ROLE_API_SERVER;
}

static bool is_remote(const struct topology *t, const struct topo_place *pl)
{
	return matters(&t->actors.v[pl->actor]) && pl->remote > REMOTE_FINDING;
}

static void tell_remote(struct strbuf *text, const struct topology *t, const struct topo_place *pl)
{
	strbuf_addf(text, "%s%s: %.0f %%", text->n ? "; " : "", t->actors.v[pl->actor].label,
		    pl->remote * 100);
	if (pl->remote_measured)
		strbuf_addf(text, " of %" PRIu64 " samples", pl->samples);
	if (pl->cpu.n && pl->memory.n)
		strbuf_addf(text,
			    " (CPU most on node %" PRIu32 ", memory most on node %" PRIu32 ")",
			    pl->cpu.v[0].node, pl->memory.v[0].node);
}

static void find_remote_memory(struct topology *t)
{
	struct strbuf text = {0};
	struct topo_problem *p = NULL;
	size_t n = 0, apart = 0, measured = 0;
	double worst = 0;

	vec_for(&t->places, pl) {
		if (!is_remote(t, pl))
			continue;
		n++;
		measured += pl->remote_measured;
		apart += pl->cpu.n && pl->memory.n && pl->cpu.v[0].node != pl->memory.v[0].node;
		worst = pl->remote > worst ? pl->remote : worst;
		tell_remote(&text, t, pl);
	}
	if (n) {
		p = new_problem(t, "remote-memory",
				worst > REMOTE_GRAVE ? SEVERITY_CRITICAL : SEVERITY_WARNING,
				measured == n ? 95 : 80);
		p->text = topo_text(
		    t,
		    "%s in %zu processes, %zu of them with CPU and memory on different nodes: %s",
		    !measured       ? "expected share of memory accesses to another node, if pages "
				      "are used evenly,"
		    : measured == n ? "measured share of memory accesses to another node"
				    : "share of memory accesses to another node, of samples, or else "
				      "expected if pages are used evenly,",
		    n, apart, text.s);
		p->advice = "bind each process and its memory to one node, or move the pages: "
			    "migratepages PID FROM TO";
		vec_for(&t->places, pl)
			if (is_remote(t, pl))
				vec_push(&p->actors, pl->actor);
	}
	strbuf_done(&text);
}

static const char *host_of(const struct topology *t, uint32_t actor)
{
	return t->g->nodes.v[t->actors.v[actor].node]->ns;
}

/* NUMA nodes by host, so that each group need not look at all entities. */
static void count_numa_nodes(const struct topology *t, struct idmap *ret)
{
	vec_for(&t->g->nodes, it) {
		uint32_t n;

		if ((*it)->type != &numa_type)
			continue;
		n = idmap_get(ret, (uintptr_t)(*it)->ns, 0);
		idmap_put(ret, (uintptr_t)(*it)->ns, 0, n == IDMAP_NONE ? 1 : n + 1);
	}
}

/* Ranks that share a node of their host while others have none. */
static void find_crowding(struct topology *t, const struct topo_group *gr, const struct idmap *numa_nodes)
{
	const char *host = host_of(t, gr->members.v[0]);
	uint32_t known = idmap_get(numa_nodes, (uintptr_t)host, 0);
	size_t nodes = known == IDMAP_NONE ? 0 : known;
	struct strbuf text = {0};
	VEC(uint32_t) crowd = {0};

	/* With a rank on each host, or some on each: what one host has is told when it is looked at alone. */
	vec_for(&gr->members, m)
		if (host_of(t, *m) != host)
			return;
	for (size_t i = 0; i < gr->members.n && nodes >= gr->members.n; i++) {
		const struct topo_place *a = &t->places.v[gr->members.v[i]];

		for (size_t k = 0; k < gr->members.n; k++) {
			const struct topo_place *b = &t->places.v[gr->members.v[k]];

			if (i == k || !a->cpu.n || !b->cpu.n ||
			    a->cpu.v[0].node != b->cpu.v[0].node)
				continue;
			strbuf_addf(&text, "%s%s", crowd.n ? ", " : "",
				    t->actors.v[a->actor].label);
			vec_push(&crowd, a->actor);
			break;
		}
	}
	if (crowd.n) {
		struct topo_problem *p = new_problem(t, "shared-node", SEVERITY_NOTICE, 75);

		p->text = topo_text(t,
				    "ranks run most on a node that another rank runs on, of %zu "
				    "nodes for %zu ranks: %s",
				    nodes, gr->members.n, text.s);
		p->advice = "give each rank the CPUs of the node of its device";
		vec_for(&crowd, a)
			vec_push(&p->actors, *a);
	}
	strbuf_done(&text);
	vec_done(&crowd);
}

/* Threads of the device's runtime that run on another node than the rest of their process. */
static void find_far_threads(struct topology *t)
{
	struct strbuf text = {0};
	VEC(uint32_t) of = {0};

	vec_for(&t->threads, th) {
		struct edge_list out = graph_out(t->g, th->node);
		const struct topo_place *p = &t->places.v[th->actor];

		for (size_t i = 0; i < out.n; i++) {
			const struct edge *d = t->g->edges.v[out.v[i]];
			uint32_t node;

			if (d->type != &access_with_proc_status_type ||
			    !HAS(access_with_proc_status, d, numa_index_to_cpu_runtime) ||
			    !p->cpu.n)
				continue;
			node = topo_top_of_map(
			    GET(access_with_proc_status, d, numa_index_to_cpu_runtime));
			if (node == TOPO_NONE || node == p->cpu.v[0].node)
				continue;
			strbuf_addf(&text, "%s%s[%" PRIu64 "] of %s on node %" PRIu32,
				    of.n ? ", " : "",
				    topo_str(t->g->nodes.v[th->node], thread_f_name),
				    GET(thread, t->g->nodes.v[th->node], tid),
				    t->actors.v[th->actor].label, node);
			vec_push(&of, th->actor);
		}
	}
	if (of.n) {
		struct topo_problem *p = new_problem(t, "thread-off-node", SEVERITY_NOTICE, 75);

		p->text = topo_text(
		    t, "threads that serve a device run on another node than their process: %s",
		    text.s);
		p->advice =
		    "bind the whole process, not its main thread: taskset -a -p, or a cpuset";
		vec_for(&of, a)
			if (!p->actors.n || p->actors.v[p->actors.n - 1] != *a)
				vec_push(&p->actors, *a);
	}
	strbuf_done(&text);
	vec_done(&of);
}

static void find_idle_devices(struct topology *t)
{
	struct strbuf text = {0};
	size_t n = 0;

	vec_for(&t->devices, d)
		if (!d->users.n)
			strbuf_addf(&text, "%s%s", n++ ? ", " : "", d->label);
	if (n && n < t->devices.n)
		new_problem(t, "unused-device", SEVERITY_INFO, 80)->text = topo_text(
		    t, "%zu of %zu accelerators have no user: %s", n, t->devices.n, text.s);
	strbuf_done(&text);
}

/* Bytes of one kind within the group and a host; NULL: of all. Between hosts TCP may be all there is. */
static uint64_t bytes_by(const struct topology *t, const struct topo_group *gr, const char *kind)
{
	uint64_t ret = 0;

	vec_for(&gr->members, m) {
		size_t n;
		const struct topo_link *l = topology_out(t, *m, &n);

		for (size_t i = 0; i < n; i++)
			if (t->actors.v[l[i].to].group == t->actors.v[*m].group &&
			    host_of(t, l[i].to) == host_of(t, *m) && (!kind || !strcmp(l[i].kind, kind)))
				ret += l[i].bytes;
	}
	return ret;
}

static bool is_declared(const struct topo_group *gr)
{
	vec_for(&gr->patterns, p)
		if (p->declared)
			return true;
	return false;
}

static void find_slow_transport(struct topology *t, const struct topo_group *gr)
{
	uint64_t tcp = bytes_by(t, gr, "tcp"), all = bytes_by(t, gr, NULL);
	struct topo_problem *p;
	char rate[64] = "";

	if (!tcp || tcp * 2 < all || (!gr->has_devices && !is_declared(gr)))
		return;
	if (t->window_ns)
		snprintf(rate, sizeof(rate), " (%.1f MB/s)",
			 (double)tcp * 1e3 / (double)t->window_ns);
	p = new_problem(t, "collective-over-tcp",
			gr->has_devices ? SEVERITY_WARNING : SEVERITY_NOTICE, 70);
	p->text = topo_text(t,
			    "%s %s: %zu ranks on one host exchange %" PRIu64
			    " bytes%s over TCP: the collective uses "
			    "sockets instead of shared memory or the links between accelerators",
			    is_declared(gr) ? "declared" : "group", gr->patterns.v[0].text,
			    gr->members.n, tcp, rate);
	p->advice = "look at the backend that the framework chose: NCCL_DEBUG=INFO, HCCL logs, or "
		    "gloo by mistake";
	vec_for(&gr->members, m)
		vec_push(&p->actors, *m);
}

static void find_mismatch(struct topology *t, const struct topo_group *gr)
{
	vec_for(&gr->patterns, pa) {
		vec_for(&pa->evidence, e) {
			struct topo_problem *p;

			if (!pa->declared || e->kind != EVIDENCE_AGAINST ||
			    (!strstr(e->text, "declared are") &&
			     !strstr(e->text, "of another shape")))
				continue;
			p = new_problem(t, "not-as-declared", SEVERITY_WARNING, 70);
			p->text = topo_text(t, "%s is declared for %s, but %s", pa->text, gr->name,
					    e->text);
			p->advice = "compare the launch command with what runs: a rank may have "
				    "ended, or joined another job";
			vec_for(&gr->members, m)
				vec_push(&p->actors, *m);
		}
	}
}

static void find_uneven_work(struct topology *t, const struct topo_group *gr)
{
	double sum = 0, most = 0;
	uint32_t busiest = TOPO_NONE;
	struct topo_problem *p;

	/* The same program alone does not make equals of processes. */
	if (gr->shape.shape == SHAPE_UNKNOWN && !is_declared(gr))
		return;
	vec_for(&gr->members, m) {
		const struct node *n = t->g->nodes.v[t->actors.v[*m].node];
		double v = HAS(process, n, cpu_ns) ? (double)GET(process, n, cpu_ns) : -1;

		if (v < 0)
			return;
		sum += v;
		if (v > most) {
			most = v;
			busiest = *m;
		}
	}
	/* Servers and masters do other work than the rest. */
	if (busiest == TOPO_NONE || !t->window_ns || most < 0.2 * (double)t->window_ns ||
	    most * (double)gr->members.n < UNEVEN_RATIO * sum || gr->shape.shape == SHAPE_STAR ||
	    gr->shape.shape == SHAPE_SERVERS)
		return;
	p = new_problem(t, "uneven-work", SEVERITY_NOTICE, 70);
	p->text =
	    topo_text(t, "%s does %.1f times the CPU work of the mean of %s",
		      t->actors.v[busiest].label, most * (double)gr->members.n / sum, gr->name);
	p->advice = gr->shape.shape == SHAPE_CHAIN
			? "move layers from the busiest stage to the others"
			: "split the work evenly";
	vec_push(&p->actors, busiest);
}

/* Links that move a good part of all data between processes of different nodes. */
#define HEAVY_SHARE 0.1

static void find_far_links(struct topology *t)
{
	struct strbuf text = {0};
	VEC(uint32_t) ends = {0};
	uint64_t all = 0;

	vec_for(&t->links, l)
		all += l->bytes;
	vec_for(&t->links, l) {
		if (l->from_node == TOPO_NONE || l->to_node == TOPO_NONE ||
		    l->from_node == l->to_node || (double)l->bytes < HEAVY_SHARE * (double)all ||
		    !l->bytes)
			continue;
		strbuf_addf(&text,
			    "%s%s on node %" PRIu32 " -> %s on node %" PRIu32
			    " by %s (%.0f %% of all data)",
			    ends.n ? "; " : "", t->actors.v[l->from].label, l->from_node,
			    t->actors.v[l->to].label, l->to_node, l->kind,
			    (double)l->bytes * 100 / (double)all);
		vec_push(&ends, l->from);
		vec_push(&ends, l->to);
	}
	if (ends.n) {
		struct topo_problem *p = new_problem(t, "cross-node-link", SEVERITY_NOTICE, 70);

		p->text = topo_text(
		    t, "data goes between processes that run on different NUMA nodes: %s", text.s);
		p->advice = "bind both ends to one node, or make the exchange smaller";
		vec_for(&ends, a)
			vec_push(&p->actors, *a);
	}
	strbuf_done(&text);
	vec_done(&ends);
}

static int compare_problems(const void *a, const void *b)
{
	const struct topo_problem *x = a, *y = b;
	int c;

	if (x->severity != y->severity)
		return x->severity < y->severity ? 1 : -1;
	c = strcmp(x->id, y->id);
	return c ? c : strcmp(x->text, y->text);
}

#define unseen(t, text) vec_push(&(t)->unseen, (text))

static void tell_missing_kinds(struct topology *t)
{
	bool has_local = false, has_flow = false;

	vec_for(&t->links, l) {
		has_flow |= l->measured;
		has_local |= !strcmp(l->kind, "unix") || !strcmp(l->kind, "pipe") ||
			     !strcmp(l->kind, "shared_memory");
	}
	if (t->g->meta.tool || t->g->meta.window_ns)
		return;
	if (!has_flow)
		unseen(t, "no flow of data is in this file");
	if (!has_local)
		unseen(t, "this file has no pipes, Unix sockets or shared memory: what goes "
			  "through them is unknown, not none");
}

/* The older tool finds each relation from both ends and adds it up twice: then all its numbers are
 * even. */
static void tell_doubling(struct topology *t)
{
	size_t n = 0, even = 0;

	if (t->g->meta.tool || t->g->meta.window_ns)
		return;
	vec_for(&t->g->edges, d) {
		if ((*d)->type != &send_to_socket_type || !HAS(send_to_socket, *d, packets_cnt))
			continue;
		n++;
		even += GET(send_to_socket, *d, data_size) % 2 == 0 &&
			GET(send_to_socket, *d, packets_cnt) % 2 == 0;
	}
	if (n >= 8 && even == n)
		unseen(t, topo_text(t,
				    "amounts may be twice the true ones: all %zu sends have even "
				    "numbers of bytes and "
				    "packets, as when each is counted from both ends",
				    n));
}

static void tell_status(struct topology *t)
{
	t->status_from = t->unseen.n;
	vec_for(&t->g->status, s)
		if (!strcmp(s->state, "off") && t->unseen.n < 12)
			unseen(t, topo_text(t, "%s is off%s%s", s->source, s->reason ? ": " : "",
					    s->reason ? s->reason : ""));
	vec_for(&t->g->losses, l)
		unseen(t, topo_text(t, "%" PRIu64 " events were lost (%s, %s)", l->count, l->source,
				    l->cause));
	t->status_to = t->unseen.n;
}

static void tell_silent_devices(struct topology *t)
{
	vec_for(&t->groups, gr)
		if (gr->has_devices && !gr->bytes)
			unseen(t, topo_text(t,
					    "what the %zu ranks of %s send each other: between "
					    "accelerators it leaves "
					    "no trace in sockets",
					    gr->members.n, gr->name));
}

static void tell_shared_memory(struct topology *t)
{
	struct shared_objects all;
	size_t n = 0;

	shared_memory_objects(t->g, &all);
	vec_for(&all.v, o)
		n += shared_memory_is_path(o) && !o->wakes.n && o->writers > 1;
	if (n)
		unseen(t, topo_text(
			      t, "in which direction data goes through %zu shared memory object%s",
			      n, n == 1 ? "" : "s"));
	shared_memory_done(&all);
}

static void tell_places(struct topology *t)
{
	size_t no_cpu = 0, no_memory = 0, n = 0;

	vec_for(&t->places, p) {
		if (t->actors.v[p->actor].group == TOPO_NONE)
			continue;
		n++;
		no_cpu += !p->cpu.n;
		no_memory += !p->memory.n;
	}
	if (no_cpu)
		unseen(t, topo_text(t, "on which node %zu of %zu ranks run", no_cpu, n));
	if (no_memory)
		unseen(t, topo_text(t, "on which node the memory of %zu of %zu ranks is", no_memory,
				    n));
}

void topo_add_problems(struct topology *t)
{
	CLEANUP(idmap_done) struct idmap numa_nodes = {0};

	count_numa_nodes(t, &numa_nodes);
	find_off_device(t);
	find_remote_memory(t);
	find_far_threads(t);
	find_idle_devices(t);
	find_far_links(t);
	vec_for(&t->groups, gr) {
		find_crowding(t, gr, &numa_nodes);
		find_slow_transport(t, gr);
		find_mismatch(t, gr);
		find_uneven_work(t, gr);
	}
	if (t->problems.n)
		qsort(t->problems.v, t->problems.n, sizeof(*t->problems.v), compare_problems);
	tell_missing_kinds(t);
	tell_doubling(t);
	tell_status(t);
	tell_silent_devices(t);
	tell_shared_memory(t);
	tell_places(t);
}
