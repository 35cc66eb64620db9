/* The topology as JSON; docs/json.md gives the shape. */
#include <string.h>

#include "graph_meta.h"
#include "render_topology.h"

static const char *id_of(struct topology *t, uint32_t actor)
{
	const struct topo_actor *a = &t->actors.v[actor];

	return a->kind == ACTOR_STORAGE || a->kind == ACTOR_OUTSIDE ? a->label
								    : graph_node_id(t->g, a->node);
}

static void key_id(struct topology *t, struct json_writer *w, const char *key, uint32_t actor)
{
	json_key_str(w, key, actor == TOPO_NONE ? NULL : id_of(t, actor));
}

static void key_bool(struct json_writer *w, const char *key, bool v)
{
	json_write_key(w, key);
	json_write_bool(w, v);
}

/* -1 stands for "not known" in a topology. */
static void key_ratio(struct json_writer *w, const char *key, double v)
{
	json_write_key(w, key);
	if (v < 0)
		json_write_null(w);
	else
		json_write_f64(w, v);
}

static void key_ids(struct topology *t, struct json_writer *w, const char *key, const uint32_t *v,
		    size_t n)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		json_write_str(w, id_of(t, v[i]));
	json_write_array_end(w);
}

static bool wanted(struct topology *t, const struct topology_view *v, uint32_t actor)
{
	return v->focus == TOPO_NONE || topo_related(t, v->focus, actor);
}

static bool full(const struct topology_view *v, uint64_t n)
{
	return v->limit && n >= v->limit;
}

