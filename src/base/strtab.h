#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/** Strings that exist once each, so that equal ones have equal pointers. They live in an arena. */
struct strtab {
	struct arena *arena; /**< borrowed; outlives the strings' users */
	struct strtab_slot {
		const char *s;
		uint32_t n, hash;
	} *v;
	size_t cap, n;
};

void strtab_init(struct strtab *t, struct arena *arena);
/** Frees the table; the strings stay in the arena. */
void strtab_done(struct strtab *t);

/** The one copy of these @p n bytes, NUL-terminated. @p n < 4 GiB, and may include NULs. */
__attribute__((returns_nonnull)) const char *strtab_intern(struct strtab *t, const char *s, size_t n);
__attribute__((returns_nonnull)) const char *strtab_add(struct strtab *t, const char *s);
/** As strtab_intern(), or NULL when the string is not there. */
const char *strtab_find(const struct strtab *t, const char *s, size_t n);
