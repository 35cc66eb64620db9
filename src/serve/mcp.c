/* The server for agents: lines in, replies out, one request at a time. */
#include "mcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp_server.h"

static void line_done(struct mcp_line *l)
{
	vec_for(&l->messages, m)
		mcp_message_done(m);
	vec_done(&l->messages);
}

static void on_message(void *ctx, struct mcp_message *m)
{
	struct mcp_line *l = ctx;

	vec_push(&l->messages, *m);
}

/* A request that waits and has that id is not answered at all. */
static void cancel(struct mcp *s, const struct mcp_message *m)
{
	static const char *const path[] = {"requestId", NULL};
	struct strbuf id = {0};

	if (!mcp_find(&m->params, path, &id)) {
		strbuf_done(&id);
		return;
	}
	vec_for(&s->queue, l)
		vec_for(&l->messages, x)
			if (x->id && x->method && !strcmp(x->id, id.s) &&
			    strcmp(x->method, "initialize"))
				mcp_message_done(x);
	for (size_t i = 0; i < s->subscriptions.n; i++)
		if (!strcmp(s->subscriptions.v[i], id.s)) {
			free(s->subscriptions.v[i]);
			s->subscriptions.v[i] = s->subscriptions.v[--s->subscriptions.n];
			break;
		}
	if (s->recording.pid && !strcmp(s->recording.id, id.s))
		mcp_record_cancel(s);
	strbuf_done(&id);
}

static void take_line(struct mcp *s, const char *line, size_t n)
{
	struct mcp_line l = {.bytes = n};

	while (n && (line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	if (!n)
		return;
	l.array = mcp_parse(line, n, on_message, &l);
	/* Cancelling is for what waits: it must not wait itself. */
	vec_for(&l.messages, m)
		if (!m->error && !m->id && m->method &&
		    !strcmp(m->method, "notifications/cancelled"))
			cancel(s, m);
	vec_push(&s->queue, l);
	s->waiting += l.bytes;
}

static void take(struct mcp *s, const char *p, size_t n)
{
	while (n) {
		const char *end = memchr(p, '\n', n);
		size_t some = end ? (size_t)(end - p) : n;

		if (!s->too_long && s->part.n + some > MCP_LINE_MAX) {
			s->too_long = true;
			mcp_reply_error(s, NULL, MCP_INVALID_REQUEST,
					"the line is too long: 1 MiB is the most", NULL);
		}
		if (s->too_long)
			strbuf_clear(&s->part);
		else
			strbuf_addn(&s->part, p, some);
		if (!end)
			return;
		if (!s->too_long)
			take_line(s, strbuf_str(&s->part), s->part.n);
		s->too_long = false;
		strbuf_clear(&s->part);
		p += some + 1;
		n -= some + 1;
	}
}

/* All that is there already, so that a cancellation is seen before what it cancels is begun. */
static void read_input(struct mcp *s, int in, int timeout_ms)
{
	char buffer[65536];

	while (!s->ended && s->waiting < MCP_WAITING_MAX) {
		struct pollfd p[2] = {
		    {.fd = in, .events = POLLIN},
		    {.fd = s->recording.pid ? s->recording.messages : -1, .events = POLLIN}};
		ssize_t n;

		if (poll(p, 2, timeout_ms) <= 0)
			return;
		if (!p[0].revents)
			return;
		n = read(in, buffer, sizeof(buffer));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		/* A line without an end is no message. */
		s->ended = n <= 0;
		if (n > 0)
			take(s, buffer, (size_t)n);
		timeout_ms = 0;
	}
}

static bool takes_batches(const struct mcp *s)
{
	return s->handshake && strcmp(s->handshake, "2025-03-26") <= 0;
}

static void handle_batch(struct mcp *s, struct mcp_line *l)
{
	struct strbuf replies = {0};

	if (!takes_batches(s) || !l->messages.n) {
		mcp_reply_error(
		    s, NULL, MCP_INVALID_REQUEST,
		    l->messages.n
			? "several messages in one line: only revisions before 2025-06-18 "
			  "have that, after their handshake"
			: "an array without a message",
		    NULL);
		return;
	}
	s->batch = &replies;
	vec_for(&l->messages, m)
		mcp_handle(s, m);
	s->batch = NULL;
	if (replies.n) {
		struct strbuf line = {0};

		strbuf_addf(&line, "[%s]", replies.s);
		mcp_write_line(s, &line);
		strbuf_done(&line);
	}
	strbuf_done(&replies);
}

static void handle_next(struct mcp *s)
{
	struct mcp_line l = s->queue.v[0];

	memmove(s->queue.v, s->queue.v + 1, (s->queue.n - 1) * sizeof(l));
	s->queue.n--;
	s->waiting -= l.bytes;
	if (l.array)
		handle_batch(s, &l);
	else
		mcp_handle(s, &l.messages.v[0]);
	line_done(&l);
}

static void loop(struct mcp *s, int in)
{
	while (!s->failed && (!s->ended || s->queue.n)) {
		read_input(s, in, s->queue.n ? 0 : s->recording.pid ? 500 : -1);
		if (s->recording.pid)
			mcp_record_poll(s);
		if (s->queue.n)
			handle_next(s);
	}
}

/* Who listened for changes learns that none will come. */
static void end_subscriptions(struct mcp *s)
{
	vec_for(&s->subscriptions, id) {
		mcp_reply_closed(s, *id);
		free(*id);
	}
	vec_done(&s->subscriptions);
}

int mcp_serve(const struct mcp_options *o, int in, int out, struct err *e)
{
	struct mcp s = {.o = o, .out = out};
	int rc = 0;

	for (size_t i = 0; i < o->n_files && !rc; i++)
		rc = mcp_files_add(&s.files, o->files[i], e);
	if (!rc) {
		loop(&s, in);
		if (s.recording.pid)
			mcp_record_cancel(&s);
		end_subscriptions(&s);
		/* Whoever closed the pipe has read enough. */
		if (s.failed && s.failed != -EPIPE)
			rc = err_set(e, s.failed, "write a reply");
	}
	vec_for(&s.queue, l)
		line_done(l);
	vec_done(&s.queue);
	strbuf_done(&s.part);
	mcp_files_done(&s.files);
	return rc;
}
