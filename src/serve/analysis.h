#pragma once

#include "finding.h"
#include "hot.h"
#include "limit.h"
#include "study.h"
#include "topology.h"
#include "waitfor.h"

/** Everything that the analyses tell of a graph; it must not be moved. */
struct analysis {
	struct topology topology;
	struct hot hot;
	struct waitfor waitfor;
	struct findings findings;
	struct study study;
};

/** @param g is used as long as the analysis; whoever shares it holds its lock meanwhile */
void analysis_init(struct analysis *k, struct graph *g, const struct limits *l);
void analysis_done(struct analysis *k);
