/* Answers within a budget of tokens. */
#include "mcp_answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mcp_lean.h"

/* What stands around the object in a result, and the sentence. */
#define AROUND 420
/* A cursor, and the word that more is there. */
#define CURSOR_BYTES 64
/* Longest item of a list in bytes: what is longer is cut, so that a page has several. */
#define ITEM_MAX 4096

static const struct json_limits limits = {.depth = 64, .string_bytes = 64u << 20};

void mcp_answer_init(struct mcp_answer *a, enum mcp_carry carry, uint64_t budget)
{
	*a = (struct mcp_answer){.carry = carry, .room = (size_t)budget * MCP_TOKEN_BYTES};
	a->spent = AROUND + CURSOR_BYTES;
	strbuf_addc(&a->body, '{');
}

void mcp_answer_done(struct mcp_answer *a)
{
	strbuf_done(&a->body);
	strbuf_done(&a->text);
}

/* Within text, quotes and backslashes take two bytes. */
static size_t cost(const struct mcp_answer *a, const char *s, size_t n)
{
	size_t escaped = n;

	if (a->carry == MCP_STRUCTURED)
		return n;
	for (size_t i = 0; i < n; i++)
		escaped += s[i] == '"' || s[i] == '\\';
	return a->carry == MCP_TEXT ? escaped : escaped + n;
}

static size_t bytes_left(const struct mcp_answer *a)
{
	return a->room > a->spent ? a->room - a->spent : 0;
}

size_t mcp_answer_left(const struct mcp_answer *a)
{
	size_t left = bytes_left(a);

	/* JSON has a quote in each ten bytes or so, often more. */
	return a->carry == MCP_STRUCTURED ? left
	       : a->carry == MCP_TEXT     ? left * 4 / 5
					  : left * 4 / 9;
}

static bool append(struct mcp_answer *a, const struct strbuf *piece)
{
	size_t more = cost(a, strbuf_str(piece), piece->n);

	if (more > bytes_left(a))
		return false;
	a->spent += more;
	strbuf_addn(&a->body, strbuf_str(piece), piece->n);
	return true;
}

static void begin_member(const struct mcp_answer *a, struct strbuf *piece, const char *name)
{
	if (a->body.n > 1)
		strbuf_addc(piece, ',');
	json_quote(piece, name, strlen(name), 0);
	strbuf_addc(piece, ':');
}

void mcp_answer_add(struct mcp_answer *a, const char *name, const char *json, size_t n, size_t most)
{
	struct strbuf piece = {0};
	size_t left = mcp_answer_left(a);

	if (!most || most > left)
		most = left;
	begin_member(a, &piece, name);
	if (most > piece.n + 64) {
		mcp_lean_within(json, n, most - piece.n, &piece);
		append(a, &piece);
	}
	strbuf_done(&piece);
}

void mcp_answer_text(struct mcp_answer *a, const char *name, const char *s)
{
	struct strbuf piece = {0};

	begin_member(a, &piece, name);
	mcp_lean_text(&piece, s, strlen(s), MCP_TEXT_MAX);
	append(a, &piece);
	strbuf_done(&piece);
}

void mcp_answer_lines(struct mcp_answer *a, const char *name, const char *s)
{
	struct strbuf piece = {0};
	size_t clip = mcp_answer_left(a);

	/* Line ends and quotes take two bytes: cut until it fits. */
	for (bool fits = false; !fits && clip > 64; clip = clip / 8 * 7) {
		strbuf_clear(&piece);
		begin_member(a, &piece, name);
		mcp_lean_lines(&piece, s, strlen(s), clip);
		fits = append(a, &piece);
	}
	strbuf_done(&piece);
}

void mcp_answer_u64(struct mcp_answer *a, const char *name, uint64_t v)
{
	struct strbuf piece = {0};

	begin_member(a, &piece, name);
	strbuf_add_u64(&piece, v);
	append(a, &piece);
	strbuf_done(&piece);
}

bool mcp_member(const struct strbuf *object, const char *name, struct strbuf *ret)
{
	struct json_reader *r =
	    json_reader_new_mem(strbuf_str(object), object->n, "answer", &limits);
	struct err e;
	int token = json_next(r, &e);

	strbuf_clear(ret);
	while (token > 0 && (token = json_next(r, &e)) == JSON_KEY) {
		bool wanted = json_is(r, name);

		token = json_next(r, &e);
		if (token <= 0 || wanted)
			break;
		if (json_skip(r, token, &e) < 0)
			token = 0;
	}
	if (token <= 0 || token == JSON_OBJECT_END || token == JSON_NULL ||
	    json_copy(r, token, ret, &e) < 0)
		strbuf_clear(ret);
	json_reader_free(r);
	return ret->n && strcmp(ret->s, "[]") != 0 && strcmp(ret->s, "{}") != 0;
}

