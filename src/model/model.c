/* The descriptors of every entity and edge type, expanded from the .def files. */
#include "model.h"

#include <string.h>
#include <strings.h>

#define T_flag T_BOOL
#define T_i64  T_I64
#define T_u64  T_U64
#define T_f64  T_F64
#define T_str  T_STR
#define T_json T_JSON
#define T_ref  T_REF

#define NEW
#define OLD(path, absent) .old_name = path, .old_absent = absent

/* OLD(…) expands to two initializers, so it travels as the variable part. */
#define DESCRIBE(t, f, T, u, m, k, d, ...)                                                         \
	{.name = #f, .type = T_##T, .unit = u, .merge = m, .key = k, .doc = d,                     \
	 .offset = offsetof(struct t, f), __VA_ARGS__},

/* fields */
#define ENTITY(t, old, doc)		static const struct field t##_fields[] = {
#define EDGE(t, old, src, dst, doc)	static const struct field t##_fields[] = {
#define KEY(t, f, T, u, o, doc)		DESCRIBE(t, f, T, u, LAST, KEY_SHOWN, doc, o)
#define HIDDEN_KEY(t, f, T, u, o, doc)	DESCRIBE(t, f, T, u, LAST, KEY_HIDDEN, doc, o)
#define FIELD(t, f, T, u, m, o, doc)	DESCRIBE(t, f, T, u, m, KEY_NONE, doc, o)
/* The empty last item lets a type have no field at all. */
#define END(t)                                                                                     \
	{0}                                                                                        \
	}                                                                                          \
	;
#include "registry.inc"

/* numbers */
enum {
#define ENTITY(t, old, doc) t##_number,
#define EDGE(t, old, src, dst, doc)
#define KEY(...)
#define FIELD(...)
#define END(t)
#include "registry.inc"
	ENTITY_COUNT
};
enum {
#define ENTITY(t, old, doc)
#define EDGE(t, old, src, dst, doc) t##_number,
#define KEY(...)
#define FIELD(...)
#define END(t)
#include "registry.inc"
	EDGE_COUNT
};

/* types */
#define TYPE(t, old, d, k, new, src, dst)                                                          \
	const struct type t##_type = {                                                             \
		.name = #t, .old_name = old, .doc = d, .kind = k, .is_new = new, .source = src,    \
		.target = dst, .number = t##_number, .fields = t##_fields,                         \
		.nfields = sizeof(t##_fields) / sizeof(t##_fields[0]) - 1,                         \
		.size = sizeof(struct t)};
#define ENTITY(t, old, doc)		TYPE(t, #old, doc, KIND_ENTITY, false, NULL, NULL)
#define NEW_ENTITY(t, old, doc)		TYPE(t, #old, doc, KIND_ENTITY, true, NULL, NULL)
#define EDGE(t, old, src, dst, doc)	TYPE(t, #old, doc, KIND_EDGE, false, #src, #dst)
#define NEW_EDGE(t, old, src, dst, doc) TYPE(t, #old, doc, KIND_EDGE, true, #src, #dst)
#define KEY(...)
#define FIELD(...)
#define END(t)
#include "registry.inc"

const struct type *const entity_types[] = {
#define ENTITY(t, old, doc) &t##_type,
#define EDGE(t, old, src, dst, doc)
#define KEY(...)
#define FIELD(...)
#define END(t)
#include "registry.inc"
};
const struct type *const edge_types[] = {
#define ENTITY(t, old, doc)
#define EDGE(t, old, src, dst, doc) &t##_type,
#define KEY(...)
#define FIELD(...)
#define END(t)
#include "registry.inc"
};
const size_t n_entity_types = ENTITY_COUNT, n_edge_types = EDGE_COUNT;

const struct type *type_find(enum type_kind kind, const char *name)
{
	const struct type *const *types = kind == KIND_ENTITY ? entity_types : edge_types;
	size_t n = kind == KIND_ENTITY ? n_entity_types : n_edge_types;

	/* Nearly all names come from files, where they are written as they should be. */
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, types[i]->old_name))
			return types[i];
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(name, types[i]->name) || !strcasecmp(name, types[i]->old_name))
			return types[i];
	return NULL;
}

int type_field(const struct type *t, const char *name)
{
	for (int i = 0; i < t->nfields; i++)
		if (!strcmp(name, t->fields[i].name))
			return i;
	return -1;
}

bool field_refers_to(const struct field *f, const struct type *t)
{
	size_t nf = strlen(f->name), nt = strlen(t->name);

	/* Only of relations, so that it makes no circle. */
	if (f->type == T_REF && !strcmp(f->name, "object"))
		return true;
	return f->type == T_REF && nf >= nt && !strcmp(f->name + nf - nt, t->name) &&
	       (nf == nt || f->name[nf - nt - 1] == '_');
}

const char *field_type_name(enum field_type t)
{
	static const char *const names[] = {"bool", "i64", "u64", "f64", "str", "json", "ref"};

	return names[t];
}

const char *unit_name(enum unit u)
{
	static const char *const names[] = {
		[NONE] = "",	     [COUNT] = "count",	    [NS] = "ns",
		[BYTES] = "bytes",   [BYTES_S] = "bytes/s", [PERCENT] = "%",
		[PAGES] = "pages",   [RATIO] = "ratio",	    [KHZ] = "kHz",
		[MILLIWATT] = "mW",  [CELSIUS] = "°C",	    [GB_S] = "GB/s",
		[GOPS_S] = "Gops/s", [COUNT_S] = "/s",
	};

	return names[u];
}

const char *merge_name(enum merge m)
{
	static const char *const names[] = {"last", "first", "sum", "min", "max", "gauge"};

	return names[m];
}
