/* Graph JSON in: the registry says which member goes into which field. */
#include "graph_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graph_meta.h"
#include "json_repeats.h"

#define PATH_MAX_BYTES 256

struct reading {
	struct graph *g;
	struct json_reader *r;
	struct err *e;
	struct strbuf raw;   /* of one T_JSON value or unknown member */
	const struct type *last_type[2]; /* by enum type_kind: most are like the one before */
	const char *last_ns;
	struct { const char *s; size_t n; } recent[64]; /* texts by field: neighbours often repeat them */
	struct strbuf extra; /* of the entity or edge at hand: `"key":value,…` */
	struct repeats *entities; /* by index; what their text did is done, until one is rewritten */
	struct repeats *values;	  /* objects that are a T_JSON, by index in value_texts */
	VEC(const char *) value_texts; /* interned */
};

/* The part of an entity or edge that decoding needs. */
struct subject {
	const struct type *type;
	uint64_t *data;
	uint64_t *measured;
	unsigned next; /* field to look at first */
};

static int read_node(struct reading *in, uint32_t *ret);

/* Members nearly always come in the registry's order: look behind the one found before first. */
static const struct field *find_field(struct subject *s, const char *path, size_t n, bool *ret_prefix)
{
	const struct type *t = s->type;

	*ret_prefix = false;
	for (unsigned k = 0; k < t->nfields; k++) {
		unsigned i = s->next + k < t->nfields ? s->next + k : s->next + k - t->nfields;
		const struct field *f = &t->fields[i];
		const char *name = f->old_name ? f->old_name : f->name;

		if (name[0] != path[0] || strncmp(name, path, n))
			continue;
		if (!name[n]) {
			s->next = i + 1 < t->nfields ? i + 1 : 0;
			return f;
		}
		*ret_prefix |= name[n] == '.';
	}
	return NULL;
}

static bool is_absent(const struct field *f, int token, const char *text, size_t n)
{
	const char *a = f->old_absent;
	size_t na;

	if (token == JSON_NULL)
		return true;
	/* The first character tells most of them apart. */
	if (!a || (token == JSON_STRING ? a[0] != '"' || (n && a[1] != text[0]) : a[0] != text[0]))
		return false;
	na = strlen(a);
	if (token == JSON_STRING)
		return na == n + 2 && a[0] == '"' && !memcmp(a + 1, text, n);
	return na == n && !memcmp(a, text, n);
}

static int read_number(struct reading *in, const struct field *f, struct value *v)
{
	int rc;

	if (f->type == T_F64)
		rc = json_get_f64(in->r, &v->f64);
	else if (f->type == T_I64)
		rc = json_get_i64(in->r, &v->i64);
	else
		rc = json_get_u64(in->r, &v->u64);
	if (!rc && f->type == T_U64 && v->u64 > INT64_MAX)
		rc = -ERANGE;
	if (rc)
		return json_refuse(in->r, in->e, "\"%s\" is %s", f->name,
				   rc == -ERANGE ? "out of range" : "no whole number");
	return 0;
}

/* @param ret interned compact JSON */
static int read_json(struct reading *in, int token, const char **ret)
{
	struct repeat_mark mark;
	uint32_t i;
	int rc;

	if (token == JSON_OBJECT && repeats_pass(in->values, in->r, 0, &i, &mark)) {
		*ret = in->value_texts.v[i];
		return 0;
	}
	strbuf_clear(&in->raw);
	rc = json_copy(in->r, token, &in->raw, in->e);
	if (rc < 0)
		return rc;
	*ret = graph_strn(in->g, in->raw.s, in->raw.n);
	if (token == JSON_OBJECT) {
		vec_push(&in->value_texts, *ret);
		repeats_keep(in->values, in->r, 0, (uint32_t)in->value_texts.n - 1, &mark);
	}
	return 0;
}

