/* Interned strings: see strtab.h. */
#include "strtab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "mem.h"

void strtab_init(struct strtab *t, struct arena *arena)
{
	memset(t, 0, sizeof(*t));
	t->arena = arena;
}

void strtab_done(struct strtab *t)
{
	free(t->v);
	strtab_init(t, NULL);
}

/* Where the string is, or the free slot where it would be. */
static struct strtab_slot *slot(const struct strtab *t, const char *s, size_t n, uint32_t hash)
{
	size_t i = hash & (t->cap - 1);

	while (t->v[i].s &&
	       (t->v[i].hash != hash || t->v[i].n != n || memcmp(t->v[i].s, s, n)))
		i = (i + 1) & (t->cap - 1);
	return &t->v[i];
}

static void grow(struct strtab *t)
{
	struct strtab old = *t;

	t->cap = old.cap ? old.cap * 2 : 64;
	t->v = mem_alloc(t->cap * sizeof(*t->v));
	for (size_t i = 0; i < old.cap; i++)
		if (old.v[i].s)
			*slot(t, old.v[i].s, old.v[i].n, old.v[i].hash) = old.v[i];
	free(old.v);
}

const char *strtab_find(const struct strtab *t, const char *s, size_t n)
{
	return t->n ? slot(t, s, n, (uint32_t)hash_bytes(s, n, 0))->s : NULL;
}

const char *strtab_intern(struct strtab *t, const char *s, size_t n)
{
	uint32_t hash = (uint32_t)hash_bytes(s, n, 0);
	struct strtab_slot *at;

	assert(n <= UINT32_MAX);
	if ((t->n + 1) * 4 > t->cap * 3)
		grow(t);
	at = slot(t, s, n, hash);
	if (!at->s) {
		*at = (struct strtab_slot){arena_strndup(t->arena, s, n), (uint32_t)n, hash};
		t->n++;
	}
	return at->s;
}

const char *strtab_add(struct strtab *t, const char *s)
{
	return strtab_intern(t, s, strlen(s));
}
