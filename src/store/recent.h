#pragma once

#include <sqlite3.h>

#include "graph.h"
#include "idmap.h"

/*
 * What a recording that is being written says of the entities and relations that were observed lately:
 * in memory, so that totals grow without being read back. What was quiet for a while is only in the
 * file; it is read back when it is observed again.
 */

struct row {
	uint32_t num;	  /**< key of its row in the file; 0: it has none yet */
	uint64_t stamp;	  /**< hash of the row as it was last written, 0: not known */
	uint64_t touched; /**< last interval that observed it */
	bool is_new;	  /**< its number was given in this interval; the user clears it */
};

struct recent {
	sqlite3 *db; /**< not owned; set before the first addition */
	struct graph g;
	VEC(struct row) nodes, edges; /**< by index in g */
	struct idmap node_by_num;
	uint32_t last_node, last_edge; /**< numbers given so far */
	bool partial;		       /**< the file has more than the graph */
	size_t sweep_above;	       /**< bytes of the graph */
	struct recall *recall;	       /**< statements, made when needed */
};

void recent_init(struct recent *r);
void recent_done(struct recent *r);

/**
 * Merge what an interval observed, give numbers to what is new, and insert new entities without their
 * fields.
 *
 * @param ret_nodes,ret_edges index in r->g of each node and edge of @p part
 * @return 0, or -EIO: SQLite's error tells
 */
int recent_add(struct recent *r, const struct graph *part, uint64_t interval, uint32_t *ret_nodes,
	       uint32_t *ret_edges);

/** When it has grown too large, leave to the file what was not observed lately. */
void recent_sweep(struct recent *r, uint64_t interval);
