#pragma once

#include <stdint.h>

#include "err.h"

/*
 * The thread that analyses snapshots: topology, threads, waits, findings. It takes the newest one that
 * there is, so that it falls behind rather than pile up work, and rests as long as its work took, four times.
 */
struct analyzer;
struct server;

struct analyzer_counts {
	uint64_t analyses;
	uint64_t last_ns, busy_ns; /**< what the last one took, and all together */
	uint64_t raised, cleared;  /**< findings that came and went */
	unsigned current[4];	   /**< findings there are, by severity */
};

int analyzer_start(struct analyzer **ret, struct server *s, struct err *e);
/** board_stop() comes first. NULL is fine. */
void analyzer_stop(struct analyzer *z);
void analyzer_get(struct analyzer *z, struct analyzer_counts *ret);
