#pragma once

#include "collect.h"
#include "err.h"

/** The newest waits, by time. Zeroed: none. */
struct wait_rows {
	VEC(struct wait_row) v; /**< texts are of the graph that they were read with */
	uint64_t from_ns;	/**< all that ended since then are there, CLOCK_MONOTONIC; 0: since the beginning */
};

/** Read them; as collect_segments(). The caller frees them with vec_done(), also after an error. */
int wait_rows_read(struct collect *c, struct graph *scratch, struct wait_rows *ret, struct err *e);

/**
 * Read them and put those that ended after @p since_ns into the recording at @p path, which is closed.
 *
 * @param offset_ns from CLOCK_MONOTONIC to the time since 1970
 */
int wait_rows_save(struct collect *c, const char *path, uint64_t since_ns, uint64_t offset_ns, struct err *e);
