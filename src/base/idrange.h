#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/** Ids that are allowed: more than any kernel has CPUs, nodes or devices; 128 KiB as a bitmap. */
#define IDRANGE_MAX ((1U << 20) - 1)

/** A set of small numbers, as CPUs and NUMA nodes are listed: "0-3,8". Zeroed: empty. */
struct idrange {
	uint64_t *bits;
	size_t words;
};

void idrange_done(struct idrange *r);

/** @p id <= IDRANGE_MAX */
void idrange_add(struct idrange *r, uint32_t id);
bool idrange_has(const struct idrange *r, uint32_t id);
size_t idrange_count(const struct idrange *r);
bool idrange_equal(const struct idrange *a, const struct idrange *b);
/** The smallest member >= @p from, or -1: `for (id = -1; (id = idrange_next(r, id + 1)) >= 0;)` */
int64_t idrange_next(const struct idrange *r, int64_t from);

/**
 * Parse "0-3,8" into @p ret, which is empty. White space is allowed at the end only, as sysfs ends
 * its files; the empty text is the empty set, as sysfs says it.
 *
 * @return 0, or -EINVAL, -ERANGE (an id above IDRANGE_MAX); @p ret is empty then
 */
int idrange_parse(const char *s, struct idrange *ret, struct err *e);
/** Append in the same form: sorted, joined, without blanks. */
void idrange_format(const struct idrange *r, struct strbuf *out);
