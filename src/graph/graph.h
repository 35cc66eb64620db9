#pragma once

#include <stddef.h>

#include "arena.h"
#include "model.h"
#include "strbuf.h"
#include "vec.h"

#define NODE_NONE UINT32_MAX

/** An entity. `data` is the struct of its type; read it with GET() and HAS(), write it with SET(). */
struct node {
	const struct type *type;
	uint64_t measured; /**< bit per field number: the value is known */
	uint32_t index;	   /**< in graph.nodes */
	const char *ns;	   /**< host that it belongs to, "local" for the one that wrote the file */
	const char *extra; /**< JSON object of fields that the registry does not know; NULL: none */
	uint64_t data[];
};

/** A directed relation of two entities of the same graph. */
struct edge {
	const struct type *type;
	uint64_t measured;
	uint32_t index;	 /**< in graph.edges */
	uint32_t source; /**< index of a node */
	uint32_t target;
	bool has_weight;
	double weight; /**< of the older format; valid if has_weight */
	const char *extra;
	uint64_t data[];
};

#define FIELD_BIT(T, f) (1ull << T##_f_##f)
/* By offset: an array of u64 and a struct that may have none are no types to cast between. */
#define DATA_AT(x)	offsetof(typeof(*(x)), data)
#define DATA(T, x)	((struct T *)(void *)((char *)(x) + DATA_AT(x)))
#define CDATA(T, x)	((const struct T *)(const void *)((const char *)(x) + DATA_AT(x)))
/** Write field @p f of node or edge @p x, which has type @p T, and mark it as measured. */
#define SET(T, x, f, v) ((void)(DATA(T, x)->f = (v), (x)->measured |= FIELD_BIT(T, f)))
#define HAS(T, x, f)	(((x)->measured & FIELD_BIT(T, f)) != 0)
/** Value of a field, meaningful only if HAS() says so (otherwise zero, NULL or an earlier value). */
#define GET(T, x, f) (CDATA(T, x)->f)

/** Something that a source could not do, or did in a lesser way. */
struct status {
	const char *source; /**< "probe sched", "collector proc" */
	const char *state;  /**< "ok", "reduced", "off" */
	const char *rung;   /**< how it works: "tp_btf", "fexit", "/proc"; NULL: does not apply */
	const char *reason; /**< why not better, and what that costs; NULL when ok */
};

/** Events or reads that were lost, by cause. Zero counts are not kept. */
struct loss {
	const char *source;
	const char *cause; /**< "ring_full", "map_full", "read_fault", "unreadable", … */
	uint64_t count;
};

/** What the observation cost. */
struct cost {
	const char *name; /**< "cpu", "maps", "rss", "sched_switch" */
	const char *unit; /**< "ns", "bytes", "runs", "ns/run" */
	double value;
};

/** About the observation as a whole. Times that are not known are 0. */
struct snapshot_meta {
	uint64_t start_ns;  /**< since 1970 */
	uint64_t window_ns; /**< length of the observation */
	uint64_t intervals; /**< transactions in the recording */
	const char *tool;   /**< program and version that observed; NULL: not known */
	const char *options;
	const char *env; /**< JSON object: the older envelope's "env", if the file had one */
	bool complete;	 /**< the recording was closed in order */
};

struct graph_private;

/** Entities and relations of one snapshot, all in one arena; freed at once. */
struct graph {
	struct arena arena;
	VEC(struct node *) nodes;
	VEC(struct edge *) edges;
	VEC(struct status) status;
	VEC(struct loss) losses;
	VEC(struct cost) costs;
	struct snapshot_meta meta;
	uint64_t rewrites; /**< times that adding changed what was known of an entity */
	struct graph_private *priv;
};

void graph_init(struct graph *g);
void graph_done(struct graph *g);

/** Interned copy: equal texts have equal addresses. Lives as long as the graph. */
const char *graph_str(struct graph *g, const char *s);
const char *graph_strn(struct graph *g, const char *s, size_t n);

/**
 * Begin an entity: fill it with SET() and hand it to graph_add_node(). String values must come from
 * graph_str().
 */
struct node *graph_new_node(struct graph *g, const struct type *t);

/**
 * Add a begun entity, or merge it into the one with the same type, namespace and key fields.
 * @return the entity in the graph; @p draft must not be used any more
 */
struct node *graph_add_node(struct graph *g, struct node *draft);

/**
 * As graph_add_node(), but a copy of what is there rather than another observation of it: its values
 * replace those of the same fields, sums too. Graph JSON repeats each entity in every relation.
 */
struct node *graph_put_node(struct graph *g, struct node *draft);

