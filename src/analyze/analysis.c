/* All analyses of one graph, in their order. */
#include "analysis.h"

#include "derive_flows.h"
#include "finding_hosts.h"
#include "numa_score.h"
#include "parallel.h"

struct parts {
	struct analysis *k;
	struct graph *g;
	const struct timeline *t;
	const struct limits *l;
	struct host_looks *looks;
};

enum { WAITS, HOT, TOPOLOGY, WHOLE_PARTS }; /* the longest first */

/* From here on the graph is only read, but for its table of texts, which the topology alone adds to. */
static void analyse_part(void *ctx, unsigned thread, size_t i)
{
	struct parts *p = ctx;

	switch (i) {
	case WAITS:
		waitfor_init(&p->k->waits, p->g, p->t);
		break;
	case HOT:
		hot_init_completed(&p->k->hot, p->g, p->l);
		break;
	case TOPOLOGY:
		topology_init(&p->k->topology, p->g);
		break;
	default:
		host_look(p->looks, thread, i - WHOLE_PARTS);
	}
}

void analysis_init_with(struct analysis *k, struct graph *g, const struct timeline *t, const struct limits *l,
			const struct analysis_means *m)
{
	struct parts p = {.k = k, .g = g, .t = t, .l = l};

	/* Completes placement and flows, which all others read. Indexes would be made at the first use, by several threads. */
	derive_numa(g);
	derive_flows(g);
	if (m->threads > 1 && g->nodes.n) {
		graph_node_id(g, 0);
		graph_out(g, 0);
	}
	p.looks = host_looks_new(g, l, m);
	parallel_for(m->threads, WHOLE_PARTS + host_looks_count(p.looks), analyse_part, &p);
	hot_follow_waits(&k->hot, &k->waits);
	k->study = (struct study){
	    .g = g, .t = &k->topology, .hot = &k->hot, .w = &k->waits, .l = l, .time = t, .looks = p.looks};
	findings_init(&k->findings, &k->study);
	k->study.looks = NULL;
	host_looks_free(p.looks);
}

void analysis_init(struct analysis *k, struct graph *g, const struct timeline *t,
		   const struct limits *l)
{
	analysis_init_with(k, g, t, l, &(struct analysis_means){.threads = 1});
}

void analysis_done(struct analysis *k)
{
	findings_done(&k->findings);
	waitfor_done(&k->waits);
	topology_done(&k->topology);
	hot_done(&k->hot);
}
