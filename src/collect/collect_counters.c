/* Hardware counters: of each CPU, summed by NUMA node, and of what lies outside of the cores. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "collect_machine.h"
#include "perf_count.h"
#include "perf_pmu.h"
#include "sched_probe.h"
#include "uncore.h"

/* One event on one CPU. */
struct counter {
	int fd;
	uint32_t cpu, node; /* TOPO_UNKNOWN: the CPU is of none */
	enum core_event event;
	size_t uncore; /* index in counters.uncore; SIZE_MAX: an event of a core */
	struct count last;
};

struct counters {
	struct pmus pmus;
	struct uncore_events uncore;
	VEC(struct counter) v;
	uint64_t last_ns;
	char why_core[400], why_uncore[400]; /* why nothing, or not all, is counted */
	char why_threads[400];		     /* why nothing is counted for threads */
	bool for_threads;
	uint64_t unread;
};

static void keep_reason(char why[400], const struct err *e)
{
	if (!why[0])
		snprintf(why, 400, "%.390s", e->msg);
}

/* The rest of the recording needs descriptors too. */
static bool has_room(struct counters *s)
{
	long most = sysconf(_SC_OPEN_MAX);

	if (most < 0 || (long)s->v.n < most / 2)
		return true;
	if (!s->why_core[0])
		snprintf(s->why_core, sizeof(s->why_core), "half of the %ld open files that are allowed are in use", most);
	return false;
}

static void open_core(struct counters *s, const struct topo *t, const struct pmu *p)
{
	vec_for(&t->cpus, c) {
		bool is_of_it = !idrange_count(&p->cpus) || idrange_has(&p->cpus, c->id);

		for (enum core_event e = 0; c->online && is_of_it && e < CORE_EVENTS; e++) {
			struct counter x = {.cpu = c->id, .node = c->node, .event = e, .uncore = SIZE_MAX};
			uint64_t config[3];
			uint32_t type;
			struct err err;

			if (!has_room(s) || core_event_of(p, e, &type, config) < 0)
				continue;
			x.fd = count_open(type, config, -1, (int)c->id, false, &err);
			if (x.fd < 0) {
				keep_reason(s->why_core, &err);
				continue;
			}
			count_read(x.fd, &x.last);
			vec_push(&s->v, x);
		}
	}
}

static void open_uncore(struct counters *s, const struct topo *t)
{
	for (size_t i = 0; i < s->uncore.v.n && has_room(s); i++) {
		const struct uncore_event *u = &s->uncore.v.v[i];
		struct counter x = {.cpu = u->cpu, .node = uncore_node(&s->pmus, u, t), .uncore = i};
		struct err err;

		/* A sum over nodes that is put on one of them would be wrong for each. */
		if (x.node == TOPO_UNKNOWN) {
			err_msg(&err, -ENODATA, "not available by node: '%s' counts for several NUMA nodes, as of a whole "
						"socket (NPS, sub-NUMA clusters)", s->pmus.v.v[u->pmu].name);
			keep_reason(s->why_uncore, &err);
			continue;
		}
		x.fd = count_open(s->pmus.v.v[u->pmu].type, u->config, -1, (int)u->cpu, false, &err);
		if (x.fd < 0) {
			keep_reason(s->why_uncore, &err);
			continue;
		}
		count_read(x.fd, &x.last);
		vec_push(&s->v, x);
	}
}

/* @return what pmus_read() does; @p root NULL: of the machine */
static int read_pmus(struct counters *s, const struct machine *m, const char *root)
{
	struct sysroot r;
	struct err e;
	int rc;

	if (!root)
		return pmus_read(&m->root, &s->pmus);
	rc = sysroot_open(root, &r, &e);
	if (rc < 0)
		return rc;
	rc = pmus_read(&r, &s->pmus);
	sysroot_close(&r);
	return rc;
}

struct counters *counters_new(const struct machine *m, const char *pmu_root)
{
	struct counters *s = mem_alloc(sizeof(*s));

	if (!m->has_topo || read_pmus(s, m, pmu_root) < 0) {
		snprintf(s->why_core, sizeof(s->why_core), "no PMU in /sys/bus/event_source");
		return s;
	}
	vec_for(&s->pmus.v, p)
		if (p->is_core)
			open_core(s, &m->topo, p);
	uncore_find(&s->pmus, &s->uncore);
	open_uncore(s, &m->topo);
	s->last_ns = clock_mono_ns();
	return s;
}

bool counters_of_cores(const struct counters *s)
{
	vec_for(&s->v, x)
		if (x->uncore == SIZE_MAX)
			return true;
	return false;
}

void counters_for_threads(struct counters *s, struct sched_probe *p)
{
	struct err e;

	vec_for(&s->v, x) {
		if (x->uncore != SIZE_MAX)
			continue;
		if (sched_probe_count(p, x->cpu, x->event, x->fd, &e) < 0) {
			keep_reason(s->why_threads, &e);
			continue;
		}
		s->for_threads = true;
	}
}

void counters_free(struct counters *s)
{
	if (!s)
		return;
	vec_for(&s->v, x)
		close(x->fd);
	vec_done(&s->v);
	vec_done(&s->uncore.v);
	pmus_done(&s->pmus);
	free(s);
}

/* What all counters of one node gained. */
struct node_gain {
	uint32_t node;
	bool has_core[CORE_EVENTS], has_uncore;
	uint64_t core[CORE_EVENTS];
	struct uncore_sums uncore;
};

struct gains {
	VEC(struct node_gain) v;
};

static struct node_gain *gain_of(struct gains *g, uint32_t node)
{
	struct node_gain *n;

	vec_for(&g->v, it)
		if (it->node == node)
			return it;
	n = vec_add(&g->v);
	n->node = node;
	uncore_sums_init(&n->uncore);
	return n;
}