void mcp_each(const struct strbuf *array, void (*each)(void *ctx, const struct strbuf *item),
	      void *ctx)
{
	struct json_reader *r = json_reader_new_mem(strbuf_str(array), array->n, "answer", &limits);
	struct strbuf item = {0};
	struct err e;
	int token = json_next(r, &e);

	while (token > 0 && (token = json_next(r, &e)) > 0 && token != JSON_ARRAY_END) {
		strbuf_clear(&item);
		if (json_copy(r, token, &item, &e) < 0)
			break;
		each(ctx, &item);
	}
	strbuf_done(&item);
	json_reader_free(r);
}

void mcp_answer_pick(struct mcp_answer *a, const struct strbuf *object, const char *name,
		     size_t most)
{
	struct strbuf raw = {0};

	if (mcp_member(object, name, &raw))
		mcp_answer_add(a, name, raw.s, raw.n, most);
	strbuf_done(&raw);
}

/* One item of a list, if it fits; cut to @p most bytes. */
static bool try_item(struct mcp_answer *a, const struct strbuf *raw, bool first, size_t most)
{
	struct strbuf piece = {0};
	bool fits;

	if (!first)
		strbuf_addc(&piece, ',');
	mcp_lean_within(raw->s, raw->n, most, &piece);
	fits = append(a, &piece);
	strbuf_done(&piece);
	return fits;
}

/* The first one is cut rather than left out, or a list would never go on. */
static bool add_item(struct mcp_answer *a, const struct strbuf *raw, bool first, size_t item)
{
	size_t left = mcp_answer_left(a);

	if (!first)
		return left > 32 && try_item(a, raw, false, item);
	for (size_t most = left < item ? left : item; most >= 64; most /= 2)
		if (try_item(a, raw, true, most))
			return true;
	return false;
}

void mcp_answer_list(struct mcp_answer *a, const char *name, const struct strbuf *json,
		     struct mcp_part *part)
{
	struct json_reader *r = json_reader_new_mem(strbuf_str(json), json->n, "answer", &limits);
	struct strbuf piece = {0}, raw = {0};
	size_t room = a->room;
	bool more = true;
	struct err e;
	int token;

	if (part->most && part->most < bytes_left(a))
		a->room = a->spent + part->most;
	part->taken = part->seen = 0;
	begin_member(a, &piece, name);
	strbuf_addc(&piece, '[');
	/* A list that has no room is empty, but there. */
	a->spent += cost(a, piece.s, piece.n) + 2;
	strbuf_addn(&a->body, piece.s, piece.n);
	token = json_next(r, &e);
	while (token > 0 && (token = json_next(r, &e)) > 0 && token != JSON_ARRAY_END) {
		strbuf_clear(&raw);
		if (json_copy(r, token, &raw, &e) < 0)
			break;
		if (part->seen++ < part->skip || !more)
			continue;
		more = (!part->limit || part->taken < part->limit) &&
		       add_item(a, &raw, !part->taken, part->item ? part->item : ITEM_MAX);
		part->taken += more;
	}
	strbuf_addc(&a->body, ']');
	a->room = room;
	strbuf_done(&piece);
	strbuf_done(&raw);
	json_reader_free(r);
}

void mcp_answer_cursor(struct mcp_answer *a, uint64_t question, uint64_t after)
{
	/* Its room was kept from the beginning. */
	strbuf_addf(&a->body, "%s\"next_cursor\":\"%" PRIu64 ".%08" PRIx32 "\"",
		    a->body.n > 1 ? "," : "", after, (uint32_t)question);
}

int mcp_cursor_read(const char *cursor, uint64_t question, uint64_t *ret_after)
{
	char want[16], *end;
	unsigned long long after;

	if (*cursor < '0' || *cursor > '9')
		return -EINVAL;
	errno = 0;
	after = strtoull(cursor, &end, 10);
	snprintf(want, sizeof(want), ".%08" PRIx32, (uint32_t)question);
	if (errno || after > UINT32_MAX || strcmp(end, want))
		return -EINVAL;
	*ret_after = after;
	return 0;
}

void mcp_answer_fail(struct mcp_answer *a, const struct err *e)
{
	a->failed = true;
	strbuf_clear(&a->text);
	strbuf_add(&a->text, e->msg);
	if (e->hint[0])
		strbuf_addf(&a->text, " (%s)", e->hint);
}

void mcp_answer_finish(struct mcp_answer *a)
{
	strbuf_addc(&a->body, '}');
}