/* 1: a value, 0: absent, < 0: error */
static int read_value(struct reading *in, const struct field *f, int token, struct value *v)
{
	size_t n;
	const char *s = json_text(in->r, &n);
	int rc;

	v->type = f->type;
	if (f->type == T_JSON) {
		rc = read_json(in, token, &v->str);
		if (rc < 0)
			return rc;
		return strcmp(v->str, "null") && (!f->old_absent || strcmp(v->str, f->old_absent));
	}
	if (is_absent(f, token, s, n))
		return 0;
	if (f->type == T_REF && token == JSON_OBJECT) {
		rc = read_node(in, &v->ref);
		if (!rc && !field_refers_to(f, in->g->nodes.v[v->ref]->type))
			rc = json_refuse(in->r, in->e, "\"%s\" is an entity of the wrong type", f->name);
		return rc < 0 ? rc : 1;
	}
	if (f->type == T_STR && token == JSON_STRING) {
		size_t slot = (uintptr_t)f / sizeof(*f) % 64;

		if (!in->recent[slot].s || in->recent[slot].n != n || memcmp(in->recent[slot].s, s, n)) {
			in->recent[slot].s = graph_strn(in->g, s, n);
			in->recent[slot].n = n;
		}
		v->str = in->recent[slot].s;
		return 1;
	}
	if (f->type == T_BOOL && (token == JSON_TRUE || token == JSON_FALSE)) {
		v->b = token == JSON_TRUE;
		return 1;
	}
	if ((f->type == T_U64 || f->type == T_I64 || f->type == T_F64) && token == JSON_NUMBER) {
		rc = read_number(in, f, v);
		return rc < 0 ? rc : 1;
	}
	return json_refuse(in->r, in->e, "\"%s\" has a value of the wrong kind", f->name);
}

/* A member that the registry does not know; "details" of the older tool is always empty. */
static int keep_unknown(struct reading *in, const char *path, int token)
{
	struct strbuf *x = &in->extra;
	int rc;

	strbuf_clear(&in->raw);
	rc = json_copy(in->r, token, &in->raw, in->e);
	if (rc < 0 || (!strcmp(path, "details") && !strcmp(in->raw.s, "{}")))
		return rc;
	if (x->n)
		strbuf_addc(x, ',');
	json_quote(x, path, strlen(path), 0);
	strbuf_addc(x, ':');
	strbuf_addn(x, in->raw.s, in->raw.n);
	return 0;
}

static int read_members(struct reading *in, struct subject *s, const char *prefix);

/* The member's key was just read. */
static int read_member(struct reading *in, struct subject *s, const char *prefix)
{
	char path[PATH_MAX_BYTES];
	const struct field *f;
	struct value v;
	bool is_prefix;
	size_t n, len = strlen(prefix);
	const char *key = json_text(in->r, &n);
	int token, rc;

	if (n + len + 2 > sizeof(path) || memchr(key, '\0', n) || (len && memchr(key, '.', n)))
		return json_refuse(in->r, in->e, "strange member name");
	/* A graph has millions of members: no printf here. */
	memcpy(path, prefix, len);
	if (len)
		path[len++] = '.';
	memcpy(path + len, key, n + 1);
	len += n;
	token = json_next(in->r, in->e);
	if (token < 0)
		return token;
	f = find_field(s, path, len, &is_prefix);
	if (!f && is_prefix && token == JSON_OBJECT)
		return read_members(in, s, path);
	if (!f && is_prefix && token == JSON_NULL)
		return 0;
	if (!f)
		return keep_unknown(in, path, token);
	rc = read_value(in, f, token, &v);
	if (rc <= 0)
		return rc;
	field_set(f, s->data, &v);
	*s->measured |= 1ull << (f - s->type->fields);
	return 0;
}

static int read_members(struct reading *in, struct subject *s, const char *prefix)
{
	for (;;) {
		int token = json_next(in->r, in->e), rc;

		if (token < 0 || token == JSON_OBJECT_END)
			return token < 0 ? token : 0;
		rc = read_member(in, s, prefix);
		if (rc < 0)
			return rc;
	}
}

static int expect_string(struct reading *in, const char *what)
{
	int token = json_next(in->r, in->e);

	if (token < 0)
		return token;
	if (token != JSON_STRING)
		return json_refuse(in->r, in->e, "\"%s\" is no string", what);
	return 0;
}

static int read_type(struct reading *in, enum type_kind kind, const char *what, const struct type **ret)
{
	int rc = expect_string(in, what);

	if (rc < 0)
		return rc;
	*ret = in->last_type[kind];
	if (*ret && json_is(in->r, (*ret)->old_name))
		return 0;
	*ret = in->last_type[kind] = type_find(kind, json_text(in->r, NULL));
	if (!*ret)
		return json_refuse(in->r, in->e, "unknown %s '%.64s'", what, json_text(in->r, NULL));
	return 0;
}

