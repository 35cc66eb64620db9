#pragma once

#include "snapshot.h"

/*
 * Where the collection puts its snapshots and everybody else finds them: the newest, and a history bounded
 * by age and size. Its lock is held for a few instructions, never while something is made or written.
 */
struct board;

struct board_limits {
	uint64_t keep_ns;   /**< age up to which snapshots are kept; the newest, and the newest that was analysed, excepted */
	size_t keep_bytes;  /**< what they may have together, these excepted */
	uint64_t spacing_ns; /**< those older than this are kept this far apart: their windows overlap */
};

/** What the board holds, for metrics. */
struct board_counts {
	size_t snapshots;
	size_t bytes;
	uint64_t published;
	uint64_t evicted; /**< because of their size, though young enough */
};

struct board *board_new(const struct board_limits *l);
void board_free(struct board *b);

/** Publish: the board holds it too. Its `seq` is given here. Of older ones texts are forgotten that can be made again. */
void board_put(struct board *b, struct snapshot *s);

/** The newest, held for the caller; NULL: there is none yet. */
struct snapshot *board_newest(struct board *b);
/** The newest whose analysis is there, likewise. */
struct snapshot *board_analysed(struct board *b);
/** That one, if it is kept, likewise. */
struct snapshot *board_find(struct board *b, uint64_t seq);
/** The last one that ended at or before @p at_ns (since 1970), or else the oldest; likewise. */
struct snapshot *board_at(struct board *b, uint64_t at_ns);

/** Wait for a snapshot newer than @p seq. @return it, held, or NULL: board_stop() was called */
struct snapshot *board_wait(struct board *b, uint64_t seq);
/** Nobody waits any more. */
void board_stop(struct board *b);

/** Call @p cb for each that is kept, oldest first, under the board's lock. */
void board_each(struct board *b, void (*cb)(void *ctx, const struct snapshot *s), void *ctx);
/** Forget all. */
void board_clear(struct board *b);
void board_count(struct board *b, struct board_counts *ret);
