#pragma once

#include "graph.h"
#include "strbuf.h"

/**
 * Append the text that openEuler's witty-profiler makes of a graph: a line for each entity and relation
 * that it knows, in the order of the graph.
 */
void render_describe(struct graph *g, struct strbuf *b);
