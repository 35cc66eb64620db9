#pragma once

#include <linux/perf_event.h>

#include "arm_spe.h"

/*
 * The buffer that a CPU writes SPE records into. Records of the event's ordinary ring
 * (PERF_RECORD_AUX) say which part of it was written, and whether all of it arrived.
 */

struct spe_stats {
	struct spe_counts counts;
	uint64_t
	    truncated; /**< times that the buffer was full, and the CPU stopped until it was read */
	uint64_t partial;    /**< parts with gaps */
	uint64_t collisions; /**< parts in which an operation was to be sampled while another still
				was */
	uint64_t lost;       /**< records of the ordinary ring that had no room */
	uint64_t
	    skipped; /**< bytes that no record told of, other than padding, or one that cannot be */
	uint64_t no_context; /**< accesses of which it is not known who made them */
	bool last_level; /**< events tell of the last level of cache: seen once, true for good */
};

/** One CPU's. */
struct spe_ring {
	struct perf_event_mmap_page *m; /**< its data_tail and aux_tail are moved on */
	const uint8_t *data;
	size_t data_size; /**< a power of two */
	const uint8_t *aux;
	size_t aux_size; /**< a power of two */
	enum spe_codes codes;
};

/**
 * What was written between two positions of a ring, which only grow.
 *
 * @param size a power of two; what is longer is cut to that
 * @return bytes in @p out
 */
size_t ring_copy(uint8_t *out, const uint8_t *ring, size_t size, uint64_t from, uint64_t to);

/**
 * Read what came since the last call.
 *
 * @param copy  [r->data_size], used meanwhile
 * @param cb    with the tid of the context packet: accesses without one are counted instead
 * @param stats are added to
 */
void spe_ring_read(struct spe_ring *r, uint8_t *copy,
		   void (*cb)(void *ctx, const struct mem_access *a), void *ctx,
		   struct spe_stats *stats);
