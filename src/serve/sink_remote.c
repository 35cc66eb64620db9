/* Subscribers elsewhere: HTTP, OTLP and NATS. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "clock.h"
#include "fleet/nats.h"
#include "metrics.h"
#include "server.h"
#include "sink.h"

#define TIMEOUT_NS (10 * NS_PER_SEC)

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
	int status = http_request("POST", &o->url, "Content-Type: application/json\r\n", strbuf_str(b), b->n, &l->login,
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

static int deliver_nats(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b,
			struct err *e)
{
	struct nats_options to = {.servers = &o->url, .n = 1, .login = l->login, .only_sends = true};
	uint64_t deadline = clock_mono_ns() + TIMEOUT_NS;
	struct strbuf packed = {0};
	const struct strbuf *body = b;
	struct nats *n = NULL;
	size_t most;
	int rc = nats_open(&n, &to, deadline, e);

	if (rc < 0)
		/* Only what is sent can be too large for ever. */
		return rc == -EBADMSG ? -EPROTO : rc;
	most = nats_payload_max(n);
	/* gzip begins with bytes that no JSON begins with. */
	if (b->n > most && encoding_pack(ENCODING_GZIP, b, &packed))
		body = &packed;
	if (body->n > most)
		rc = err_msg(e, -EBADMSG, "NATS: %zu bytes, and the server takes %zu", body->n, most);
	rc = rc ?: nats_publish(n, o->subject ?: "witty.graph", "", "", body->s, body->n, deadline, e);
	rc = rc ?: nats_flush(n, deadline, e);
	nats_close(n);
	strbuf_done(&packed);
	return rc;
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
