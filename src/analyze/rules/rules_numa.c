/* Interconnect: processes, their memory and their devices on different NUMA nodes. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "numa_rows.h"
#include "rule_parts.h"

#define HOW_PLACE                                                                                  \
	"record as root on a live host: placement needs CAP_SYS_PTRACE; show FILE numa lists "     \
	"what is known"

static size_t count_nodes(const struct facts *x)
{
	size_t n = 0;

	vec_for(&x->g->nodes, np)
		n += (*np)->type == &numa_type;
	return n;
}

/* The launcher that all of them share is whom one line of a start script would fix. */
static uint32_t root_of(const struct topology *t, const uint32_t *actors, size_t n)
{
	uint32_t up;

	if (!n)
		return NODE_NONE;
	up = t->actors.v[actors[0]].group == TOPO_NONE
		 ? TOPO_NONE
		 : t->groups.v[t->actors.v[actors[0]].group].launcher;
	for (size_t i = 1; i < n && up != TOPO_NONE; i++)
		if (t->actors.v[actors[i]].group != t->actors.v[actors[0]].group)
			up = TOPO_NONE;
	if (n == 1 && up == TOPO_NONE)
		up = actors[0];
	return up == TOPO_NONE ? NODE_NONE : t->actors.v[up].node;
}

static const struct topo_device *device_of(const struct topology *t, uint32_t actor)
{
	vec_for(&t->devices, d)
		vec_for(&d->users, u)
			if (*u == actor)
				return d;
	return NULL;
}

static const char *cpus_of_node(const struct facts *x, uint32_t numa)
{
	vec_for(&x->g->nodes, n)
		if ((*n)->type == &numa_type && GET(numa, *n, numa_id) == numa)
			return HAS(numa, *n, cpu_set) ? GET(numa, *n, cpu_set) : NULL;
	return NULL;
}

static uint64_t pid_of(const struct facts *x, const struct topology *t, uint32_t actor)
{
	const struct node *n = x->g->nodes.v[t->actors.v[actor].node];

	return n->type == &process_type ? GET(process, n, pid) : 0;
}

/* Lines that bind each process to the node of its device, else to that of its memory. */
static void add_binding(struct rule_run *r, struct finding *fi, const uint32_t *actors, size_t n)
{
	const struct topology *t = r->x->s->t;

	for (size_t i = 0; i < n && i < 8; i++) {
		const struct topo_device *d = device_of(t, actors[i]);
		const struct topo_place *p =
		    actors[i] < t->n_processes ? &t->places.v[actors[i]] : NULL;
		uint32_t to = d && d->numa_node != TOPO_NONE ? d->numa_node
			      : p && p->memory.n             ? p->memory.v[0].node
							     : TOPO_NONE;
		const char *cpus = to == TOPO_NONE ? NULL : cpus_of_node(r->x, to);

		if (to == TOPO_NONE)
			continue;
		if (cpus)
			finding_command(fi, rule_text(r,
						      "taskset -a -p -c %s %" PRIu64
						      "   # %s to node %" PRIu32 "%s%s",
						      cpus, pid_of(r->x, t, actors[i]),
						      t->actors.v[actors[i]].label, to,
						      d ? ", that of " : "", d ? d->label : ""));
		if (p && p->memory.n && p->memory.v[0].node != to)
			finding_command(fi, rule_text(r, "migratepages %" PRIu64 " all %" PRIu32,
						      pid_of(r->x, t, actors[i]), to));
		if (i == 0)
			finding_command(fi, rule_text(r,
						      "numactl --cpunodebind=%" PRIu32
						      " --membind=%" PRIu32
						      " COMMAND   # at the next start",
						      to, to));
	}
}

