#pragma once

#include "amounts.h"
#include "err.h"
#include "graph.h"
#include "timeline.h"

enum file_format { FORMAT_RECORDING, FORMAT_JSON, FORMAT_TEXT };

/**
 * What @p path holds, by content. "-" is standard input, which can hold JSON or text.
 *
 * @return enum file_format or -errno
 */
int file_format(const char *path, struct err *e);

/** Read a recording, a graph JSON or a compact text into @p g, which is initialized and empty. */
int graph_load(struct graph *g, const char *path, struct err *e);

/**
 * As graph_load(), with what happened when.
 *
 * @param ret zeroed; stays empty where the file is no recording; the caller's, timeline_done()
 */
int graph_load_timed(struct graph *g, struct timeline *ret, const char *path, struct err *e);

/**
 * What each interval of the recording @p path added, once @p g was read from it. Nothing for files that are
 * no recordings, or were read from standard input.
 *
 * @param ret zeroed; the caller frees it with vec_done(&ret->v)
 */
int graph_load_amounts(struct graph *g, struct interval_amounts *ret, const char *path, struct err *e);
