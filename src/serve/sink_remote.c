/* Subscribers elsewhere: HTTP, OTLP and NATS. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "clock.h"
#include "json.h"
#include "metrics.h"
#include "server.h"
#include "sink.h"

#define TIMEOUT_NS (10 * NS_PER_SEC)
#define NATS_LINE  4096

static int check_target(struct sink_settings *o, const struct sink_limits *l, struct err *e)
{
	if (url_allowed(&o->url, l->targets, l->ntargets))
		return 0;
	return err_msg(e, -EACCES, "url: this target is not one of those that --allow-target names");
}

static void render_post(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	(void)s;
	strbuf_add(b, "{\"data\":");
	graph_content(snap, b);
	if (o->extra)
		strbuf_addf(b, ",%s", o->extra);
	strbuf_addc(b, '}');
}

static int post(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b, struct err *e)
{
	int status = http_request("POST", &o->url, "Content-Type: application/json\r\n", strbuf_str(b), b->n, l->ca_file,
				  clock_mono_ns() + TIMEOUT_NS, NULL, 0, e);

	if (status < 0)
		return status == -EBADMSG ? -EIO : status;
	if (status >= 200 && status < 300)
		return 0;
	/* What was refused for what it is will be refused again. */
	if (status >= 400 && status < 500 && status != 408 && status != 425 && status != 429)
		return err_msg(e, -EBADMSG, "answered %d", status);
	return err_msg(e, -EIO, "answered %d", status);
}

static void render_otlp(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	char host[256] = "";
	struct metrics m;

	(void)o;
	(void)snap;
	gethostname(host, sizeof(host) - 1);
	metrics_init(&m, s);
	metrics_otlp(&m, host, b);
	metrics_done(&m);
}

static void render_nats(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	(void)o;
	strbuf_addf(b, "{\"env\":%s,\"snapshot\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"content\":", s->env,
		    (unsigned long long)snap->seq, (unsigned long long)snap->start_ns,
		    (unsigned long long)snap->end_ns);
	graph_content(snap, b);
	strbuf_addc(b, '}');
}

/* A line without CR LF. @return its length, or -errno */
static int read_line(struct stream *st, char *ret, size_t size, struct err *e)
{
	size_t n = 0;

	while (n + 1 < size) {
		ssize_t k = stream_read(st, ret + n, 1, e);

		if (k < 0)
			return (int)k;
		if (!k)
			return err_msg(e, -EPIPE, "NATS: the server hung up");
		if (ret[n] == '\n') {
			ret[n && ret[n - 1] == '\r' ? n - 1 : n] = '\0';
			return (int)n;
		}
		n++;
	}
	return err_msg(e, -EPROTO, "NATS: a line is too long");
}

/* The member of INFO's object. */
static uint64_t info_number(const char *info, const char *name, uint64_t absent)
{
	struct json_reader *r = json_reader_new_mem(info, strlen(info), "INFO", NULL);
	uint64_t v = absent;
	struct err e;
	int t = json_next(r, &e);

	while (t == JSON_OBJECT || t > JSON_EOF) {
		t = json_next(r, &e);
		if (t != JSON_KEY)
			break;
		if (json_is(r, name) && json_next(r, &e) == JSON_NUMBER)
			json_get_u64(r, &v);
		else if (json_token(r) == JSON_KEY && json_skip(r, JSON_KEY, &e) < 0)
			break;
	}
	json_reader_free(r);
	return v;
}

/* Until the server has answered a PING, so that all before it has arrived. */
static int await_pong(struct stream *st, struct err *e)
{
	char own[NATS_LINE];
	int rc;

	for (;;) {
		rc = read_line(st, own, sizeof(own), e);
		if (rc < 0)
			return rc;
		if (!strcmp(own, "PONG"))
			return 0;
		if (!strcmp(own, "PING"))
			rc = stream_write(st, "PONG\r\n", 6, e);
		else if (!strncmp(own, "-ERR", 4))
			rc = err_msg(e, strstr(own, "Maximum Payload") ? -EBADMSG : -EIO, "NATS: %.100s", own);
		if (rc < 0)
			return rc;
	}
}

static int publish(struct stream *st, const struct sink_settings *o, const struct sink_limits *l,
		   const struct strbuf *b, const char *info, struct err *e)
{
	uint64_t most = info_number(info, "max_payload", 1048576);
	const char *subject = o->subject ?: "witty.graph";
	struct strbuf packed = {0}, head = {0};
	const struct strbuf *body = b;
	int rc;

	strbuf_add(&head, "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"witty-profiler\",\"lang\":\"c\","
			  "\"version\":\"" WITTY_VERSION "\",\"protocol\":1");
	if (l->nats_token) {
		strbuf_add(&head, ",\"auth_token\":");
		json_quote(&head, l->nats_token, strlen(l->nats_token), 0);
	}
	strbuf_add(&head, "}\r\n");
	/* gzip begins with bytes that no JSON begins with. */
	if (b->n > most && encoding_pack(ENCODING_GZIP, b, &packed))
		body = &packed;
	if (body->n > most) {
		rc = err_msg(e, -EBADMSG, "NATS: %zu bytes, and the server takes %llu", body->n, (unsigned long long)most);
	} else {
		strbuf_addf(&head, "PUB %s %zu\r\n", subject, body->n);
		rc = stream_write(st, head.s, head.n, e);
		rc = rc ?: stream_write(st, body->s, body->n, e);
		rc = rc ?: stream_write(st, "\r\nPING\r\n", 8, e);
		rc = rc ?: await_pong(st, e);
	}
	if (head.s)
		explicit_bzero(head.s, head.n);
	strbuf_done(&head);
	strbuf_done(&packed);
	return rc;
}

static int deliver_nats(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b,
			struct err *e)
{
	char info[8192];
	struct stream *st = NULL;
	int rc = stream_open(&st, &o->url, clock_mono_ns() + TIMEOUT_NS, e);

	if (!rc)
		rc = read_line(st, info, sizeof(info), e);
	if (rc >= 0 && strncmp(info, "INFO ", 5))
		rc = err_msg(e, -EPROTO, "NATS: the server does not say INFO");
	if (rc >= 0 && !strcmp(o->url.scheme, "tls"))
		rc = stream_secure(st, &o->url, l->ca_file, e);
	if (rc >= 0)
		rc = publish(st, o, l, b, info + 5, e);
	stream_close(st);
	return rc < 0 ? rc : 0;
}

const struct sink_kind sink_http = {.name = "HttpPostGraphSubscriber", .doc = "POST of the graph as JSON",
				    .takes_url = true, .schemes = "http|https", .remote = true,
				    .check = check_target, .render = render_post, .deliver = post};
const struct sink_kind sink_otlp = {.name = "OtlpMetricsSubscriber", .doc = "POST of figures as OTLP in JSON",
				    .takes_url = true, .schemes = "http|https", .remote = true,
				    .check = check_target, .render = render_otlp, .deliver = post};
const struct sink_kind sink_nats = {.name = "NatsGraphSubscriber", .doc = "the graph as JSON to a subject of NATS",
				    .takes_url = true, .takes_subject = true, .schemes = "nats|tls", .remote = true,
				    .check = check_target, .render = render_nats, .deliver = deliver_nats};
