#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

/*
 * Typed hash map with open addressing:
 *
 *	MAP_DEFINE(task_map, uint32_t, struct task, hash_u64, map_equal)
 *
 *	struct task_map m = {0};
 *	struct task *t = task_map_put(&m, tid, &inserted);
 *	…
 *	task_map_done(&m);
 *
 * hash(key) is a uint64_t whose low 32 bits are well mixed (hash.h); eq(a, b) is true for equal keys.
 * Keys and values are copied, and their bytes move when an entry is put or deleted: a pointer to a
 * value is good until then. The order of iteration depends on the keys and on how they were put.
 */

/** For keys that C compares. */
#define map_equal(a, b) ((a) == (b))

#define MAP_DEFINE(name, key_type, value_type, hash_fn, eq_fn)                                     \
	MAP_TYPES_(name, key_type, value_type)                                                     \
	MAP_FIND_(name, key_type, value_type, hash_fn, eq_fn)                                      \
	MAP_PUT_(name, key_type, value_type, hash_fn)                                              \
	MAP_DEL_(name, key_type)                                                                   \
	MAP_WALK_(name)

/* A function that a user of the map has no use for is no mistake. */
#define MAP_FN_ static inline __attribute__((unused))

/* `tag` is the hash, never 0: in use. It places the slot and saves most comparisons of keys. */
#define MAP_TYPES_(name, key_type, value_type)                                                     \
	struct name##_slot {                                                                       \
		uint32_t tag;                                                                      \
		key_type key;                                                                      \
		value_type value;                                                                  \
	};                                                                                         \
	struct name {                                                                              \
		struct name##_slot *v;                                                             \
		size_t cap; /* 0 or a power of two, at least a quarter of it free */               \
		size_t n;                                                                          \
	};

/* name_slot_(): where the key is, or the free slot where it would be; the map has one. */
#define MAP_FIND_(name, key_type, value_type, hash_fn, eq_fn)                                      \
	MAP_FN_ uint32_t name##_tag_(key_type key)                                                 \
	{                                                                                          \
		uint32_t tag = (uint32_t)hash_fn(key);                                             \
                                                                                                   \
		return tag ? tag : 1;                                                              \
	}                                                                                          \
	MAP_FN_ struct name##_slot *name##_slot_(const struct name *m, key_type key, uint32_t tag) \
	{                                                                                          \
		size_t i = tag & (m->cap - 1);                                                     \
                                                                                                   \
		while (m->v[i].tag && (m->v[i].tag != tag || !eq_fn(m->v[i].key, key)))            \
			i = (i + 1) & (m->cap - 1);                                                \
		return &m->v[i];                                                                   \
	}                                                                                          \
	/** Value of the key, or NULL. */                                                          \
	MAP_FN_ value_type *name##_get(const struct name *m, key_type key)                         \
	{                                                                                          \
		struct name##_slot *s = m->n ? name##_slot_(m, key, name##_tag_(key)) : NULL;      \
                                                                                                   \
		return s && s->tag ? &s->value : NULL;                                             \
	}

#define MAP_PUT_(name, key_type, value_type, hash_fn)                                              \
	MAP_FN_ void name##_grow_(struct name *m)                                                  \
	{                                                                                          \
		struct name old = *m;                                                              \
                                                                                                   \
		m->cap = old.cap ? old.cap * 2 : 16;                                               \
		m->v = mem_alloc(m->cap * sizeof(*m->v));                                          \
		for (size_t i = 0; i < old.cap; i++)                                               \
			if (old.v[i].tag)                                                          \
				*name##_slot_(m, old.v[i].key, old.v[i].tag) = old.v[i];           \
		free(old.v);                                                                       \
	}                                                                                          \
	/** Value of the key, zeroed when it is new; @p ret_new (may be NULL) says whether. */     \
	MAP_FN_ value_type *name##_put(struct name *m, key_type key, bool *ret_new)                \
	{                                                                                          \
		uint32_t tag = name##_tag_(key);                                                   \
		struct name##_slot *s;                                                             \
		bool is_new;                                                                       \
                                                                                                   \
		if ((m->n + 1) * 4 > m->cap * 3)                                                   \
			name##_grow_(m);                                                           \
		s = name##_slot_(m, key, tag);                                                     \
		is_new = !s->tag;                                                                  \
		if (is_new) {                                                                      \
			memset(s, 0, sizeof(*s));                                                  \
			s->tag = tag;                                                              \
			s->key = key;                                                              \
			m->n++;                                                                    \
		}                                                                                  \
		if (ret_new)                                                                       \
			*ret_new = is_new;                                                         \
		return &s->value;                                                                  \
	}

/* The slots behind a deleted one move up unless that would put one in front of its own place. */
#define MAP_DEL_(name, key_type)                                                                   \
	/** @return whether the key was there */                                                   \
	MAP_FN_ bool name##_del(struct name *m, key_type key)                                      \
	{                                                                                          \
		struct name##_slot *s = m->n ? name##_slot_(m, key, name##_tag_(key)) : NULL;      \
		size_t mask = m->cap - 1, hole, i;                                                 \
                                                                                                   \
		if (!s || !s->tag)                                                                 \
			return false;                                                              \
		hole = (size_t)(s - m->v);                                                         \
		for (i = (hole + 1) & mask; m->v[i].tag; i = (i + 1) & mask)                       \
			if (((i - m->v[i].tag) & mask) >= ((i - hole) & mask)) {                   \
				m->v[hole] = m->v[i];                                              \
				hole = i;                                                          \
			}                                                                          \
		m->v[hole].tag = 0;                                                                \
		m->n--;                                                                            \
		return true;                                                                       \
	}

#define MAP_WALK_(name)                                                                            \
	/** `for (size_t at = 0; (s = name_next(&m, &at));)`: slots with key and value, or NULL */ \
	MAP_FN_ struct name##_slot *name##_next(const struct name *m, size_t *at)                  \
	{                                                                                          \
		while (*at < m->cap)                                                               \
			if (m->v[(*at)++].tag)                                                     \
				return &m->v[*at - 1];                                             \
		return NULL;                                                                       \
	}                                                                                          \
	/** Empty it and keep the memory. */                                                       \
	MAP_FN_ void name##_clear(struct name *m)                                                  \
	{                                                                                          \
		if (m->cap)                                                                        \
			memset(m->v, 0, m->cap * sizeof(*m->v));                                   \
		m->n = 0;                                                                          \
	}                                                                                          \
	MAP_FN_ void name##_done(struct name *m)                                                   \
	{                                                                                          \
		free(m->v);                                                                        \
		memset(m, 0, sizeof(*m));                                                          \
	}
