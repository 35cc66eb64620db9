/* All analyses of one graph, in their order. */
#include "analysis.h"

void analysis_init(struct analysis *k, struct graph *g, const struct limits *l)
{
	topology_init(&k->topology, g);
	waitfor_init(&k->waitfor, g, NULL);
	hot_init(&k->hot, g, l);
	hot_follow_waits(&k->hot, &k->waitfor);
	k->study = (struct study){.g = g, .t = &k->topology, .hot = &k->hot, .w = &k->waitfor, .l = l};
	findings_init(&k->findings, &k->study);
}

void analysis_done(struct analysis *k)
{
	findings_done(&k->findings);
	hot_done(&k->hot);
	waitfor_done(&k->waitfor);
	topology_done(&k->topology);
}
