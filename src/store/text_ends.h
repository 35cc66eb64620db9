#pragma once

#include "graph.h"
#include "strbuf.h"

/*
 * Both ends of relations that have no values of their own: numbers of entities, from 1, and runs of
 * them. `7 3,10..12`: from 7 to each of four; `10..12 7`: from each of three to 7; `1..3 11..13`:
 * from the first to the first, from the second to the second, …
 */
struct text_ends {
	uint32_t source, target;
};

/** Write @p n relations, a line for as many as possible. */
void text_ends_write(const struct text_ends *v, size_t n, struct strbuf *b);

/**
 * Read a line back.
 *
 * @param visit called for each with numbers as written; stops by anything but 0, which is returned
 * @return 0; -EBADMSG when malformed; or what @p visit said
 */
int text_ends_read(const char *s, const char *end,
		   int (*visit)(void *ctx, uint64_t source, uint64_t target), void *ctx);

/** How an end goes on from row to row: all alike, or one up each time. */
enum text_ends_course { ENDS_FREE, ENDS_SAME, ENDS_UP };
enum text_ends_course text_ends_course(const struct text_ends *v, size_t n, bool target);
