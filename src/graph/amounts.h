#pragma once

#include "graph.h"

/* How much of what each interval added, summed up so far that a picture over time can be drawn. */

enum amount_what {
	AMOUNT_SENT, /**< bytes that a thread or process gave; kind: as in flow, "storage" for files
		      */
	AMOUNT_READ, /**< bytes that it took from files */
	AMOUNT_WAITED, /**< ns that threads waited; kind: the cause, as in waits_for; no node */
	AMOUNT_MOVED,  /**< bytes that a disk or network interface moved, both ways */
	AMOUNT_BUSY,   /**< ns that a disk had requests under way */
	AMOUNT_USE,    /**< use of an accelerator then, in hundredths of a percent; may be 0 */
	AMOUNT_HELD,   /**< bytes of an accelerator's memory in use then; may be 0 */
	AMOUNT_COUNT
};

struct interval_amount {
	uint32_t node;     /**< NODE_NONE: all */
	uint32_t interval; /**< from 0, as in the timeline */
	enum amount_what what;
	const char *kind; /**< in the graph; NULL: does not apply */
	uint64_t n;
};

/** Of a recording; empty for graphs that were imported. */
struct interval_amounts {
	VEC(struct interval_amount)
	v; /**< by what, then interval; of one node, kind and interval at most one */
};
