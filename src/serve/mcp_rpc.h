#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "strbuf.h"

/* JSON-RPC 2.0, as the Model Context Protocol uses it: one message a line. */

/** Longest line that is read; longer ones are refused, so that no client can fill the memory. */
#define MCP_LINE_MAX (1u << 20)

enum {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_NO_RESOURCE_OLD = -32002, /**< revisions with a handshake only */
	MCP_WRONG_VERSION = -32022,
};

/** A request or notification. */
struct mcp_message {
	int error;       /**< 0, or what is wrong with it: MCP_PARSE_ERROR or MCP_INVALID_REQUEST */
	const char *why; /**< one sentence, if there is an error */
	char *id;        /**< as JSON: `7`, `"a"`; NULL: a notification, or none could be read */
	char *method;    /**< NULL: an answer to something that was never asked */
	struct strbuf params; /**< a JSON object; empty: none */
};

void mcp_message_done(struct mcp_message *m);

/**
 * Read what a line holds: one message, or several in an array.
 *
 * @param each called for each message, which it owns then
 * @return whether it was an array
 */
bool mcp_parse(const char *line, size_t n, void (*each)(void *ctx, struct mcp_message *m),
	       void *ctx);

/**
 * Look up a member of a JSON object, such as {"_meta", "progressToken", NULL}.
 *
 * @param path NULL-terminated
 * @param raw  its value as JSON, cleared first; may be NULL
 * @return the first token of its value, 0 (JSON_EOF): it is not there
 */
int mcp_find(const struct strbuf *object, const char *const path[], struct strbuf *raw);

/** As mcp_find(), for text: decoded. @return whether it is there and is text without U+0000 */
bool mcp_find_text(const struct strbuf *object, const char *const path[], struct strbuf *ret);
