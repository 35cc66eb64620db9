#pragma once

#include <stdlib.h>
#include <string.h>

#include "mem.h"

/*
 * Typed growing array: `VEC(struct edge) edges = {0};`, freed by vec_done(&edges).
 * Items may move when one is added: keep indexes, not pointers.
 */

/* There are many arrays with one or two large items in them: a first allocation is about 100 bytes. */
#define VEC_FIRST(size) ((size) >= 48 ? 2 : (size) >= 24 ? 4 : 8)

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}

#define vec_reserve(a, want)                                                                       \
	do {                                                                                       \
		if ((a)->cap < (size_t)(want)) {                                                   \
			size_t cap_ = (a)->cap ? (a)->cap * 2 : VEC_FIRST(sizeof(*(a)->v));        \
			if (cap_ < (size_t)(want))                                                 \
				cap_ = (want);                                                     \
			(a)->v = mem_realloc((a)->v, cap_ * sizeof(*(a)->v));                      \
			(a)->cap = cap_;                                                           \
		}                                                                                  \
	} while (0)

#define vec_push(a, item)                                                                          \
	do {                                                                                       \
		vec_reserve(a, (a)->n + 1);                                                        \
		(a)->v[(a)->n++] = (item);                                                         \
	} while (0)

/** Append a zeroed item. @return pointer to it, valid until the next addition */
#define vec_add(a)                                                                                 \
	({                                                                                         \
		vec_reserve(a, (a)->n + 1);                                                        \
		memset(&(a)->v[(a)->n], 0, sizeof(*(a)->v));                                       \
		&(a)->v[(a)->n++];                                                                 \
	})

#define vec_clear(a) ((void)((a)->n = 0))

#define vec_done(a)                                                                                \
	do {                                                                                       \
		free((a)->v);                                                                      \
		memset((a), 0, sizeof(*(a)));                                                      \
	} while (0)

/* An empty array has no memory, and nothing may be added to a null pointer, not even 0. */
#define vec_for(a, it)                                                                             \
	for (typeof((a)->v + 0) it = (a)->v; it != NULL && it < (a)->v + (a)->n; it++)
