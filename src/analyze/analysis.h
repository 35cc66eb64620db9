#pragma once

#include "finding.h"
#include "hot.h"
#include "limit.h"
#include "study.h"
#include "timeline.h"
#include "topology.h"
#include "waitfor.h"

/** Everything that the analyses tell of a graph; it must not be moved. */
struct analysis {
	struct study study; /**< what rules and renderers get */
	struct topology topology;
	struct hot hot;
	struct waitfor waits;
	struct findings findings;
};

/**
 * Analyse: threads, topology, waits, findings.
 *
 * @param g,t,l are used as long as the analysis; who shares the graph holds its lock meanwhile
 * @param t what happened when; NULL: not known
 */
void analysis_init(struct analysis *k, struct graph *g, const struct timeline *t,
		   const struct limits *l);
void analysis_done(struct analysis *k);
