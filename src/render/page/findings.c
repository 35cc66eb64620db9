/* The page's findings, with the rows that are their evidence. */
#include <math.h>

#include "finding.h"
#include "page_parts.h"

static void key_texts(struct json_writer *w, const char *key, const char *const *v, size_t n)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		json_write_str(w, v[i]);
	json_write_array_end(w);
}

static void write_values(struct page *p, const struct finding *f, struct json_writer *w)
{
	json_write_key(w, "values");
	json_write_array(w);
	vec_for(&f->values, v) {
		json_write_object(w);
		json_key_str(w, "name", v->name);
		if (v->node < p->g->nodes.n)
			json_key_str(w, "of", graph_node_id(p->g, v->node));
		page_key_f64(w, "value", v->value);
		json_key_str(w, "unit", unit_name(v->unit));
		if (!isnan(v->limit))
			page_key_f64(w, "limit", v->limit);
		page_key_text(w, "limit_name", v->limit_name);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_finding(struct page *p, const struct finding *f, struct json_writer *w)
{
	json_write_object(w);
	json_key_str(w, "rule", f->rule);
	json_key_str(w, "layer", layer_name(f->layer));
	json_key_str(w, "severity", severity_name(f->severity));
	json_key_u64(w, "confidence_pct", f->confidence_pct);
	if (f->root < p->g->nodes.n)
		json_key_str(w, "root", graph_node_id(p->g, f->root));
	json_write_key(w, "subjects");
	json_write_array(w);
	for (size_t i = 0; i < f->subjects.n && i < PAGE_SUBJECTS_MAX; i++)
		json_write_str(w, graph_node_id(p->g, f->subjects.v[i]));
	json_write_array_end(w);
	if (f->lost_basis) {
		json_key_u64(w, "lost_ns", f->lost_ns);
		json_key_str(w, "lost_basis", f->lost_basis);
	}
	json_key_str(w, "title", f->title);
	json_key_str(w, "why", f->why);
	write_values(p, f, w);
	key_texts(w, "advice", f->advice.v, f->advice.n);
	key_texts(w, "commands", f->commands.v, f->commands.n);
	json_write_key(w, "also");
	json_write_array(w);
	vec_for(&f->also, part) {
		json_write_object(w);
		json_key_str(w, "rule", part->rule);
		json_key_str(w, "title", part->title);
		json_key_str(w, "why", part->why);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	if (f->expectation)
		json_key_str(w, "expectation", f->expectation);
	json_write_object_end(w);
}

void page_write_findings(struct page *p, const struct findings *f, struct json_writer *w)
{
	json_key_u64(w, "findings_all", f ? f->v.n : 0);
	json_write_key(w, "findings");
	json_write_array(w);
	for (size_t i = 0; f && i < f->v.n && i < PAGE_FINDINGS_MAX; i++)
		write_finding(p, &f->v.v[i], w);
	json_write_array_end(w);
	if (f)
		key_texts(w, "blind", f->limits_of_sight.v, f->limits_of_sight.n);
}