static void add_places(struct rule_run *r, struct finding *fi, const uint32_t *actors, size_t n)
{
	const struct topology *t = r->x->s->t;

	for (size_t i = 0; i < n; i++) {
		const struct topo_place *p =
		    actors[i] < t->n_processes ? &t->places.v[actors[i]] : NULL;
		const struct topo_device *d = device_of(t, actors[i]);
		uint32_t node = t->actors.v[actors[i]].node;

		if (p && p->remote >= 0)
			finding_value(r, fi, node,
				      p->remote_measured ? "sampled accesses that another node answered"
							 : "accesses expected to leave the node",
				      p->remote * 100, PERCENT, LIMIT_remote_finding);
		if (p && p->cosine >= 0)
			finding_value(r, fi, node, "cosine of CPU time and memory by node",
				      p->cosine, RATIO, LIMIT_COUNT);
		if (p && p->cpu.n && d && d->numa_node != TOPO_NONE)
			finding_value(r, fi, node, "CPU time on the node of its device",
				      topo_cpu_share(p, d->numa_node) * 100, PERCENT, LIMIT_COUNT);
	}
}

/* Findings of the topology's own list with the id of the rule. */
static struct finding *from_problem(struct rule_run *r, const struct topo_problem *p)
{
	const struct topology *t = r->x->s->t;
	struct finding *fi;

	if (p->severity == SEVERITY_INFO)
		return NULL;
	fi = rule_fire(r, p->severity, p->pct, root_of(t, p->actors.v, p->actors.n));
	vec_for(&p->actors, a)
		finding_subject(fi, t->actors.v[*a].node);
	fi->why = p->text;
	if (p->advice)
		finding_advice(fi, p->advice);
	return fi;
}

static const char *actor_names(struct rule_run *r, const struct topo_problem *p)
{
	VEC(uint32_t) nodes = {0};
	const char *ret;

	vec_for(&p->actors, a)
		vec_push(&nodes, r->x->s->t->actors.v[*a].node);
	ret = rule_names(r, nodes.v, nodes.n, 4);
	vec_done(&nodes);
	return ret;
}

#define for_problems(r, p)                                                                         \
	vec_for(&(r)->x->s->t->problems, p)                                                        \
		if (!strcmp(p->id, (r)->rule->id))

#define EXPECT_BINDING                                                                             \
	"Binding alone often gains little: as much as the job waits for memory and for copies to " \
	"its device, which counters "                                                              \
	"of the CPU would tell. Measure a step before and after."

/* Several nodes, and something known of who runs where. */
static bool can_tell(struct rule_run *r, bool memory)
{
	const struct topology *t = r->x->s->t;
	size_t nodes = count_nodes(r->x), known = 0;

	if (nodes == 1) {
		rule_clear(r, "this machine has one NUMA node");
		return false;
	}
	if (t)
		vec_for(&t->places, p)
			known += memory ? p->remote >= 0 : p->cpu.n != 0;
	if (!nodes)
		rule_unknown(r, "the NUMA nodes of the machine", HOW_PLACE);
	else if (!known)
		rule_unknown(r,
			     memory ? "where processes run and have their memory"
				    : "on which nodes processes run",
			     HOW_PLACE);
	else
		rule_clear(r, "%zu processes on %zu NUMA nodes", known, nodes);
	return known && nodes;
}

static void check_off_device(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;
	size_t near = 0;

	if (!can_tell(r, false))
		return;
	vec_for(&t->devices, d)
		near += d->numa_node != TOPO_NONE;
	if (!t->devices.n)
		return rule_clear(r, "no accelerator in this file");
	if (!near) {
		r->clear = NULL;
		return rule_unknown(r, "the NUMA nodes of the accelerators", HOW_PLACE);
	}
	for_problems(r, p) {
		struct finding *fi = from_problem(r, p);

		fi->title =
		    rule_text(r, "%s %s not run on the node of %s device", actor_names(r, p),
			      p->actors.n == 1 ? "does" : "do", p->actors.n == 1 ? "its" : "their");
		add_places(r, fi, p->actors.v, p->actors.n);
		add_binding(r, fi, p->actors.v, p->actors.n);
		fi->expectation = EXPECT_BINDING;
	}
}

