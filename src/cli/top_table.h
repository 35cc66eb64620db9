#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "strbuf.h"
#include "vec.h"

/*
 * Tables of the live view: columns that fit a screen, rows that are sorted, filtered or put below their
 * parents. What is not known is NAN and shown as "-"; it sorts last.
 */

#define TABLE_COLUMNS 16

enum cell_format {
	CELL_TEXT,
	CELL_ID,    /**< a number as it is */
	CELL_COUNT, /**< 12.3 k */
	CELL_PCT,
	CELL_BYTES,
	CELL_RATE, /**< bytes a second */
	CELL_NS,
};

struct column {
	const char *title;
	enum cell_format format;
	unsigned width; /**< columns of the screen; 0: all that is left, for one text column */
	unsigned from;	/**< only on screens of so many columns */
};

struct cell {
	double v;      /**< number; of texts too, where they sort by something else; else 0 */
	const char *s; /**< CELL_TEXT, not cleaned; lives as long as the table */
};

#define CELL_UNKNOWN ((struct cell){.v = NAN})

struct row {
	const char *id;	   /**< the same from one look to the next: printed id of an entity, … */
	uint32_t node;	   /**< in the graph, UINT32_MAX */
	uint32_t item;	   /**< of the view: index in what it lists */
	uint32_t parent;   /**< row, UINT32_MAX; for table_tree() */
	uint32_t order;	   /**< as added: ties keep it */
	unsigned depth;	   /**< 0; set by table_tree() */
	unsigned severity; /**< 0: nothing, 1 … 3: worth a look … critical */
	struct cell cells[TABLE_COLUMNS];
};

struct table {
	const struct column *columns;
	size_t ncolumns;
	size_t tree_column; /**< text that is indented by depth */
	VEC(struct row) rows;
	struct arena arena; /**< texts made for it */
};

void table_init(struct table *t, const struct column *columns, size_t ncolumns);
void table_done(struct table *t);

/** A new row; valid until the next. */
struct row *table_add(struct table *t, const char *id, uint32_t node, uint32_t item);

/** By a column, numbers from the largest, texts from A; @p reverse: the other way. Stable. */
void table_sort(struct table *t, size_t column, bool reverse);

/** Keep rows that have @p text in their id or a text, without regard to case. "" keeps all. */
void table_filter(struct table *t, const char *text);

/** Put children behind their parents, both in the order that they have now. */
void table_tree(struct table *t);

/** One line for a screen of @p width columns, more where the columns have no room; @p mark begins it. */
void table_line(const struct table *t, const struct row *r, char mark, unsigned width, struct strbuf *b);

/** The titles, in the same way; the column that it is sorted by has "*" in front where there is room. */
void table_head(const struct table *t, size_t sorted_by, unsigned width, struct strbuf *b);

/**
 * Append @p s in at most @p width columns of the screen, cut where needed, filled up with blanks if @p fill.
 * What the locale cannot show becomes "?".
 */
void table_fit(struct strbuf *b, const char *s, unsigned width, bool right, bool fill);
