/* Open addressing from 128-bit keys to numbers. */
#include "idmap.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const char *s = p;
	uint64_t h = mix(seed + 0x2545f4914f6cdd1dull, n), w;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&w, s, 8);
		h = mix(h, w);
	}
	w = 0;
	if (n)
		memcpy(&w, s, n);
	return mix(mix(h, w), h >> 17);
}

void idmap_done(struct idmap *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}

void idmap_clear(struct idmap *m)
{
	if (m->cap)
		memset(m->v, 0, m->cap * sizeof(*m->v));
	m->n = 0;
}

static struct idmap_slot *slot_of(const struct idmap *m, uint64_t a, uint64_t b)
{
	size_t i = mix(mix(0, a), b) & (m->cap - 1);

	while (m->v[i].value && (m->v[i].a != a || m->v[i].b != b))
		i = (i + 1) & (m->cap - 1);
	return &m->v[i];
}

uint32_t idmap_get(const struct idmap *m, uint64_t a, uint64_t b)
{
	if (!m->cap)
		return IDMAP_NONE;
	return slot_of(m, a, b)->value - 1;
}

static void grow(struct idmap *m)
{
	struct idmap old = *m;

	m->cap = old.cap ? old.cap * 2 : 64;
	m->v = mem_alloc(m->cap * sizeof(*m->v));
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i].value)
			*slot_of(m, old.v[i].a, old.v[i].b) = old.v[i];
	free(old.v);
}

void idmap_put(struct idmap *m, uint64_t a, uint64_t b, uint32_t value)
{
	struct idmap_slot *s;

	if ((m->n + 1) * 10 > m->cap * 7)
		grow(m);
	s = slot_of(m, a, b);
	m->n += !s->value;
	*s = (struct idmap_slot){a, b, value + 1};
}
