#pragma once

#include "graph.h"
#include "json.h"

#define GRAPH_SCHEMA_VERSION 1

/*
 * The observation itself as JSON. Graph JSON has it as member "witty", an object; summaries and
 * reports have its members among their own.
 */

/** Read the object. */
int graph_read_meta(struct graph *g, struct json_reader *r, struct err *e);

/** Write the object. */
void graph_write_meta(const struct graph *g, struct json_writer *w);

/** Write its members but the version, `start_ns` to `cost`, into the object at hand. */
void graph_write_about(const struct graph *g, struct json_writer *w);
