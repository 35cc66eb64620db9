/* Lists of a snapshot: entities, relations, flows and the like, with filters and cursors. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "mem.h"
#include "render.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     10000
#define NAME_MAX_	  256

struct snapshot *asked_snapshot(struct server *s, const struct request *r, struct reply *a)
{
	const char *cursor = request_arg(r, "cursor");
	uint64_t seq = cursor ? strtoull(cursor, NULL, 10) : request_count(r, "snapshot", 0);
	uint64_t at = request_count(r, "at", 0);
	struct snapshot *snap = seq ? board_find(s->board, seq) : at ? board_at(s->board, at) : board_newest(s->board);

	if (snap) {
		reply_etag(a, s, snap);
	} else if (seq) {
		reply_error(a, cursor ? 410 : 404, "snapshot %" PRIu64 " is not kept%s", seq,
			    cursor ? " any more: begin the list anew" : "");
	} else {
		reply_error(a, 503, "the first interval is not over yet");
		a->retry_after_s = 1;
	}
	return snap;
}

/* "SNAPSHOT.PASSED" */
static int read_cursor(const struct request *r, struct selection *sel, struct reply *a)
{
	const char *cursor = request_arg(r, "cursor"), *dot = cursor ? strchr(cursor, '.') : NULL;
	char *end;

	if (!cursor)
		return 0;
	errno = 0;
	if (dot)
		sel->after = strtoull(dot + 1, &end, 10);
	if (!dot || *cursor < '1' || *cursor > '9' || strspn(cursor, "0123456789") != (size_t)(dot - cursor) ||
	    dot[1] < '0' || dot[1] > '9' || *end || errno || sel->after > INT64_MAX) {
		reply_error(a, 400, "parameter 'cursor': not one that this server gave");
		return -EINVAL;
	}
	return 0;
}

static int read_selection(const struct request *r, enum type_kind kind, struct selection *sel, struct reply *a)
{
	const char *type = request_arg(r, "type");

	*sel = (struct selection){.name = request_arg(r, "name"),
				  .container = request_arg(r, "container"),
				  .min_bytes = request_count(r, "min_bytes", 0),
				  .min_rate = request_count(r, "min_rate", 0),
				  .limit = request_count(r, "limit", LIMIT_DEFAULT),
				  .important_first = request_count(r, "important_first", 0)};
	/* 0 would mean all. */
	if (!sel->limit)
		sel->limit = LIMIT_MAX;
	if (type) {
		sel->type = type_find(kind, type);
		if (!sel->type) {
			reply_error(a, 400, "parameter 'type': no %s type '%s'",
				    kind == KIND_EDGE ? "edge" : "entity", type);
			return -EINVAL;
		}
	}
	return read_cursor(r, sel, a);
}

static void begin_list(struct json_writer *w, struct strbuf *b, const struct snapshot *snap)
{
	json_writer_init_strbuf(w, b, 0);
	json_write_object(w);
	json_key_u64(w, "snapshot", snap->seq);
	json_key_u64(w, "start_ns", snap->start_ns);
	json_key_u64(w, "end_ns", snap->end_ns);
}

static void end_list(struct json_writer *w)
{
	struct err e;

	json_write_object_end(w);
	json_writer_finish(w, &e);
}

typedef void selected_fn(struct graph *g, const struct selection *s, struct index_list *ret);
typedef void render_fn(struct graph *g, const struct selection *s, struct json_writer *w);

/* @param selected NULL: the list has no cursors */
static void answer_list(struct server *s, const struct request *r, struct reply *a, enum type_kind kind,
			selected_fn *selected, render_fn *render)
{
	struct index_list list = {0};
	struct snapshot *snap;
	struct selection sel;
	struct json_writer w;
	char next[48];
	size_t end = 0, total = 0;

	if (read_selection(r, kind, &sel, a))
		return;
	snap = asked_snapshot(s, r, a);
	if (!snap)
		return;
	begin_list(&w, &a->body, snap);
	pthread_mutex_lock(&snap->lock);
	if (selected) {
		selected(&snap->g, &sel, &list);
		if (sel.after > list.v.n)
			sel.after = list.v.n;
		total = list.v.n;
		end = selection_end(&sel, total);
		json_key_u64(&w, "total", total);
		vec_done(&list.v);
	}
	json_write_key(&w, "items");
	render(&snap->g, &sel, &w);
	pthread_mutex_unlock(&snap->lock);
	json_write_key(&w, "next");
	snprintf(next, sizeof(next), "%" PRIu64 ".%zu", snap->seq, end);
	json_write_str(&w, end < total ? next : NULL);
	end_list(&w);
	snapshot_unref(snap);
}

static void answer_entities(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_ENTITY, entities_selected, render_entities_json);
}

static void answer_edges(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_EDGE, edges_selected, render_edges_json);
}

static void answer_flows(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_EDGE, flows_selected, render_flows_json);
}

static void answer_shared(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_ENTITY, NULL, render_shared_json);
}

static void answer_waits(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_EDGE, NULL, render_waits_json);
}

