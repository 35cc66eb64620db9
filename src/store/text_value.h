#pragma once

#include "graph.h"
#include "strbuf.h"

/* Values of compact text: see graph_text.h. */

/** A text: bare where it cannot be taken for anything else, else quoted as in JSON. */
void text_add_str(struct strbuf *b, const char *s);
/** A measured field; references as node numbers from 1. */
void text_add_field(struct strbuf *b, const struct field *f, const uint64_t *data);

/** Keys and common suffixes of values that all maps of a column share. Zeroed: nothing seen. */
struct text_group_plan {
	struct strbuf keys; /* `"key":` … as in the first map */
	VEC(char *) names, suffixes;
	bool seen, failed;
};
void text_group_see(struct text_group_plan *p, const char *json);
/** @return `{key suffix|…}` for the header, freed by the caller; NULL: the maps differ, or are small */
char *text_group_done(struct text_group_plan *p);
/** The values of one map under that header: `[v v …]`. */
void text_add_group(struct strbuf *b, const char *group, const char *json);

/**
 * Take the next value off a line. Bare texts end at a blank; quotes, brackets and braces nest.
 * @return false at the end of the line
 */
bool text_next(const char **at, const char *end, const char **ret, size_t *ret_n);
/** A bare or quoted text back. @return false when the quotes are wrong */
bool text_get_str(struct strbuf *out, const char *s, size_t n);
/** Maps and lists back to JSON. @return false when malformed */
bool text_get_json(struct strbuf *out, const char *s, size_t n);
bool text_get_group(struct strbuf *out, const char *group, size_t ngroup, const char *s, size_t n);
