#pragma once

#include "field.h"

/*
 * The registry: every entity and edge type, made from entity/NAME.def and edge/NAME.def.
 *
 *   ENTITY(type, OldName, "doc")   NEW_ENTITY(…)    the latter: openEuler's tool has no such type
 *   EDGE(type, OldName, source, target, "doc")      NEW_EDGE(…)
 *   KEY(type, field, u64, UNIT, OLD("name", "absent") or NEW, "doc")   identity and id
 *   HIDDEN_KEY(…)                                                      identity only
 *   FIELD(type, field, u64, UNIT, MERGE, OLD(…) or NEW, "doc")
 *   END(type)
 *
 * For each type T the lists make `struct T`, field numbers `T_f_FIELD`, and `T_type`.
 */
#define C_flag bool
#define C_i64  int64_t
#define C_u64  uint64_t
#define C_f64  double
#define C_str  const char *
#define C_json const char *
#define C_ref  uint32_t

/* structs */
#define ENTITY(t, old, doc)	     struct t {
#define EDGE(t, old, src, dst, doc)  struct t {
#define KEY(t, f, T, u, o, doc)	     C_##T f;
#define FIELD(t, f, T, u, m, o, doc) C_##T f;
#define END(t)                                                                                     \
	}                                                                                          \
	;
#include "registry.inc"

/* field numbers and descriptors */
#define ENTITY(t, old, doc)	     enum t##_field {
#define EDGE(t, old, src, dst, doc)  enum t##_field {
#define KEY(t, f, T, u, o, doc)	     t##_f_##f,
#define FIELD(t, f, T, u, m, o, doc) t##_f_##f,
#define END(t)                                                                                     \
	t##_f_count                                                                                \
	}                                                                                          \
	;                                                                                          \
	_Static_assert(t##_f_count <= FIELDS_MAX, "too many fields in " #t);                       \
	extern const struct type t##_type;
#include "registry.inc"

/** All types, in the order of the build file; `number` is the index. */
extern const struct type *const entity_types[];
extern const struct type *const edge_types[];
extern const size_t n_entity_types, n_edge_types;

/**
 * Find a type by its name or its openEuler name, without regard to case.
 * @return NULL when there is none
 */
const struct type *type_find(enum type_kind kind, const char *name);

/** Field number in @p t by its name, or -1. */
int type_field(const struct type *t, const char *name);

/**
 * Whether reference @p f may point to an entity of type @p t. The end of its name says so ("process",
 * "socket_thread"); "object", which only relations have, may be anything. Readers check it, so that no
 * file can make entities that refer to themselves.
 */
bool field_refers_to(const struct field *f, const struct type *t);
