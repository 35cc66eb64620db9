#pragma once

#include "collect.h"
#include "err.h"
#include "timeline.h"

/** The newest waits, by time. Zeroed: none. */
struct wait_rows {
	VEC(struct wait_row) v; /**< texts are of the graph that they were read with */
	uint64_t from_ns;	/**< all that ended since then are there, CLOCK_MONOTONIC; 0: since the beginning */
};

/** Read them; as collect_segments(). The caller frees them with vec_done(), also after an error. */
int wait_rows_read(struct collect *c, struct graph *scratch, struct wait_rows *ret, struct err *e);

/** Leave those that ended after @p since_ns and until @p until_ns (CLOCK_MONOTONIC), and of these
 * what was after since_ns. */
void wait_rows_cut(struct wait_rows *rows, uint64_t since_ns, uint64_t until_ns);

/**
 * Put them into @p t, as they would be read from a recording.
 *
 * @param g         whose threads and objects they are found as; ids of all of it are made
 * @param offset_ns from CLOCK_MONOTONIC to the time since 1970
 */
void wait_rows_spans(const struct wait_rows *rows, struct graph *g, uint64_t offset_ns,
		     struct timeline *t);
