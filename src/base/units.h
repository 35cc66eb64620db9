#pragma once

#include <stdint.h>

#include "strbuf.h"

/*
 * Numbers for people: a value and its unit, one digit behind the point where it was scaled, halves
 * rounded up. The same on every host: no locale, no floating point behind the decimal point.
 */

/** "0 B", "512 B", "12.3 MiB"; powers of 1024. */
void units_add_bytes(struct strbuf *out, uint64_t bytes);
/** "950 B/s", "1.2 GiB/s"; powers of 1024, as bytes. @p bps is bytes a second, finite and >= 0 */
void units_add_rate(struct strbuf *out, double bps);
/** "1234", "12.3 k", "4.5 M": up to 9999 in full. */
void units_add_count(struct strbuf *out, uint64_t n);
/** "0 ns", "850 us", "3.2 ms", "12.0 s", "2.5 min", "3.1 h". */
void units_add_ns(struct strbuf *out, uint64_t ns);
/** "12.3 %"; @p pct is finite. */
void units_add_pct(struct strbuf *out, double pct);
