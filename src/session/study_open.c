/* Reads a file and runs all analyses on it: what every view, server and tool starts from. */
#include "study_open.h"

#include <string.h>

#include "limits_file.h"
#include "load.h"

int study_open(struct opened_study *o, const char *path, const char *limits, struct err *e)
{
	struct limits l;
	int rc = limits_load(&l, NULL, limits, e);

	return rc < 0 ? rc : study_open_with(o, path, &l, e);
}

int study_open_with(struct opened_study *o, const char *path, const struct limits *l, struct err *e)
{
	int rc;

	memset(o, 0, sizeof(*o));
	o->limits = *l;
	graph_init(&o->graph);
	rc = graph_load_timed(&o->graph, &o->timeline, path, e);
	if (rc < 0) {
		timeline_done(&o->timeline);
		graph_done(&o->graph);
		return rc;
	}
	analysis_init(&o->all, &o->graph, &o->timeline, &o->limits);
	return 0;
}

void study_close(struct opened_study *o)
{
	analysis_done(&o->all);
	timeline_done(&o->timeline);
	graph_done(&o->graph);
}