static const char *extra_text(struct reading *in)
{
	return in->extra.n ? graph_strn(in->g, in->extra.s, in->extra.n) : NULL;
}

static int read_namespace(struct reading *in, const char **ret)
{
	int rc = expect_string(in, "entity_namespace");

	if (rc < 0)
		return rc;
	if (!in->last_ns || !json_is(in->r, in->last_ns))
		in->last_ns = graph_str(in->g, json_text(in->r, NULL));
	*ret = in->last_ns;
	return 0;
}

struct node_head {
	const struct type *type;
	const char *ns;
};

/* Members that come before the type is known, other than those: only from foreign writers. */
static int read_head(struct reading *in, struct node_head *h)
{
	int rc = 0, token;

	while (!rc && !h->type) {
		token = json_next(in->r, in->e);
		if (token < 0)
			return token;
		if (token == JSON_OBJECT_END)
			return json_refuse(in->r, in->e, "entity without entity_type");
		if (json_is(in->r, "entity_type")) {
			rc = read_type(in, KIND_ENTITY, "entity_type", &h->type);
		} else if (json_is(in->r, "entity_namespace")) {
			rc = read_namespace(in, &h->ns);
		} else {
			return json_refuse(in->r, in->e, "entity_type must come before \"%.64s\"",
					   json_text(in->r, NULL));
		}
	}
	return rc;
}

static int read_node_members(struct reading *in, struct node *n, struct subject *s)
{
	for (;;) {
		int token = json_next(in->r, in->e), rc;

		if (token < 0 || token == JSON_OBJECT_END)
			return token < 0 ? token : 0;
		if (json_is(in->r, "entity_namespace")) {
			rc = read_namespace(in, &n->ns);
		} else {
			rc = read_member(in, s, "");
		}
		if (rc < 0)
			return rc;
	}
}

/* The opening brace was just read. */
static int read_new_node(struct reading *in, uint32_t *ret)
{
	struct strbuf saved = in->extra;
	struct node_head head = {0};
	struct subject s;
	struct node *n;
	int rc;

	memset(&in->extra, 0, sizeof(in->extra));
	rc = read_head(in, &head);
	if (!rc) {
		n = graph_new_node(in->g, head.type);
		if (head.ns)
			n->ns = head.ns;
		s = (struct subject){head.type, n->data, &n->measured};
		rc = read_node_members(in, n, &s);
		if (!rc) {
			n->extra = extra_text(in);
			*ret = graph_put_node(in->g, n)->index;
		}
	}
	strbuf_done(&in->extra);
	in->extra = saved;
	return rc;
}

/* An entity that others refer to, so that the same text comes again and again. */
static int read_node(struct reading *in, uint32_t *ret)
{
	struct repeat_mark mark;
	int rc;

	if (repeats_pass(in->entities, in->r, in->g->rewrites, ret, &mark))
		return 0;
	rc = read_new_node(in, ret);
	if (!rc)
		repeats_keep(in->entities, in->r, in->g->rewrites, *ret, &mark);
	return rc;
}

static int read_end(struct reading *in, const char *what, uint32_t *ret)
{
	int token = json_next(in->r, in->e);

	if (token < 0)
		return token;
	if (token != JSON_OBJECT)
		return json_refuse(in->r, in->e, "\"%s\" is no object", what);
	return read_node(in, ret);
}

static int read_weight(struct reading *in, struct edge *d)
{
	int token = json_next(in->r, in->e);

	if (token < 0 || token == JSON_NULL)
		return token < 0 ? token : 0;
	if (token != JSON_NUMBER || json_get_f64(in->r, &d->weight))
		return json_refuse(in->r, in->e, "\"weight\" is no number");
	d->has_weight = true;
	return 0;
}

