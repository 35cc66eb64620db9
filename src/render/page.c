/* Lists and tables as plain text or as Markdown, with names from the host made harmless. */
#include "page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* Markdown takes what follows a row for another one. */
static void leave_table(struct page *p)
{
	if (p->md && p->in_table)
		strbuf_addc(p->b, '\n');
	p->in_table = false;
}

void page_heading(struct page *p, const char *title)
{
	p->in_table = false;
	if (p->md)
		strbuf_addf(p->b, "%s## %s\n\n", p->b->n ? "\n" : "", title);
	else
		strbuf_addf(p->b, "%s%s\n", p->b->n ? "\n" : "", title);
}

void page_item(struct page *p, unsigned depth)
{
	leave_table(p);
	strbuf_pad(p->b, ' ', (p->md ? 0 : 2) + (p->md ? 2 : 4) * (size_t)depth);
	strbuf_add(p->b, p->md ? "- " : "");
}

void page_end(struct page *p)
{
	strbuf_addc(p->b, '\n');
}

static void add_char(struct page *p, const char *s, int len)
{
	uint32_t c = len > 0 ? utf8_decode((const unsigned char *)s, len) : '?';

	/* C0, DEL, C1, and what turns the direction of a line or breaks it. */
	if (c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069))
		c = '?';
	if (c == '?' && (len != 1 || *s != '?')) {
		strbuf_addc(p->b, '?');
		return;
	}
	if (p->md && c < 0x80 && strchr("\\`*_[]<>|", (int)c))
		strbuf_addc(p->b, '\\');
	strbuf_addn(p->b, s, (size_t)len);
}

void page_text(struct page *p, const char *s, size_t most)
{
	size_t n = strlen(s), shown = 0;

	while (n && (!most || shown < most)) {
		int len = utf8_seq((const unsigned char *)s, n);
		size_t step = len > 0 ? (size_t)len : 1;

		add_char(p, s, len);
		s += step;
		n -= step;
		shown += step;
	}
	if (n)
		strbuf_add(p->b, "...");
}

void page_addf(struct page *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	page_text(p, text, 0);
}

/* Characters, not bytes, of what was added since @p start. */
static unsigned width_since(const struct strbuf *b, size_t start)
{
	unsigned n = 0;

	for (size_t i = start; i < b->n; i++)
		n += ((unsigned char)b->s[i] & 0xc0) != 0x80;
	return n;
}

void page_table(struct page *p, const struct page_column *c)
{
	size_t n = 0;

	leave_table(p);
	/* Nor does it take a table for one that follows a list at once. */
	if (p->md && p->b->n > 1 && strcmp(p->b->s + p->b->n - 2, "\n\n"))
		strbuf_addc(p->b, '\n');
	for (; c[n].title; n++)
		page_cell(p, c, c[n].title);
	page_row_end(p);
	if (!p->md)
		return;
	for (size_t i = 0; i < n; i++)
		strbuf_add(p->b, c[i].number ? "| ---: " : "| --- ");
	strbuf_add(p->b, "|\n");
}

void page_cell(struct page *p, const struct page_column *c, const char *text)
{
	const struct page_column *at = &c[p->column];
	struct strbuf cell = {0};
	struct page inner = {.b = &cell, .md = p->md};
	unsigned width;

	page_text(&inner, text, 0);
	width = width_since(&cell, 0);
	if (p->md) {
		strbuf_addf(p->b, "| %s ", strbuf_str(&cell));
	} else {
		strbuf_add(p->b, p->column ? " " : "  ");
		if (at->number && width < at->width)
			strbuf_pad(p->b, ' ', at->width - width);
		strbuf_add(p->b, strbuf_str(&cell));
		if (!at->number && width < at->width)
			strbuf_pad(p->b, ' ', at->width - width);
	}
	p->column++;
	strbuf_done(&cell);
}

void page_cellf(struct page *p, const struct page_column *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	page_cell(p, c, text);
}

void page_row_end(struct page *p)
{
	while (!p->md && p->b->n && p->b->s[p->b->n - 1] == ' ')
		p->b->s[--p->b->n] = '\0';
	strbuf_add(p->b, p->md ? "|\n" : "\n");
	p->column = 0;
	p->in_table = true;
}

void page_left_out(struct page *p, uint64_t shown, uint64_t all)
{
	if (shown >= all)
		return;
	page_item(p, 0);
	strbuf_addf(p->b, "+%" PRIu64 " more; --limit %" PRIu64 " shows all\n", all - shown, all);
}
