/* Compact text in. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_meta.h"
#include "graph_text.h"
#include "text_derive.h"
#include "text_ends.h"
#include "text_group.h"
#include "text_value.h"
#include "utf8.h"

#define COLUMNS (FIELDS_MAX + 2)

/* A short text can name much: both are more than any true one of the 64 MiB that load.c allows. */
#define RELATIONS_MAX 5000000
#define VALUES_MAX(n)                                                                              \
	((64ull << 20) + 16 * (n)) /* bytes of texts; those from the row above are free */

enum state { CELL_NONE, CELL_ABSENT, CELL_FOLLOWS, CELL_VALUE };

struct column {
	int field; /* nfields: namespace or weight, nfields + 1: extra */
	uint64_t base;
	bool grouped;
	struct text_group group;
	const char *text; /* of a constant, until its first row */
	size_t ntext;
	enum state state; /* of the row above, or the constant */
	struct value value;
};

/* What a row is about: one of the two is set. */
struct target {
	struct node *node;
	struct edge *edge;
};

struct pending {
	struct target t;
	uint64_t fields;
};

/* Relations wait until their order is known. */
struct edge_list_of {
	const struct type *type;
	VEC(struct edge *) v;
	size_t next;
};

struct reading {
	struct graph *g;
	const char *name;
	uint64_t line, budget, relations;
	struct err *e;
	const struct type *type; /* of the table at hand; NULL: none yet */
	struct column columns[COLUMNS], constants[COLUMNS];
	size_t ncolumns, nconstants;
	VEC(uint32_t) nodes; /* index of each number, from 1 */
	struct {
		enum text_ends_course course;
		uint64_t number; /* in the row above; 0: there is none */
	} ends[2];
	uint64_t all_follow; /* bit per edge type: its relations were derived */
	VEC(struct edge_list_of) lists;
	VEC(struct pending) pending; /* values that follow, known when all is read */
	struct strbuf text;
};

