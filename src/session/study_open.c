/* Reads a file and runs all analyses on it: what every view, server and tool starts from. */
#include <string.h>

#include "load.h"
#include "numa_score.h"
#include "study_open.h"

int study_open(struct opened_study *o, const char *path, const char *limits, struct err *e)
{
	int rc;

	memset(o, 0, sizeof(*o));
	graph_init(&o->graph);
	rc = graph_load(&o->graph, path, e);
	if (rc < 0) {
		graph_done(&o->graph);
		return rc;
	}
	(void)limits;
	derive_numa(&o->graph);
	topology_init(&o->topology, &o->graph);
	o->study = (struct study){.g = &o->graph, .t = &o->topology};
	findings_init(&o->findings, &o->study);
	return 0;
}

void study_close(struct opened_study *o)
{
	findings_done(&o->findings);
	topology_done(&o->topology);
	graph_done(&o->graph);
}
