/* Compact text out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_meta.h"
#include "graph_text.h"
#include "text_derive.h"
#include "text_ends.h"
#include "text_group.h"
#include "text_value.h"

#define COLUMNS    (FIELDS_MAX + 2) /* the fields, then namespace or weight, then extra */
#define PREFIX_MIN 8                /* bytes that a text shares with the one above … */
#define SUFFIX_MIN 6                /* … and that are worth leaving out */

/* One of the two is set. */
struct row {
	const struct node *node;
	const struct edge *edge;
};

/* How a column is written, and all its cells. */
struct column {
	bool used, constant, grouped;
	uint64_t base;
	struct text_group group; /* JSON maps: the keys that all rows share, with units */
	struct strbuf text;
	VEC(size_t) ends; /* of each cell in `text` */
};

/* Rows of one type. */
struct table {
	const struct type *type;
	struct text_deriver *deriver;
	VEC(struct row) rows;
	VEC(struct text_ends) relations; /* [rows] of relations */
	enum text_ends_course course[2];
	bool varies; /* some column is not constant */
	struct column columns[COLUMNS];
};

struct cell {
	const char *s;
	size_t n;
};

static const char *column_name(const struct type *t, int c)
{
	if (c < t->nfields)
		return t->fields[c].name;
	return c == t->nfields ? (t->kind == KIND_EDGE ? "weight" : "namespace") : "extra";
}

static const uint64_t *data_of(const struct row *r)
{
	return r->node ? r->node->data : r->edge->data;
}

static bool is_measured(const struct type *t, const struct row *r, int c)
{
	if (c < t->nfields)
		return (r->node ? r->node->measured : r->edge->measured) >> c & 1;
	if (c > t->nfields)
		return r->node ? r->node->extra : r->edge->extra;
	return r->node || r->edge->has_weight;
}

static bool follows(const struct table *t, const struct row *r, int c)
{
	bool measured = is_measured(t->type, r, c);
	struct value derived;

	switch (r->node ? text_derive_entity(t->deriver, r->node, c, &derived)
			: text_derive_relation(t->deriver, r->edge, c, &derived)) {
	case FOLLOWS_NOT:
		return false;
	case FOLLOWS_UNMEASURED:
		return !measured;
	case FOLLOWS_VALUE:
		break;
	}
	return measured && derived.type == t->type->fields[c].type &&
	       field_get(&t->type->fields[c], data_of(r)).u64 == derived.u64;
}

/* The value as text, "-" when absent, "=" when it follows from others. */
static void add_cell(struct strbuf *b, const struct table *t, const struct row *r, int c)
{
	const struct type *type = t->type;

	if (c < type->nfields && follows(t, r, c))
		strbuf_addc(b, '=');
	else if (!is_measured(type, r, c))
		strbuf_addc(b, '-');
	else if (c < type->nfields)
		text_add_field(b, &type->fields[c], data_of(r));
	else if (c > type->nfields)
		text_add_str(b, r->node ? r->node->extra : r->edge->extra);
	else if (r->node)
		text_add_str(b, r->node->ns);
	else
		strbuf_add_f64(b, r->edge->weight);
}

static struct cell cell_at(const struct column *col, size_t row)
{
	size_t start = row ? col->ends.v[row - 1] : 0;

	return (struct cell){col->text.s + start, col->ends.v[row] - start};
}

static bool is_mark(struct cell x)
{
	return x.n == 1 && (*x.s == '-' || *x.s == '=');
}

static bool equal(struct cell a, struct cell b)
{
	return a.n == b.n && !memcmp(a.s, b.s, a.n);
}

/* Write the cells of a column again in the way that was planned, but for marks. */
static void refill(struct table *t, int c)
{
	struct column *col = &t->columns[c], old = *col;
	const struct field *f = &t->type->fields[c];

	memset(&col->text, 0, sizeof(col->text));
	memset(&col->ends, 0, sizeof(col->ends));
	for (size_t i = 0; i < t->rows.n; i++) {
		struct cell x = cell_at(&old, i);
		struct value v = field_get(f, data_of(&t->rows.v[i]));

		if (is_mark(x))
			strbuf_addn(&col->text, x.s, x.n);
		else if (col->grouped)
			text_group_pack(&col->group, v.str, &col->text);
		else
			strbuf_add_u64(&col->text, v.u64 - col->base);
		vec_push(&col->ends, col->text.n);
	}
	strbuf_done(&old.text);
	vec_done(&old.ends);
}

