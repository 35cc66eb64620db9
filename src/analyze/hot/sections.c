/* NUMA affinity and context switches of a thread: how grave, why, and what to do about it. */
#include <inttypes.h>
#include <string.h>

#include "hot_parts.h"
#include "idrange.h"

static const char *numa_band(const struct hot *h, double similarity)
{
	const double *v = h->limits.v;

	return similarity > v[LIMIT_numa_good]       ? "good"
	       : similarity >= v[LIMIT_numa_fair]    ? "fair"
	       : similarity >= v[LIMIT_numa_warning] ? "warning"
						     : "severe";
}

/* Dominant nodes, the share that crosses, or neither: in that order. */
static void judge_affinity(struct hot *h, struct hot_thread *t)
{
	struct hot_affinity *a = &t->affinity;
	const struct node *p = t->process == HOT_NONE ? NULL : h->g->nodes.v[t->process];
	uint64_t tid = GET(thread, h->g->nodes.v[t->node], tid);
	double dominant = h->limits.v[LIMIT_numa_dominant];
	bool cpu = t->cpu_node_pct > dominant, memory = t->memory_node_pct > dominant;

	if (cpu && memory && t->cpu_node != t->memory_node) {
		a->why =
		    hot_text(h, "it runs on node %u (%.0f %%), its memory is on node %u (%.0f %%)",
			     t->cpu_node, t->cpu_node_pct, t->memory_node, t->memory_node_pct);
		a->advice = p && HAS(process, p, pid)
				? hot_text(h,
					   "run it where its memory is: taskset -pc \"$(cat "
					   "/sys/devices/system/node/node%u/cpulist)\" %" PRIu64
					   "; from the start: numactl --cpunodebind=%u "
					   "--membind=%u; or move the memory: "
					   "migratepages %" PRIu64 " %u %u",
					   t->memory_node, tid, t->memory_node, t->memory_node,
					   GET(process, p, pid), t->memory_node, t->cpu_node)
				: NULL;
	} else if (hot_above(h, t->remote_pct, LIMIT_numa_remote)) {
		a->why =
		    memory
			? hot_text(h,
				   "it runs on several nodes, its memory is on node %u (%.0f %%)",
				   t->memory_node, t->memory_node_pct)
			: hot_text(h,
				   "its process's memory is spread over nodes: %.0f %% of the "
				   "accesses are "
				   "expected to leave the node it runs on",
				   t->remote_pct);
		a->advice =
		    memory
			? hot_text(h, "keep it on one node: numactl --cpunodebind=%u, or a cpuset",
				   t->memory_node)
			: "divide the data by node, a process or a pool of threads for each";
	} else if (t->similarity < h->limits.v[LIMIT_numa_fair]) {
		a->why = "time and memory are spread over nodes in unlike ways";
		a->advice =
		    "see its migrations; pin it, or interleave its memory: numactl --interleave";
	}
}

/* Nodes near a device, as ranges; NULL: not known. */
static const char *near_nodes(struct graph *g, uint32_t device)
{
	struct edge_list out = graph_out(g, device);

	for (size_t i = 0; i < out.n; i++) {
		const struct edge *d = g->edges.v[out.v[i]];
		const struct node *set = g->nodes.v[d->target];

		if (d->type == &affinitative_to_numa_type && set->type == &numa_set_type)
			return GET(numa_set, set, numa_id_str);
	}
	return NULL;
}

/* A thread that feeds a device of another node crosses nodes as well. */
static void judge_devices(struct hot *h, struct hot_thread *t)
{
	vec_for(&t->devices, it) {
		const char *nodes = near_nodes(h->g, *it);
		struct idrange set = {0};
		struct err e;

		if (!nodes || idrange_parse(nodes, &set, &e) || idrange_has(&set, t->cpu_node)) {
			idrange_done(&set);
			continue;
		}
		idrange_done(&set);
		t->affinity.why =
		    hot_text(h, "%s%sits process's device %s is near node %s, it runs on node %u",
			     t->affinity.why ?: "", t->affinity.why ? "; " : "",
			     graph_node_id(h->g, *it), nodes, t->cpu_node);
		return;
	}
}

void hot_fill_affinity(struct hot *h, struct hot_thread *t)
{
	struct numa_score s = {.known = hot_has(t->similarity), .similarity = t->similarity};

	if (!s.known)
		return;
	t->affinity.band = numa_band(h, t->similarity);
	t->affinity.mode = numa_verdict(&s);
	t->affinity.listed = h->numa_nodes != 1 && t->cpu.v.n && t->memory.v.n && hot_runs(h, t);
	if (!t->affinity.listed)
		return;
	judge_affinity(h, t);
	judge_devices(h, t);
}

