/* Memory by counters and samples of the CPUs: caches, bandwidth, latency. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numa_rows.h"
#include "rule_parts.h"

#define HOW_PMU                                                                                    \
	"a machine whose CPUs let their counters be read: many virtual machines have none; "       \
	"perf_event_paranoid <= 0 or root"

/* The next NUMA node from @p at on, with what its counters say, or NULL. */
static const struct node *next_node(const struct rule_run *r, size_t *at, struct numa_counters *c)
{
	const struct graph *g = r->x->g;

	while (*at < g->nodes.n) {
		const struct node *n = g->nodes.v[(*at)++];

		if (n->type == &numa_type) {
			numa_counters_of(r->x->g, n, c);
			return n;
		}
	}
	return NULL;
}

/* A share of something costs nothing where there is little of it: slow cycles are what it would show in. */
static enum severity unless_fast(enum severity s, double ipc)
{
	return s > SEVERITY_NOTICE && !(ipc >= 0 && ipc < 1) ? SEVERITY_NOTICE : s;
}

/* A finding about a NUMA node, by one value. */
static struct finding *fire_on_node(struct rule_run *r, const struct node *n, enum severity s, unsigned pct,
				    const char *name, double value, enum limit l)
{
	struct finding *fi = rule_fire(r, s, pct, n->index);

	finding_subject(fi, n->index);
	finding_value(r, fi, n->index, name, value, PERCENT, l);
	return fi;
}

static void check_cache(struct rule_run *r)
{
	const struct node *n;
	struct numa_counters c;
	size_t known = 0, at = 0;

	while ((n = next_node(r, &at, &c))) {
		struct finding *fi;
		enum severity s;

		if (c.llc_miss_pct < 0)
			continue;
		known++;
		s = unless_fast(rule_grade_value(r, c.llc_miss_pct, LIMIT_cache_notice, LIMIT_cache_warning,
						 LIMIT_cache_critical), c.ipc);
		if (s == SEVERITY_INFO)
			continue;
		fi = fire_on_node(r, n, s, 70, "misses of the last-level cache", c.llc_miss_pct, LIMIT_cache_notice);
		fi->title = rule_text(
		    r, "%.0f %% of the references to the last-level cache of node %" PRIu64 " miss",
		    c.llc_miss_pct, GET(numa, n, numa_id));
		if (c.ipc >= 0) {
			finding_value(r, fi, n->index, "instructions for each cycle", c.ipc, RATIO, LIMIT_COUNT);
			fi->why = rule_text(r, "Its CPUs do %.2f instructions a cycle.", c.ipc);
		}
		finding_advice(fi, "Smaller working sets (blocking), better order of access, huge "
				   "pages; keep noisy neighbours on "
				   "another node.");
	}
	if (known)
		rule_clear(r, "cache counters of %zu nodes", known);
	else
		rule_unknown(r, "references and misses of the last-level cache", HOW_PMU);
}

static void check_bandwidth(struct rule_run *r)
{
	const struct node *n;
	struct numa_counters c;
	size_t known = 0, traffic = 0, at = 0;

	while ((n = next_node(r, &at, &c))) {
		struct finding *fi;
		enum severity s;

		traffic += c.memory_bytes_s >= 0;
		if (c.peak_pct < 0)
			continue;
		known++;
		s = rule_grade_value(r, c.peak_pct, LIMIT_bandwidth_notice, LIMIT_bandwidth_warning,
				     LIMIT_bandwidth_critical);
		if (s == SEVERITY_INFO)
			continue;
		fi = fire_on_node(r, n, s, 80, "memory traffic, of the node's peak", c.peak_pct, LIMIT_bandwidth_notice);
		fi->title = rule_text(r, "memory of node %" PRIu64 " moves %.0f %% of what it can",
				      GET(numa, n, numa_id), c.peak_pct);
		fi->why = rule_text(r, "%s/s of at most %s/s, by the machine's own tables (%s).",
				    rule_bytes(r, c.memory_bytes_s), rule_bytes(r, c.peak_bytes_s),
				    HAS(numa, n, peak_source) ? GET(numa, n, peak_source) : "?");
		finding_advice(fi, "Spread memory over nodes (numactl --interleave), touch less of it "
				   "(blocking, smaller types), or move neighbours to another node.");
	}
	if (known)
		rule_clear(r, "memory traffic of %zu nodes with a known peak", known);
	else
		rule_unknown(r,
			     traffic ? "the most that the machine's memory can move"
				     : "traffic of the memory controllers",
			     traffic ? "a firmware with HMAT, or memory modules whose places in the DMI "
				       "tables say socket and channel"
				     : "counters of memory controllers (uncore), which virtual machines "
				       "lack");
}