/* Maps with the same keys. */
static void plan_group(struct table *t, int c)
{
	struct column *col = &t->columns[c];
	struct text_group_plan plan = {0};

	for (size_t i = 0; i < t->rows.n; i++)
		if (!is_mark(cell_at(col, i)))
			text_group_see(&plan,
				       field_get(&t->type->fields[c], data_of(&t->rows.v[i])).str);
	col->grouped = text_group_finish(&plan, &col->group);
	if (col->grouped)
		refill(t, c);
}

/* Differences are worth it where the numbers are long and near each other, such as times. */
static void plan_base(struct table *t, int c)
{
	uint64_t min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		uint64_t v = field_get(&t->type->fields[c], data_of(&t->rows.v[i])).u64;

		if (is_mark(cell_at(&t->columns[c], i)))
			continue;
		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	if (min > 1000000000000ull && max >= min && max - min < min / 1000) {
		t->columns[c].base = min;
		refill(t, c);
	}
}

static void plan_column(struct table *t, int c)
{
	struct column *col = &t->columns[c];
	const struct field *f = c < t->type->nfields ? &t->type->fields[c] : NULL;

	for (size_t i = 0; i < t->rows.n && !col->used; i++)
		col->used = is_measured(t->type, &t->rows.v[i], c);
	if (!col->used)
		return;
	col->constant = true;
	for (size_t i = 0; i < t->rows.n; i++) {
		add_cell(&col->text, t, &t->rows.v[i], c);
		vec_push(&col->ends, col->text.n);
		col->constant &= equal(cell_at(col, 0), cell_at(col, i));
	}
	t->varies |= !col->constant;
	if (!col->constant && f && f->type == T_JSON)
		plan_group(t, c);
	else if (!col->constant && f && f->type == T_U64)
		plan_base(t, c);
}

static void write_course(struct strbuf *b, const struct table *t, bool target)
{
	enum text_ends_course course = t->course[target];
	const struct text_ends *first = t->relations.v;

	if (course != ENDS_FREE)
		strbuf_addf(b, " %s=%" PRIu64 "%s", target ? "to" : "from",
			    (uint64_t)(target ? first->target : first->source) + 1,
			    course == ENDS_UP ? "+" : "");
}

static void write_header(struct strbuf *b, const struct table *t, uint32_t number)
{
	const struct type *type = t->type;

	strbuf_addf(b, "%s%s", type->kind == KIND_EDGE ? "@@" : "@", type->name);
	if (type->kind == KIND_ENTITY)
		strbuf_addf(b, " %" PRIu32, number);
	write_course(b, t, false);
	write_course(b, t, true);
	for (int c = 0; c < type->nfields + 2; c++) {
		const struct column *col = &t->columns[c];
		bool local = type->kind == KIND_ENTITY && c == type->nfields && col->constant &&
			     !strcmp(t->rows.v->node->ns, "local");

		if (!col->used || local)
			continue;
		strbuf_addc(b, ' ');
		strbuf_add(b, column_name(type, c));
		if (col->constant) {
			strbuf_addc(b, '=');
			strbuf_addn(b, cell_at(col, 0).s, cell_at(col, 0).n);
		} else if (col->base) {
			strbuf_addf(b, "+%" PRIu64, col->base);
		} else if (col->grouped) {
			text_group_write(&col->group, b);
		}
	}
	strbuf_addc(b, '\n');
}

/* Cells of a line, and how often the last one, a single mark, was put off. */
struct line {
	struct strbuf *b;
	size_t start, repeats;
	char mark;
};

static void flush_marks(struct line *l)
{
	if (l->repeats && l->b->n != l->start)
		strbuf_addc(l->b, ' ');
	if (l->repeats > 2) {
		strbuf_addf(l->b, "%c*%zu", l->mark, l->repeats);
	} else if (l->repeats) {
		strbuf_addc(l->b, l->mark);
		for (size_t i = 1; i < l->repeats; i++)
			strbuf_addf(l->b, " %c", l->mark);
	}
	l->repeats = 0;
}

