/* Tables of the live view. */
#include "top_table.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "clean.h"
#include "units.h"
#include "utf8.h"

void table_init(struct table *t, const struct column *columns, size_t ncolumns)
{
	memset(t, 0, sizeof(*t));
	t->columns = columns;
	t->ncolumns = ncolumns;
	t->tree_column = SIZE_MAX;
	arena_init(&t->arena);
}

void table_done(struct table *t)
{
	vec_done(&t->rows);
	arena_done(&t->arena);
}

struct row *table_add(struct table *t, const char *id, uint32_t node, uint32_t item)
{
	struct row *r = vec_add(&t->rows);

	r->id = arena_strdup(&t->arena, id);
	r->node = node;
	r->item = item;
	r->parent = UINT32_MAX;
	r->order = (uint32_t)t->rows.n - 1;
	return r;
}

struct sorting {
	const struct table *t;
	size_t column;
	bool reverse;
};

static int compare_cells(const struct sorting *s, const struct cell *x, const struct cell *y)
{
	int c;

	if (s->t->columns[s->column].format == CELL_TEXT && x->v == y->v) {
		c = strcasecmp(x->s ?: "", y->s ?: "");
		return s->reverse ? -c : c;
	}
	if (isnan(x->v) || isnan(y->v))
		return isnan(x->v) - isnan(y->v);
	c = (x->v < y->v) - (x->v > y->v);
	return s->reverse ? -c : c;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct row *x = a, *y = b;
	const struct sorting *s = ctx;
	int c = compare_cells(s, &x->cells[s->column], &y->cells[s->column]);

	return c ?: (x->order > y->order) - (x->order < y->order);
}

void table_sort(struct table *t, size_t column, bool reverse)
{
	struct sorting s = {t, column, reverse};

	if (t->rows.n)
		qsort_r(t->rows.v, t->rows.n, sizeof(*t->rows.v), compare_rows, &s);
}

static bool has_text(const struct table *t, const struct row *r, const char *text)
{
	if (strcasestr(r->id, text))
		return true;
	for (size_t i = 0; i < t->ncolumns; i++)
		if (t->columns[i].format == CELL_TEXT && r->cells[i].s && strcasestr(r->cells[i].s, text))
			return true;
	return false;
}

void table_filter(struct table *t, const char *text)
{
	size_t n = 0;

	if (!*text)
		return;
	for (size_t i = 0; i < t->rows.n; i++)
		if (has_text(t, &t->rows.v[i], text))
			t->rows.v[n++] = t->rows.v[i];
	t->rows.n = n;
}

/* Places of rows, by the order in which they were added; those that are gone have none. */
static uint32_t *places(const struct table *t, uint32_t *ret_n)
{
	uint32_t n = 0, *at;

	vec_for(&t->rows, r)
		if (r->order >= n)
			n = r->order + 1;
	at = mem_alloc((n + 1) * sizeof(*at));
	memset(at, 0xff, (n + 1) * sizeof(*at));
	for (uint32_t i = 0; i < t->rows.n; i++)
		at[t->rows.v[i].order] = i;
	*ret_n = n;
	return at;
}

/* Children of each row as lists in their order; a parent is named by the order in which it was added. */
void table_tree(struct table *t)
{
	uint32_t n, *at = places(t, &n), kept = 0, top = 0;
	uint32_t *first = mem_alloc((t->rows.n + 2) * sizeof(*first)), *next = mem_alloc((t->rows.n + 2) * sizeof(*next));
	uint32_t *stack = mem_alloc((t->rows.n + 2) * sizeof(*stack));
	struct row *out = mem_alloc((t->rows.n + 1) * sizeof(*out));

	memset(first, 0xff, (t->rows.n + 2) * sizeof(*first));
	/* The last list is that of the roots. From behind, so that lists begin with their first. */
	for (uint32_t i = (uint32_t)t->rows.n; i-- > 0;) {
		uint32_t p = t->rows.v[i].parent;
		uint32_t list = p < n && at[p] != UINT32_MAX && at[p] != i ? at[p] : (uint32_t)t->rows.n;

		next[i] = first[list];
		first[list] = i;
	}
	for (stack[top++] = first[t->rows.n]; top;) {
		uint32_t i = stack[top - 1];

		if (i == UINT32_MAX) {
			top--;
			continue;
		}
		stack[top - 1] = next[i];
		out[kept] = t->rows.v[i];
		out[kept++].depth = top - 1;
		stack[top++] = first[i];
	}
	memcpy(t->rows.v, out, kept * sizeof(*out));
	t->rows.n = kept;
	free(at);
	free(first);
	free(next);
	free(stack);
	free(out);
}

static bool is_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* Columns of the screen that a code point takes; -1: it cannot be shown. */
static int width_of(uint32_t c)
{
	if (c < 0x80)
		return 1;
	return is_utf8() && clean_is_plain(c) ? wcwidth((wchar_t)c) : -1;
}

