/* Sampled accesses to memory, for each thread and process: how many were answered by another node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect_machine.h"
#include "mem_sample.h"

struct tally {
	uint32_t tid;
	uint64_t samples, remote, timed, cycles; /* timed: those whose latency is known */
};

struct mem_samples {
	struct mem_rings rings;
	const char *name;
	bool is_spe;
	size_t without; /* CPUs that this way of sampling is not for */
	struct idmap by_tid; /* of one interval */
	VEC(struct tally) tallies;
	uint64_t named, timed; /* accesses by threads, and those whose latency is known, of all intervals */
	uint64_t unnamed;
};

static int add_cpu(struct mem_samples *s, const struct mem_sampler *how, const struct sysroot *r,
		   const struct topo_cpu *cpu, struct err *e)
{
	if (!cpu->online)
		return 0;
	if (how->cpus && !idrange_has(how->cpus, cpu->id)) {
		s->without++;
		return 0;
	}
	return mem_rings_add(&s->rings, how, cpu->id, how->is_spe ? spe_codes_of(spe_midr(r, cpu->id)) : SPE_CODES_UNKNOWN,
			     e);
}

int mem_samples_new(struct mem_samples **ret, const struct machine *m, const char *pmu_root, struct err *e)
{
	struct mem_samples *s = mem_alloc(sizeof(*s));
	struct mem_sampler how;
	struct pmus pmus = {0};
	struct sysroot r = {.fd = -1};
	int rc = pmu_root ? sysroot_open(pmu_root, &r, e) : 0;

	if (!rc && pmus_read(pmu_root ? &r : &m->root, &pmus) < 0)
		rc = err_msg(e, -ENOENT, "not available: no PMU in /sys/bus/event_source");
	rc = rc ?: mem_sampler_find(&pmus, &how, e);
	for (size_t i = 0; !rc && i < m->topo.cpus.n; i++)
		rc = add_cpu(s, &how, pmu_root ? &r : &m->root, &m->topo.cpus.v[i], e);
	pmus_done(&pmus);
	if (pmu_root)
		sysroot_close(&r);
	if (rc) {
		mem_samples_free(s);
		return err_ctx(e, "--sample-memory");
	}
	s->name = how.name;
	s->is_spe = how.is_spe;
	*ret = s;
	return 0;
}

void mem_samples_free(struct mem_samples *s)
{
	if (!s)
		return;
	mem_rings_done(&s->rings);
	idmap_done(&s->by_tid);
	vec_done(&s->tallies);
	free(s);
}

static void on_sample(void *ctx, const struct mem_access *a)
{
	struct mem_samples *s = ctx;
	struct tally *x;
	uint32_t i;

	/* What its own caches answer costs little wherever the memory is. Tid 0: nobody ran. */
	if ((a->answer != MEM_LOCAL && a->answer != MEM_REMOTE) || !a->tid)
		return;
	i = idmap_get(&s->by_tid, a->tid, 0);
	if (i == IDMAP_NONE) {
		i = (uint32_t)s->tallies.n;
		vec_push(&s->tallies, ((struct tally){.tid = a->tid}));
		idmap_put(&s->by_tid, a->tid, 0, i);
	}
	x = &s->tallies.v[i];
	s->named++;
	s->timed += a->cycles != 0;
	x->samples++;
	x->remote += a->answer == MEM_REMOTE;
	x->timed += a->cycles != 0;
	x->cycles += a->cycles;
}

static void give_latency(const struct tally *x, struct node *t, struct node *p)
{
	if (!x->timed)
		return;
	SET(thread, t, timed_samples, x->timed);
	SET(thread, t, latency_cycles, x->cycles);
	if (!p)
		return;
	SET(process, p, timed_samples, x->timed + (HAS(process, p, timed_samples) ? GET(process, p, timed_samples) : 0));
	SET(process, p, latency_cycles,
	    x->cycles + (HAS(process, p, latency_cycles) ? GET(process, p, latency_cycles) : 0));
}

/* Threads of this interval; a tally is given once, to the thread that is there by that number. */
static void give(struct mem_samples *s, struct graph *g, struct node *t)
{
	uint32_t i = idmap_get(&s->by_tid, (uint32_t)GET(thread, t, tid), 0);
	struct tally *x = i == IDMAP_NONE ? NULL : &s->tallies.v[i];
	struct node *p = NULL;

	if (!x || !x->samples || HAS(thread, t, end_ns))
		return;
	SET(thread, t, memory_samples, x->samples);
	SET(thread, t, remote_samples, x->remote);
	if (HAS(thread, t, process)) {
		p = g->nodes.v[GET(thread, t, process)];
		SET(process, p, memory_samples,
		    x->samples + (HAS(process, p, memory_samples) ? GET(process, p, memory_samples) : 0));
		SET(process, p, remote_samples,
		    x->remote + (HAS(process, p, remote_samples) ? GET(process, p, remote_samples) : 0));
	}
	give_latency(x, t, p);
	x->samples = 0;
}

void collect_mem(struct mem_samples *s, struct graph *g, bool first)
{
	if (!s)
		return;
	mem_rings_read(&s->rings, on_sample, s);
	/* From the start of the sources to the first sample belongs to no interval. */
	for (size_t i = 0; !first && i < g->nodes.n; i++)
		if (g->nodes.v[i]->type == &thread_type)
			give(s, g, g->nodes.v[i]);
	vec_for(&s->tallies, x)
		s->unnamed += first ? 0 : x->samples;
	vec_clear(&s->tallies);
	idmap_clear(&s->by_tid);
}

void collect_mem_describe(const struct mem_samples *s, struct graph *g)
{
	struct strbuf b = {0};
	const char *state;

	if (!s) {
		graph_add_status(g, "memory samples", "off", NULL, "not asked for: --sample-memory");
		return;
	}
	if (s->without)
		strbuf_addf(&b, "%zu CPUs do not sample", s->without);
	state = mem_rings_state(&s->rings, s->named, s->timed, &b);
	graph_add_status(g, "memory samples", s->without && !strcmp(state, "ok") ? "reduced" : state, s->name,
			 b.n ? b.s : NULL);
	strbuf_done(&b);
	graph_add_loss(g, "memory samples", "ring_full", s->rings.lost + s->rings.spe.lost);
	graph_add_loss(g, "memory samples", "of_threads_not_recorded", s->unnamed);
	if (!s->is_spe)
		return;
	graph_add_loss(g, "memory samples", "buffer_truncated", s->rings.spe.truncated);
	graph_add_loss(g, "memory samples", "buffer_partial", s->rings.spe.partial);
	graph_add_loss(g, "memory samples", "collisions", s->rings.spe.collisions);
	graph_add_loss(g, "memory samples", "bad_packets", s->rings.spe.counts.bad_packets);
	graph_add_loss(g, "memory samples", "records_cut", s->rings.spe.counts.cut);
	graph_add_loss(g, "memory samples", "bytes_skipped", s->rings.spe.skipped);
	graph_add_loss(g, "memory samples", "thread_not_known", s->rings.spe.no_context);
}