static bool has_both(const struct topo_place *pl)
{
	return pl->cpu.n && pl->memory.n;
}

static const char *why_remote(struct rule_run *r, const struct topo_place *pl)
{
	if (!pl->remote_measured)
		return rule_text(r,
				 "%.0f %% of its accesses are expected to leave the node, if pages "
				 "are used evenly; cosine %.2f.",
				 pl->remote * 100, pl->cosine);
	return rule_text(r,
			 "another node answered %.0f %% of %" PRIu64
			 " sampled accesses that no cache near it did%s.",
			 pl->remote * 100, pl->samples,
			 has_both(pl) ? rule_text(r, "; cosine of CPU time and memory %.2f", pl->cosine)
				      : "");
}

static void remote_fired(struct rule_run *r, const struct topo_place *pl)
{
	const struct topology *t = r->x->s->t;
	const char *who = t->actors.v[pl->actor].label;
	struct finding *fi =
	    rule_fire(r,
		      pl->remote * 100 > rule_limit(r, LIMIT_remote_critical) ? SEVERITY_CRITICAL
									      : SEVERITY_WARNING,
		      pl->remote_measured ? 90 : 75, root_of(t, &pl->actor, 1));

	finding_subject(fi, t->actors.v[pl->actor].node);
	fi->title = has_both(pl) && pl->cpu.v[0].node != pl->memory.v[0].node
			? rule_text(r,
				    "%s runs most on node %" PRIu32
				    " and has its memory most on node %" PRIu32,
				    who, pl->cpu.v[0].node, pl->memory.v[0].node)
			: rule_text(r, "%s uses much memory of other nodes", who);
	fi->why = why_remote(r, pl);
	finding_advice(fi, "Bind the process and its memory to one node, or move its pages there.");
	add_places(r, fi, &pl->actor, 1);
	add_binding(r, fi, &pl->actor, 1);
	fi->expectation = EXPECT_BINDING;
}

/* Part of a CPU's time that a process used, which makes its memory matter. */
static double cpu_pct(const struct rule_run *r, uint32_t actor)
{
	const struct process_fact *p = fact_process(r->x, r->x->s->t->actors.v[actor].node);

	return p ? facts_pct(r->x, (double)p->run_ns) : 0;
}

static void check_remote(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;
	VEC(uint32_t) told = {0};

	if (!can_tell(r, true))
		return;
	for_problems(r, p) {
		struct finding *fi = from_problem(r, p);

		fi->title = rule_text(r, "%s %s memory on other nodes than %s CPUs",
				      actor_names(r, p), p->actors.n == 1 ? "has" : "have",
				      p->actors.n == 1 ? "its" : "their");
		add_places(r, fi, p->actors.v, p->actors.n);
		add_binding(r, fi, p->actors.v, p->actors.n);
		fi->expectation = EXPECT_BINDING;
		vec_for(&p->actors, a)
			vec_push(&told, *a);
	}
	vec_for(&t->places, pl) {
		bool known = false;

		if (pl->remote * 100 <= rule_limit(r, LIMIT_remote_finding) ||
		    cpu_pct(r, pl->actor) < rule_limit(r, LIMIT_remote_cpu))
			continue;
		vec_for(&told, a)
			known |= *a == pl->actor;
		if (!known)
			remote_fired(r, pl);
	}
	vec_done(&told);
}

static void check_plain(struct rule_run *r)
{
	if (!can_tell(r, false))
		return;
	for_problems(r, p) {
		struct finding *fi = from_problem(r, p);

		if (fi) {
			add_places(r, fi, p->actors.v, p->actors.n);
			fi->expectation = EXPECT_BINDING;
		}
	}
}