static int read_edge(struct reading *in)
{
	const struct type *type = NULL;
	struct subject s;
	struct edge *d;
	int token, rc;

	token = json_next(in->r, in->e);
	if (token < 0)
		return token;
	if (token != JSON_KEY || !json_is(in->r, "edge_type"))
		return json_refuse(in->r, in->e, "edge_type must be the first member of an edge");
	rc = read_type(in, KIND_EDGE, "edge_type", &type);
	if (rc < 0)
		return rc;
	d = graph_new_edge(in->g, type, NODE_NONE, NODE_NONE);
	s = (struct subject){type, d->data, &d->measured};
	strbuf_clear(&in->extra);
	while (!rc) {
		token = json_next(in->r, in->e);
		if (token < 0)
			return token;
		if (token == JSON_OBJECT_END)
			break;
		if (json_is(in->r, "source_node"))
			rc = read_end(in, "source_node", &d->source);
		else if (json_is(in->r, "target_node"))
			rc = read_end(in, "target_node", &d->target);
		else if (json_is(in->r, "weight"))
			rc = read_weight(in, d);
		else
			rc = read_member(in, &s, "");
	}
	if (rc < 0)
		return rc;
	if (d->source == NODE_NONE || d->target == NODE_NONE)
		return json_refuse(in->r, in->e, "edge without source_node or target_node");
	d->extra = extra_text(in);
	graph_put_edge(in->g, d);
	return 0;
}

static int read_list(struct reading *in, bool edges)
{
	const char *what = edges ? "edges" : "nodes";
	uint32_t unused;
	int token = json_next(in->r, in->e), rc = 0;

	if (token < 0)
		return token;
	if (token != JSON_ARRAY)
		return json_refuse(in->r, in->e, "\"%s\" is no array", what);
	while (!rc) {
		token = json_next(in->r, in->e);
		if (token < 0)
			return token;
		if (token == JSON_ARRAY_END)
			return 0;
		if (token != JSON_OBJECT)
			return json_refuse(in->r, in->e, "item of \"%s\" is no object", what);
		rc = edges ? read_edge(in) : read_new_node(in, &unused);
	}
	return rc;
}

static int read_env(struct reading *in)
{
	int token = json_next(in->r, in->e), rc;

	if (token < 0)
		return token;
	strbuf_clear(&in->raw);
	rc = json_copy(in->r, token, &in->raw, in->e);
	if (!rc)
		in->g->meta.env = graph_str(in->g, in->raw.s);
	return rc;
}

/* @param depth 0: the document, 1: its "content" */
static int read_graph(struct reading *in, int depth, unsigned *seen)
{
	for (;;) {
		int token = json_next(in->r, in->e), rc;

		if (token < 0 || token == JSON_OBJECT_END)
			return token < 0 ? token : 0;
		if (json_is(in->r, "nodes")) {
			*seen |= 1;
			rc = read_list(in, false);
		} else if (json_is(in->r, "edges")) {
			*seen |= 2;
			rc = read_list(in, true);
		} else if (json_is(in->r, "env") && !depth) {
			rc = read_env(in);
		} else if (json_is(in->r, "witty")) {
			rc = graph_read_meta(in->g, in->r, in->e);
		} else if (json_is(in->r, "content") && !depth) {
			token = json_next(in->r, in->e);
			if (token >= 0 && token != JSON_OBJECT)
				return json_refuse(in->r, in->e, "\"content\" is no object");
			rc = token < 0 ? token : read_graph(in, 1, seen);
		} else {
			rc = json_skip(in->r, JSON_KEY, in->e);
		}
		if (rc < 0)
			return rc;
	}
}

int graph_read_json(struct graph *g, struct json_reader *r, struct err *e)
{
	struct reading in = {.g = g, .r = r, .e = e};
	unsigned seen = 0;
	int token = json_next(r, e), rc;

	if (token < 0)
		return token;
	if (token != JSON_OBJECT)
		return json_refuse(r, e, "no graph: the document is no object");
	in.entities = repeats_new();
	in.values = repeats_new();
	rc = read_graph(&in, 0, &seen);
	if (!rc && seen != 3)
		rc = json_refuse(r, e, "no graph: \"nodes\" and \"edges\" are needed");
	if (!rc) {
		token = json_next(r, e);
		rc = token < 0 ? token : 0;
	}
	repeats_free(in.entities);
	repeats_free(in.values);
	vec_done(&in.value_texts);
	strbuf_done(&in.raw);
	strbuf_done(&in.extra);
	return rc;
}
