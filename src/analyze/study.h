#pragma once

#include "graph.h"
#include "topology.h"

struct hot;      /* hot.h: profiles of threads */
struct waitfor;  /* waitfor.h: chains of waits to their roots */
struct limits;   /* limit.h: named thresholds */
struct timeline; /* timeline.h: wait segments and series */
struct host_looks; /* finding_hosts.h: what was found on each of several hosts */

/**
 * All that rules, reports and servers look at: one file and its analyses. session/study_open.h
 * makes it. Whatever is not there is NULL; nothing here is owned.
 */
struct study {
	struct graph *g;
	const struct topology *t;
	const struct hot *hot;
	const struct waitfor *w;
	const struct limits *l;
	const struct timeline *time;
	struct host_looks *looks; /**< NULL: findings_init() looks at each host itself */
};
