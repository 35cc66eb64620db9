#pragma once

#include <stddef.h>

#define PARALLEL_MOST 16 /* threads */

/**
 * Call @p f for each number below @p n, on several threads at once: whoever is free takes the next one, the lowest first.
 * The caller is one of the threads. Returns when all are done; what they wrote can be read then.
 *
 * @param threads 0 and 1: in the caller's thread, one after the other; at most PARALLEL_MOST. Fewer where they cannot be started
 * @param f       @p thread is below @p threads, and of one call at a time: for what each thread has of its own
 */
void parallel_for(unsigned threads, size_t n, void (*f)(void *ctx, unsigned thread, size_t i), void *ctx);
