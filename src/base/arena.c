/* Chunked bump allocator: see arena.h. */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define CHUNK_BYTES (64 * 1024 - 64)

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	alignas(max_align_t) char data[];
};

void arena_init(struct arena *a)
{
	memset(a, 0, sizeof(*a));
}

void arena_done(struct arena *a)
{
	struct arena_chunk *next;

	for (struct arena_chunk *c = a->head; c; c = next) {
		next = c->next;
		free(c);
	}
	arena_init(a);
}

static struct arena_chunk *chunk_new(size_t size)
{
	struct arena_chunk *c = mem_alloc(sizeof(*c) + size);

	c->size = size;
	return c;
}

static void *bump(struct arena *a, size_t size, size_t align)
{
	struct arena_chunk *c = a->head;
	size_t at = c ? (c->used + align - 1) & ~(align - 1) : 0;

	a->used_bytes += size;
	if (!c || at > c->size || size > c->size - at) {
		c = chunk_new(size > CHUNK_BYTES ? size : CHUNK_BYTES);
		/* A chunk for one big item goes behind the head, whose free rest stays in use. */
		if (size > CHUNK_BYTES / 4 && a->head) {
			c->next = a->head->next;
			a->head->next = c;
		} else {
			c->next = a->head;
			a->head = c;
		}
		at = 0;
	}
	c->used = at + size;
	return c->data + at;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return bump(a, size, 8);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = bump(a, n + 1, 1);

	memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}
