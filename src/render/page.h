#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "strbuf.h"

/*
 * A report for people that is set in two ways: as plain text for a terminal, or as Markdown.
 * Private to the layer.
 */

struct page {
	struct strbuf *b;
	bool md;
	unsigned column; /**< of the table row at hand */
	bool in_table;   /**< the last line is a row */
};

/** A part's title, on a line of its own. */
void page_heading(struct page *p, const char *title);
/** Begin a line of a list; @p depth from 0. The caller adds its text and page_end(). */
void page_item(struct page *p, unsigned depth);
void page_end(struct page *p);

/**
 * Text that may have names from the host in it: one line, without control characters, with invalid
 * UTF-8 replaced, and without meaning in Markdown or HTML.
 *
 * @param most bytes that are shown of it; 0: all
 */
void page_text(struct page *p, const char *s, size_t most);
/** As printf(), through page_text(). */
__attribute__((format(printf, 2, 3))) void page_addf(struct page *p, const char *fmt, ...);

/** Titles and widths of a table, ended by a NULL title; numbers stand at the right. */
struct page_column {
	const char *title;
	unsigned width; /**< in characters, of plain text */
	bool number;
};

void page_table(struct page *p, const struct page_column *c);
/** The next cell of the row; text as in page_text(). */
void page_cell(struct page *p, const struct page_column *c, const char *text);
__attribute__((format(printf, 3, 4))) void page_cellf(struct page *p, const struct page_column *c,
						      const char *fmt, ...);
void page_row_end(struct page *p);

/** What a limit left out of a list, if anything. */
void page_left_out(struct page *p, uint64_t shown, uint64_t all);
