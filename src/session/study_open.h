#pragma once

#include "analysis.h"
#include "err.h"

/** A file with its analyses, which all lie in here: it must not be moved while it is open. */
struct opened_study {
	struct graph graph;
	struct timeline timeline;
	struct limits limits;
	struct analysis all;
};

/**
 * Read a recording, graph JSON or compact text, and analyse it: topology, threads, waits, findings.
 *
 * @param limits file of thresholds that replace the defaults; NULL: the defaults
 * @return 0 or -errno; on failure there is nothing to close
 */
int study_open(struct opened_study *o, const char *path, const char *limits, struct err *e);
/** Likewise, with limits that were read before; copied. */
int study_open_with(struct opened_study *o, const char *path, const struct limits *l, struct err *e);
void study_close(struct opened_study *o);