/**
 * As graph_add_node(), for one that is known to be none of those that are there: nothing is looked up, which is what
 * adding costs most in large graphs. It is found by later additions as others are.
 */
struct node *graph_append_node(struct graph *g, struct node *draft);

/** As graph_new_node() and graph_add_node(), for relations; @p source and @p target are node indexes. */
struct edge *graph_new_edge(struct graph *g, const struct type *t, uint32_t source, uint32_t target);
struct edge *graph_add_edge(struct graph *g, struct edge *draft);
struct edge *graph_put_edge(struct graph *g, struct edge *draft);
struct edge *graph_append_edge(struct graph *g, struct edge *draft);

/** Whether the graph has this text anywhere; no entity belongs to a host whose name it has not. */
bool graph_has_str(const struct graph *g, const char *s);

/** Add a relation without fields. */
static inline struct edge *graph_link(struct graph *g, const struct type *t, uint32_t source,
				      uint32_t target)
{
	return graph_add_edge(g, graph_new_edge(g, t, source, target));
}

/**
 * Printed id, such as "process:4711", "socket:TCP:127.0.0.1:80" (keys at its end that are not known are
 * left out), "process:7@10.0.0.2" for another host, "process:4711#2" for the second process with that
 * pid. Unique in the graph and stable as long as nothing is added. All ids are made at the first call
 * after an addition.
 */
const char *graph_node_id(struct graph *g, uint32_t node);

/** Write into @p b the id that the node has when no other of the graph has the same one. */
void graph_id_base(struct strbuf *b, const struct node *n);

/** @return index of the node with that id, or NODE_NONE */
uint32_t graph_find(struct graph *g, const char *id);

/** Edges of a node: [n] edge indexes, ascending. Built at the first call after an addition. */
struct edge_list {
	const uint32_t *v;
	size_t n;
};
struct edge_list graph_out(struct graph *g, uint32_t node);
struct edge_list graph_in(struct graph *g, uint32_t node);

void graph_add_status(struct graph *g, const char *source, const char *state, const char *rung,
		      const char *reason);
void graph_add_loss(struct graph *g, const char *source, const char *cause, uint64_t count);
void graph_add_cost(struct graph *g, const char *name, const char *unit, double value);

/** One value of a field, for code that treats all fields alike. */
struct value {
	enum field_type type;
	union {
		bool b;
		int64_t i64;
		uint64_t u64;
		double f64;
		const char *str; /**< T_STR and T_JSON */
		uint32_t ref;
	};
};

/** Read field @p f of a node's or edge's data. */
struct value field_get(const struct field *f, const uint64_t *data);
/** Write it; the value's type must be the field's. The caller sets the measured bit. */
void field_set(const struct field *f, uint64_t *data, const struct value *v);

/**
 * Add all nodes and edges of @p from to @p into, merging what is there already.
 *
 * @param ret_nodes [from->nodes.n] index in @p into of each node; may be NULL
 * @param ret_edges [from->edges.n] likewise
 */
void graph_merge(struct graph *into, const struct graph *from, uint32_t *ret_nodes,
		 uint32_t *ret_edges);

/**
 * As graph_merge(), for some of them. What a wanted node refers to, and the ends of a wanted edge, are
 * taken too.
 *
 * @param nodes,edges [from->nodes.n], [from->edges.n] which ones are wanted
 * @param ret_nodes,ret_edges NODE_NONE for those that were not taken
 */
void graph_merge_some(struct graph *into, const struct graph *from, const bool *nodes, const bool *edges,
		      uint32_t *ret_nodes, uint32_t *ret_edges);

/** Numbers of nodes or edges. */
struct number_list {
	VEC(uint32_t) v;
};

/**
 * As graph_merge_some(), for those that are listed: what is not is not looked at, so that a large graph can be taken apart.
 *
 * @param map       [from->nodes.n] all NODE_NONE; index in @p into of each node that was taken
 * @param ret_taken gets the nodes that were taken, in their order in @p into when that was empty
 */
void graph_merge_listed(struct graph *into, const struct graph *from, const struct number_list *nodes,
			const struct number_list *edges, uint32_t *map, struct number_list *ret_taken);

/**
 * As graph_merge_some(), with nodes that stand for others: edges and references of those go to it, and
 * what is known of the others is left out.
 *
 * @param stands [from->nodes.n] index of the node that stands for each, itself if none does; no circles
 */
void graph_merge_joined(struct graph *into, const struct graph *from, const bool *nodes, const bool *edges,
			const uint32_t *stands, uint32_t *ret_nodes);

/** As graph_merge(); what belongs to "local" belongs to the host @p ns there. */
void graph_merge_host(struct graph *into, const struct graph *from, const char *ns);
