/* Ways between two entities as text and JSON. */
#include <inttypes.h>

#include "between.h"
#include "derive_flows.h"
#include "render.h"
#include "text.h"

static uint32_t actor_of(const struct topology *t, uint32_t node)
{
	uint32_t p = process_of(t->g, node);

	return t->actor_of[p != NODE_NONE ? p : node];
}

static void find_data(struct topology *t, uint32_t from, uint32_t to, struct topo_path *ret)
{
	uint32_t a = actor_of(t, from), b = actor_of(t, to);

	*ret = (struct topo_path){0};
	if (a != TOPO_NONE && b != TOPO_NONE)
		topology_between(t, a, b, ret);
}

static void path_done(struct topo_path *p)
{
	vec_done(&p->actors);
	vec_done(&p->links);
}

static void add_data(struct topology *t, struct strbuf *b, uint32_t from, uint32_t to)
{
	struct topo_path p;

	find_data(t, from, to, &p);
	strbuf_addf(b, "data from %s ", graph_node_id(t->g, from));
	strbuf_addf(b, "to %s, by the widest way:\n  ", graph_node_id(t->g, to));
	for (size_t i = 0; i < p.actors.n; i++) {
		text_clean(b, t->actors.v[p.actors.v[i]].label, 60);
		if (i < p.links.n)
			strbuf_addf(b, " --%s--> ", t->links.v[p.links.v[i]].kind);
	}
	if (!p.actors.n) {
		strbuf_add(b, "none was seen\n");
	} else {
		strbuf_add(b, "  ");
		if (p.bytes)
			text_bytes(b, (double)p.bytes);
		strbuf_add(b, p.bytes ? " at its narrowest step\n" : "amount unknown\n");
	}
	path_done(&p);
}

void render_paths_text(struct graph *g, uint32_t from, uint32_t to, struct strbuf *b)
{
	struct relation_path r;
	struct topology t;

	topology_init(&t, g);
	add_data(&t, b, from, to);
	add_data(&t, b, to, from);
	topology_link_parents(&t);
	topology_done(&t);
	relations_between(g, from, to, &r);
	strbuf_add(b, "shortest way over relations:\n");
	for (size_t i = 0; i < r.edges.n; i++) {
		const struct edge *d = g->edges.v[r.edges.v[i]];

		strbuf_addf(b, "  %s -%s-> ", graph_node_id(g, d->source), d->type->name);
		strbuf_addf(b, "%s\n", graph_node_id(g, d->target));
	}
	if (!r.nodes.n)
		strbuf_add(b, "  none\n");
	relations_done(&r);
}

static void write_data(struct topology *t, const char *key, uint32_t from, uint32_t to,
		       struct json_writer *w)
{
	struct topo_path p;

	find_data(t, from, to, &p);
	json_write_key(w, key);
	json_write_object(w);
	json_write_key(w, "steps");
	json_write_array(w);
	for (size_t i = 0; i < p.links.n; i++) {
		const struct topo_link *l = &t->links.v[p.links.v[i]];

		json_write_object(w);
		json_key_str(w, "source", t->actors.v[l->from].label);
		json_key_str(w, "target", t->actors.v[l->to].label);
		json_key_str(w, "kind", l->kind);
		json_write_key(w, "bytes");
		if (l->measured)
			json_write_u64(w, l->bytes);
		else
			json_write_null(w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_key(w, "bytes");
	if (p.bytes)
		json_write_u64(w, p.bytes);
	else
		json_write_null(w);
	json_write_object_end(w);
	path_done(&p);
}

void render_paths_json(struct graph *g, uint32_t from, uint32_t to, struct json_writer *w)
{
	struct relation_path r;
	struct topology t;

	topology_init(&t, g);
	json_write_object(w);
	write_data(&t, "there", from, to, w);
	write_data(&t, "back", to, from, w);
	topology_link_parents(&t);
	topology_done(&t);
	relations_between(g, from, to, &r);
	json_write_key(w, "relations");
	json_write_array(w);
	vec_for(&r.edges, e) {
		const struct edge *d = g->edges.v[*e];

		json_write_object(w);
		json_key_str(w, "type", d->type->name);
		json_key_str(w, "source", graph_node_id(g, d->source));
		json_key_str(w, "target", graph_node_id(g, d->target));
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
	relations_done(&r);
}
