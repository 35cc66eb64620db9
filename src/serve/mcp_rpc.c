/* JSON-RPC messages: what a line says, and members of its parameters. */
#include "mcp_rpc.h"

#include <stdlib.h>
#include <string.h>

#include "vec.h"

/* Deep enough for any parameters of ours; what is deeper is refused at once. */
static const struct json_limits limits = {.depth = 24, .string_bytes = MCP_LINE_MAX};

#define ID_MAX 256

void mcp_message_done(struct mcp_message *m)
{
	free(m->id);
	free(m->method);
	strbuf_done(&m->params);
	*m = (struct mcp_message){0};
}

static void refuse(struct mcp_message *m, int code, const char *why)
{
	/* The first thing that is wrong is the one to tell. */
	if (m->error)
		return;
	m->error = code;
	m->why = why;
}

/* Text or a whole number; null is no id here. */
static int read_id(struct json_reader *r, struct mcp_message *m, int token, struct err *e)
{
	struct strbuf raw = {0};
	int64_t whole;
	int rc;

	if (token != JSON_STRING && (token != JSON_NUMBER || json_get_i64(r, &whole))) {
		refuse(m, MCP_INVALID_REQUEST, "the id is neither text nor a whole number");
		return json_skip(r, token, e);
	}
	rc = json_copy(r, token, &raw, e);
	if (!rc && raw.n > ID_MAX) {
		refuse(m, MCP_INVALID_REQUEST, "the id is too long");
	} else if (!rc) {
		free(m->id);
		m->id = mem_strdup(raw.s);
	}
	strbuf_done(&raw);
	return rc;
}

static int read_method(struct json_reader *r, struct mcp_message *m, int token, struct err *e)
{
	size_t n;
	const char *s = json_text(r, &n);

	if (token != JSON_STRING || strlen(s) != n || n > ID_MAX) {
		refuse(m, MCP_INVALID_REQUEST, "the method is no name");
		return json_skip(r, token, e);
	}
	free(m->method);
	m->method = mem_strdup(s);
	return 0;
}

static int read_params(struct json_reader *r, struct mcp_message *m, int token, struct err *e)
{
	strbuf_clear(&m->params);
	if (token == JSON_OBJECT)
		return json_copy(r, token, &m->params, e);
	refuse(m, MCP_INVALID_REQUEST, "params is no object");
	return json_skip(r, token, e);
}

static int read_member(struct json_reader *r, struct mcp_message *m, bool *ret_2_0, struct err *e)
{
	bool id = json_is(r, "id"), method = json_is(r, "method"), params = json_is(r, "params"),
	     version = json_is(r, "jsonrpc");
	int token = json_next(r, e);

	if (token < 0)
		return token;
	if (id)
		return read_id(r, m, token, e);
	if (method)
		return read_method(r, m, token, e);
	if (params)
		return read_params(r, m, token, e);
	if (version)
		*ret_2_0 = json_is(r, "2.0");
	return json_skip(r, token, e);
}

/* Behind the '{' of one. @return < 0: the line is no JSON */
static int read_message(struct json_reader *r, struct mcp_message *m, struct err *e)
{
	bool is_2_0 = false, has_result = false;
	int token;

	while ((token = json_next(r, e)) == JSON_KEY) {
		int rc;

		has_result |= json_is(r, "result") || json_is(r, "error");
		rc = read_member(r, m, &is_2_0, e);
		if (rc < 0)
			return rc;
	}
	if (token < 0)
		return token;
	if (!is_2_0)
		refuse(m, MCP_INVALID_REQUEST, "jsonrpc is not \"2.0\"");
	if (!m->method && !has_result)
		refuse(m, MCP_INVALID_REQUEST, "there is no method");
	return 0;
}

static void not_json(void (*each)(void *ctx, struct mcp_message *m), void *ctx)
{
	struct mcp_message m = {.error = MCP_PARSE_ERROR, .why = "the line is no JSON"};

	each(ctx, &m);
}

static void no_object(struct mcp_message *m)
{
	refuse(m, MCP_INVALID_REQUEST, "a message is an object");
}

struct message_list {
	VEC(struct mcp_message) v;
};

/* Nothing is handed over before the whole line is known to be JSON. */
static int read_all(struct json_reader *r, int token, struct message_list *list, bool *ret_array)
{
	struct err e;
	int rc = 0;

	*ret_array = token == JSON_ARRAY;
	if (*ret_array)
		token = json_next(r, &e);
	while (token > 0 && !(*ret_array && token == JSON_ARRAY_END)) {
		struct mcp_message *m = vec_add(&list->v);

		if (token == JSON_OBJECT) {
			rc = read_message(r, m, &e);
		} else {
			no_object(m);
			rc = json_skip(r, token, &e);
		}
		if (rc < 0)
			return rc;
		token = json_next(r, &e);
	}
	return token < 0 ? token : *ret_array ? json_next(r, &e) : 0;
}

bool mcp_parse(const char *line, size_t n, void (*each)(void *ctx, struct mcp_message *m),
	       void *ctx)
{
	struct json_reader *r = json_reader_new_mem(line, n, "line", &limits);
	struct message_list list = {0};
	bool array = false;
	struct err e;
	int token = json_next(r, &e);

	if (token <= 0 || read_all(r, token, &list, &array) < 0) {
		vec_for(&list.v, m)
			mcp_message_done(m);
		vec_clear(&list.v);
		array = false;
		not_json(each, ctx);
	}
	vec_for(&list.v, m)
		each(ctx, m);
	vec_done(&list.v);
	json_reader_free(r);
	return array;
}

/* @return the token of the value at the end of the path, with the reader on it; 0: none */
static int walk(struct json_reader *r, const char *const path[], struct err *e)
{
	int token = json_next(r, e);

	for (; *path; path++) {
		if (token != JSON_OBJECT)
			return 0;
		for (;;) {
			token = json_next(r, e);
			if (token != JSON_KEY)
				return 0;
			if (json_is(r, *path))
				break;
			if (json_skip(r, token, e) < 0)
				return 0;
		}
		token = json_next(r, e);
	}
	return token < 0 ? 0 : token;
}

int mcp_find(const struct strbuf *object, const char *const path[], struct strbuf *raw)
{
	struct json_reader *r =
	    json_reader_new_mem(strbuf_str(object), object->n, "params", &limits);
	struct err e;
	int token = walk(r, path, &e);

	if (raw)
		strbuf_clear(raw);
	if (token && raw && json_copy(r, token, raw, &e) < 0)
		token = 0;
	json_reader_free(r);
	return token;
}

bool mcp_find_text(const struct strbuf *object, const char *const path[], struct strbuf *ret)
{
	struct json_reader *r =
	    json_reader_new_mem(strbuf_str(object), object->n, "params", &limits);
	bool found = false;
	const char *s;
	struct err e;
	size_t n;

	strbuf_clear(ret);
	if (walk(r, path, &e) == JSON_STRING) {
		s = json_text(r, &n);
		found = strlen(s) == n;
		if (found)
			strbuf_addn(ret, s, n);
	}
	json_reader_free(r);
	return found;
}