static void answer_wakes(struct server *s, const struct request *r, struct reply *a)
{
	answer_list(s, r, a, KIND_EDGE, NULL, render_wakes_json);
}

static void answer_numa(struct server *s, const struct request *r, struct reply *a)
{
	struct selection sel = {.limit = request_count(r, "limit", LIMIT_DEFAULT)};
	struct snapshot *snap = asked_snapshot(s, r, a);
	struct json_writer w;
	struct err e;

	if (!snap)
		return;
	json_writer_init_strbuf(&w, &a->body, 0);
	pthread_mutex_lock(&snap->lock);
	render_numa_json(&snap->g, &sel, &w);
	pthread_mutex_unlock(&snap->lock);
	json_writer_finish(&w, &e);
	snapshot_unref(snap);
}

/* @return the entity, or NODE_NONE with the reply set; under the snapshot's lock */
static uint32_t find_entity(struct snapshot *snap, const char *id, struct reply *a)
{
	uint32_t node = id ? graph_find(&snap->g, id) : NODE_NONE;

	if (node == NODE_NONE)
		reply_error(a, 404, "no entity '%.200s' in snapshot %" PRIu64, id ?: "", snap->seq);
	return node;
}

static void answer_entity(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = asked_snapshot(s, r, a);
	struct json_writer w;
	struct err e;
	uint32_t node;

	if (!snap)
		return;
	pthread_mutex_lock(&snap->lock);
	node = find_entity(snap, r->rest, a);
	if (node != NODE_NONE) {
		json_writer_init_strbuf(&w, &a->body, 0);
		render_entity_json(&snap->g, node, &w);
		json_writer_finish(&w, &e);
	}
	pthread_mutex_unlock(&snap->lock);
	snapshot_unref(snap);
}

/* Nodes within so many relations of one, breadth first, at most @p most. */
static void around(struct graph *g, uint32_t from, uint64_t hops, uint64_t most, struct index_list *ret)
{
	bool *seen = mem_alloc(g->nodes.n * sizeof(*seen));
	size_t begin = 0;

	seen[from] = true;
	vec_push(&ret->v, from);
	for (uint64_t h = 0; h < hops; h++) {
		size_t end = ret->v.n;

		for (; begin < end && ret->v.n < most; begin++) {
			struct edge_list out = graph_out(g, ret->v.v[begin]), in = graph_in(g, ret->v.v[begin]);

			for (size_t i = 0; i < out.n + in.n && ret->v.n < most; i++) {
				uint32_t to = i < out.n ? g->edges.v[out.v[i]]->target :
							  g->edges.v[in.v[i - out.n]]->source;

				if (!seen[to]) {
					seen[to] = true;
					vec_push(&ret->v, to);
				}
			}
		}
		begin = end;
	}
	free(seen);
}

/* As a graph of its own, so that the renderers of lists do for it. */
static void write_neighbours(struct json_writer *w, struct graph *g, uint32_t node, uint64_t hops, uint64_t most)
{
	bool *nodes = mem_alloc(g->nodes.n + 1), *edges = mem_alloc(g->edges.n + 1);
	uint32_t *moved = mem_alloc((g->nodes.n + 1) * sizeof(*moved));
	struct selection all = {0};
	struct index_list list = {0};
	struct graph part;

	around(g, node, hops, most, &list);
	vec_for(&list.v, n)
		nodes[*n] = true;
	vec_for(&g->edges, d)
		edges[(*d)->index] = nodes[(*d)->source] && nodes[(*d)->target];
	graph_init(&part);
	graph_merge_some(&part, g, nodes, edges, moved, NULL);
	part.meta.window_ns = g->meta.window_ns;
	json_key_str(w, "center", graph_node_id(g, node));
	json_write_key(w, "complete");
	json_write_bool(w, list.v.n < most);
	json_write_key(w, "entities");
	render_entities_json(&part, &all, w);
	json_write_key(w, "edges");
	render_edges_json(&part, &all, w);
	graph_done(&part);
	vec_done(&list.v);
	free(nodes);
	free(edges);
	free(moved);
}

static void answer_neighbours(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = asked_snapshot(s, r, a);
	struct json_writer w;
	uint32_t node;

	if (!snap)
		return;
	pthread_mutex_lock(&snap->lock);
	node = find_entity(snap, r->rest, a);
	if (node != NODE_NONE) {
		begin_list(&w, &a->body, snap);
		write_neighbours(&w, &snap->g, node, request_count(r, "hops", 1), request_count(r, "limit", LIMIT_DEFAULT) ?: 1);
		end_list(&w);
	}
	pthread_mutex_unlock(&snap->lock);
	snapshot_unref(snap);
}