/* What is left of a line. */
struct line {
	const char *at, *end;
	const char *mark; /* one that is repeated */
	uint64_t repeats;
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

/* "98": the same in all rows; "45+": one up in each. */
static int read_course(struct reading *in, int i, const char *s, size_t n)
{
	const char *end = s + n;
	uint64_t number = 0;
	bool up;

	if (!text_get_count(&s, end, &number) || !number || number > UINT32_MAX)
		return wrong(in, "no number of an entity");
	up = s < end && *s == '+';
	if (s + up != end)
		return wrong(in, "no number of an entity");
	in->ends[i].course = up ? ENDS_UP : ENDS_SAME;
	in->ends[i].number = number - up;
	return 0;
}

static int read_format(struct reading *in, struct column *c, const char *s, size_t n)
{
	bool json = c->field < in->type->nfields && in->type->fields[c->field].type == T_JSON;
	const char *at = s + 1;

	if (!n)
		return 0;
	if (*s == '+')
		return text_get_count(&at, s + n, &c->base) && at == s + n
			   ? 0
			   : wrong(in, "wrong base");
	c->grouped = true;
	if (!json || !text_group_read(&c->group, s, n))
		return wrong(in, "wrong list of keys");
	return 0;
}

static int read_column(struct reading *in, const char *s, size_t n)
{
	size_t name = 0;
	struct column *c;
	bool constant;

	while (name < n && !strchr("=+{", s[name]))
		name++;
	constant = name < n && s[name] == '=';
	if (in->type->kind == KIND_EDGE && constant && name == 4 && !memcmp(s, "from", 4))
		return read_course(in, 0, s + 5, n - 5);
	if (in->type->kind == KIND_EDGE && constant && name == 2 && !memcmp(s, "to", 2))
		return read_course(in, 1, s + 3, n - 3);
	if ((constant ? in->nconstants : in->ncolumns) == COLUMNS)
		return wrong(in, "too many columns");
	c = constant ? &in->constants[in->nconstants++] : &in->columns[in->ncolumns++];
	*c = (struct column){.field = find_column(in->type, s, name)};
	if (c->field < 0)
		return wrong(in, "no such column");
	if (!constant)
		return read_format(in, c, s + name, n - name);
	c->text = s + name + 1;
	c->ntext = n - name - 1;
	return 0;
}

static void clear_columns(struct reading *in)
{
	for (size_t i = 0; i < in->ncolumns; i++)
		if (in->columns[i].grouped)
			text_group_done(&in->columns[i].group);
	in->ncolumns = in->nconstants = 0;
	memset(in->ends, 0, sizeof(in->ends));
}

static int add_relation(struct reading *in, struct edge *d)
{
	if (++in->relations > RELATIONS_MAX)
		return wrong(in, "more than 5000000 relations");
	if (!in->lists.n || in->lists.v[in->lists.n - 1].type != in->type)
		vec_push(&in->lists, ((struct edge_list_of){.type = in->type}));
	vec_push(&in->lists.v[in->lists.n - 1].v, d);
	return 0;
}

static int derived_relation(void *ctx, uint32_t source, uint32_t target)
{
	struct reading *in = ctx;

	return add_relation(in, graph_new_edge(in->g, in->type, source, target));
}

static int derive_relations(struct reading *in)
{
	uint64_t bit = 1ull << in->type->number % 64;
	struct text_deriver *v;
	int rc;

	if (in->type->kind != KIND_EDGE || !text_derives_relations(in->type) ||
	    in->all_follow & bit)
		return wrong(in, "'==' where nothing follows");
	in->all_follow |= bit;
	v = text_deriver_new(in->g, 2 * (uint64_t)TEXT_WORK_MAX);
	rc = text_derive_relations(v, in->type, derived_relation, in);
	text_deriver_free(v);
	return rc == -E2BIG ? wrong(in, "too many sets to derive from") : rc;
}

static int read_header(struct reading *in, const char *at, const char *end)
{
	enum type_kind kind = at + 1 < end && at[1] == '@' ? KIND_EDGE : KIND_ENTITY;
	uint64_t first;
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
	clear_columns(in);
	if (kind == KIND_ENTITY && (!text_next(&at, end, &s, &n) ||
				    !text_get_count(&s, end, &first) || first != in->nodes.n + 1))
		return wrong(in, "the number of the first entity is wrong");
	while (!rc && text_next(&at, end, &s, &n)) {
		if (n == 2 && !memcmp(s, "==", 2))
			return derive_relations(in);
		rc = read_column(in, s, n);
	}
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
	if (f->type == T_U64 &&
	    (__builtin_add_overflow(v->u64, base, &v->u64) || v->u64 > INT64_MAX))
		return false;
	return !errno && !*end && (f->type != T_F64 || isfinite(v->f64));
}

static bool get_ref(const struct reading *in, const struct field *f, const char *s, struct value *v)
{
	uint64_t number = strtoull(s, NULL, 10);

	if (number < 1 || number > in->nodes.n ||
	    !field_refers_to(f, in->g->nodes.v[in->nodes.v[number - 1]]->type))
		return false;
	v->ref = in->nodes.v[number - 1];
	return true;
}

/* Texts of a graph are UTF-8; a cell that shares part of a character with the one above is none. */
static bool is_utf8(const char *s, size_t n)
{
	while (n) {
		int len = utf8_seq((const unsigned char *)s, n);

		if (len < 1 || !*s)
			return false;
		s += len;
		n -= (size_t)len;
	}
	return true;
}

static int get_value(struct reading *in, const struct column *c, const struct field *f,
		     const char *s, size_t n, struct value *v)
{
	struct strbuf copy = {0};
	bool good = true;

	v->type = f->type;
	if (f->type == T_STR || f->type == T_JSON) {
		good = f->type == T_STR ? text_get_str(&in->text, s, n)
		       : c->grouped     ? text_group_unpack(&c->group, s, n, &in->text)
					: text_get_json(&in->text, s, n);
		if (!good || !is_utf8(in->text.s, in->text.n))
			return wrong(in, "a value does not fit its column");
		if (in->text.n > in->budget)
			return wrong(in, "its values are too long in all");
		in->budget -= in->text.n;
		v->str = graph_strn(in->g, strbuf_str(&in->text), in->text.n);
		return 0;
	}
	strbuf_addn(&copy, s, n);
	if (f->type == T_BOOL) {
		good = n == 1 && (*s == '0' || *s == '1');
		v->b = *s == '1';
	} else if (f->type == T_REF) {
		good = get_ref(in, f, copy.s, v);
	} else {
		good = get_number(f, copy.s, c->base, v);
	}
	strbuf_done(&copy);
	return good ? 0 : wrong(in, "a value does not fit its column");
}

/* `^3~text~5`: the first 3 bytes of the text above, then text, then its last 5. */
static int get_shared(struct reading *in, struct column *c, const char *s, size_t n)
{
	const char *end = s + n, *above = c->state == CELL_VALUE ? c->value.str : "";
	struct strbuf whole = {0};
	size_t len = 0, most = strlen(above);
	const char *rest = s + 1;
	uint64_t head, tail = 0;
	bool good;

	if (!text_get_count(&rest, end, &head) || rest == end || *rest++ != '~' || head > most)
		return wrong(in, "not so much stands above");
	if (rest < end && *rest == '"')
		for (len = 1; rest + len < end && rest[len] != '"'; len++)
			len += rest[len] == '\\';
	while (rest + len < end && rest[len] != '~')
		len++;
	s = rest + len + 1;
	if (s < end && (!text_get_count(&s, end, &tail) || s != end))
		return wrong(in, "not so much stands above");
	if (rest + len > end || tail > most - head || !text_get_str(&in->text, rest, len))
		return wrong(in, "not so much stands above");
	strbuf_addn(&whole, above, head);
	strbuf_addn(&whole, strbuf_str(&in->text), in->text.n);
	strbuf_addn(&whole, above + most - tail, tail);
	if (!is_utf8(whole.s, whole.n)) {
		strbuf_done(&whole);
		return wrong(in, "a part of a character");
	}
	good = whole.n <= in->budget;
	in->budget -= good ? whole.n : 0;
	c->value = (struct value){.type = T_STR, .str = graph_str(in->g, strbuf_str(&whole))};
	c->state = CELL_VALUE;
	strbuf_done(&whole);
	return good ? 0 : wrong(in, "its values are too long in all");
}

/* Take a cell: the column's state and value become those of this row. */
static int take_cell(struct reading *in, struct column *c, const char *s, size_t n)
{
	static const struct field weight = {.type = T_F64}, text = {.type = T_STR};
	const struct field *f = c->field < in->type->nfields ? &in->type->fields[c->field]
				: c->field > in->type->nfields || in->type->kind == KIND_ENTITY
				    ? &text
				    : &weight;
	int rc = 0;

	if (n == 1 && *s == '\'')
		return c->state != CELL_NONE ? 0 : wrong(in, "nothing stands above");
	if (n && *s == '^' && f->type == T_STR)
		return get_shared(in, c, s, n);
	if (n == 1 && *s == '-') {
		c->state = CELL_ABSENT;
	} else if (n == 1 && *s == '=' && c->field < in->type->nfields) {
		c->state = CELL_FOLLOWS;
	} else {
		c->state = CELL_VALUE;
		rc = get_value(in, c, f, s, n, &c->value);
	}
	return rc;
}

static void set_other(const struct target *t, bool extra, const struct value *v)
{
	if (!extra && t->edge) {
		t->edge->has_weight = true;
		t->edge->weight = v->f64;
	} else if (!extra) {
		t->node->ns = v->str;
	} else if (t->node) {
		t->node->extra = v->str;
	} else {
		t->edge->extra = v->str;
	}
}

static void set_cell(struct reading *in, struct pending *x, const struct column *c)
{
	struct target *t = &x->t;
	uint64_t *measured = t->node ? &t->node->measured : &t->edge->measured;

	if (c->state == CELL_FOLLOWS)
		x->fields |= 1ull << c->field;
	if (c->state != CELL_VALUE)
		return;
	if (c->field >= in->type->nfields) {
		set_other(t, c->field > in->type->nfields, &c->value);
		return;
	}
	field_set(&in->type->fields[c->field], t->node ? t->node->data : t->edge->data, &c->value);
	*measured |= 1ull << c->field;
}

static int set_constants(struct reading *in, struct pending *x)
{
	for (size_t i = 0; i < in->nconstants; i++) {
		struct column *c = &in->constants[i];
		int rc = c->state == CELL_NONE ? take_cell(in, c, c->text, c->ntext) : 0;

		if (rc < 0)
			return rc;
		set_cell(in, x, c);
	}
	return 0;
}

/* As text_next(), with `=*3` for three marks in a row. */
static bool next_cell(struct line *l, const char **ret, size_t *ret_n)
{
	const char *at;

	if (!l->repeats) {
		if (!text_next(&l->at, l->end, ret, ret_n))
			return false;
		if (*ret_n < 3 || (*ret)[1] != '*' || !strchr("-='", **ret))
			return true;
		l->mark = *ret;
		at = *ret + 2;
		/* Nothing, or more than any line has, is left to be refused as a value. */
		if (!text_get_count(&at, *ret + *ret_n, &l->repeats) || at != *ret + *ret_n ||
		    l->repeats < 1 || l->repeats > COLUMNS + 2) {
			l->repeats = 0;
			return true;
		}
	}
	l->repeats--;
	*ret = l->mark;
	*ret_n = 1;
	return true;
}

static int read_cells(struct reading *in, struct pending *x, struct line *l)
{
	const char *s;
	size_t n;
	int rc = set_constants(in, x);

	for (size_t i = 0; !rc && i < in->ncolumns; i++) {
		if (!next_cell(l, &s, &n))
			return wrong(in, "the line is too short");
		rc = take_cell(in, &in->columns[i], s, n);
		if (!rc)
			set_cell(in, x, &in->columns[i]);
	}
	if (!rc && next_cell(l, &s, &n) && (in->ncolumns || n != 1 || *s != '.'))
		return wrong(in, "the line is too long");
	return rc;
}

static void await(struct reading *in, const struct pending *x)
{
	if (x->fields)
		vec_push(&in->pending, *x);
}

static int read_node_line(struct reading *in, struct line *l)
{
	struct pending x = {.t.node = graph_new_node(in->g, in->type)};
	int rc = read_cells(in, &x, l);

	if (rc < 0)
		return rc;
	x.t.node = graph_add_node(in->g, x.t.node);
	vec_push(&in->nodes, x.t.node->index);
	await(in, &x);
	return 0;
}

static int read_end(struct reading *in, int i, struct line *l, uint32_t *ret)
{
	uint64_t *number = &in->ends[i].number;
	const char *s;
	size_t n;

	if (in->ends[i].course == ENDS_UP) {
		++*number;
	} else if (in->ends[i].course == ENDS_FREE) {
		if (!next_cell(l, &s, &n))
			return wrong(in, "the line is too short");
		if (*s == '+')
			++*number;
		else if (*s != '\'' && !text_get_count(&s, s + n, number))
			*number = 0;
	}
	if (*number < 1 || *number > in->nodes.n)
		return wrong(in, "no entity with that number");
	*ret = in->nodes.v[*number - 1];
	return 0;
}

static int read_edge_line(struct reading *in, struct line *l)
{
	struct pending x = {0};
	uint32_t source, target;
	int rc = read_end(in, 0, l, &source) ?: read_end(in, 1, l, &target);

	if (rc < 0)
		return rc;
	x.t.edge = graph_new_edge(in->g, in->type, source, target);
	rc = read_cells(in, &x, l);
	await(in, &x);
	return rc ?: add_relation(in, x.t.edge);
}

/* One relation of a line that has nothing but ends. */
static int add_ends(void *ctx, uint64_t source, uint64_t target)
{
	struct reading *in = ctx;
	struct pending x = {0};
	int rc;

	if (source > in->nodes.n || target > in->nodes.n)
		return wrong(in, "no entity with that number");
	x.t.edge =
	    graph_new_edge(in->g, in->type, in->nodes.v[source - 1], in->nodes.v[target - 1]);
	rc = set_constants(in, &x);
	await(in, &x);
	return rc ?: add_relation(in, x.t.edge);
}

static int read_ends_line(struct reading *in, const char *s, const char *end)
{
	in->e->msg[0] = '\0';
	if (!text_ends_read(s, end, add_ends, in))
		return 0;
	return in->e->msg[0] ? -EBADMSG : wrong(in, "no ends of relations");
}

static int add_in_order(struct reading *in, struct edge_list_of *l, uint64_t n)
{
	for (; n; n--, l->next++) {
		if (l->next == l->v.n)
			return wrong(in, "wrong order of relations");
		if (graph_add_edge(in->g, l->v.v[l->next]) != l->v.v[l->next])
			return wrong(in, "a relation stands there twice");
	}
	return 0;
}

static int apply_order(struct reading *in, const char *s, const char *end)
{
	int rc = 0;

	while (!rc && s < end) {
		size_t k = (size_t)(*s++ - 'A');
		uint64_t run = 1;

		if (k >= in->lists.n)
			return wrong(in, "wrong order of relations");
		if (s < end && *s >= '0' && *s <= '9' && !text_get_count(&s, end, &run))
			return wrong(in, "wrong order of relations");
		rc = add_in_order(in, &in->lists.v[k], run);
	}
	return rc;
}

static int derive_field(struct reading *in, struct text_deriver *v, const struct target *t,
			int field)
{
	const struct type *type = t->node ? t->node->type : t->edge->type;
	enum text_follows follows;
	struct value x;

	follows = t->node ? text_derive_entity(v, t->node, field, &x)
			  : text_derive_relation(v, t->edge, field, &x);
	if (follows == FOLLOWS_UNMEASURED)
		return 0;
	if (follows == FOLLOWS_NOT || x.type != type->fields[field].type)
		return wrong(in, "'=' where nothing follows");
	if (x.type == T_STR || x.type == T_JSON) {
		size_t n = strlen(x.str);

		if (n > in->budget)
			return wrong(in, "its values are too long in all");
		in->budget -= n;
	}
	field_set(&type->fields[field], t->node ? t->node->data : t->edge->data, &x);
	*(t->node ? &t->node->measured : &t->edge->measured) |= 1ull << field;
	return 0;
}

/* Values that follow: numa_access last, see text_derive.h. */
static int derive(struct reading *in)
{
	struct text_deriver *v;
	int rc = 0;

	if (!in->pending.n)
		return 0;
	v = text_deriver_new(in->g, 2 * (uint64_t)TEXT_WORK_MAX);
	for (int last = 0; last < 2; last++) {
		vec_for(&in->pending, x)
		{
			bool is_last = x->t.edge && x->t.edge->type == &numa_access_type;

			for (uint64_t left = is_last == last ? x->fields : 0; !rc && left;
			     left &= left - 1)
				rc = derive_field(in, v, &x->t, __builtin_ctzll(left));
		}
	}
	text_deriver_free(v);
	return rc;
}

static int read_witty(struct reading *in, const char *s, const char *end)
{
	struct json_reader *r = json_reader_new_mem(s, (size_t)(end - s), in->name, NULL);
	int rc = graph_read_meta(in->g, r, in->e);

	json_reader_free(r);
	return rc;
}

static int read_line(struct reading *in, const char *s, const char *end)
{
	size_t n = (size_t)(end - s);
	struct line l = {.at = s, .end = end};

	if (!n || *s == '#')
		return 0;
	if (*s == '@')
		return read_header(in, s, end);
	if (n > 7 && !memcmp(s, "=order ", 7))
		return apply_order(in, s + 7, end);
	if (n > 5 && !memcmp(s, "=env ", 5)) {
		in->g->meta.env = graph_strn(in->g, s + 5, n - 5);
		return text_get_json(&in->text, s + 5, n - 5) ? 0 : wrong(in, "env is no JSON");
	}
	if (n > 7 && !memcmp(s, "=witty ", 7))
		return read_witty(in, s + 7, end);
	if (!in->type)
		return wrong(in, "a value before any type");
	if (in->type->kind == KIND_ENTITY)
		return read_node_line(in, &l);
	if (!in->ncolumns && in->ends[0].course == ENDS_FREE && in->ends[1].course == ENDS_FREE)
		return read_ends_line(in, s, end);
	return read_edge_line(in, &l);
}

static void done(struct reading *in)
{
	clear_columns(in);
	vec_for(&in->lists, l) vec_done(&l->v);
	vec_done(&in->lists);
	vec_done(&in->pending);
	vec_done(&in->nodes);
	strbuf_done(&in->text);
	free(in);
}

int graph_read_text(struct graph *g, const char *text, size_t n, const char *name, struct err *e)
{
	struct reading *in = mem_alloc(sizeof(*in));
	const char *end = text + n;
	int rc = 0;

	*in = (struct reading){.g = g, .name = name, .e = e, .budget = VALUES_MAX(n)};
	if (n < 14 || memcmp(text, "# witty-text 1", 14))
		rc = err_msg(e, -EBADMSG, "%s: no compact text of version 1", name);
	for (const char *s = text; !rc && s < end; s++) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));

		eol = eol ?: end;
		in->line++;
		rc = read_line(in, s, eol);
		s = eol;
	}
	/* Without an order, or after it: what is left, by type. */
	for (size_t i = 0; !rc && i < in->lists.n; i++)
		rc = add_in_order(in, &in->lists.v[i], in->lists.v[i].v.n - in->lists.v[i].next);
	rc = rc ?: derive(in);
	done(in);
	return rc;
}
