#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "err.h"
#include "live.h"

/*
 * The thread that observes: it alone uses the sources, and puts a snapshot on the board each interval.
 * Others ask it for something and go on; what they asked for is done between two intervals.
 */
struct collector;

struct collector_options {
	struct live_options live;
	/**
	 * Instead of observing this host, make the graph of each interval: of a fleet. In the collecting thread.
	 * @param ret initialized and empty @return 0, or -errno: there is no snapshot this time
	 */
	int (*make)(void *ctx, struct graph *ret, struct err *e);
	void *make_ctx;
	uint64_t interval_ns;
	uint64_t window_ns; /**< length of what a snapshot shows */
	/** Called in the collecting thread behind each publication and each saved recording; must not block. */
	void (*news)(void *ctx);
	void *ctx;
};

struct collector_state {
	bool running;
	uint64_t ticks;
	uint64_t late_ticks; /**< begun later than a tenth of an interval after their time */
	uint64_t tick_ns;    /**< what the last one took, the making of the snapshot included */
	uint64_t longest_ns; /**< likewise, the longest so far */
	uint64_t busy_ns;    /**< sum of all */
	size_t intervals;    /**< kept for the flight recorder */
	size_t intervals_bytes, known_bytes; /**< of them; of what is known of all that is there */
	uint64_t last_ns;    /**< end of the last one, since 1970; 0: none yet */
};

/** Open the sources in this thread, so that what fails is told at once. @param o copied */
int collector_open(struct collector **ret, struct board *board, const struct collector_options *o,
		   struct err *e);
/** Begin to observe in a thread of its own; @p enter is called there first (privileges). */
int collector_start(struct collector *c, int (*enter)(void *ctx, struct err *e), void *ctx, struct err *e);
/** End the thread and close the sources. NULL is fine. */
void collector_close(struct collector *c);

/** Observe, or pause. Idempotent. Behind a pause the window begins anew. */
void collector_run(struct collector *c, bool on);
/** Take an interval now rather than at its time. @return the number that state.ticks will have passed */
uint64_t collector_trigger(struct collector *c);
/** Windows show only what is observed from now on. */
void collector_clear(struct collector *c);

/**
 * Have the kept intervals written as a recording, when the next one is done.
 *
 * @param path copied; the file must not exist
 * @return false: another one is being written
 */
bool collector_save(struct collector *c, const char *path, uint64_t since_ns);
/** @return 1: one was written since the last call, 0: none, -errno: it failed, @p e says why */
int collector_saved(struct collector *c, char *path, size_t size, struct err *e);

void collector_get(struct collector *c, struct collector_state *ret);
