/* Graph JSON out: types, fields and their order come from the registry. */
#include "graph_json.h"

#include <string.h>

#include "graph_meta.h"
#include "value_json.h"

struct writing {
	struct graph *g;
	struct json_writer w;
	bool old_only;
};

static void write_node(struct writing *out, const struct node *n);

static void write_value(struct writing *out, const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	if (!value_write_json(&v, &out->w))
		write_node(out, out->g->nodes.v[v.ref]);
}

/* Close and open objects so that the next key belongs to the object with path @p to[0..n_to). */
static void enter(struct writing *out, const char **at, size_t *n_at, const char *to, size_t n_to)
{
	size_t common = 0;

	for (size_t i = 0; i <= *n_at && i <= n_to; i++) {
		bool end_at = i == *n_at || (*at)[i] == '.', end_to = i == n_to || to[i] == '.';

		if (end_at && end_to)
			common = i;
		if (i == *n_at || i == n_to || (*at)[i] != to[i])
			break;
	}
	for (size_t i = common; i < *n_at; i++)
		if (i == common || (*at)[i] == '.')
			json_write_object_end(&out->w);
	for (size_t i = common ? common + 1 : 0, start = i; n_to > common && i <= n_to; i++) {
		if (i < n_to && to[i] != '.')
			continue;
		json_write_keyn(&out->w, to + start, i - start);
		json_write_object(&out->w);
		start = i + 1;
	}
	*at = to;
	*n_at = n_to;
}

static void write_fields(struct writing *out, const struct type *t, uint64_t measured,
			 const uint64_t *data)
{
	const char *at = "";
	size_t n_at = 0;

	for (int i = 0; i < t->nfields; i++) {
		const struct field *f = &t->fields[i];
		const char *name = f->old_name ? f->old_name : f->name, *dot = strrchr(name, '.');
		bool has = measured & (1ull << i);

		if (!has && (!f->old_name || !f->old_absent))
			continue;
		if (out->old_only && !f->old_name)
			continue;
		enter(out, &at, &n_at, name, dot ? (size_t)(dot - name) : 0);
		json_write_key(&out->w, dot ? dot + 1 : name);
		if (has)
			write_value(out, f, data);
		else
			json_write_raw(&out->w, f->old_absent, strlen(f->old_absent));
	}
	enter(out, &at, &n_at, "", 0);
}

/* `"key":value,…` as graph_read_json() kept it, in the layout of the rest. */
static void write_extra(struct writing *out, const char *extra)
{
	struct json_reader *r;
	struct strbuf doc = {0}, value = {0};
	struct err e;
	int token;

	if (!extra || out->old_only)
		return;
	strbuf_addf(&doc, "{%s}", extra);
	r = json_reader_new_mem(doc.s, doc.n, "extra", NULL);
	json_next(r, &e);
	while ((token = json_next(r, &e)) == JSON_KEY) {
		json_write_key(&out->w, json_text(r, NULL));
		token = json_next(r, &e);
		strbuf_clear(&value);
		if (token < 0 || json_copy(r, token, &value, &e) < 0)
			break;
		json_write_raw(&out->w, value.s, value.n);
	}
	json_reader_free(r);
	strbuf_done(&doc);
	strbuf_done(&value);
}

static void write_node(struct writing *out, const struct node *n)
{
	struct json_writer *w = &out->w;

	json_write_object(w);
	json_write_key(w, "entity_namespace");
	json_write_str(w, n->ns);
	json_write_key(w, "entity_type");
	json_write_str(w, n->type->old_name);
	if (!n->extra || strncmp(n->extra, "\"details\":", 10) || out->old_only) {
		json_write_key(w, "details");
		json_write_object(w);
		json_write_object_end(w);
	}
	write_fields(out, n->type, n->measured, n->data);
	write_extra(out, n->extra);
	json_write_object_end(w);
}

static void write_edge(struct writing *out, const struct edge *d)
{
	struct json_writer *w = &out->w;

	json_write_object(w);
	json_write_key(w, "edge_type");
	json_write_str(w, d->type->old_name);
	json_write_key(w, "weight");
	if (d->has_weight)
		json_write_f64(w, d->weight);
	else
		json_write_null(w);
	json_write_key(w, "source_node");
	write_node(out, out->g->nodes.v[d->source]);
	json_write_key(w, "target_node");
	write_node(out, out->g->nodes.v[d->target]);
	write_fields(out, d->type, d->measured, d->data);
	write_extra(out, d->extra);
	json_write_object_end(w);
}

static bool wanted(const struct writing *out, const struct type *t)
{
	return !out->old_only || !t->is_new;
}

static uint64_t write_lists(struct writing *out)
{
	struct graph *g = out->g;
	uint64_t left_out = 0;

	json_write_key(&out->w, "nodes");
	json_write_array(&out->w);
	vec_for(&g->nodes, n) {
		if (wanted(out, (*n)->type))
			write_node(out, *n);
		else
			left_out++;
	}
	json_write_array_end(&out->w);
	json_write_key(&out->w, "edges");
	json_write_array(&out->w);
	vec_for(&g->edges, d) {
		if (wanted(out, (*d)->type) && wanted(out, g->nodes.v[(*d)->source]->type) &&
		    wanted(out, g->nodes.v[(*d)->target]->type))
			write_edge(out, *d);
		else
			left_out++;
	}
	json_write_array_end(&out->w);
	return left_out;
}

static uint64_t write_document(struct writing *out)
{
	struct graph *g = out->g;
	uint64_t left_out;

	json_write_object(&out->w);
	if (g->meta.env) {
		json_write_key(&out->w, "env");
		json_write_raw(&out->w, g->meta.env, strlen(g->meta.env));
		json_write_key(&out->w, "content");
		json_write_object(&out->w);
	}
	left_out = write_lists(out);
	if (g->meta.env)
		json_write_object_end(&out->w);
	if (!out->old_only && (g->meta.window_ns || g->status.n || g->costs.n || g->losses.n)) {
		json_write_key(&out->w, "witty");
		graph_write_meta(g, &out->w);
	}
	json_write_object_end(&out->w);
	return left_out;
}

int graph_write_json(struct graph *g, int fd, const struct graph_json_style *style,
		     uint64_t *ret_left_out, struct err *e)
{
	struct writing out = {.g = g, .old_only = style->old_only};
	uint64_t left_out;

	json_writer_init(&out.w, json_write_to_fd, &fd,
			 JSON_ASCII | (style->compact ? 0 : JSON_INDENT));
	left_out = write_document(&out);
	if (ret_left_out)
		*ret_left_out = left_out;
	return json_writer_finish(&out.w, e);
}

void graph_write_json_strbuf(struct graph *g, struct strbuf *b, const struct graph_json_style *style)
{
	struct writing out = {.g = g, .old_only = style->old_only};
	struct err e;

	json_writer_init_strbuf(&out.w, b, JSON_ASCII | (style->compact ? 0 : JSON_INDENT));
	write_document(&out);
	json_writer_finish(&out.w, &e);
}