/* Pages that were given to CPUs of other nodes, of all that were given in the window. */
static void check_allocations(struct rule_run *r)
{
	size_t known = 0;

	if (count_nodes(r->x) == 1)
		return rule_clear(r, "this machine has one NUMA node");
	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double local, other, pct;
		struct finding *fi;

		if (n->type != &numa_type || !HAS(numa, n, local_pages) ||
		    !HAS(numa, n, other_pages))
			continue;
		known++;
		local = (double)GET(numa, n, local_pages);
		other = (double)GET(numa, n, other_pages);
		pct = local + other > 0 ? other * 100 / (local + other) : 0;
		if (pct <= rule_limit(r, LIMIT_remote_finding) ||
		    other * 1e9 < rule_limit(r, LIMIT_remote_pages) * (double)r->x->window_ns)
			continue;
		fi = rule_fire(r, SEVERITY_NOTICE, 60, n->index);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "pages given to CPUs of other nodes", pct, PERCENT,
			      LIMIT_remote_finding);
		fi->title = rule_text(r,
				      "%.0f %% of the pages that node %" PRIu64
				      " gave went to CPUs of other nodes",
				      pct, GET(numa, n, numa_id));
		fi->why = rule_text(r,
				    "%s pages in the window; processes run elsewhere than they get "
				    "memory, or their own node has "
				    "none free.",
				    rule_count(r, other));
		finding_advice(
		    fi,
		    "numactl --membind or --preferred; numastat tells nodes without free memory.");
	}
	if (known)
		rule_clear(r, "pages that %zu nodes gave", known);
	else
		rule_unknown(r, "pages that each node gave in the window", HOW_PLACE);
}

/* An adapter on another node than who sends through it: only where one job uses it. */
static void check_nic_node(struct rule_run *r)
{
	const struct topology *t = r->x->s->t;
	size_t known = 0;

	if (!can_tell(r, false))
		return;
	r->clear = NULL;
	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double bytes_s;
		uint32_t busiest = TOPO_NONE;
		struct finding *fi;

		if (n->type != &nic_type || !HAS(nic, n, numa_node) || !HAS(nic, n, tx_bytes) ||
		    !r->x->window_ns)
			continue;
		known++;
		bytes_s = (double)(GET(nic, n, tx_bytes) +
				   (HAS(nic, n, rx_bytes) ? GET(nic, n, rx_bytes) : 0)) *
			  1e9 / (double)r->x->window_ns;
		if (bytes_s < rule_limit(r, LIMIT_nic_far))
			continue;
		vec_for(&t->links, l) {
			uint32_t end = t->actors.v[l->to].kind == ACTOR_OUTSIDE     ? l->from
				       : t->actors.v[l->from].kind == ACTOR_OUTSIDE ? l->to
										    : TOPO_NONE;

			if (end < t->n_processes && t->places.v[end].cpu.n &&
			    (busiest == TOPO_NONE ||
			     t->actors.v[end].bytes_out + t->actors.v[end].bytes_in >
				 t->actors.v[busiest].bytes_out + t->actors.v[busiest].bytes_in))
				busiest = end;
		}
		if (busiest == TOPO_NONE ||
		    topo_cpu_share(&t->places.v[busiest], (uint32_t)GET(nic, n, numa_node)) >= 0.5)
			continue;
		fi = rule_fire(r, SEVERITY_NOTICE, 60, n->index);
		finding_subject(fi, t->actors.v[busiest].node);
		finding_subject(fi, n->index);
		finding_value(r, fi, n->index, "traffic", bytes_s, BYTES_S, LIMIT_nic_far);
		fi->title =
		    rule_text(r, "%s is on node %" PRIu64 ", %s runs most on node %" PRIu32,
			      rule_name(r, n->index), GET(nic, n, numa_node),
			      t->actors.v[busiest].label, t->places.v[busiest].cpu.v[0].node);
		fi->why = "Each packet crosses the link between the nodes.";
		finding_advice(
		    fi,
		    "Run who sends most on the adapter's node, or use an adapter of its own node.");
		fi->expectation = EXPECT_BINDING;
	}
	if (known)
		rule_clear(r, "%zu adapters whose node is known", known);
	else
		rule_unknown(r, "the NUMA nodes of network adapters",
			     "a machine that tells the node of its PCI devices");
}

