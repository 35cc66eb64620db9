#pragma once

#include "err.h"
#include "finding.h"
#include "hot.h"
#include "limit.h"
#include "study.h"
#include "timeline.h"
#include "waitfor.h"

/** A file with its analyses, which all lie in here: it must not be moved while it is open. */
struct opened_study {
	struct study study; /**< what analyses and renderers get */
	struct graph graph;
	struct timeline timeline;
	struct limits limits;
	struct topology topology;
	struct hot hot;
	struct waitfor waits;
	struct findings findings;
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
