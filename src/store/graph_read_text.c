/* Compact text in. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_meta.h"
#include "graph_text.h"
#include "text_derive.h"
#include "text_value.h"

#define COLUMNS (FIELDS_MAX + 2)

struct column {
	int field; /* nfields: namespace or weight, nfields + 1: extra */
	uint64_t base;
	const char *group; /* in the header line */
	size_t ngroup;
	struct strbuf above; /* the text of the row before */
};

struct reading {
	struct graph *g;
	const char *name;
	uint64_t line;
	struct err *e;
	const struct type *type; /* of the table at hand; NULL: none yet */
	struct column columns[COLUMNS], constants[COLUMNS];
	struct strbuf constant_text[COLUMNS];
	size_t ncolumns, nconstants;
	VEC(uint32_t) nodes; /* index of each number, from 1 */
	uint64_t ends[2];    /* numbers in the row above */
	VEC(struct derived { struct edge *edge; int field; }) derived; /* known when all is read */
	struct strbuf text;
};

/* Relations wait until their order is known. */
struct edge_list_of {
	const struct type *type;
	VEC(struct edge *) v;
	size_t next;
};

struct edge_lists {
	VEC(struct edge_list_of) v;
};

static int wrong(struct reading *in, const char *what)
{
	return err_msg(in->e, -EBADMSG, "%s:%" PRIu64 ": %s", in->name, in->line, what);
}

static int find_column(const struct type *t, const char *s, size_t n)
{
	const char *last = t->kind == KIND_EDGE ? "weight" : "namespace";

	for (int i = 0; i < t->nfields; i++)
		if (strlen(t->fields[i].name) == n && !memcmp(t->fields[i].name, s, n))
			return i;
	if (strlen(last) == n && !memcmp(last, s, n))
		return t->nfields;
	return n == 5 && !memcmp("extra", s, 5) ? t->nfields + 1 : -1;
}

static int read_column(struct reading *in, const char *s, size_t n)
{
	size_t name = 0;
	struct column *c;
	bool constant;

	while (name < n && !strchr("=+{", s[name]))
		name++;
	constant = name < n && s[name] == '=';
	if ((constant ? in->nconstants : in->ncolumns) == COLUMNS)
		return wrong(in, "too many columns");
	c = constant ? &in->constants[in->nconstants] : &in->columns[in->ncolumns];
	c->field = find_column(in->type, s, name);
	c->base = 0;
	c->group = NULL;
	strbuf_clear(&c->above);
	if (c->field < 0)
		return wrong(in, "no such column");
	if (constant) {
		strbuf_clear(&in->constant_text[in->nconstants]);
		strbuf_addn(&in->constant_text[in->nconstants++], s + name + 1, n - name - 1);
		return 0;
	}
	in->ncolumns++;
	if (name < n && s[name] == '+')
		c->base = strtoull(s + name + 1, NULL, 10);
	if (name < n && s[name] == '{') {
		if (s[n - 1] != '}' || c->field >= in->type->nfields)
			return wrong(in, "wrong list of keys");
		c->group = s + name;
		c->ngroup = n - name;
	}
	return 0;
}

static int read_header(struct reading *in, const char *at, const char *end)
{
	enum type_kind kind = at + 1 < end && at[1] == '@' ? KIND_EDGE : KIND_ENTITY;
	const char *s;
	char name[64];
	size_t n;
	int rc = 0;

	at += kind == KIND_EDGE ? 2 : 1;
	if (!text_next(&at, end, &s, &n) || n >= sizeof(name))
		return wrong(in, "a type is missing");
	memcpy(name, s, n);
	name[n] = '\0';
	in->type = type_find(kind, name);
	if (!in->type)
		return wrong(in, "unknown type");
	in->ncolumns = in->nconstants = 0;
	if (kind == KIND_ENTITY && (!text_next(&at, end, &s, &n) || strtoull(s, NULL, 10) != in->nodes.n + 1))
		return wrong(in, "the number of the first entity is wrong");
	while (!rc && text_next(&at, end, &s, &n))
		rc = read_column(in, s, n);
	return rc;
}

static bool get_number(const struct field *f, const char *s, uint64_t base, struct value *v)
{
	char *end;

	if (!strchr("-0123456789", *s) || !*s)
		return false;
	errno = 0;
	if (f->type == T_F64)
		v->f64 = strtod(s, &end);
	else if (f->type == T_I64)
		v->i64 = strtoll(s, &end, 10);
	else
		v->u64 = *s == '-' ? UINT64_MAX : strtoull(s, &end, 10);
	if (*s == '-' && f->type == T_U64)
		return false;
	if (f->type == T_U64 && (__builtin_add_overflow(v->u64, base, &v->u64) || v->u64 > INT64_MAX))
		return false;
	return !errno && !*end && (f->type != T_F64 || isfinite(v->f64));
}

