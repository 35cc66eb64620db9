/* Resources and the prompt: texts that a client can put in front of a model. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_lean.h"
#include "mcp_server.h"
#include "mcp_tools.h"
#include "render.h"
#include "render_topology.h"

#define SCHEME    "witty://"
#define SCHEMA    SCHEME "schema"
#define FILES     SCHEME "files/"
#define PAGE      50
#define MINUTE_MS 60000
#define DAY_MS    86400000

/* What each file has. */
static const struct view {
	const char *name, *title, *mime;
} views[] = {
    {"summary", "What the file holds, and what was lost", "text/plain"},
    {"topology", "Processes, ranks, patterns and data paths", "text/markdown"},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static void add_name(struct strbuf *uri, const char *name)
{
	for (; *name; name++) {
		if (isalnum((unsigned char)*name) || strchr("-._~", *name))
			strbuf_addc(uri, *name);
		else
			strbuf_addf(uri, "%%%02X", (unsigned char)*name);
	}
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

/* Up to a slash or the end. @return where it ends */
static const char *read_name(const char *s, struct strbuf *ret)
{
	for (; *s && *s != '/'; s++) {
		if (*s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			strbuf_addc(ret, (char)(hex(s[1]) * 16 + hex(s[2])));
			s += 2;
		} else {
			strbuf_addc(ret, *s);
		}
	}
	return s;
}

static void write_resource(struct json_writer *w, const char *uri, const char *name,
			   const struct view *v)
{
	json_write_object(w);
	json_key_str(w, "uri", uri);
	json_key_str(w, "name", name);
	json_key_str(w, "description", v->title);
	json_key_str(w, "mimeType", v->mime);
	json_write_object_end(w);
}

static void write_file(struct json_writer *w, const struct mcp_file *f)
{
	struct strbuf uri = {0}, name = {0};

	for (size_t i = 0; i < VIEWS; i++) {
		strbuf_clear(&uri);
		strbuf_clear(&name);
		strbuf_add(&uri, FILES);
		add_name(&uri, f->name);
		strbuf_addf(&uri, "/%s", views[i].name);
		strbuf_addf(&name, "%s: %s", f->name, views[i].name);
		write_resource(w, uri.s, name.s, &views[i]);
	}
	strbuf_done(&uri);
	strbuf_done(&name);
}

/* @return 0 or -EINVAL: no place of ours */
static int read_page(const struct mcp *s, const struct mcp_message *m, size_t *ret)
{
	static const char *const path[] = {"cursor", NULL};
	struct strbuf text = {0};
	uint64_t at = 0;
	int rc = 0, token = mcp_find(&m->params, path, NULL);

	if (token && token != JSON_NULL)
		rc = mcp_find_text(&m->params, path, &text)
			 ? mcp_cursor_read(strbuf_str(&text), 0, &at)
			 : -EINVAL;
	strbuf_done(&text);
	*ret = (size_t)at;
	return rc < 0 || at > s->files.v.n ? -EINVAL : 0;
}

void mcp_resources_list(struct mcp *s, const struct mcp_message *m, bool modern)
{
	static const struct view schema = {"schema", "Every type and field, with units",
					   "text/markdown"};
	struct mcp_reply r;
	char cursor[32];
	size_t at;

	if (read_page(s, m, &at) < 0) {
		mcp_reply_error(s, m->id, MCP_INVALID_PARAMS, "there is no such page", NULL);
		return;
	}
	mcp_reply_begin(s, &r, m->id, modern);
	json_write_key(&r.w, "resources");
	json_write_array(&r.w);
	if (!at)
		write_resource(&r.w, SCHEMA, "schema", &schema);
	for (size_t i = at; i < s->files.v.n && i < at + PAGE; i++)
		write_file(&r.w, &s->files.v.v[i]);
	json_write_array_end(&r.w);
	if (at + PAGE < s->files.v.n) {
		snprintf(cursor, sizeof(cursor), "%zu.00000000", at + PAGE);
		json_key_str(&r.w, "nextCursor", cursor);
	}
	mcp_reply_keep(&r, modern, 0, false);
	mcp_reply_end(&r);
}

void mcp_resources_templates(struct mcp *s, const struct mcp_message *m, bool modern)
{
	struct mcp_reply r;

	mcp_reply_begin(s, &r, m->id, modern);
	json_write_key(&r.w, "resourceTemplates");
	json_write_array(&r.w);
	for (size_t i = 0; i < VIEWS; i++) {
		struct strbuf uri = {0};

		strbuf_addf(&uri, FILES "{file}/%s", views[i].name);
		json_write_object(&r.w);
		json_key_str(&r.w, "uriTemplate", uri.s);
		json_key_str(&r.w, "name", views[i].name);
		json_key_str(&r.w, "description", views[i].title);
		json_key_str(&r.w, "mimeType", views[i].mime);
		json_write_object_end(&r.w);
		strbuf_done(&uri);
	}
	json_write_array_end(&r.w);
	mcp_reply_keep(&r, modern, MINUTE_MS, true);
	mcp_reply_end(&r);
}

static void render_view(struct mcp_file *f, const struct view *v, uint64_t budget, struct strbuf *b)
{
	struct topology_view all = {.parts = PARTS_ALL, .focus = TOPO_NONE};

	if (v == &views[0]) {
		uint64_t *entities = mem_alloc(n_entity_types * sizeof(*entities));
		uint64_t *edges = mem_alloc(n_edge_types * sizeof(*edges));

		count_types(f->g, entities, edges);
		render_summary_text(f->g, entities, edges, b);
		free(entities);
		free(edges);
		return;
	}
	render_topology(&f->o->all.topology, &all, TOPOLOGY_MD, budget, b);
}

/* @return 0, or -ENOENT: nothing has that address; other errors with @p e */
static int read_resource(struct mcp *s, const char *uri, struct strbuf *b, const char **ret_mime,
			 struct err *e)
{
	struct strbuf name = {0};
	struct mcp_file *f;
	const char *end;
	int rc = -ENOENT;

	if (!strcmp(uri, SCHEMA)) {
		render_schema_md(b);
		*ret_mime = "text/markdown";
		return 0;
	}
	err_msg(e, -ENOENT, "there is no such resource");
	if (strncmp(uri, FILES, strlen(FILES)))
		return rc;
	end = read_name(uri + strlen(FILES), &name);
	for (size_t i = 0; i < VIEWS; i++) {
		if (*end != '/' || strcmp(end + 1, views[i].name))
			continue;
		rc = mcp_files_get(&s->files, strbuf_str(&name), &f, e);
		if (!rc)
			render_view(f, &views[i], s->o->budget, b);
		*ret_mime = views[i].mime;
	}
	strbuf_done(&name);
	return rc;
}

void mcp_resources_read(struct mcp *s, const struct mcp_message *m, bool modern)
{
	static const char *const path[] = {"uri", NULL};
	struct strbuf uri = {0}, text = {0}, clean = {0};
	const char *mime = NULL;
	struct mcp_reply r;
	struct err e;
	int rc;

	if (!mcp_find_text(&m->params, path, &uri)) {
		mcp_reply_error(s, m->id, MCP_INVALID_PARAMS, "the uri is missing", NULL);
		strbuf_done(&uri);
		return;
	}
	rc = read_resource(s, strbuf_str(&uri), &text, &mime, &e);
	if (rc < 0) {
		mcp_reply_error(s, m->id,
				rc != -ENOENT ? MCP_INTERNAL
				: modern      ? MCP_INVALID_PARAMS
					      : MCP_NO_RESOURCE_OLD,
				e.msg, NULL);
	} else {
		mcp_reply_begin(s, &r, m->id, modern);
		json_write_key(&r.w, "contents");
		json_write_array(&r.w);
		json_write_object(&r.w);
		json_key_str(&r.w, "uri", uri.s);
		json_key_str(&r.w, "mimeType", mime);
		json_write_key(&r.w, "text");
		mcp_lean_lines(&clean, strbuf_str(&text), text.n, MCP_BUDGET_MAX * MCP_TOKEN_BYTES);
		json_write_raw(&r.w, clean.s, clean.n);
		json_write_object_end(&r.w);
		json_write_array_end(&r.w);
		mcp_reply_keep(&r, modern, MINUTE_MS, false);
		mcp_reply_end(&r);
	}
	strbuf_done(&uri);
	strbuf_done(&text);
	strbuf_done(&clean);
}

static const char prompt_name[] = "investigate_slow_job";
static const char prompt_title[] = "Find out why a job is slow";

void mcp_prompts_list(struct mcp *s, const struct mcp_message *m, bool modern)
{
	static const char *const arguments[][2] = {
	    {"symptom", "What is too slow, as its user sees it"},
	    {"file", "Name of the recording; without it the newest"}};
	struct mcp_reply r;

	mcp_reply_begin(s, &r, m->id, modern);
	json_write_key(&r.w, "prompts");
	json_write_array(&r.w);
	json_write_object(&r.w);
	json_key_str(&r.w, "name", prompt_name);
	json_key_str(&r.w, "description", prompt_title);
	json_write_key(&r.w, "arguments");
	json_write_array(&r.w);
	for (size_t i = 0; i < 2; i++) {
		json_write_object(&r.w);
		json_key_str(&r.w, "name", arguments[i][0]);
		json_key_str(&r.w, "description", arguments[i][1]);
		json_write_key(&r.w, "required");
		json_write_bool(&r.w, false);
		json_write_object_end(&r.w);
	}
	json_write_array_end(&r.w);
	json_write_object_end(&r.w);
	json_write_array_end(&r.w);
	mcp_reply_keep(&r, modern, DAY_MS, true);
	mcp_reply_end(&r);
}

static void write_prompt(const struct mcp_message *m, struct strbuf *b)
{
	static const char *const symptom[] = {"arguments", "symptom", NULL};
	static const char *const file[] = {"arguments", "file", NULL};
	struct strbuf said = {0}, name = {0};

	strbuf_add(b, "Find out why this job is slow, with the tools of witty-profiler.\n");
	if (mcp_find_text(&m->params, symptom, &said) && said.n)
		strbuf_addf(b, "What its user sees: %.400s\n", said.s);
	if (mcp_find_text(&m->params, file, &name) && name.n)
		strbuf_addf(b, "Look at the file '%.200s'.\n", name.s);
	strbuf_add(b, "1. summary: what was observed, for how long, and what could not be.\n"
		      "2. diagnose: findings, those that cost most time first. Look at the root of "
		      "each, not only at "
		      "who suffers.\n"
		      "3. evidence of the first finding: values, limits, the chain of waits to its "
		      "root, advice.\n"
		      "4. Where that does not settle it: explain_entity of the root, hot_threads, "
		      "query of waits, "
		      "wakes and flows.\n"
		      "Rules: take every number from an answer and give its unit. Who is busy is "
		      "not therefore the "
		      "cause: somebody must wait for it. What was not measured is unknown, not "
		      "fine: say so. Name one "
		      "root cause with its id, the evidence, what to change, and what to measure "
		      "afterwards.\n");
	strbuf_done(&said);
	strbuf_done(&name);
}

void mcp_prompts_get(struct mcp *s, const struct mcp_message *m, bool modern)
{
	static const char *const path[] = {"name", NULL};
	struct strbuf name = {0}, text = {0};
	struct mcp_reply r;

	if (!mcp_find_text(&m->params, path, &name) || strcmp(strbuf_str(&name), prompt_name)) {
		mcp_reply_error(s, m->id, MCP_INVALID_PARAMS, "there is no such prompt", NULL);
		strbuf_done(&name);
		return;
	}
	write_prompt(m, &text);
	mcp_reply_begin(s, &r, m->id, modern);
	json_key_str(&r.w, "description", prompt_title);
	json_write_key(&r.w, "messages");
	json_write_array(&r.w);
	json_write_object(&r.w);
	json_key_str(&r.w, "role", "user");
	json_write_key(&r.w, "content");
	json_write_object(&r.w);
	json_key_str(&r.w, "type", "text");
	json_key_str(&r.w, "text", text.s);
	json_write_object_end(&r.w);
	json_write_object_end(&r.w);
	json_write_array_end(&r.w);
	mcp_reply_end(&r);
	strbuf_done(&name);
	strbuf_done(&text);
}
