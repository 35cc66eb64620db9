#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * Period of events by the autocorrelation of their number in bins of at least 1 ms, at most 4096 of them.
 *
 * @param at [n] times, any order, all in [from, to)
 * @param ret_pct autocorrelation at that lag, 0–100
 * @return ns; 0: none, the autocorrelation has no peak of 20 % or more, or fewer than four periods fit
 */
uint64_t period_find(const uint64_t *at, size_t n, uint64_t from, uint64_t to, double *ret_pct);