/* --- latency --- */

/* How long memory takes to answer, and what of it could not be told. */
struct latencies {
	VEC(struct idle_node {
		const char *ns;
		uint64_t id;
		double ns_idle; /* by the firmware; 0: not told */
		double peak_pct; /* traffic of its memory, of the most; -1: not known */
	}) nodes;
	size_t sampled, idle; /* processes whose latency is known, in samples or by the firmware */
	size_t without_clock, maybe_loaded;
};

static const struct idle_node *idle_node(const struct latencies *l, const char *ns, uint64_t id)
{
	vec_for(&l->nodes, n)
		if (n->ns == ns && n->id == id)
			return n;
	return NULL;
}

static double ipc_of(const struct node *p)
{
	return HAS(process, p, instructions) && HAS(process, p, cycles) && GET(process, p, cycles)
		       ? (double)GET(process, p, instructions) / (double)GET(process, p, cycles)
		       : -1;
}

/* Cycles a nanosecond while it ran, or 0: a count that is no clock of a CPU tells nothing. */
static double clock_of(const struct node *p)
{
	double ghz = HAS(process, p, cycles) && HAS(process, p, cpu_ns) && GET(process, p, cpu_ns)
			     ? (double)GET(process, p, cycles) / (double)GET(process, p, cpu_ns)
			     : 0;

	return ghz > 0.05 && ghz < 20 ? ghz : 0;
}

static void latency_fired(struct rule_run *r, const struct node *p, double ns, unsigned pct, const char *what,
			  const char *why)
{
	double ipc = ipc_of(p);
	enum severity s = unless_fast(rule_grade_value(r, ns, LIMIT_latency_notice, LIMIT_latency_warning,
						       LIMIT_latency_critical), ipc);
	struct finding *fi;

	if (s == SEVERITY_INFO)
		return;
	fi = rule_fire(r, s, pct, p->index);
	finding_subject(fi, p->index);
	finding_value(r, fi, p->index, what, ns, NS, LIMIT_latency_notice);
	if (ipc >= 0)
		finding_value(r, fi, p->index, "instructions for each cycle", ipc, RATIO, LIMIT_COUNT);
	fi->title = rule_text(r, "memory answers %s after %.0f ns on average", rule_name(r, p->index), ns);
	fi->why = why;
	finding_advice(fi, "Keep memory on the node of the CPUs that use it (numactl --cpunodebind, --membind), and hot "
			   "data in the faster kind of memory.");
	finding_advice(fi, "Access in order, so that the CPU fetches ahead; huge pages, so that it finds addresses "
			   "sooner; where the node's bandwidth is used up, see memory-bandwidth.");
	fi->expectation = "At most the part of its CPU time that is spent waiting for memory.";
}

/* By samples. @return false: there are too few */
static bool sampled_latency(struct rule_run *r, struct latencies *l, const struct node *p)
{
	double clock = clock_of(p), ns;
	uint64_t n;

	if (!HAS(process, p, timed_samples) || !HAS(process, p, latency_cycles) ||
	    GET(process, p, timed_samples) < NUMA_SAMPLES_LEAST)
		return false;
	if (clock <= 0) {
		l->without_clock++;
		return false;
	}
	l->sampled++;
	n = GET(process, p, timed_samples);
	ns = (double)GET(process, p, latency_cycles) / (double)n / clock;
	latency_fired(r, p, ns, 80, "latency of memory, sampled",
		      rule_text(r, "By %" PRIu64 " sampled accesses that no cache of the node answered; its CPUs ran at "
				   "%.2f GHz.", n, clock));
	return true;
}

/*
 * By what the firmware tells of idle memory, and where the process has its own. Slow memory is slow; memory that
 * is quick when idle is only known to be so as long as little of its bandwidth is used.
 */
static void idle_latency(struct rule_run *r, struct latencies *l, const struct numa_row *row)
{
	const struct node *p = r->x->g->nodes.v[row->node];
	double sum = 0, all = 0, ns;
	bool is_light = true;

	vec_for(&row->memory.v, m) {
		const struct idle_node *n = m->amount > 0 ? idle_node(l, p->ns, m->node) : NULL;

		if (m->amount <= 0)
			continue;
		if (!n || n->ns_idle <= 0)
			return;
		all += m->amount;
		sum += m->amount * n->ns_idle;
		is_light &= n->peak_pct >= 0 && n->peak_pct <= rule_limit(r, LIMIT_bandwidth_notice);
	}
	if (all <= 0)
		return;
	ns = sum / all;
	if (ns > rule_limit(r, LIMIT_latency_notice))
		latency_fired(r, p, ns, 60, "latency of its memory when idle",
			      "By where its memory lies and what the firmware tells of each node (HMAT), for the CPUs next "
			      "to it. Other CPUs wait longer, and so do all when much of it is used.");
	else if (!is_light)
		l->maybe_loaded++;
	l->idle += ns > rule_limit(r, LIMIT_latency_notice) || is_light;
}

