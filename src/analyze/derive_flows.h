#pragma once

#include "graph.h"

/**
 * Add process-to-process flows to a graph that has none, from who sends to an endpoint and to whom that
 * endpoint belongs: what an imported graph of the older tool allows. Numbers are taken as they are.
 */
void derive_flows(struct graph *g);

/** Process of a node: itself, or that of a thread; NODE_NONE for anything else. */
uint32_t process_of(const struct graph *g, uint32_t node);