#define NEEDS_PLACE                                                                                \
	"CPU time and memory by node (numa_access, ran_on), NUMA nodes; a machine with one node "  \
	"is always clear."

const struct rule rules_numa[] = {
    {.id = "off-device-node",
     .layer = LAYER_INTERCONNECT,
     .title = "Processes run on another node than their accelerator",
     .fires =
	 "a user of a device has less than half of its CPU time on the only node near the device.",
     .graded = "always a warning.",
     .needs = NEEDS_PLACE " Device users and their nodes.",
     .advice = "start each on the node of its device: numactl --cpunodebind --membind.",
     .family = "placement",
     .check = check_off_device},
    {.id = "remote-memory",
     .layer = LAYER_INTERCONNECT,
     .title = "Processes have their memory on other nodes than their CPUs",
     .fires = "the share of accesses to other nodes, of at least 100 that were sampled "
	      "(`record --sample-memory`), or else as expected (1 − Σ cᵢ·mᵢ), is above "
	      "`remote.finding`, in a rank, engine or "
	      "server, or in another process that uses at least `remote.cpu` of a CPU.",
     .graded = "above `remote.critical` critical, else a warning.",
     .needs = NEEDS_PLACE,
     .advice = "bind CPU and memory to one node, or migratepages.",
     RULE_LIMITS(LIMIT_remote_finding, LIMIT_remote_critical, LIMIT_remote_cpu),
     .family = "placement",
     .check = check_remote},
    {.id = "thread-off-node",
     .layer = LAYER_INTERCONNECT,
     .title = "Threads that serve a device run on another node than their process",
     .fires = "a staging, proxy or runtime thread runs most on another node than its process.",
     .graded = "always a notice.",
     .needs = NEEDS_PLACE " CPU time by node of threads.",
     .advice = "bind the whole process: taskset -a -p.",
     .family = "placement",
     .check = check_plain},
    {.id = "shared-node",
     .layer = LAYER_INTERCONNECT,
     .title = "Ranks share a node while others are free",
     .fires =
	 "two ranks of a group run most on the same node, and there are as many nodes as ranks.",
     .graded = "always a notice.",
     .needs = NEEDS_PLACE,
     .advice = "give each rank the CPUs of the node of its device.",
     .family = "placement",
     .check = check_plain},
    {.id = "cross-node-link",
     .layer = LAYER_INTERCONNECT,
     .title = "Much data goes between processes on different nodes",
     .fires = "a link with at least a tenth of all data joins processes that run most on different "
	      "nodes.",
     .graded = "always a notice.",
     .needs = NEEDS_PLACE " Flows.",
     .advice = "bind both ends to one node.",
     .check = check_plain},
    {.id = "remote-allocations",
     .layer = LAYER_INTERCONNECT,
     .title = "A node gives much of its memory to CPUs of other nodes",
     .fires = "more than `remote.finding` of the pages that a node gave, and at least "
	      "`remote.pages`, went to other nodes' CPUs.",
     .graded = "always a notice.",
     .needs = "numa.local_pages and other_pages.",
     .advice = "numactl --membind or --preferred.",
     RULE_LIMITS(LIMIT_remote_finding, LIMIT_remote_pages),
     .check = check_allocations},
    {.id = "nic-far",
     .layer = LAYER_INTERCONNECT,
     .title = "A busy network adapter is on another node than who uses it",
     .fires = "an adapter moves more than `nic.far`, and the process that exchanges most with "
	      "other hosts has less than half of its "
	      "CPU time on its node.",
     .graded = "always a notice.",
     .needs = NEEDS_PLACE " nic.numa_node.",
     .advice = "run the sender on the adapter's node.",
     RULE_LIMITS(LIMIT_nic_far),
     .check = check_nic_node},
    {0}};