static int get_value(struct reading *in, const struct column *c, const struct field *f, const char *s,
		     size_t n, struct value *v)
{
	struct strbuf copy = {0};
	bool good = true;
	uint64_t ref;

	v->type = f->type;
	strbuf_addn(&copy, s, n);
	if (f->type == T_STR || f->type == T_JSON) {
		good = f->type == T_STR ? text_get_str(&in->text, s, n)
		       : c->group	? text_get_group(&in->text, c->group, c->ngroup, s, n)
					: text_get_json(&in->text, s, n);
		if (good)
			v->str = graph_strn(in->g, strbuf_str(&in->text), in->text.n);
	} else if (f->type == T_BOOL) {
		good = n == 1 && (*s == '0' || *s == '1');
		v->b = *s == '1';
	} else if (f->type == T_REF) {
		ref = strtoull(copy.s, NULL, 10);
		good = ref >= 1 && ref <= in->nodes.n &&
		       field_refers_to(f, in->g->nodes.v[in->nodes.v[ref - 1]]->type);
		v->ref = good ? in->nodes.v[ref - 1] : 0;
	} else {
		good = get_number(f, copy.s, c->base, v);
	}
	strbuf_done(&copy);
	return good ? 0 : wrong(in, "a value does not fit its column");
}

/* What a row is about: one of the two is set. */
struct target {
	struct node *node;
	struct edge *edge;
};

static int set_other(struct reading *in, const struct target *t, bool extra, const char *s, size_t n)
{
	const struct field weight = {.type = T_F64};
	struct column plain = {0};
	struct value v;
	int rc;

	if (!extra && t->edge) {
		rc = get_value(in, &plain, &weight, s, n, &v);
		t->edge->has_weight = !rc;
		t->edge->weight = v.f64;
		return rc;
	}
	if (!text_get_str(&in->text, s, n))
		return wrong(in, "wrong quotes");
	if (!extra)
		t->node->ns = graph_str(in->g, strbuf_str(&in->text));
	else if (t->node)
		t->node->extra = graph_str(in->g, strbuf_str(&in->text));
	else
		t->edge->extra = graph_str(in->g, strbuf_str(&in->text));
	return 0;
}

static int set_cell(struct reading *in, const struct target *t, const struct column *c, const char *s,
		    size_t n)
{
	uint64_t *data = t->node ? t->node->data : t->edge->data;
	uint64_t *measured = t->node ? &t->node->measured : &t->edge->measured;
	const struct field *f = &in->type->fields[c->field];
	struct value v;
	int rc;

	if (n == 1 && *s == '-')
		return 0;
	if (n == 1 && *s == '=' && t->edge && c->field < in->type->nfields) {
		vec_push(&in->derived, ((struct derived){t->edge, c->field}));
		return 0;
	}
	if (c->field >= in->type->nfields)
		return set_other(in, t, c->field > in->type->nfields, s, n);
	rc = get_value(in, c, f, s, n, &v);
	if (rc < 0)
		return rc;
	field_set(f, data, &v);
	*measured |= 1ull << c->field;
	return 0;
}

/* The cell in full, with what it shares with the one above. */
static bool take_cell(struct reading *in, struct column *c, const char *s, size_t n)
{
	struct strbuf whole = {0};
	char *rest;
	size_t shared;
	bool good;

	if (n == 1 && *s == '\'')
		return c->above.n > 0;
	if (*s != '^') {
		strbuf_clear(&c->above);
		strbuf_addn(&c->above, s, n);
		return true;
	}
	shared = strtoul(s + 1, &rest, 10);
	if (rest >= s + n || *rest++ != '~' || !text_get_str(&in->text, c->above.s, c->above.n) ||
	    shared > in->text.n)
		return false;
	strbuf_addn(&whole, in->text.s, shared);
	good = text_get_str(&in->text, rest, n - (size_t)(rest - s));
	strbuf_addn(&whole, strbuf_str(&in->text), in->text.n);
	strbuf_clear(&c->above);
	text_add_str(&c->above, whole.s);
	strbuf_done(&whole);
	return good;
}

static int read_cells(struct reading *in, const struct target *t, const char *at, const char *end)
{
	const char *s;
	size_t n;
	int rc = 0;

	for (size_t i = 0; !rc && i < in->nconstants; i++)
		rc = set_cell(in, t, &in->constants[i], in->constant_text[i].s, in->constant_text[i].n);
	for (size_t i = 0; !rc && i < in->ncolumns; i++) {
		struct column *c = &in->columns[i];

		if (!text_next(&at, end, &s, &n))
			return wrong(in, "the line is too short");
		if (!take_cell(in, c, s, n))
			return wrong(in, "not so much stands above");
		rc = set_cell(in, t, c, c->above.s, c->above.n);
	}
	if (!rc && text_next(&at, end, &s, &n) && !(t->node && !in->ncolumns && n == 1 && *s == '.'))
		return wrong(in, "the line is too long");
	return rc;
}

static int read_node_line(struct reading *in, const char *at, const char *end)
{
	struct target t = {.node = graph_new_node(in->g, in->type)};
	int rc = read_cells(in, &t, at, end);

	if (rc < 0)
		return rc;
	vec_push(&in->nodes, graph_add_node(in->g, t.node)->index);
	return 0;
}

