/* Compact text out. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph_meta.h"
#include "graph_text.h"
#include "text_derive.h"
#include "text_value.h"

#define COLUMNS (FIELDS_MAX + 3) /* the fields, then namespace or weight, then extra */

struct row {
	const struct type *type;
	uint64_t measured;
	const uint64_t *data;
	const char *ns, *extra;
	bool has_weight;
	double weight;
	uint32_t source, target;
	struct graph *g;
	const struct edge *edge; /* NULL: an entity */
};

/* A run of rows with the same type, and how each of its columns is written. */
struct table {
	const struct row *rows;
	size_t n;
	bool used[COLUMNS], constant[COLUMNS];
	uint64_t base[COLUMNS];
	const char *group[COLUMNS]; /* JSON maps: the keys that all rows share, with units */
};

static const char *column_name(const struct type *t, int c)
{
	if (c < t->nfields)
		return t->fields[c].name;
	return c == t->nfields ? (t->kind == KIND_EDGE ? "weight" : "namespace") : "extra";
}

static bool follows(const struct row *r, int c)
{
	struct value have, derived;

	if (!r->edge || c >= r->type->nfields || !(r->measured & (1ull << c)))
		return false;
	have = field_get(&r->type->fields[c], r->data);
	return text_derive(r->g, r->edge, c, &derived) && have.u64 == derived.u64;
}

/* The value as text, "-" when absent, "=" when it follows from others. */
static void cell(struct strbuf *b, const struct row *r, int c, uint64_t base)
{
	const struct type *t = r->type;

	if (c < t->nfields) {
		if (!(r->measured & (1ull << c)))
			strbuf_addc(b, '-');
		else if (follows(r, c))
			strbuf_addc(b, '=');
		else if (base)
			strbuf_add_u64(b, field_get(&t->fields[c], r->data).u64 - base);
		else
			text_add_field(b, &t->fields[c], r->data);
		return;
	}
	if (c == t->nfields && t->kind == KIND_EDGE) {
		if (r->has_weight)
			strbuf_add_f64(b, r->weight);
		else
			strbuf_addc(b, '-');
		return;
	}
	if (c == t->nfields)
		text_add_str(b, r->ns);
	else if (r->extra)
		text_add_str(b, r->extra);
	else
		strbuf_addc(b, '-');
}

static void plan_column(struct table *t, int c)
{
	const struct type *type = t->rows->type;
	struct strbuf first = {0}, other = {0};
	uint64_t min = UINT64_MAX, max = 0;
	bool all = c < type->nfields && type->fields[c].type == T_U64;

	cell(&first, t->rows, c, 0);
	t->used[c] = strcmp(first.s, "-") != 0;
	t->constant[c] = true;
	for (size_t i = 0; i < t->n; i++) {
		strbuf_clear(&other);
		cell(&other, &t->rows[i], c, 0);
		t->used[c] |= strcmp(other.s, "-") != 0;
		t->constant[c] &= !strcmp(first.s, other.s);
		if (all && (t->rows[i].measured & (1ull << c))) {
			uint64_t v = field_get(&type->fields[c], t->rows[i].data).u64;

			min = v < min ? v : min;
			max = v > max ? v : max;
		}
	}
	/* Worth it where the numbers are long and near each other, such as times. */
	if (all && t->used[c] && !t->constant[c] && min > 1000000000000ull && max - min < min / 1000)
		t->base[c] = min;
	strbuf_done(&first);
	strbuf_done(&other);
}

static void write_header(struct strbuf *b, const struct table *t, uint32_t number)
{
	const struct type *type = t->rows->type;

	strbuf_addf(b, "%s%s", type->kind == KIND_EDGE ? "@@" : "@", type->name);
	if (type->kind == KIND_ENTITY)
		strbuf_addf(b, " %" PRIu32, number);
	for (int c = 0; c < type->nfields + 2; c++) {
		if (!t->used[c])
			continue;
		if (t->constant[c] && c == type->nfields && type->kind == KIND_ENTITY &&
		    !strcmp(t->rows->ns, "local"))
			continue;
		strbuf_addc(b, ' ');
		strbuf_add(b, column_name(type, c));
		if (t->constant[c]) {
			strbuf_addc(b, '=');
			cell(b, t->rows, c, 0);
		} else if (t->base[c]) {
			strbuf_addf(b, "+%" PRIu64, t->base[c]);
		} else if (t->group[c]) {
			strbuf_add(b, t->group[c]);
		}
	}
	strbuf_addc(b, '\n');
}

/* An entity's number: `'` as above, `+` the one after that. */
static void write_end(struct strbuf *b, uint32_t node, const uint32_t *above)
{
	if (above && node == *above)
		strbuf_addc(b, '\'');
	else if (above && node == *above + 1)
		strbuf_addc(b, '+');
	else
		strbuf_add_u64(b, (uint64_t)node + 1);
}

