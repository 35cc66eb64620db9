#pragma once

#include "graph.h"
#include "timeline.h"

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

/** Of a recording, or of a window of a running observation; empty for graphs that were imported. */
struct interval_amounts {
	VEC(struct interval_amount)
	v; /**< by what, then interval; of one node, kind and interval at most one */
};

/**
 * Waits are told of when they end, with all their length: what is longer than the interval in which that was is
 * time of those before it. Given what one thread waited by one cause, this takes it apart.
 */
struct wait_spread {
	VEC(uint64_t) length_ns; /**< of each interval */
	uint64_t *ns;		 /**< [CAUSE_COUNT * length_ns.n] what belongs to each, by cause */
	enum wait_cause cause;	 /**< of the thread that is added now */
	uint32_t told, at;	 /**< the interval that told, and the one that the rest goes to */
	uint64_t rest_ns;
};

/** Lengths are there, and stay. wait_spread_end() frees both. */
void wait_spread_begin(struct wait_spread *w);

/** Another thread, or another cause, follows. */
void wait_spread_next(struct wait_spread *w, enum wait_cause cause);

/** Of one thread and cause, the newest interval first; one that there is not is passed over. */
void wait_spread_add(struct wait_spread *w, uint32_t interval, uint64_t ns);

/** Append amounts by interval and cause to @p ret; kinds are in @p g. */
void wait_spread_end(struct wait_spread *w, struct graph *g, struct interval_amounts *ret);
