/* Replies: results and errors as lines. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mcp_server.h"

void mcp_write_line(struct mcp *s, struct strbuf *line)
{
	if (s->batch) {
		if (s->batch->n)
			strbuf_addc(s->batch, ',');
		strbuf_addn(s->batch, line->s, line->n);
		return;
	}
	strbuf_addc(line, '\n');
	for (size_t at = 0; !s->failed && at < line->n;) {
		ssize_t n = write(s->out, line->s + at, line->n - at);

		if (n < 0 && errno != EINTR)
			s->failed = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
}

/* The older revisions want null where no id could be read, the newer ones nothing. */
static void write_id(struct mcp *s, struct json_writer *w, const char *id)
{
	bool old = s->handshake && strcmp(s->handshake, "2025-11-25") < 0;

	if (!id && !old)
		return;
	json_write_key(w, "id");
	if (id)
		json_write_raw(w, id, strlen(id));
	else
		json_write_null(w);
}

void mcp_write_server(struct json_writer *w)
{
	json_write_object(w);
	json_key_str(w, "name", "witty-profiler");
	json_key_str(w, "title", "witty-profiler");
	json_key_str(w, "version", WITTY_VERSION);
	json_write_object_end(w);
}

static void begin(struct mcp *s, struct mcp_reply *r, const char *id, bool modern,
		  bool subscription)
{
	r->s = s;
	r->line = (struct strbuf){0};
	json_writer_init_strbuf(&r->w, &r->line, 0);
	json_write_object(&r->w);
	json_key_str(&r->w, "jsonrpc", "2.0");
	write_id(s, &r->w, id);
	json_write_key(&r->w, "result");
	json_write_object(&r->w);
	if (!modern)
		return;
	json_key_str(&r->w, "resultType", "complete");
	json_write_key(&r->w, "_meta");
	json_write_object(&r->w);
	json_write_key(&r->w, "io.modelcontextprotocol/serverInfo");
	mcp_write_server(&r->w);
	if (subscription) {
		json_write_key(&r->w, "io.modelcontextprotocol/subscriptionId");
		json_write_raw(&r->w, id, strlen(id));
	}
	json_write_object_end(&r->w);
}

void mcp_reply_begin(struct mcp *s, struct mcp_reply *r, const char *id, bool modern)
{
	begin(s, r, id, modern, false);
}

void mcp_reply_closed(struct mcp *s, const char *id)
{
	struct mcp_reply r;

	begin(s, &r, id, true, true);
	mcp_reply_end(&r);
}

void mcp_reply_keep(struct mcp_reply *r, bool modern, uint64_t ttl_ms, bool for_all)
{
	if (!modern)
		return;
	json_key_u64(&r->w, "ttlMs", ttl_ms);
	json_key_str(&r->w, "cacheScope", for_all ? "public" : "private");
}

void mcp_reply_end(struct mcp_reply *r)
{
	struct err e;

	json_write_object_end(&r->w);
	json_write_object_end(&r->w);
	json_writer_finish(&r->w, &e);
	mcp_write_line(r->s, &r->line);
	strbuf_done(&r->line);
}

void mcp_reply_error(struct mcp *s, const char *id, int code, const char *message, const char *data)
{
	struct strbuf line = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &line, 0);
	json_write_object(&w);
	json_key_str(&w, "jsonrpc", "2.0");
	write_id(s, &w, id);
	json_write_key(&w, "error");
	json_write_object(&w);
	json_write_key(&w, "code");
	json_write_i64(&w, code);
	json_key_str(&w, "message", message);
	if (data) {
		json_write_key(&w, "data");
		json_write_raw(&w, data, strlen(data));
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	mcp_write_line(s, &line);
	strbuf_done(&line);
}

void mcp_notify(struct mcp *s, const char *method, const char *params)
{
	struct strbuf line = {0}, *batch = s->batch;

	strbuf_addf(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}", method, params);
	s->batch = NULL;
	mcp_write_line(s, &line);
	s->batch = batch;
	strbuf_done(&line);
}

void mcp_reply_answer(struct mcp *s, const char *id, bool modern, const struct mcp_answer *a)
{
	bool as_text = !a->failed && a->carry != MCP_STRUCTURED;
	struct mcp_reply r;

	mcp_reply_begin(s, &r, id, modern);
	json_write_key(&r.w, "content");
	json_write_array(&r.w);
	json_write_object(&r.w);
	json_key_str(&r.w, "type", "text");
	json_key_str(&r.w, "text", strbuf_str(as_text ? &a->body : &a->text));
	json_write_object_end(&r.w);
	json_write_array_end(&r.w);
	if (!a->failed && a->carry != MCP_TEXT) {
		json_write_key(&r.w, "structuredContent");
		json_write_raw(&r.w, a->body.s, a->body.n);
	}
	if (a->failed) {
		json_write_key(&r.w, "isError");
		json_write_bool(&r.w, true);
	}
	mcp_reply_end(&r);
}
