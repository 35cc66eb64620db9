/* Findings and the verdicts of all rules as JSON. */
#include <math.h>

#include "render_findings.h"
#include "rule.h"
#include "text.h"

static void node_id(const struct study *s, uint32_t node, struct json_writer *w)
{
	json_write_str(w, node == NODE_NONE ? NULL : graph_node_id(s->g, node));
}

/* {"id", "name"}, null: not known. */
static void entity(const struct study *s, uint32_t node, struct json_writer *w)
{
	struct strbuf b = {0};

	if (node == NODE_NONE) {
		json_write_null(w);
		return;
	}
	text_party(s->g, &b, node);
	json_write_object(w);
	json_key_str(w, "id", graph_node_id(s->g, node));
	json_key_str(w, "name", b.s);
	json_write_object_end(w);
	strbuf_done(&b);
}

static void texts(struct json_writer *w, const char *key, const char *const *v, size_t n)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		json_write_str(w, v[i]);
	json_write_array_end(w);
}

static void add_values(const struct study *s, const struct finding *fi, struct json_writer *w)
{
	json_write_key(w, "values");
	json_write_array(w);
	vec_for(&fi->values, v) {
		json_write_object(w);
		json_key_str(w, "name", v->name);
		json_write_key(w, "entity");
		node_id(s, v->node, w);
		json_write_key(w, "value");
		json_write_f64(w, v->value);
		json_key_str(w, "unit", unit_name(v->unit));
		json_write_key(w, "limit");
		json_write_f64(w, v->limit);
		json_key_str(w, "limit_name", v->limit_name);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void add_also(const struct finding *fi, struct json_writer *w)
{
	json_write_key(w, "also");
	json_write_array(w);
	vec_for(&fi->also, p) {
		json_write_object(w);
		json_key_str(w, "rule", p->rule);
		json_key_str(w, "title", p->title);
		json_key_str(w, "why", p->why);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void add_finding(const struct study *s, const struct findings *f, const struct finding *fi,
			struct json_writer *w)
{
	json_write_object(w);
	json_key_str(w, "rule", fi->rule);
	json_key_str(w, "layer", layer_name(fi->layer));
	json_key_str(w, "severity", severity_name(fi->severity));
	json_key_str(w, "priority", severity_priority(fi->severity));
	json_key_u64(w, "confidence_pct", fi->confidence_pct);
	json_key_str(w, "title", fi->title);
	json_key_str(w, "why", fi->why);
	json_write_key(w, "root");
	entity(s, fi->root, w);
	json_write_key(w, "subjects");
	json_write_array(w);
	vec_for(&fi->subjects, n)
		entity(s, *n, w);
	json_write_array_end(w);
	add_values(s, fi, w);
	json_write_key(w, "lost_ns");
	if (fi->lost_basis)
		json_write_u64(w, fi->lost_ns);
	else
		json_write_null(w);
	json_write_key(w, "lost_windows");
	json_write_f64(
	    w, fi->lost_basis && f->window_ns ? (double)fi->lost_ns / (double)f->window_ns : NAN);
	json_key_str(w, "lost_basis", fi->lost_basis);
	json_key_str(w, "severity_basis", fi->severity_basis);
	texts(w, "advice", fi->advice.v, fi->advice.n);
	texts(w, "commands", fi->commands.v, fi->commands.n);
	json_key_str(w, "expectation", fi->expectation);
	add_also(fi, w);
	json_write_object_end(w);
}

static void add_verdicts(const struct findings *f, struct json_writer *w)
{
	json_write_key(w, "rules");
	json_write_array(w);
	vec_for(&f->verdicts, v) {
		json_write_object(w);
		json_key_str(w, "rule", v->rule->id);
		json_key_str(w, "layer", layer_name(v->rule->layer));
		json_key_str(w, "title", v->rule->title);
		json_key_str(w, "verdict", verdict_name(v->verdict));
		json_key_str(w, v->verdict == VERDICT_UNKNOWN ? "missing" : "evidence",
			     v->evidence);
		if (v->how)
			json_key_str(w, "how", v->how);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void render_findings_members(const struct study *s, const struct findings *f,
			     const struct findings_view *v, struct json_writer *w)
{
	uint64_t shown = 0;

	json_write_key(w, "counts");
	json_write_object(w);
	for (int i = SEVERITY_CRITICAL; i > SEVERITY_INFO; i--)
		json_key_u64(w, severity_name(i), f->counts[i]);
	json_write_object_end(w);
	json_write_key(w, "findings");
	json_write_array(w);
	vec_for(&f->v, fi)
		if (fi->severity >= v->least && (!v->limit || shown++ < v->limit))
			add_finding(s, f, fi, w);
	json_write_array_end(w);
	add_verdicts(f, w);
	texts(w, "cannot_tell", f->limits_of_sight.v, f->limits_of_sight.n);
}

void render_findings_json(const struct study *s, const struct findings *f,
			  const struct findings_view *v, struct json_writer *w)
{
	json_write_object(w);
	json_key_u64(w, "schema_version", 1);
	json_write_key(w, "window_ns");
	if (f->window_ns)
		json_write_u64(w, f->window_ns);
	else
		json_write_null(w);
	render_findings_members(s, f, v, w);
	json_write_object_end(w);
}