static int read_ends(struct reading *in, const char **at, const char *end, uint32_t ends[2])
{
	const char *s;
	size_t n;

	for (int i = 0; i < 2; i++) {
		uint64_t number;

		if (!text_next(at, end, &s, &n))
			return wrong(in, "the line is too short");
		number = *s == '\'' ? in->ends[i] : *s == '+' ? in->ends[i] + 1 : strtoull(s, NULL, 10);
		in->ends[i] = number;
		if (number < 1 || number > in->nodes.n)
			return wrong(in, "no entity with that number");
		ends[i] = in->nodes.v[number - 1];
	}
	return 0;
}

static int read_edge_line(struct reading *in, struct edge_lists *lists, const char *at, const char *end)
{
	struct target t = {0};
	uint32_t ends[2];
	int rc = read_ends(in, &at, end, ends);

	if (rc < 0)
		return rc;
	t.edge = graph_new_edge(in->g, in->type, ends[0], ends[1]);
	rc = read_cells(in, &t, at, end);
	if (rc < 0)
		return rc;
	if (!lists->v.n || lists->v.v[lists->v.n - 1].type != in->type)
		vec_push(&lists->v, ((struct edge_list_of){.type = in->type}));
	vec_push(&lists->v.v[lists->v.n - 1].v, t.edge);
	return 0;
}

static int apply_order(struct reading *in, struct edge_lists *lists, const char *s, const char *end)
{
	while (s < end) {
		size_t k = (size_t)(*s++ - 'A');
		uint64_t run = 1;
		char *after;

		if (k >= lists->v.n)
			return wrong(in, "wrong order of relations");
		if (s < end && *s >= '0' && *s <= '9') {
			run = strtoull(s, &after, 10);
			s = after;
		}
		for (; run; run--) {
			struct edge_list_of *l = &lists->v.v[k];

			if (l->next == l->v.n)
				return wrong(in, "wrong order of relations");
			if (graph_add_edge(in->g, l->v.v[l->next]) != l->v.v[l->next])
				return wrong(in, "a relation stands there twice");
			l->next++;
		}
	}
	return 0;
}

static int derive(struct reading *in)
{
	vec_for(&in->derived, x) {
		const struct field *f = &x->edge->type->fields[x->field];
		struct value v;

		if (!text_derive(in->g, x->edge, x->field, &v) || v.type != f->type)
			return wrong(in, "'=' where nothing follows");
		field_set(f, x->edge->data, &v);
		x->edge->measured |= 1ull << x->field;
	}
	return 0;
}

static int read_witty(struct reading *in, const char *s, const char *end)
{
	struct json_reader *r = json_reader_new_mem(s, (size_t)(end - s), in->name, NULL);
	int rc = graph_read_meta(in->g, r, in->e);

	json_reader_free(r);
	return rc;
}

static int read_line(struct reading *in, struct edge_lists *lists, const char *s, const char *end)
{
	size_t n = (size_t)(end - s);

	if (!n || *s == '#')
		return 0;
	if (*s == '@')
		return read_header(in, s, end);
	if (n > 7 && !memcmp(s, "=order ", 7))
		return apply_order(in, lists, s + 7, end);
	if (n > 5 && !memcmp(s, "=env ", 5)) {
		in->g->meta.env = graph_strn(in->g, s + 5, n - 5);
		return text_get_json(&in->text, s + 5, n - 5) ? 0 : wrong(in, "env is no JSON");
	}
	if (n > 7 && !memcmp(s, "=witty ", 7))
		return read_witty(in, s + 7, end);
	if (!in->type)
		return wrong(in, "a value before any type");
	return in->type->kind == KIND_EDGE ? read_edge_line(in, lists, s, end) : read_node_line(in, s, end);
}

int graph_read_text(struct graph *g, const char *text, size_t n, const char *name, struct err *e)
{
	struct reading *in = mem_alloc(sizeof(*in));
	struct edge_lists lists = {0};
	const char *end = text + n;
	int rc = 0;

	*in = (struct reading){.g = g, .name = name, .e = e};
	if (n < 14 || memcmp(text, "# witty-text 1", 14))
		rc = err_msg(e, -EBADMSG, "%s: no compact text of version 1", name);
	for (const char *s = text; !rc && s < end; s++) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));

		eol = eol ?: end;
		in->line++;
		rc = read_line(in, &lists, s, eol);
		s = eol;
	}
	/* Without an order, or after it: what is left, by type. */
	vec_for(&lists.v, l) {
		for (; !rc && l->next < l->v.n; l->next++)
			if (graph_add_edge(g, l->v.v[l->next]) != l->v.v[l->next])
				rc = wrong(in, "a relation stands there twice");
		vec_done(&l->v);
	}
	rc = rc ?: derive(in);
	vec_done(&in->derived);
	vec_done(&lists.v);
	for (size_t i = 0; i < COLUMNS; i++) {
		strbuf_done(&in->columns[i].above);
		strbuf_done(&in->constant_text[i]);
	}
	vec_done(&in->nodes);
	strbuf_done(&in->text);
	free(in);
	return rc;
}