static const char *switch_cause(const struct hot *h, const struct hot_thread *t)
{
	double factor = h->limits.v[LIMIT_switches_factor];

	if (t->switches_s <= 0)
		return "none";
	if (t->voluntary_s > factor * t->involuntary_s)
		return "waiting";
	return t->involuntary_s > factor * t->voluntary_s ? "CPU contention" : "mixed";
}

static void add_waits(struct hot *h, const struct hot_thread *t, struct strbuf *b)
{
	for (size_t i = 0; i < t->waits.n && i < 2; i++) {
		const struct hot_wait *w = &t->waits.v[i];

		strbuf_addf(b, "%s%.0f %% of the time by %s, %.0f times/s",
			    b->n ? "; " : "waits: ", hot_share_of(t, w->waited_ns), w->cause,
			    (double)w->waits * 1e9 / (double)t->base_ns);
	}
	if (t->wakers.n) {
		strbuf_add(b, "; woken most by ");
		strbuf_add(b, hot_label(h, t->wakers.v[0].node));
	}
}

/* Weight among other threads, where it is not the usual one. */
static void add_rank(const struct hot *h, const struct hot_thread *t, struct strbuf *b)
{
	const struct node *n = h->g->nodes.v[t->node];

	if (HAS(thread, n, rt_priority) && GET(thread, n, rt_priority))
		strbuf_addf(b, "%sreal-time priority %" PRIu64, b->n ? "; " : "", GET(thread, n, rt_priority));
	else if (HAS(thread, n, nice) && GET(thread, n, nice))
		strbuf_addf(b, "%snice value %" PRId64, b->n ? "; " : "", GET(thread, n, nice));
}

static void add_rivals(struct hot *h, const struct hot_thread *t, struct strbuf *b)
{
	if (t->preempted)
		strbuf_addf(b, "%s%" PRIu64 " times at least another thread came in its place, in %.0f %% %s",
			    b->n ? "; " : "", t->preempted,
			    (double)t->preempter_times * 100 / (double)t->preempted,
			    hot_label(h, t->preempter));
	if (!t->rivals.n)
		return;
	strbuf_addf(b, "%s%.1f %% of the time without a CPU; on its CPUs ran ", b->n ? "; " : "",
		    t->runq_pct);
	for (size_t i = 0; i < t->rivals.n && i < 3; i++)
		strbuf_addf(b, "%s%s %.0f %%", i ? ", " : "", hot_label(h, t->rivals.v[i].node),
			    (double)t->rivals.v[i].run_ns * 100 / (double)h->observed_ns);
}

static const char *switch_advice(const struct hot_thread *t)
{
	bool much = strcmp(t->switching.band, "normal") != 0;

	if (!strcmp(t->switching.cause, "CPU contention"))
		return "fewer threads on its CPUs, CPUs of its own (taskset, cpuset), or a "
		       "priority (nice, chrt)";
	if (!much)
		return NULL;
	if (!strcmp(t->switching.cause, "waiting"))
		return "see who it waits for; larger batches, asynchronous calls, shorter locks";
	return "separate the two: who it waits for, and who else runs on its CPUs";
}

void hot_fill_switching(struct hot *h, struct hot_thread *t)
{
	const double *v = h->limits.v;
	struct hot_switching *s = &t->switching;
	struct strbuf b = {0};

	if (!hot_has(t->switches_s))
		return;
	s->band = t->switches_s > v[LIMIT_switches_severe]    ? "severe"
		  : t->switches_s > v[LIMIT_switches_warning] ? "warning"
		  : t->switches_s > v[LIMIT_switches_notice]  ? "notice"
							      : "normal";
	s->cause = switch_cause(h, t);
	s->listed = t->cpu_pct >= v[LIMIT_switches_cpu] ||
		    t->switches_s > v[LIMIT_switches_notice] ||
		    (hot_has(t->runq_pct) && t->runq_pct >= v[LIMIT_switches_runq]);
	if (!s->listed)
		return;
	if (strcmp(s->cause, "CPU contention"))
		add_waits(h, t, &b);
	if (strcmp(s->cause, "waiting") ||
	    (hot_has(t->runq_pct) && t->runq_pct >= v[LIMIT_switches_runq]))
		add_rivals(h, t, &b);
	add_rank(h, t, &b);
	s->proof = b.n ? arena_strdup(&h->arena, b.s) : NULL;
	s->advice = switch_advice(t);
	strbuf_done(&b);
}