static void answer_paths(struct server *s, const struct request *r, struct reply *a)
{
	const char *from = request_arg(r, "from"), *to = request_arg(r, "to");
	struct snapshot *snap;
	struct json_writer w;
	uint32_t one, two = NODE_NONE;
	struct err e;

	if (!from || !to) {
		reply_error(a, 400, "parameters 'from' and 'to' are needed: ids of entities");
		return;
	}
	snap = asked_snapshot(s, r, a);
	if (!snap)
		return;
	pthread_mutex_lock(&snap->lock);
	one = find_entity(snap, from, a);
	if (one != NODE_NONE)
		two = find_entity(snap, to, a);
	if (two != NODE_NONE) {
		json_writer_init_strbuf(&w, &a->body, 0);
		render_paths_json(&snap->g, one, two, &w);
		json_writer_finish(&w, &e);
	}
	pthread_mutex_unlock(&snap->lock);
	snapshot_unref(snap);
}

#define P_TYPE                                                                                               \
	{                                                                                                    \
		"type", PARAM_TEXT, .max = 64, .doc = "only of this type, by name: docs/schema.md"           \
	}
#define P_NAME                                                                                               \
	{                                                                                                    \
		"name", PARAM_TEXT, .max = NAME_MAX_, .doc = "only with this in an id or a name"             \
	}
#define P_CONTAINER                                                                                          \
	{                                                                                                    \
		"container", PARAM_TEXT, .max = NAME_MAX_, .doc = "only in containers with this in a name or id" \
	}
#define P_MIN_BYTES                                                                                          \
	{                                                                                                    \
		"min_bytes", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "only with so many bytes or more"      \
	}
#define P_MIN_RATE                                                                                           \
	{                                                                                                    \
		"min_rate", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "only with so many bytes a second or more" \
	}
#define P_LIMIT                                                                                              \
	{                                                                                                    \
		"limit", PARAM_COUNT_OF, .max = LIMIT_MAX, .doc = "at most so many items (default 100)"      \
	}
#define P_FIRST                                                                                              \
	{                                                                                                    \
		"important_first", PARAM_FLAG, .doc = "entities by relations, relations by bytes"            \
	}
#define P_CURSOR                                                                                             \
	{                                                                                                    \
		"cursor", PARAM_TEXT, .max = 48, .doc = "`next` of the answer before: goes on in the same snapshot" \
	}
#define JSON	    "application/json"
#define LIST_SCHEMA "{\"$ref\":\"#/components/schemas/List\"}"

const struct route route_entities = {
	"GET", "/api/v1/entities", "Entities", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_TYPE, P_NAME, P_CONTAINER, P_MIN_BYTES, P_FIRST, P_LIMIT, P_CURSOR, P_SNAPSHOT, P_AT},
	.answer = answer_entities};
const struct route route_entity = {
	"GET", "/api/v1/entities/{id}", "One entity and its relations", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"entity\",\"out\",\"in\"]}", .params = {P_SNAPSHOT, P_AT},
	.answer = answer_entity};
const struct route route_edges = {
	"GET", "/api/v1/edges", "Relations", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_TYPE, P_NAME, P_CONTAINER, P_MIN_BYTES, P_MIN_RATE, P_FIRST, P_LIMIT, P_CURSOR, P_SNAPSHOT, P_AT},
	.answer = answer_edges};
const struct route route_neighbours = {
	"GET", "/api/v1/neighbours/{id}", "What is within some relations of an entity", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"center\",\"complete\",\"entities\",\"edges\"]}",
	.params = {{"hops", PARAM_COUNT_OF, .max = 4, .doc = "so many relations away (default 1)"}, P_LIMIT, P_SNAPSHOT, P_AT},
	.answer = answer_neighbours};
const struct route route_flows = {
	"GET", "/api/v1/flows", "Data between processes, most bytes first", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_NAME, P_CONTAINER, P_MIN_BYTES, P_MIN_RATE, P_LIMIT, P_CURSOR, P_SNAPSHOT, P_AT},
	.answer = answer_flows};
const struct route route_paths = {
	"GET", "/api/v1/paths", "Ways of data between two entities", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"there\",\"back\",\"relations\"]}",
	.params = {{"from", PARAM_TEXT, .max = NAME_MAX_, .doc = "id of an entity"},
		   {"to", PARAM_TEXT, .max = NAME_MAX_, .doc = "id of another one"}, P_SNAPSHOT, P_AT},
	.answer = answer_paths};
const struct route route_shared = {
	"GET", "/api/v1/shared-memory", "Shared memory and who maps it", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_NAME, P_LIMIT, P_SNAPSHOT, P_AT}, .answer = answer_shared};
const struct route route_waits = {
	"GET", "/api/v1/waits", "What threads wait for, longest first", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_NAME, P_LIMIT, P_SNAPSHOT, P_AT}, .answer = answer_waits};
const struct route route_wakes = {
	"GET", "/api/v1/wakes", "Who ends the waits of threads, longest first", RIGHT_READ, false, JSON, LIST_SCHEMA,
	.params = {P_NAME, P_LIMIT, P_SNAPSHOT, P_AT}, .answer = answer_wakes};
const struct route route_numa = {
	"GET", "/api/v1/numa", "NUMA nodes, and who runs away from its memory", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"nodes\",\"processes\",\"threads\"]}",
	.params = {P_LIMIT, P_SNAPSHOT, P_AT}, .answer = answer_numa};
