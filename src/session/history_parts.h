#pragma once

#include "history.h"

/* Private to history.c and history_amounts.c: amounts of a window that is being made. */

/** What a thread waited by one cause in one interval. */
struct waited {
	uint64_t ns;
	uint32_t thread; /**< in the window */
	uint32_t interval;
	enum wait_cause cause;
};

struct window_amounts {
	struct graph *window;
	struct interval_amounts *ret;
	VEC(struct waited) waits;
	struct wait_spread spread;
	/** Of the interval that is read: its graph, and what its nodes are in the window. */
	const struct graph *part;
	const uint32_t *nodes;
	uint32_t interval;
};

/** The next interval. @param nodes [from->part.nodes.n] number of each in the window */
void window_amounts_add(struct window_amounts *x, const struct history_interval *from, const uint32_t *nodes);

/** All were added: the amounts are put in order. */
void window_amounts_end(struct window_amounts *x);