static void read_all(struct counters *s, struct gains *g)
{
	vec_for(&s->v, x) {
		struct node_gain *n;
		struct count now;
		uint64_t v;

		if (count_read(x->fd, &now) < 0 || !count_between(&x->last, &now, &v)) {
			s->unread++;
			continue;
		}
		x->last = now;
		if (x->node == TOPO_UNKNOWN)
			continue;
		n = gain_of(g, x->node);
		if (x->uncore != SIZE_MAX) {
			uncore_sums_add(&n->uncore, &s->uncore.v.v[x->uncore], v);
			n->has_uncore = true;
			continue;
		}
		n->core[x->event] += v;
		n->has_core[x->event] = true;
	}
}

static void emit_core(struct node *n, const struct node_gain *x)
{
	if (x->has_core[CORE_CYCLES])
		SET(numa, n, cycles, x->core[CORE_CYCLES]);
	if (x->has_core[CORE_INSTRUCTIONS])
		SET(numa, n, instructions, x->core[CORE_INSTRUCTIONS]);
	if (x->has_core[CORE_LLC_REFERENCES])
		SET(numa, n, llc_references, x->core[CORE_LLC_REFERENCES]);
	if (x->has_core[CORE_LLC_MISSES])
		SET(numa, n, llc_misses, x->core[CORE_LLC_MISSES]);
	if (x->has_core[CORE_L1I_MISSES])
		SET(numa, n, l1i_misses, x->core[CORE_L1I_MISSES]);
}

static void emit_bytes(struct edge *d, const struct uncore_sums *sums)
{
	if (isfinite(sums->v[DDR_READ_BYTES]))
		SET(ddr_bandwidth, d, read_bytes, (uint64_t)sums->v[DDR_READ_BYTES]);
	if (isfinite(sums->v[DDR_WRITE_BYTES]))
		SET(ddr_bandwidth, d, write_bytes, (uint64_t)sums->v[DDR_WRITE_BYTES]);
	if (isfinite(uncore_ddr_bytes(sums)))
		SET(ddr_bandwidth, d, total_bytes, (uint64_t)uncore_ddr_bytes(sums));
}

static void emit_rates(struct graph *g, uint32_t node, const struct uncore_sums *sums, enum uncore_kind kind,
		       double seconds)
{
	struct strbuf b = {0};
	const char *text;
	struct edge *d;

	if (uncore_rates(sums, kind, seconds, (double)clock_real_ns() / 1e9, &b)) {
		text = graph_str(g, b.s);
		switch (kind) {
		case UNCORE_DDR:
			d = graph_new_edge(g, &ddr_bandwidth_type, node, node);
			SET(ddr_bandwidth, d, bandwidth_info, text);
			emit_bytes(d, sums);
			break;
		case UNCORE_HHA:
			d = graph_new_edge(g, &hha_bandwidth_type, node, node);
			SET(hha_bandwidth, d, bandwidth_info, text);
			break;
		case UNCORE_HCCS:
			d = graph_new_edge(g, &hccs_bandwidth_type, node, node);
			SET(hccs_bandwidth, d, bandwidth_info, text);
			break;
		case UNCORE_L3C:
			d = graph_new_edge(g, &l3c_bandwidth_type, node, node);
			SET(l3c_bandwidth, d, bandwidth_info, text);
			break;
		default:
			d = graph_new_edge(g, &pa_bandwidth_type, node, node);
			SET(pa_bandwidth, d, bandwidth_info, text);
		}
		graph_add_edge(g, d);
	}
	strbuf_done(&b);
}

void collect_counters(struct counters *s, struct graph *g, bool first)
{
	uint64_t now = clock_mono_ns();
	double seconds = (double)(now - s->last_ns) / 1e9;
	struct gains gains = {0};

	read_all(s, &gains);
	s->last_ns = now;
	/* From the start of the sources to the first sample belongs to no interval. */
	for (size_t i = 0; !first && seconds > 0 && i < gains.v.n; i++) {
		struct node *n = graph_new_node(g, &numa_type);
		uint32_t index;

		SET(numa, n, numa_id, gains.v.v[i].node);
		emit_core(n, &gains.v.v[i]);
		index = graph_add_node(g, n)->index;
		for (enum uncore_kind k = 0; gains.v.v[i].has_uncore && k < UNCORE_KINDS; k++)
			emit_rates(g, index, &gains.v.v[i].uncore, k, seconds);
	}
	vec_done(&gains.v);
}

void collect_counters_describe(const struct counters *s, struct graph *g)
{
	bool core = false, uncore = false;

	vec_for(&s->v, x) {
		core |= x->uncore == SIZE_MAX;
		uncore |= x->uncore != SIZE_MAX;
	}
	graph_add_status(g, "counters core", !core ? "off" : s->why_core[0] ? "reduced" : "ok", core ? "perf" : NULL,
			 s->why_core[0] ? s->why_core
			 : core		? NULL
					: "not available: this machine, or virtual machine, has no PMU of its CPUs");
	graph_add_status(g, "counters uncore", !uncore ? "off" : s->why_uncore[0] ? "reduced" : "ok",
			 uncore ? "perf" : NULL,
			 s->why_uncore[0] ? s->why_uncore
			 : uncore	  ? NULL
					  : "not available: no PMU of memory controllers or links that is known");
	if (core)
		graph_add_status(g, "counters threads", s->for_threads ? s->why_threads[0] ? "reduced" : "ok" : "off",
				 s->for_threads ? "sched" : NULL,
				 s->why_threads[0]  ? s->why_threads
				 : s->for_threads ? NULL
						  : "not available: they are read at context switches, by probe sched");
	graph_add_loss(g, "counters", "unread", s->unread);
}
