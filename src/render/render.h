#pragma once

#include "graph.h"
#include "json.h"
#include "limit.h"

/** What of a list is wanted. */
struct selection {
	const struct type *type; /**< NULL: all */
	uint64_t limit;		 /**< 0: all */
	uint64_t after;		 /**< so many of the list are passed over: the cursor */
	const char *name;	 /**< part of an id or a text of the entity, or of a relation's ends; NULL: all */
	const char *container;	 /**< part of its name or id; NULL: all */
	uint64_t min_bytes;	 /**< the largest amount of bytes that an item has */
	uint64_t min_rate;	 /**< likewise in bytes a second of the window */
	const struct limits *limits; /**< reports: NULL: the defaults */
	const struct study *study;   /**< reports: analyses that are there already; NULL: none */
	const struct findings *findings; /**< reports: of that study */
	bool important_first;	 /**< entities by relations, relations by bytes; else as first seen */
};

/* JSON, stable: docs/schema.md. Ids are texts such as "process:4711". */
void render_entities_json(struct graph *g, const struct selection *s, struct json_writer *w);
void render_edges_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** Flows from sender to receiver, largest first. */
void render_flows_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** Shared memory objects, those that data can go through first. */
void render_shared_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** What threads wait for, longest first; what is idle rather than late comes last. */
void render_waits_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** NUMA nodes; processes and threads with where they ran and where their memory is, the worst first. */
void render_numa_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** Who ends the waits of threads, likewise. */
void render_wakes_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** @param entities,edges counts by type number, [n_entity_types] and [n_edge_types] */
void render_summary_json(struct graph *g, const uint64_t *entities, const uint64_t *edges,
			 struct json_writer *w);
void render_report_json(struct graph *g, const struct selection *s, struct json_writer *w);
/** One entity and its edges. */
void render_entity_json(struct graph *g, uint32_t node, struct json_writer *w);
/** The entity alone. */
void render_node_json(struct graph *g, uint32_t node, struct json_writer *w);
/** Its relations, those with most bytes or time first; limit and after of @p s count. */
void render_relations_json(struct graph *g, uint32_t node, const struct selection *s,
			   struct json_writer *w);

void render_entities_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_edges_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_flows_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_shared_text(struct graph *g, const struct selection *s, struct strbuf *b);
/** Only those that data can go through. */
void render_shared_paths_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_waits_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_numa_text(struct graph *g, const struct selection *s, struct strbuf *b);
void render_wakes_text(struct graph *g, const struct selection *s, struct strbuf *b);
/** One line on data paths that are no flows, if there are any. */
void render_shared_note(struct graph *g, struct strbuf *b);
void render_summary_text(struct graph *g, const uint64_t *entities, const uint64_t *edges,
			 struct strbuf *b);
void render_entity_text(struct graph *g, uint32_t node, struct strbuf *b);
void render_report_text(struct graph *g, const struct selection *s, struct strbuf *b);

/** The registry as Markdown: docs/schema.md. */
void render_schema_md(struct strbuf *b);

/** Ways of data between two entities, and the relations that join them. */
void render_paths_json(struct graph *g, uint32_t from, uint32_t to, struct json_writer *w);
void render_paths_text(struct graph *g, uint32_t from, uint32_t to, struct strbuf *b);

/* Lists in the order of reports; the caller frees them with vec_done(). */
struct index_list {
	VEC(uint32_t) v;
};
void flows_by_bytes(const struct graph *g, struct index_list *ret);
void threads_by_time(const struct graph *g, struct index_list *ret);
void count_types(const struct graph *g, uint64_t *entities, uint64_t *edges);

/* What a selection wants, in order. The part from selection.after to selection_end() is shown. */
void entities_selected(struct graph *g, const struct selection *s, struct index_list *ret);
void edges_selected(struct graph *g, const struct selection *s, struct index_list *ret);
/** The selection's type is not looked at. */
void flows_selected(struct graph *g, const struct selection *s, struct index_list *ret);
size_t selection_end(const struct selection *s, size_t all);
