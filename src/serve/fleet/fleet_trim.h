#pragma once

#include "graph.h"

/**
 * Copy what matters most of a snapshot for a fleet: the machine; both ends of what leaves the host, what was moved most first;
 * processes and threads that used CPUs, most first; then the rest. What is left out is told as a loss.
 *
 * @param ret   initialized and empty
 * @param limit of entities; those that others refer to are taken beyond it
 */
void fleet_trim(const struct graph *g, size_t limit, struct graph *ret);