static void write_actors(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	uint64_t n = 0;

	json_write_key(w, "actors");
	json_write_array(w);
	for (uint32_t i = 0; i < t->actors.n; i++) {
		const struct topo_actor *a = &t->actors.v[i];

		if (!wanted(t, v, i) || full(v, n++))
			continue;
		json_write_object(w);
		json_key_str(w, "id", id_of(t, i));
		json_key_str(w, "kind", actor_kind_name(a->kind));
		json_key_str(w, "label", a->label);
		json_key_str(w, "program", a->program);
		key_id(t, w, "parent", a->parent);
		json_key_str(w, "role", a->role == ROLE_UNKNOWN ? NULL : role_name(a->role));
		json_key_u64(w, "role_confidence_pct", a->role_pct);
		json_key_str(w, "role_evidence", a->role_why);
		json_write_key(w, "group");
		if (a->group == TOPO_NONE)
			json_write_null(w);
		else
			json_write_u64(w, a->group);
		json_key_str(w, "container", a->container);
		json_key_u64(w, "bytes_in", a->bytes_in);
		json_key_u64(w, "bytes_out", a->bytes_out);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void key_node(struct json_writer *w, const char *key, uint32_t node)
{
	json_write_key(w, key);
	if (node == TOPO_NONE)
		json_write_null(w);
	else
		json_write_u64(w, node);
}

static void write_links(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	uint64_t n = 0;

	json_write_key(w, "links");
	json_write_array(w);
	vec_for(&t->links, l) {
		if ((v->focus != TOPO_NONE && l->from != v->focus && l->to != v->focus) ||
		    full(v, n++))
			continue;
		json_write_object(w);
		key_id(t, w, "source", l->from);
		key_id(t, w, "target", l->to);
		json_key_str(w, "kind", l->kind);
		json_write_key(w, "bytes");
		if (l->measured)
			json_write_u64(w, l->bytes);
		else
			json_write_null(w);
		json_key_u64(w, "messages", l->messages);
		json_key_u64(w, "waited_ns", l->waited_ns);
		key_node(w, "source_numa", l->from_node);
		key_node(w, "target_numa", l->to_node);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_shares(struct json_writer *w, const char *key, const struct topo_share *v,
			 size_t n)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++) {
		json_write_object(w);
		json_key_u64(w, "node", v[i].node);
		json_write_key(w, "share");
		json_write_f64(w, v[i].share);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_devices(struct topology *t, struct json_writer *w)
{
	json_write_key(w, "devices");
	json_write_array(w);
	vec_for(&t->devices, d) {
		json_write_object(w);
		json_key_str(w, "id", graph_node_id(t->g, d->node));
		json_key_str(w, "numa_nodes", d->numa);
		json_key_str(w, "cpu_affinity", d->cpu_affinity);
		key_ids(t, w, "users", d->users.v, d->users.n);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_places(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	uint64_t n = 0;

	json_write_key(w, "placement");
	json_write_array(w);
	vec_for(&t->places, p) {
		if ((!p->cpu.n && !p->memory.n) || !wanted(t, v, p->actor) || full(v, n++))
			continue;
		json_write_object(w);
		key_id(t, w, "process", p->actor);
		json_key_str(w, "cpus_allowed", p->cpus_allowed);
		write_shares(w, "cpu", p->cpu.v, p->cpu.n);
		write_shares(w, "memory", p->memory.v, p->memory.n);
		key_ratio(w, "cosine", p->cosine);
		key_ratio(w, "remote_share", p->remote);
		json_write_key(w, "remote_measured");
		json_write_bool(w, p->remote_measured);
		json_key_str(w, "mode", p->mode);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_evidence(struct json_writer *w, const char *key, const struct topo_evidence *v,
			   size_t n, enum evidence kind)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == kind)
			json_write_str(w, v[i].text);
	json_write_array_end(w);
}

static void write_shape(struct json_writer *w, const struct topo_shape *s)
{
	json_write_key(w, "shape");
	json_write_object(w);
	json_key_str(w, "name", shape_name(s->shape));
	json_key_u64(w, "confidence_pct", s->pct);
	json_key_u64(w, "hubs", s->hubs);
	json_key_u64(w, "inner", s->inner);
	json_key_u64(w, "outer", s->outer);
	key_bool(w, "both_ways", s->both_ways);
	json_key_str(w, "looks_the_same", s->also);
	json_write_object_end(w);
}

static void write_group(struct topology *t, const struct topo_group *gr, struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "group", (uint64_t)(gr - t->groups.v));
	json_key_str(w, "name", gr->name);
	key_ids(t, w, "members", gr->members.v, gr->members.n);
	key_id(t, w, "launcher", gr->launcher);
	json_key_u64(w, "bytes", gr->bytes);
	json_key_u64(w, "loaders", gr->loaders);
	write_evidence(w, "basis", gr->basis.v, gr->basis.n, EVIDENCE_FOR);
	write_shape(w, &gr->shape);
	json_write_key(w, "patterns");
	json_write_array(w);
	vec_for(&gr->patterns, p) {
		json_write_object(w);
		json_key_str(w, "pattern", parallelism_name(p->kind));
		json_key_str(w, "text", p->text);
		json_key_u64(w, "degree", p->degree);
		json_key_u64(w, "confidence_pct", p->pct);
		key_bool(w, "declared", p->declared);
		key_bool(w, "observed", p->observed);
		write_evidence(w, "for", p->evidence.v, p->evidence.n, EVIDENCE_FOR);
		write_evidence(w, "against", p->evidence.v, p->evidence.n, EVIDENCE_AGAINST);
		write_evidence(w, "not_seen", p->evidence.v, p->evidence.n, EVIDENCE_UNSEEN);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}

static void write_groups(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	uint64_t n = 0;

	json_write_key(w, "groups");
	json_write_array(w);
	vec_for(&t->groups, gr)
		if (wanted(t, v, gr->members.v[0]) && !full(v, n++))
			write_group(t, gr, w);
	json_write_array_end(w);
}

static void write_knots(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	json_write_key(w, "knots");
	json_write_array(w);
	vec_for(&t->knots, k) {
		if (full(v, (uint64_t)(k - t->knots.v)))
			break;
		json_write_object(w);
		json_key_str(w, "what", k->what);
		key_ids(t, w, "actors", k->actors.v, k->actors.n);
		json_key_u64(w, "bytes", k->bytes);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_steps(struct topology *t, const struct topo_path *p, struct json_writer *w)
{
	json_write_key(w, "steps");
	json_write_array(w);
	vec_for(&p->links, l)
		json_write_str(w, *l == STEP_KNOT    ? "knot"
				  : *l == STEP_GUESS ? "not seen"
						     : t->links.v[*l].kind);
	json_write_array_end(w);
}

static void write_paths(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	uint64_t n = 0;

	json_write_key(w, "paths");
	json_write_array(w);
	vec_for(&t->paths, p) {
		bool here = v->focus == TOPO_NONE;

		vec_for(&p->actors, a)
			here |= *a == v->focus;
		if (!here || full(v, n++))
			continue;
		json_write_object(w);
		key_ids(t, w, "actors", p->actors.v, p->actors.n);
		write_steps(t, p, w);
		json_write_key(w, "bytes");
		if (p->bytes)
			json_write_u64(w, p->bytes);
		else
			json_write_null(w);
		json_key_u64(w, "waited_ns", p->waited_ns);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_problems(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	json_write_key(w, "problems");
	json_write_array(w);
	vec_for(&t->problems, p) {
		if (full(v, (uint64_t)(p - t->problems.v)))
			break;
		json_write_object(w);
		json_key_str(w, "id", p->id);
		json_key_str(w, "severity", severity_name(p->severity));
		json_key_u64(w, "confidence_pct", p->pct);
		json_key_str(w, "text", p->text);
		json_key_str(w, "advice", p->advice);
		key_ids(t, w, "actors", p->actors.v, p->actors.n);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_unseen(struct topology *t, struct json_writer *w)
{
	json_write_key(w, "not_observed");
	json_write_array(w);
	vec_for(&t->unseen, u)
		json_write_str(w, *u);
	json_write_array_end(w);
}

void render_topology_json(struct topology *t, const struct topology_view *v, struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	key_id(t, w, "main", t->main_actor);
	if (v->parts & 1u << PART_PROCESSES)
		write_actors(t, v, w);
	if (v->parts & 1u << PART_LINKS)
		write_links(t, v, w);
	if (v->parts & 1u << PART_DEVICES)
		write_devices(t, w);
	if (v->parts & 1u << PART_PLACES)
		write_places(t, v, w);
	if (v->parts & 1u << PART_GROUPS)
		write_groups(t, v, w);
	if (v->parts & 1u << PART_PATHS) {
		write_knots(t, v, w);
		write_paths(t, v, w);
	}
	if (v->parts & 1u << PART_PROBLEMS)
		write_problems(t, v, w);
	if (v->parts & 1u << PART_UNSEEN)
		write_unseen(t, w);
	if (v->note)
		json_key_str(w, "left_out", v->note);
	json_write_object_end(w);
}