static void say_latency(struct rule_run *r, const struct latencies *l)
{
	if (l->sampled || l->idle)
		rule_clear(r, "latency of memory of %zu processes by samples, of %zu by the firmware's figures (HMAT)",
			   l->sampled, l->idle);
	else if (l->without_clock)
		rule_unknown(r, "how fast the CPUs ran: latencies were sampled in cycles", HOW_PMU);
	else if (l->maybe_loaded)
		rule_unknown(r, "latency of memory under load: the firmware (HMAT) tells only that of idle memory, and how "
				"much of its bandwidth is used is not known to be little",
			     "record --sample-memory on a CPU with PEBS, IBS or SPE");
	else
		rule_unknown(r, "latency of accesses to memory: of samples, or of nodes by the firmware (HMAT)",
			     "record --sample-memory on a CPU with PEBS, IBS or SPE: many virtual machines have none; "
			     "doctor tells");
}

static void check_latency(struct rule_run *r)
{
	struct latencies l = {0};
	struct numa_rows rows;
	const struct node *n;
	struct numa_counters c;
	size_t at = 0;

	while ((n = next_node(r, &at, &c)))
		vec_push(&l.nodes, ((struct idle_node){
			.ns = n->ns,
			.id = GET(numa, n, numa_id),
			.ns_idle = HAS(numa, n, read_latency_ns) ? (double)GET(numa, n, read_latency_ns) : 0,
			.peak_pct = c.peak_pct,
		}));
	numa_rows_of(r->x->g, &process_type, &rows);
	vec_for(&r->x->processes, p) {
		if (p->kernel || facts_pct(r->x, (double)p->run_ns) < rule_limit(r, LIMIT_remote_cpu) ||
		    sampled_latency(r, &l, r->x->g->nodes.v[p->node]))
			continue;
		vec_for(&rows.v, row)
			if (row->node == p->node)
				idle_latency(r, &l, row);
	}
	numa_rows_done(&rows);
	say_latency(r, &l);
	vec_done(&l.nodes);
}

const struct rule rules_counters[] = {
    {.id = "cache-misses",
     .layer = LAYER_MEMORY,
     .title = "The last-level cache misses much",
     .fires = "misses of references of a node's CPUs are more than `cache.notice`.",
     .graded = "`cache.notice`, `cache.warning`, `cache.critical`; at most a notice unless there "
	       "is less than one instruction a "
	       "cycle.",
     .needs = "counters of the CPUs (numa.llc_references, llc_misses).",
     .advice = "smaller working sets, better order of access.",
     RULE_LIMITS(LIMIT_cache_notice, LIMIT_cache_warning, LIMIT_cache_critical),
     .check = check_cache},
    {.id = "memory-bandwidth",
     .layer = LAYER_MEMORY,
     .title = "Memory bandwidth is used up",
     .fires = "memory controllers of a node move more than `bandwidth.notice` of the most that they can.",
     .graded = "`bandwidth.notice`, `bandwidth.warning`, `bandwidth.critical`.",
     .needs = "traffic of memory controllers (uncore counters), and the machine's peak (HMAT, or DMI).",
     .advice = "spread memory over nodes, touch less of it.",
     RULE_LIMITS(LIMIT_bandwidth_notice, LIMIT_bandwidth_warning, LIMIT_bandwidth_critical),
     .check = check_bandwidth},
    {.id = "memory-latency",
     .layer = LAYER_MEMORY,
     .title = "Memory is slow to answer",
     .fires = "a process that uses at least `remote.cpu` of a CPU waits longer than `latency.notice` on average for what "
	      "no cache of the node has: by at least 100 sampled accesses, or else by where its memory lies and how "
	      "long that takes when idle, as the firmware tells.",
     .graded = "`latency.notice`, `latency.warning`, `latency.critical`; at most a notice unless there is less than one "
	       "instruction a cycle.",
     .needs = "sampled latencies (record --sample-memory) and cycles of the process; or numa.read_latency_ns (HMAT) and "
	      "pages by node, which show that all is well only where the node's bandwidth is known to be little used.",
     .advice = "local memory first.",
     RULE_LIMITS(LIMIT_latency_notice, LIMIT_latency_warning, LIMIT_latency_critical, LIMIT_remote_cpu),
     .check = check_latency},
    {0}};
