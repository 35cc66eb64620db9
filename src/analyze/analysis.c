/* All analyses of one graph, in their order. */
#include "analysis.h"

void analysis_init(struct analysis *k, struct graph *g, const struct timeline *t,
		   const struct limits *l)
{
	/* Completes placement, which the others read. */
	hot_init(&k->hot, g, l);
	topology_init(&k->topology, g);
	waitfor_init(&k->waits, g, t);
	hot_follow_waits(&k->hot, &k->waits);
	k->study = (struct study){
	    .g = g, .t = &k->topology, .hot = &k->hot, .w = &k->waits, .l = l, .time = t};
	findings_init(&k->findings, &k->study);
}

void analysis_done(struct analysis *k)
{
	findings_done(&k->findings);
	waitfor_done(&k->waits);
	topology_done(&k->topology);
	hot_done(&k->hot);
}
