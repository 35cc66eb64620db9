#pragma once

#include <stddef.h>

#include "finding.h"

/* Private to analyses: rules that look at each of several hosts by itself. */

struct analysis_means;
struct limits;

/** Hosts of one graph, to be looked at in any order and by several threads. */
struct host_looks;

/**
 * @param g,l,m are used as long as the result; what is known of the graph is complete, and it does not change meanwhile
 * @return NULL: it has one host
 */
struct host_looks *host_looks_new(const struct graph *g, const struct limits *l, const struct analysis_means *m);
/** NULL is fine. What was found goes to the memory, if there is one. */
void host_looks_free(struct host_looks *w);

/** 0 for NULL. */
size_t host_looks_count(const struct host_looks *w);
/** Try all rules on the host @p i, unless it is as it was. @param thread of that number is one at a time */
void host_look(struct host_looks *w, unsigned thread, size_t i);

/**
 * Where the graph has several hosts: what the rules find on each of them, and one verdict a rule for all. Rules that look
 * across hosts are left to the caller. Looks at the hosts where that was not done (`s->looks`).
 *
 * @return false: it has one, and nothing was done
 */
bool findings_of_hosts(struct findings *f, const struct study *s);

/**
 * Hash of all that a graph tells, by content: the same in any order of addresses. Not of its start, losses and costs, which
 * no rule of one host reads.
 */
uint64_t graph_content_hash(const struct graph *g);
