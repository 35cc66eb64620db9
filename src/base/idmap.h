#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Map from a 128-bit key to a number: what numbered tables use to find a row. Zeroed: empty. */
struct idmap {
	struct idmap_slot {
		uint64_t a, b;
		uint32_t value; /**< plus one; 0: free */
	} *v;
	size_t cap, n;
};

#define IDMAP_NONE UINT32_MAX

void idmap_done(struct idmap *m);
void idmap_clear(struct idmap *m);
/** @return the number of that key, or IDMAP_NONE */
uint32_t idmap_get(const struct idmap *m, uint64_t a, uint64_t b);
/** Set or replace; @p value < IDMAP_NONE. */
void idmap_put(struct idmap *m, uint64_t a, uint64_t b, uint32_t value);

/** Well mixed 64 bits of any @p n bytes; not for hostile keys that must not collide. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