/* Texts that begin as the one above: what they share is worth leaving out from 8 characters on. */
static bool write_shared(struct strbuf *b, const struct row *r, const struct row *above, int c)
{
	const struct field *f = &r->type->fields[c];
	const char *s, *t;
	size_t n = 0;

	if (c >= r->type->nfields || f->type != T_STR || !(r->measured & above->measured & (1ull << c)))
		return false;
	s = field_get(f, r->data).str;
	t = field_get(f, above->data).str;
	while (s[n] && s[n] == t[n])
		n++;
	/* Not within a character. */
	while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	if (n < 8)
		return false;
	strbuf_addf(b, "^%zu~", n);
	text_add_str(b, s + n);
	return true;
}

static void write_rows(struct strbuf *b, const struct table *t)
{
	const struct type *type = t->rows->type;
	struct strbuf above = {0}, now = {0};

	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->rows[i];
		size_t start = b->n;

		if (type->kind == KIND_EDGE) {
			write_end(b, r->source, i ? &r[-1].source : NULL);
			strbuf_addc(b, ' ');
			write_end(b, r->target, i ? &r[-1].target : NULL);
		}
		for (int c = 0; c < type->nfields + 2; c++) {
			if (!t->used[c] || t->constant[c])
				continue;
			if (b->n != start)
				strbuf_addc(b, ' ');
			strbuf_clear(&now);
			if (t->group[c] && (r->measured & (1ull << c)))
				text_add_group(&now, t->group[c], field_get(&type->fields[c], r->data).str);
			else
				cell(&now, r, c, t->base[c]);
			strbuf_clear(&above);
			if (i && t->group[c] && (t->rows[i - 1].measured & (1ull << c)))
				text_add_group(&above, t->group[c],
					       field_get(&type->fields[c], t->rows[i - 1].data).str);
			else if (i)
				cell(&above, &t->rows[i - 1], c, t->base[c]);
			if (i && now.n > 1 && now.n == above.n && !memcmp(now.s, above.s, now.n))
				strbuf_addc(b, '\'');
			else if (!i || !write_shared(b, r, r - 1, c))
				strbuf_addn(b, now.s, now.n);
		}
		/* Nothing but constants: the line must still be there. */
		if (b->n == start)
			strbuf_addc(b, '.');
		strbuf_addc(b, '\n');
	}
	strbuf_done(&above);
	strbuf_done(&now);
}

static void write_table(struct strbuf *b, const struct row *rows, size_t n, uint32_t number)
{
	struct table t = {.rows = rows, .n = n};
	const struct type *type = rows->type;

	for (int c = 0; c < type->nfields + 2; c++) {
		plan_column(&t, c);
		if (c < type->nfields && type->fields[c].type == T_JSON && t.used[c] && !t.constant[c]) {
			struct text_group_plan plan = {0};

			for (size_t i = 0; i < n; i++)
				if (rows[i].measured & (1ull << c))
					text_group_see(&plan, field_get(&type->fields[c], rows[i].data).str);
			t.group[c] = text_group_done(&plan);
		}
	}
	write_header(b, &t, number);
	write_rows(b, &t);
	for (int c = 0; c < type->nfields + 2; c++)
		free((char *)t.group[c]);
}

static void write_nodes(struct graph *g, struct strbuf *b)
{
	VEC(struct row) rows = {0};

	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct node *n = g->nodes.v[i];

		vec_push(&rows, ((struct row){.type = n->type, .measured = n->measured, .data = n->data,
					      .ns = n->ns, .extra = n->extra}));
		if (i + 1 < g->nodes.n && g->nodes.v[i + 1]->type == n->type)
			continue;
		write_table(b, rows.v, rows.n, (uint32_t)(i + 2 - rows.n));
		vec_clear(&rows);
	}
	vec_done(&rows);
}

/* Types in the order of their first relation, and the runs of types, as letters by that order. */
static void write_edges(struct graph *g, struct strbuf *b)
{
	VEC(const struct type *) types = {0};
	struct strbuf order = {0};
	uint64_t run = 0;

	for (size_t i = 0; i < g->edges.n; i++) {
		const struct type *t = g->edges.v[i]->type;
		size_t k = 0;

		while (k < types.n && types.v[k] != t)
			k++;
		if (k == types.n)
			vec_push(&types, t);
		run++;
		if (i + 1 < g->edges.n && g->edges.v[i + 1]->type == t)
			continue;
		strbuf_addc(&order, (char)('A' + k));
		if (run > 1)
			strbuf_add_u64(&order, run);
		run = 0;
	}
	vec_for(&types, t) {
		VEC(struct row) rows = {0};

		vec_for(&g->edges, it) {
			const struct edge *d = *it;

			if (d->type == *t)
				vec_push(&rows, ((struct row){.type = d->type, .measured = d->measured,
							      .data = d->data, .extra = d->extra,
							      .has_weight = d->has_weight, .weight = d->weight,
							      .source = d->source, .target = d->target,
							      .g = g, .edge = d}));
		}
		write_table(b, rows.v, rows.n, 0);
		vec_done(&rows);
	}
	if (order.n)
		strbuf_addf(b, "=order %s\n", order.s);
	strbuf_done(&order);
	vec_done(&types);
}

void graph_write_text(struct graph *g, struct strbuf *b)
{
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
	write_nodes(g, b);
	write_edges(g, b);
}
