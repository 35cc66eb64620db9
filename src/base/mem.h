#pragma once

#include <stddef.h>

/*
 * Allocation that cannot fail: out of memory prints one line and ends the program, because no caller
 * has anything better to do. A size that comes from outside is checked against a limit first.
 */
__attribute__((malloc, returns_nonnull)) void *mem_alloc(size_t size);	/**< zeroed */
__attribute__((returns_nonnull)) void *mem_realloc(void *p, size_t size);
__attribute__((malloc, returns_nonnull)) char *mem_strdup(const char *s);
__attribute__((noreturn)) void mem_exhausted(size_t size);

/**
 * For programs that run for long: large buffers, which come and go with each interval, in several threads, are given
 * back and not kept in heaps, where what lives longer lies between them. To be called before there are threads.
 */
void mem_give_back(void);
