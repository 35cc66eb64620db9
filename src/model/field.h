#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a value is held in memory, in JSON and in SQLite. */
enum field_type {
	T_BOOL, /**< bool; JSON true/false; INTEGER 0/1 */
	T_I64,	/**< int64_t */
	T_U64,	/**< uint64_t, at most INT64_MAX so that SQLite holds it */
	T_F64,	/**< double, finite */
	T_STR,	/**< const char *, UTF-8, never NULL when measured */
	T_JSON, /**< const char *, one compact JSON value: vectors and maps whose shape the doc gives */
	T_REF,	/**< uint32_t, index of a node in the same graph */
};

/** Unit of a value as stored. Renderers scale, nobody else does. */
enum unit { NONE, COUNT, NS, BYTES, BYTES_S, PERCENT, PAGES, RATIO, KHZ, MILLIWATT, CELSIUS, GB_S, GOPS_S, COUNT_S };

/** What becomes of a value when the same entity or edge is observed again. */
enum merge {
	LAST,  /**< the newer value replaces the older one */
	FIRST, /**< the older one stays */
	SUM,   /**< values are parts of one total: each observation covers a time of its own */
	MIN,
	MAX,
	GAUGE, /**< as LAST; recordings keep the value of each interval too */
};

/** Role of a field in the identity of its entity or edge. */
enum key_role {
	KEY_NONE,
	KEY_SHOWN,  /**< part of the identity and of the printed id */
	KEY_HIDDEN, /**< part of the identity only; ids that would be equal get "#2", "#3", … */
};

/** One field of an entity or edge type; made from a line of a .def file. */
struct field {
	const char *name;
	enum field_type type;
	enum unit unit;
	enum merge merge;
	enum key_role key;
	uint16_t offset;	/**< in the type's struct */
	const char *old_name;	/**< path in openEuler's JSON, "data_flow.data_size"; NULL: not there */
	const char *old_absent; /**< JSON that openEuler's tool writes for "unknown"; NULL: no key at all */
	const char *doc;
};

enum type_kind { KIND_ENTITY, KIND_EDGE };

#define FIELDS_MAX 64 /* one bit each in a node's or edge's `measured` */

/** One entity or edge type: all that formats, tables and documents need to know about it. */
struct type {
	const char *name;     /**< "process", "send_to_socket": ids, tables, filters */
	const char *old_name; /**< "ProcessEntity", "SendToSocketEdge": the type name in graph JSON */
	const char *doc;
	enum type_kind kind;
	bool is_new;	     /**< openEuler's tool does not know it */
	const char *source;  /**< edges: type name of the source, "any" where several are possible */
	const char *target;  /**< edges: likewise */
	uint16_t number;     /**< index in entity_types[] or edge_types[] */
	uint16_t size;	     /**< of the struct */
	uint16_t nfields;
	const struct field *fields; /**< [nfields] */
};

const char *field_type_name(enum field_type t); /**< "u64" */
const char *unit_name(enum unit u);		/**< "ns", "" for NONE */
const char *merge_name(enum merge m);		/**< "sum" */
