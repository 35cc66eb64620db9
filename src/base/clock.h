#pragma once

#include <stdint.h>

#include "err.h"
#include "strbuf.h"

#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL

/** Nanoseconds of a clock: monotonic (stands still in suspend, as bpf_ktime_get_ns()), since boot
 *  (as start times in /proc and bpf_ktime_get_boot_ns()), since 1970 in UTC. */
uint64_t clock_mono_ns(void);
uint64_t clock_boot_ns(void);
uint64_t clock_real_ns(void);

/** What to add to time since boot to get time since 1970; it moves when the clock is set. */
int64_t clock_boot_to_real_ns(void);
/** What to add to monotonic time to get time since boot: the time spent in suspend. */
int64_t clock_mono_to_boot_ns(void);

#define CLOCK_UTC_BYTES 32

/** ISO 8601 in UTC with milliseconds, rounded down: "2026-11-30T04:50:00.123Z". */
void clock_format_utc(uint64_t real_ns, char out[CLOCK_UTC_BYTES]);

/**
 * A duration as people write it: "10s", "500ms", "1.5s", "1m30s". Units are h m s ms us ns, each
 * smaller than the one before; "min" is "m". No unit, no number, a sign or blanks are refused.
 *
 * @return 0; -EINVAL, or -ERANGE above 292 years, with a hint; @p ret_ns is untouched then
 */
int duration_parse(const char *s, uint64_t *ret_ns, struct err *e);

/** The shortest form that duration_parse() reads back exactly: "1m30s", "500ms", "0s". */
void duration_format(struct strbuf *out, uint64_t ns);
