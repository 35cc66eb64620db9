#pragma once

#include "stitch.h"
#include "vec.h"

/* Private to stitch*.c. */

/** One end of a connection. */
struct stitch_end {
	const struct edge *edge; /**< connection */
	uint32_t candidate; /**< number of the only one that fits, UINT32_MAX: none or several */
	bool several;
	uint32_t match; /**< number of the other end, UINT32_MAX: none */
};

/** A relation that the result gets. */
struct stitch_link {
	uint32_t from, to; /**< nodes of the source graph */
};

struct stitch_work {
	struct graph *into;
	struct graph *from;
	const struct stitch_end *ends;
	size_t n_ends;
	uint32_t *stands; /**< [from->nodes.n] what stands for each node in the result */
	uint32_t *nodes;  /**< [from->nodes.n] number in the result */
	bool *keep_node;  /**< [from->nodes.n] */
	bool *keep_edge;  /**< [from->edges.n] */
	VEC(struct stitch_link) queue_pairs;
	struct stitched *ret;
};

/** Find queue pairs of different hosts that are connected; their relations to mere numbers are
 * dropped. */
void stitch_queue_pairs(struct stitch_work *w);

/** Copy the graph, with flows to addresses that are processes of other hosts replaced. */
void stitch_copy(struct stitch_work *w);
