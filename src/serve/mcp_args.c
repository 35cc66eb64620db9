/* Arguments of tools: checked against the table before a tool sees them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "idmap.h"
#include "mcp_rpc.h"
#include "mcp_tools.h"

static int wrong(struct err *e, const struct mcp_param *p, const char *what)
{
	return err_msg(e, -EINVAL, "argument '%s' %s", p->name, what);
}

static int read_choice(const struct mcp_param *p, const char *s, struct err *e)
{
	struct strbuf b = {0};

	for (const char *const *c = p->choices; *c; c++) {
		if (!strcmp(*c, s)) {
			strbuf_done(&b);
			return 0;
		}
		strbuf_addf(&b, "%s%s", b.n ? ", " : "is one of ", *c);
	}
	wrong(e, p, b.s);
	strbuf_done(&b);
	return e->code;
}

static int read_text(struct json_reader *r, const struct mcp_param *p, struct mcp_arg *a, int token,
		     struct err *e)
{
	size_t n;
	const char *s = json_text(r, &n);

	if (token != JSON_STRING || strlen(s) != n)
		return wrong(e, p, "is no text");
	if (n > MCP_ARG_TEXT_MAX)
		return wrong(e, p, "is too long");
	if (p->type == MCP_P_CHOICE && read_choice(p, s, e) < 0)
		return e->code;
	free(a->text);
	a->text = mem_strdup(s);
	return 0;
}

static int read_whole(struct json_reader *r, const struct mcp_param *p, int token, uint64_t *ret,
		      struct err *e)
{
	uint64_t v;

	if (token != JSON_NUMBER || json_get_u64(r, &v))
		return wrong(e, p, "is no whole number");
	if (v < p->min || v > p->max)
		return err_msg(e, -EINVAL, "argument '%s' is from %" PRIu64 " to %" PRIu64, p->name,
			       p->min, p->max);
	*ret = v;
	return 0;
}

static int read_wholes(struct json_reader *r, const struct mcp_param *p, struct mcp_arg *a,
		       int token, struct err *e)
{
	uint64_t v = 0;
	int rc;

	if (token != JSON_ARRAY)
		return wrong(e, p, "is no list");
	vec_clear(&a->wholes);
	while ((token = json_next(r, e)) != JSON_ARRAY_END) {
		rc = token < 0 ? token : read_whole(r, p, token, &v, e);
		if (rc < 0)
			return rc;
		if (a->wholes.n == MCP_WHOLES_MAX)
			return wrong(e, p, "has too many items");
		vec_push(&a->wholes, v);
	}
	return 0;
}

static int no_such_argument(const struct mcp_call *c, const char *name, struct err *e)
{
	struct strbuf b = {0};

	for (const struct mcp_param *p = c->tool->params; p->name; p++)
		strbuf_addf(&b, "%s%s", b.n ? ", " : "", p->name);
	err_msg(e, -EINVAL, "'%s' has no argument '%.40s'; it has %s", c->tool->name, name,
		strbuf_str(&b));
	strbuf_done(&b);
	return e->code;
}

/* The reader is on a key. */
static int read_arg(struct json_reader *r, struct mcp_call *c, struct err *e)
{
	const char *name = json_text(r, NULL);
	const struct mcp_param *p = c->tool->params;
	struct mcp_arg *a;
	int token, rc;

	while (p->name && strcmp(p->name, name))
		p++;
	if (!p->name)
		return no_such_argument(c, name, e);
	a = &c->args[p - c->tool->params];
	token = json_next(r, e);
	/* Some clients send null for what their user left open. */
	if (token == JSON_NULL && !p->required)
		return 0;
	rc = token < 0                 ? token
	     : p->type == MCP_P_WHOLE  ? read_whole(r, p, token, &a->whole, e)
	     : p->type == MCP_P_WHOLES ? read_wholes(r, p, a, token, e)
				       : read_text(r, p, a, token, e);
	a->has = !rc;
	return rc;
}

int mcp_args_read(struct mcp_call *c, const struct strbuf *arguments, struct err *e)
{
	struct json_reader *r;
	int token, rc = 0;

	if (arguments->n) {
		r = json_reader_new_mem(arguments->s, arguments->n, "arguments", NULL);
		token = json_next(r, e);
		if (token != JSON_OBJECT)
			rc = err_msg(e, -EINVAL, "arguments are an object");
		while (!rc && (token = json_next(r, e)) == JSON_KEY)
			rc = read_arg(r, c, e);
		json_reader_free(r);
	}
	for (const struct mcp_param *p = c->tool->params; !rc && p->name; p++)
		if (p->required && !c->args[p - c->tool->params].has)
			rc = wrong(e, p, "is missing");
	return rc;
}

void mcp_args_done(struct mcp_call *c)
{
	for (size_t i = 0; i < MCP_PARAMS_MAX; i++) {
		free(c->args[i].text);
		vec_done(&c->args[i].wholes);
	}
}

const struct mcp_arg *mcp_arg(const struct mcp_call *c, const char *name)
{
	static const struct mcp_arg none;

	for (const struct mcp_param *p = c->tool->params; p->name; p++)
		if (!strcmp(p->name, name))
			return &c->args[p - c->tool->params];
	return &none;
}

const char *mcp_arg_text(const struct mcp_call *c, const char *name)
{
	return mcp_arg(c, name)->text;
}

uint64_t mcp_arg_whole(const struct mcp_call *c, const char *name, uint64_t otherwise)
{
	const struct mcp_arg *a = mcp_arg(c, name);

	return a->has ? a->whole : otherwise;
}

uint64_t mcp_question(const struct mcp_call *c, const struct mcp_file *f)
{
	uint64_t h = hash_bytes(c->tool->name, strlen(c->tool->name), f->stamp);

	for (const struct mcp_param *p = c->tool->params; p->name; p++) {
		const struct mcp_arg *a = &c->args[p - c->tool->params];
		size_t at = (size_t)(p - c->tool->params);

		if (!a->has || !strcmp(p->name, "cursor") || !strcmp(p->name, "budget") ||
		    !strcmp(p->name, "limit"))
			continue;
		h = a->text ? hash_bytes(a->text, strlen(a->text), h ^ at)
			    : hash_pair(h ^ at, a->whole);
	}
	return h;
}

int mcp_open(struct mcp_call *c, const char *name, struct mcp_file **ret, struct err *e)
{
	int rc = mcp_files_get(c->files, mcp_arg_text(c, name), ret, e);

	if (!rc)
		mcp_answer_text(c->answer, !strcmp(name, "file") ? "file" : name, (*ret)->name);
	return rc;
}

int mcp_begin_list(struct mcp_call *c, const struct mcp_file *f, struct mcp_part *part,
		   struct err *e)
{
	const char *cursor = mcp_arg_text(c, "cursor");

	*part = (struct mcp_part){.limit = mcp_arg_whole(c, "limit", 0)};
	if (!cursor || !mcp_cursor_read(cursor, mcp_question(c, f), &part->skip))
		return 0;
	err_msg(e, -EINVAL, "the cursor is of another question, or the file has changed");
	return err_hint(e, "ask again without it");
}

void mcp_end_list(struct mcp_call *c, const struct mcp_file *f, const struct mcp_part *part,
		  uint64_t all)
{
	if (part->skip + part->taken < all)
		mcp_answer_cursor(c->answer, mcp_question(c, f), part->skip + part->taken);
}