static void put(struct line *l, const char *s, size_t n)
{
	bool mark = n == 1 && strchr("-='", *s);

	if (!mark || *s != l->mark)
		flush_marks(l);
	if (mark) {
		l->mark = *s;
		l->repeats++;
		return;
	}
	/* A line that begins with @ is a header; one that begins with a blank is none. */
	if (l->b->n != l->start || *s == '@')
		strbuf_addc(l->b, ' ');
	strbuf_addn(l->b, s, n);
}

/* An entity's number: `'` as above, `+` the one after that. */
static void put_end(struct line *l, uint32_t node, const uint32_t *above)
{
	char text[16];
	int n;

	if (above && node == *above)
		n = snprintf(text, sizeof(text), "'");
	else if (above && node == *above + 1)
		n = snprintf(text, sizeof(text), "+");
	else
		n = snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)node + 1);
	put(l, text, (size_t)n);
}

static bool within_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Texts that begin or end as the one above. */
static bool put_shared(struct line *l, const char *s, const char *above)
{
	size_t n = strlen(s), m = strlen(above), most = n < m ? n : m, head = 0, tail = 0;
	struct strbuf middle = {0}, text = {0};

	while (head < most && s[head] == above[head])
		head++;
	while (head && within_character(s[head]))
		head--;
	if (head < PREFIX_MIN)
		head = 0;
	while (tail < most - head && s[n - tail - 1] == above[m - tail - 1])
		tail++;
	while (tail && within_character(s[n - tail]))
		tail--;
	if (tail < SUFFIX_MIN)
		tail = 0;
	if (head + tail < PREFIX_MIN)
		return false;
	strbuf_addn(&middle, s + head, n - head - tail);
	strbuf_addf(&text, "^%zu~", head);
	text_add_str(&text, strbuf_str(&middle));
	if (tail)
		strbuf_addf(&text, "~%zu", tail);
	put(l, text.s, text.n);
	strbuf_done(&middle);
	strbuf_done(&text);
	return true;
}

static void put_cell(struct line *l, const struct table *t, size_t row, int c)
{
	const struct column *col = &t->columns[c];
	struct cell now = cell_at(col, row), above = row ? cell_at(col, row - 1) : now;
	const struct field *f = c < t->type->nfields ? &t->type->fields[c] : NULL;

	if (row && now.n > 1 && equal(now, above))
		put(l, "'", 1);
	else if (!row || !f || f->type != T_STR || is_mark(now) || is_mark(above) ||
		 !put_shared(l, field_get(f, data_of(&t->rows.v[row])).str,
			     field_get(f, data_of(&t->rows.v[row - 1])).str))
		put(l, now.s, now.n);
}

static void write_row(struct strbuf *b, const struct table *t, size_t row)
{
	struct line l = {.b = b, .start = b->n};

	if (t->type->kind == KIND_EDGE) {
		const struct text_ends *now = &t->relations.v[row], *above = row ? now - 1 : NULL;

		if (t->course[0] == ENDS_FREE)
			put_end(&l, now->source, above ? &above->source : NULL);
		if (t->course[1] == ENDS_FREE)
			put_end(&l, now->target, above ? &above->target : NULL);
	}
	for (int c = 0; c < t->type->nfields + 2; c++)
		if (t->columns[c].used && !t->columns[c].constant)
			put_cell(&l, t, row, c);
	flush_marks(&l);
	/* Nothing but constants: the line must still be there. */
	if (b->n == l.start)
		strbuf_addc(b, '.');
	strbuf_addc(b, '\n');
}

struct comparison {
	const struct table *t;
	size_t at;
};

static int compare_next(void *ctx, uint32_t source, uint32_t target)
{
	struct comparison *x = ctx;
	const struct text_ends *have = &x->t->relations.v[x->at];

	return x->at++ == x->t->rows.n || have->source != source || have->target != target;
}

