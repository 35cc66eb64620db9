#pragma once

#include "graph.h"

/**
 * Value of a field that follows from others of the same relation, or from the main thread's: compact
 * text writes `=` where the stored value is just that.
 *
 * @param ret texts are owned by the graph
 * @return false when the field does not follow from anything that is there
 */
bool text_derive(struct graph *g, const struct edge *d, int field, struct value *ret);
