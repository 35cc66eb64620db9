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

/** What makes the analysis of many hosts cheaper. It finds the same with and without. */
struct analysis_means {
	unsigned threads; /**< that look at the whole and at hosts at the same time; at most PARALLEL_MOST */
	struct hosts_memory *memory; /**< what was found on hosts before; NULL: nothing is kept */
};

/** As analysis_init(). @param m is used during the call; with its memory @p l is always the same */
void analysis_init_with(struct analysis *k, struct graph *g, const struct timeline *t, const struct limits *l,
			const struct analysis_means *m);

/**
 * What the rules found on each host, from one analysis to the next: a host of which the graph tells the same as last time
 * needs no new look. Bounded by the hosts of the last graph, some 20 KiB each.
 */
struct hosts_memory *hosts_memory_new(void);
/** NULL is fine. */
void hosts_memory_free(struct hosts_memory *m);

struct hosts_memory_counts {
	size_t hosts;  /**< of the last graph with several hosts */
	size_t looked; /**< of these, that had to be looked at */
};
void hosts_memory_get(const struct hosts_memory *m, struct hosts_memory_counts *ret);
