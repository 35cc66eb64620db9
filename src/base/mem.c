/* Allocation that cannot fail: see mem.h. */
#include "mem.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mem_exhausted(size_t size)
{
	fprintf(stderr, "error: out of memory (asked for %zu bytes)\n", size);
	_exit(1);
}

void *mem_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		mem_exhausted(size);
	return p;
}

void *mem_realloc(void *p, size_t size)
{
	void *q = realloc(p, size ? size : 1);

	if (!q)
		mem_exhausted(size);
	return q;
}

char *mem_strdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(mem_alloc(n), s, n);
}

void mem_give_back(void)
{
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 512 << 10);
}
