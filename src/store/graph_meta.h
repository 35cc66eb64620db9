#pragma once

#include "graph.h"
#include "json.h"

#define GRAPH_SCHEMA_VERSION 1

/** Read the value of the member "witty": window, options, status, losses, cost. */
int graph_read_meta(struct graph *g, struct json_reader *r, struct err *e);

/** Write that value. */
void graph_write_meta(const struct graph *g, struct json_writer *w);
