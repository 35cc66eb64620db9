#pragma once

#include <stdbool.h>

#include "err.h"
#include "graph.h"
#include "json.h"

/*
 * Graph JSON, the format of openEuler's witty-profiler: {"nodes":[…],"edges":[…]}, bare or inside
 * {"env":{…},"content":{…}}. What that tool does not know travels in fields and types of its own,
 * and in a member "witty" that describes the observation.
 */

/**
 * Add the document to @p g. A member that the registry does not know is kept in `extra`.
 *
 * @return 0; -EBADMSG with the line when it is no such document; -errno when reading fails
 */
int graph_read_json(struct graph *g, struct json_reader *r, struct err *e);

struct graph_json_style {
	bool old_only; /**< only types and fields that openEuler's tool knows */
	bool compact;  /**< on one line; else two blanks a level */
};

/**
 * Write the document to @p fd.
 *
 * @param ret_left_out entities and relations that old_only left out; may be NULL
 * @return 0, or -errno when writing fails
 */
int graph_write_json(struct graph *g, int fd, const struct graph_json_style *style,
		     uint64_t *ret_left_out, struct err *e);

/** As graph_write_json(), appended to @p b. */
void graph_write_json_strbuf(struct graph *g, struct strbuf *b, const struct graph_json_style *style);
