#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/*
 * The answer of a tool: one JSON object, made member by member within a budget, and a sentence
 * about it.
 */

/** A common size of a token in bytes, for texts like these. */
#define MCP_TOKEN_BYTES 4

/** How a result carries the object. */
enum mcp_carry {
	MCP_STRUCTURED, /**< as structured content, with the sentence as text */
	MCP_TEXT,       /**< as text: what revisions before 2025-06-18 know */
	MCP_BOTH,       /**< as both, for clients that show models only one of them */
};

struct mcp_answer {
	enum mcp_carry carry;
	struct strbuf body; /**< the object so far, without its end */
	struct strbuf text; /**< the sentence */
	size_t room;        /**< bytes that the result may have */
	size_t spent;       /**< bytes that it has so far */
	bool failed;        /**< the sentence tells what went wrong */
};

/** @param budget tokens of the whole result */
void mcp_answer_init(struct mcp_answer *a, enum mcp_carry carry, uint64_t budget);
void mcp_answer_done(struct mcp_answer *a);

/** Bytes of JSON that still fit, as the client is charged for them. */
size_t mcp_answer_left(const struct mcp_answer *a);

/** Add a member whose value is JSON, which is made lean; at most @p most bytes, 0: what is left. */
void mcp_answer_add(struct mcp_answer *a, const char *name, const char *json, size_t n,
		    size_t most);
void mcp_answer_text(struct mcp_answer *a, const char *name, const char *s);
/** A text of several lines, cut to what is left. */
void mcp_answer_lines(struct mcp_answer *a, const char *name, const char *s);
void mcp_answer_u64(struct mcp_answer *a, const char *name, uint64_t v);

/** Value of a member of a rendered object, as JSON. @return whether it is there and neither null
 * nor empty */
bool mcp_member(const struct strbuf *object, const char *name, struct strbuf *ret);

/** Call @p each with the JSON of each item of an array; nothing is done for other JSON. */
void mcp_each(const struct strbuf *array, void (*each)(void *ctx, const struct strbuf *item),
	      void *ctx);

/** Add it under the same name, if there is something. */
void mcp_answer_pick(struct mcp_answer *a, const struct strbuf *object, const char *name,
		     size_t most);

/** Part of an array. */
struct mcp_part {
	uint64_t skip;  /**< items in front that are passed over */
	uint64_t limit; /**< of those behind; 0: as many as fit */
	size_t most;    /**< bytes that they may have; 0: what is left */
	size_t item;    /**< bytes that one of them may have; 0: 4096 */
	uint64_t taken; /**< result: items that the answer has */
	uint64_t seen;  /**< result: items of the array */
};

/** Add a list: as many items of the array @p json as are wanted and fit. */
void mcp_answer_list(struct mcp_answer *a, const char *name, const struct strbuf *json,
		     struct mcp_part *part);

/** Say where a list goes on: as "next_cursor". @param question see mcp_cursor_read() */
void mcp_answer_cursor(struct mcp_answer *a, uint64_t question, uint64_t after);

/** What is wrong, and what to do about it, instead of an answer. */
void mcp_answer_fail(struct mcp_answer *a, const struct err *e);

/** Close the object. */
void mcp_answer_finish(struct mcp_answer *a);

/**
 * Read a cursor.
 *
 * @param question what was asked, as a number: a cursor is good for the same question only
 * @return 0 or -EINVAL
 */
int mcp_cursor_read(const char *cursor, uint64_t question, uint64_t *ret_after);