/* As much of clean text as fits. @return columns of the screen that it takes */
static unsigned add_cut(struct strbuf *b, const char *s, size_t n, unsigned width)
{
	unsigned used = 0;

	for (size_t at = 0; at < n;) {
		const unsigned char *p = (const unsigned char *)s + at;
		int len = utf8_seq(p, n - at);
		int w = len > 0 ? width_of(utf8_decode(p, len)) : -1;

		if (used + (unsigned)(w < 0 ? 1 : w) > width)
			break;
		if (w < 0)
			strbuf_addc(b, '?');
		else
			strbuf_addn(b, p, (size_t)len);
		used += (unsigned)(w < 0 ? 1 : w);
		at += (size_t)(len > 0 ? len : 1);
	}
	return used;
}

void table_fit(struct strbuf *b, const char *s, unsigned width, bool right, bool fill)
{
	struct strbuf text = {0}, cut = {0};
	unsigned used;

	clean_line(&text, s);
	used = add_cut(&cut, strbuf_str(&text), text.n, width);
	/* "waits for a CPU: …" tells as much without the colon. */
	while (cut.n < text.n && cut.n && (cut.s[cut.n - 1] == ' ' || cut.s[cut.n - 1] == ':')) {
		cut.s[--cut.n] = '\0';
		used--;
	}
	if (right && used < width)
		strbuf_pad(b, ' ', width - used);
	strbuf_addn(b, strbuf_str(&cut), cut.n);
	if (!right && fill && used < width)
		strbuf_pad(b, ' ', width - used);
	strbuf_done(&text);
	strbuf_done(&cut);
}

static void add_number(struct strbuf *b, enum cell_format format, double v)
{
	if (isnan(v))
		strbuf_addc(b, '-');
	else if (format == CELL_ID)
		strbuf_addf(b, "%.0f", v);
	else if (format == CELL_PCT)
		strbuf_addf(b, v < 1000 ? "%.1f" : "%.0f", v);
	else if (format == CELL_COUNT)
		units_add_count(b, (uint64_t)(v < 0 ? 0 : v + 0.5));
	else if (format == CELL_BYTES)
		units_add_bytes(b, (uint64_t)(v < 0 ? 0 : v));
	else if (format == CELL_RATE)
		units_add_rate(b, v < 0 ? 0 : v);
	else
		units_add_ns(b, (uint64_t)(v < 0 ? 0 : v));
}

/* Width of each column, 0 for those that have no room. */
static void measure(const struct table *t, unsigned width, unsigned *ret)
{
	unsigned used = 1, gaps = 0;

	for (size_t i = 0; i < t->ncolumns; i++) {
		ret[i] = t->columns[i].from <= width ? t->columns[i].width : 0;
		used += ret[i];
		gaps += ret[i] || !t->columns[i].width;
	}
	used += gaps ? gaps - 1 : 0;
	for (size_t i = 0; i < t->ncolumns; i++)
		if (!t->columns[i].width)
			ret[i] = width > used ? width - used : 0;
}

static void add_cell(const struct table *t, const struct row *r, size_t i, unsigned width, bool last, struct strbuf *b)
{
	const struct column *c = &t->columns[i];
	struct strbuf text = {0};
	unsigned indent = i == t->tree_column ? 2 * r->depth : 0;

	if (c->format != CELL_TEXT) {
		add_number(&text, c->format, r->cells[i].v);
		table_fit(b, strbuf_str(&text), width, true, true);
	} else {
		indent = indent < width / 2 ? indent : width / 2;
		strbuf_pad(b, ' ', indent);
		table_fit(b, r->cells[i].s ?: "-", width - indent, false, !last);
	}
	strbuf_done(&text);
}

void table_line(const struct table *t, const struct row *r, char mark, unsigned width, struct strbuf *b)
{
	unsigned widths[TABLE_COLUMNS];
	bool any = false;

	measure(t, width, widths);
	strbuf_addc(b, mark);
	for (size_t i = 0; i < t->ncolumns; i++) {
		if (!widths[i])
			continue;
		if (any)
			strbuf_addc(b, ' ');
		any = true;
		add_cell(t, r, i, widths[i], i + 1 == t->ncolumns, b);
	}
}

void table_head(const struct table *t, size_t sorted_by, unsigned width, struct strbuf *b)
{
	unsigned widths[TABLE_COLUMNS];
	bool any = false;

	measure(t, width, widths);
	strbuf_addc(b, ' ');
	for (size_t i = 0; i < t->ncolumns; i++) {
		char title[40];
		size_t n = strlen(t->columns[i].title);

		if (!widths[i])
			continue;
		if (any)
			strbuf_addc(b, ' ');
		any = true;
		snprintf(title, sizeof(title), "%s%s", i == sorted_by && n < widths[i] ? "*" : "", t->columns[i].title);
		table_fit(b, title, widths[i], t->columns[i].format != CELL_TEXT, i + 1 < t->ncolumns);
	}
}
