#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "strbuf.h"

/*
 * JSON of the renderers made short for readers that pay by the token: what was not measured is left
 * out, long texts are cut, numbers have six digits where they are no whole ones. Texts of the
 * observed host may hold anything: control characters and those that turn the direction of writing
 * are replaced.
 */

/** Longest text of an answer in bytes, before it is cut. */
#define MCP_TEXT_MAX 240

/**
 * Append the value whose first token was just returned.
 *
 * @param clip longest text in bytes, >= 8; longer ones end in an ellipsis
 * @return 0 or as json_next()
 */
int mcp_lean(struct json_reader *r, int token, size_t clip, struct strbuf *out, struct err *e);

/** Append @p n bytes of text as a JSON string, cut and cleaned. */
void mcp_lean_text(struct strbuf *out, const char *s, size_t n, size_t clip);

/** As mcp_lean_text(), for a text of several lines. */
void mcp_lean_lines(struct strbuf *out, const char *s, size_t n, size_t clip);

/**
 * Append a JSON value in at most @p most bytes: texts are cut shorter, then those members of an
 * object are left out that do not fit behind the ones before, and it says "cut": true.
 *
 * @param most >= 64
 */
void mcp_lean_within(const char *json, size_t n, size_t most, struct strbuf *out);
