#pragma once

#include "graph.h"
#include "strbuf.h"

/* Values of compact text: see graph_text.h. */

/** A text: bare where it cannot be taken for anything else, else quoted as in JSON. */
void text_add_str(struct strbuf *b, const char *s);
/** A measured field; references as node numbers from 1. */
void text_add_field(struct strbuf *b, const struct field *f, const uint64_t *data);

/** Nothing but characters that need no quotes within maps and lists, and not empty. */
bool text_is_plain(const char *s, size_t n);

/**
 * Take the next value off a line. Bare texts end at a blank; quotes, brackets and braces nest.
 * @return false at the end of the line
 */
bool text_next(const char **at, const char *end, const char **ret, size_t *ret_n);
/** A whole number without sign off the front of @p *at. @return false when none is there, or it is
 * huge */
bool text_get_count(const char **at, const char *end, uint64_t *ret);
/** A bare or quoted text back. @return false when the quotes are wrong */
bool text_get_str(struct strbuf *out, const char *s, size_t n);
/** Maps and lists back to JSON. @return false when malformed */
bool text_get_json(struct strbuf *out, const char *s, size_t n);
/** One JSON value and nothing else. */
bool text_is_json(const char *s, size_t n);