/* All relations of the type, and no value of theirs, follow from the entities. */
static bool all_follow(const struct table *t)
{
	struct comparison x = {t, 0};

	if (!text_derives_relations(t->type))
		return false;
	vec_for(&t->rows,
		r) if (r->edge->measured || r->edge->has_weight || r->edge->extra) return false;
	return !text_derive_relations(t->deriver, t->type, compare_next, &x) && x.at == t->rows.n;
}

static void clear_table(struct table *t)
{
	for (int c = 0; c < COLUMNS; c++) {
		struct column *col = &t->columns[c];

		if (col->grouped)
			text_group_done(&col->group);
		strbuf_done(&col->text);
		vec_done(&col->ends);
		memset(col, 0, sizeof(*col));
	}
	vec_clear(&t->rows);
	vec_clear(&t->relations);
	t->varies = false;
	t->course[0] = t->course[1] = ENDS_FREE;
}

static void write_table(struct strbuf *b, struct table *t, uint32_t number)
{
	bool relations = t->type->kind == KIND_EDGE;

	if (relations && all_follow(t)) {
		strbuf_addf(b, "@@%s ==\n", t->type->name);
		clear_table(t);
		return;
	}
	for (int c = 0; c < t->type->nfields + 2; c++)
		plan_column(t, c);
	for (int i = 0; i < 2 && relations && t->varies; i++)
		t->course[i] = text_ends_course(t->relations.v, t->rows.n, i);
	write_header(b, t, number);
	if (relations && !t->varies)
		text_ends_write(t->relations.v, t->rows.n, b);
	else
		for (size_t i = 0; i < t->rows.n; i++)
			write_row(b, t, i);
	clear_table(t);
}

static void write_nodes(struct graph *g, struct table *t, struct strbuf *b)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.v[i];

		t->type = n->type;
		vec_push(&t->rows, ((struct row){.node = n}));
		if (i + 1 == g->nodes.n || g->nodes.v[i + 1]->type != n->type)
			write_table(b, t, (uint32_t)(i + 2 - t->rows.n));
	}
}

/* Types in the order of their first relation, and the runs of types, as letters by that order. */
static void write_edges(struct graph *g, struct table *t, struct strbuf *b)
{
	VEC(const struct type *) types = {0};
	struct strbuf order = {0};
	uint64_t run = 0;

	for (size_t i = 0; i < g->edges.n; i++) {
		const struct type *type = g->edges.v[i]->type;
		size_t k = 0;

		while (k < types.n && types.v[k] != type)
			k++;
		if (k == types.n)
			vec_push(&types, type);
		run++;
		if (i + 1 < g->edges.n && g->edges.v[i + 1]->type == type)
			continue;
		strbuf_addc(&order, (char)('A' + k));
		if (run > 1)
			strbuf_add_u64(&order, run);
		run = 0;
	}
	vec_for(&types, type)
	{
		t->type = *type;
		vec_for(&g->edges, it)
		{
			const struct edge *d = *it;

			if (d->type != *type)
				continue;
			vec_push(&t->rows, ((struct row){.edge = d}));
			vec_push(&t->relations, ((struct text_ends){d->source, d->target}));
		}
		write_table(b, t, 0);
	}
	/* Without it they come by type. */
	if (types.n > 1)
		strbuf_addf(b, "=order %s\n", order.s);
	strbuf_done(&order);
	vec_done(&types);
}

void graph_write_text(struct graph *g, struct strbuf *b)
{
	struct table *t = mem_alloc(sizeof(*t));
	struct json_writer w;
	struct err e;

	strbuf_add(b, "# witty-text 1\n");
	if (g->meta.env)
		strbuf_addf(b, "=env %s\n", g->meta.env);
	if (g->meta.window_ns || g->status.n || g->costs.n || g->losses.n) {
		strbuf_add(b, "=witty ");
		json_writer_init_strbuf(&w, b, 0);
		graph_write_meta(g, &w);
		json_writer_finish(&w, &e);
		strbuf_addc(b, '\n');
	}
	t->deriver = text_deriver_new(g, TEXT_WORK_MAX);
	write_nodes(g, t, b);
	write_edges(g, t, b);
	text_deriver_free(t->deriver);
	vec_done(&t->rows);
	vec_done(&t->relations);
	free(t);
}
