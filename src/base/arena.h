#pragma once

#include <stddef.h>

/** Memory that is freed at once: everything a snapshot points to lies in one arena. */
struct arena {
	struct arena_chunk *head;
	size_t used_bytes; /**< handed out since init, for limits and statistics */
};

void arena_init(struct arena *a);
void arena_done(struct arena *a);

/** Zeroed memory, aligned to 8 bytes (no long double, no vectors); never fails. */
__attribute__((returns_nonnull)) void *arena_alloc(struct arena *a, size_t size);

/** Copy @p n bytes and add a NUL. */
__attribute__((returns_nonnull)) char *arena_strndup(struct arena *a, const char *s, size_t n);
__attribute__((returns_nonnull)) char *arena_strdup(struct arena *a, const char *s);
