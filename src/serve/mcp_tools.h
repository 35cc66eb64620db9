#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "json.h"
#include "mcp_answer.h"
#include "mcp_files.h"
#include "vec.h"

/*
 * Tools: each is a row of one table. From it come the list that clients read, the schemas of input
 * and output, the check of arguments, and the reference in the documents.
 */

enum mcp_param_type {
	MCP_P_TEXT,
	MCP_P_WHOLE,  /**< a whole number within its limits */
	MCP_P_CHOICE, /**< one of some words */
	MCP_P_WHOLES, /**< a list of whole numbers, at most 64 */
};

struct mcp_param {
	const char *name;
	enum mcp_param_type type;
	bool required;
	uint64_t min, max;          /**< of a number */
	const char *const *choices; /**< NULL-terminated */
	const char *doc;
};

/** A member of a tool's answer. */
struct mcp_member {
	const char *name;
	const char *type; /**< of JSON Schema: "string", "integer", "array" (of objects), … */
	bool required;
	const char *doc;
};

#define MCP_PARAMS_MAX   12
#define MCP_ARG_TEXT_MAX 400 /* bytes */
#define MCP_WHOLES_MAX   64

struct mcp_call;

struct mcp_tool {
	const char *name, *title;
	const char *doc;                /**< for the model that chooses a tool */
	const struct mcp_param *params; /**< ends with a row without a name */
	const struct mcp_member *members;
	bool writes; /**< changes something; there only with --allow-record */
	/** Fill in the answer. @return 0 or -errno with @p e; NULL: is served elsewhere, as it
	 * takes long */
	int (*run)(struct mcp_call *c, struct err *e);
};

/** Value of an argument. */
struct mcp_arg {
	bool has;
	char *text;
	uint64_t whole;
	VEC(uint64_t) wholes;
};

/** One call of a tool. */
struct mcp_call {
	const struct mcp_tool *tool;
	struct mcp_files *files;
	struct mcp_answer *answer;
	struct mcp_arg args[MCP_PARAMS_MAX]; /**< by row of the tool's parameters */
};

extern const struct mcp_tool *const mcp_tools[];
extern const size_t n_mcp_tools;

const struct mcp_tool *mcp_tool_find(const char *name);

/** The list of tools as JSON. @param schemas_of_output revisions before 2025-06-18 have none */
void mcp_tools_write(struct json_writer *w, bool writes, bool schemas_of_output);

/** Check @p arguments, a JSON object or empty, against the table. @return 0 or -EINVAL */
int mcp_args_read(struct mcp_call *c, const struct strbuf *arguments, struct err *e);
void mcp_args_done(struct mcp_call *c);

const struct mcp_arg *mcp_arg(const struct mcp_call *c, const char *name);
/** NULL: not given */
const char *mcp_arg_text(const struct mcp_call *c, const char *name);
uint64_t mcp_arg_whole(const struct mcp_call *c, const char *name, uint64_t otherwise);

/** What is asked, as a number that cursors carry: arguments but the cursor, and the file as it is.
 */
uint64_t mcp_question(const struct mcp_call *c, const struct mcp_file *f);

/** Tokens that an answer may have when the client does not say. */
#define MCP_BUDGET     4000
#define MCP_BUDGET_MIN 500
#define MCP_BUDGET_MAX 25000

/* The tools; each adds "file" and what its table says. */
int mcp_summary(struct mcp_call *c, struct err *e);
int mcp_query(struct mcp_call *c, struct err *e);
int mcp_explain(struct mcp_call *c, struct err *e);
int mcp_hot(struct mcp_call *c, struct err *e);
int mcp_diagnose(struct mcp_call *c, struct err *e);
int mcp_evidence(struct mcp_call *c, struct err *e);
int mcp_diff(struct mcp_call *c, struct err *e);

/* Steps that several of them take. */
/** Load the file that the argument @p name names, and add "file" to the answer. */
int mcp_open(struct mcp_call *c, const char *name, struct mcp_file **ret, struct err *e);
/** Where to go on, as the argument "cursor" says. */
int mcp_begin_list(struct mcp_call *c, const struct mcp_file *f, struct mcp_part *part,
		   struct err *e);
/** Add the cursor if there is more. @param all items behind which nothing comes */
void mcp_end_list(struct mcp_call *c, const struct mcp_file *f, const struct mcp_part *part,
		  uint64_t all);
