/* Lists and reports as JSON: fields come from the registry, ids are texts. */
#include <string.h>

#include "graph_meta.h"
#include "render.h"
#include "render_findings.h"
#include "render_hot.h"
#include "render_topology.h"
#include "text.h"
#include "value_json.h"

static void write_value(struct graph *g, const struct field *f, const uint64_t *data, struct json_writer *w)
{
	struct value v = field_get(f, data);

	if (!value_write_json(&v, w))
		json_write_str(w, graph_node_id(g, v.ref));
}

void json_fields(struct graph *g, const struct type *t, uint64_t measured, const uint64_t *data,
		 struct json_writer *w)
{
	for (int i = 0; i < t->nfields; i++) {
		json_write_key(w, t->fields[i].name);
		if (measured & (1ull << i))
			write_value(g, &t->fields[i], data, w);
		else
			json_write_null(w);
	}
}

void json_entity(struct graph *g, const struct node *n, struct json_writer *w)
{
	json_write_object(w);
	json_key_str(w, "id", graph_node_id(g, n->index));
	json_key_str(w, "type", n->type->name);
	json_key_str(w, "namespace", n->ns);
	json_fields(g, n->type, n->measured, n->data, w);
	json_write_object_end(w);
}

static void write_edge(struct graph *g, const struct edge *d, struct json_writer *w)
{
	json_write_object(w);
	json_key_str(w, "type", d->type->name);
	json_key_str(w, "source", graph_node_id(g, d->source));
	json_key_str(w, "target", graph_node_id(g, d->target));
	json_fields(g, d->type, d->measured, d->data, w);
	json_write_object_end(w);
}

void render_entities_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct index_list list;

	entities_selected(g, s, &list);
	json_write_array(w);
	for (size_t i = s->after; i < selection_end(s, list.v.n); i++)
		json_entity(g, g->nodes.v[list.v.v[i]], w);
	json_write_array_end(w);
	vec_done(&list.v);
}

void render_edges_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct index_list list;

	edges_selected(g, s, &list);
	json_write_array(w);
	for (size_t i = s->after; i < selection_end(s, list.v.n); i++)
		write_edge(g, g->edges.v[list.v.v[i]], w);
	json_write_array_end(w);
	vec_done(&list.v);
}

void render_entity_json(struct graph *g, uint32_t node, struct json_writer *w)
{
	struct edge_list out = graph_out(g, node), in = graph_in(g, node);

	json_write_object(w);
	json_write_key(w, "entity");
	json_entity(g, g->nodes.v[node], w);
	json_write_key(w, "out");
	json_write_array(w);
	for (size_t i = 0; i < out.n; i++)
		write_edge(g, g->edges.v[out.v[i]], w);
	json_write_array_end(w);
	json_write_key(w, "in");
	json_write_array(w);
	for (size_t i = 0; i < in.n; i++)
		write_edge(g, g->edges.v[in.v[i]], w);
	json_write_array_end(w);
	json_write_object_end(w);
}

void json_end(struct graph *g, uint32_t node, struct json_writer *w)
{
	const struct node *n = g->nodes.v[node];
	const char *id = graph_node_id(g, node), *colon = strchr(id, ':');

	json_write_object(w);
	json_key_str(w, "id", id);
	json_write_key(w, "pid");
	if (n->type == &process_type && HAS(process, n, pid))
		json_write_u64(w, GET(process, n, pid));
	else
		json_write_null(w);
	json_write_key(w, "name");
	if (n->type == &process_type)
		json_write_str(w, HAS(process, n, name) ? GET(process, n, name) : NULL);
	else
		json_write_str(w, colon ? colon + 1 : id);
	json_write_object_end(w);
}

static void write_flow(struct graph *g, const struct edge *d, struct json_writer *w)
{
	uint64_t bytes = GET(flow, d, bytes), window = g->meta.window_ns;

	/* An imported graph has no window of its own: the flow's own span is the best there is. */
	if (!window && HAS(flow, d, first_ns) && HAS(flow, d, last_ns))
		window = GET(flow, d, last_ns) - GET(flow, d, first_ns);
	json_write_object(w);
	json_write_key(w, "source");
	json_end(g, d->source, w);
	json_write_key(w, "target");
	json_end(g, d->target, w);
	json_fields(g, d->type, d->measured, d->data, w);
	json_write_key(w, "rate_bps");
	if (window)
		json_write_f64(w, (double)bytes * 1e9 / (double)window);
	else
		json_write_null(w);
	json_write_object_end(w);
}

void render_flows_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct index_list list;

	flows_selected(g, s, &list);
	json_write_array(w);
	for (size_t i = s->after; i < selection_end(s, list.v.n); i++)
		write_flow(g, g->edges.v[list.v.v[i]], w);
	json_write_array_end(w);
	vec_done(&list.v);
}

static void write_counts(const struct type *const *types, size_t n, const uint64_t *counts,
			 struct json_writer *w)
{
	json_write_object(w);
	for (size_t i = 0; i < n; i++) {
		if (!counts[i])
			continue;
		json_write_key(w, types[i]->name);
		json_write_u64(w, counts[i]);
	}
	json_write_object_end(w);
}

void render_summary_json(struct graph *g, const uint64_t *entities, const uint64_t *edges,
			 struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	json_write_key(w, "entities");
	write_counts(entity_types, n_entity_types, entities, w);
	json_write_key(w, "edges");
	write_counts(edge_types, n_edge_types, edges, w);
	graph_write_about(g, w);
	json_write_object_end(w);
}

static void write_busy_threads(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct index_list list;

	threads_by_time(g, &list);
	json_write_array(w);
	for (size_t i = 0; i < list.v.n && i < (s->limit ? s->limit : 50); i++)
		json_entity(g, g->nodes.v[list.v.v[i]], w);
	json_write_array_end(w);
	vec_done(&list.v);
}

static void write_topology(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct topology_view v = {.parts = PARTS_ALL, .limit = s->limit, .focus = TOPO_NONE};
	struct topology t;

	topology_init(&t, g);
	json_write_key(w, "topology");
	render_topology_json(&t, &v, w);
	topology_done(&t);
}

static void write_findings(const struct selection *s, struct json_writer *w)
{
	struct findings_view v = {.limit = s->limit};

	if (!s->study || !s->findings)
		return;
	json_write_key(w, "bottlenecks");
	render_findings_json(s->study, s->findings, &v, w);
}

static void write_hot(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct hot_view v = {.limit = s->limit};
	struct hot h;

	json_write_key(w, "hotspots");
	if (s->study && s->study->hot) {
		render_hot_json((struct hot *)s->study->hot, &v, w);
		return;
	}
	hot_init(&h, g, s->limits);
	render_hot_json(&h, &v, w);
	hot_done(&h);
}

void render_report_json(struct graph *g, const struct selection *s, struct json_writer *w)
{
	struct selection hosts = {.type = &host_type}, processes = {.type = &process_type};

	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	json_write_key(w, "hosts");
	render_entities_json(g, &hosts, w);
	graph_write_about(g, w);
	json_write_key(w, "processes");
	render_entities_json(g, &processes, w);
	json_write_key(w, "flows");
	render_flows_json(g, s, w);
	json_write_key(w, "shared_memory");
	render_shared_json(g, s, w);
	json_write_key(w, "numa");
	render_numa_json(g, s, w);
	json_write_key(w, "wakes");
	render_wakes_json(g, s, w);
	json_write_key(w, "busiest_threads");
	write_busy_threads(g, s, w);
	write_topology(g, s, w);
	write_hot(g, s, w);
	write_findings(s, w);
	json_write_object_end(w);
}
