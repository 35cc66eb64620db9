/* NATS JetStream as the log: one stream, subjects STREAM.HOST, a durable consumer that its group shares. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "fleet/broker.h"
#include "fleet/fleet_json.h"
#include "fleet/nats.h"
#include "mem.h"

#define CONNECT_NS  (10 * NS_PER_SEC)
#define API_NS	    (10 * NS_PER_SEC)
#define DEDUPE_NS   (120 * NS_PER_SEC) /* the server's default: it knows an id for so long */
#define GUESS_BYTES (1u << 20)
#define HEAD_BYTES  1024 /* of a message, for its headers */

struct broker_js {
	struct broker base;
	struct broker_options o;
	struct broker_address a;
	VEC(struct url) servers;
	struct nats *n; /* NULL: not connected */
	bool prepared;	/* stream and consumer are there, as far as is known */
	unsigned silent; /* fetches in a row that got no answer at all */
};

static struct broker_js *js_of(struct broker *b)
{
	return (struct broker_js *)b;
}

static void drop(struct broker_js *b)
{
	nats_close(b->n);
	b->n = NULL;
	b->prepared = false;
}

static int connected(struct broker_js *b, uint64_t deadline_ns, struct err *e)
{
	struct nats_options o = {.servers = b->servers.v, .n = b->servers.n, .login = b->o.login};
	uint64_t most = clock_mono_ns() + CONNECT_NS;
	int rc;

	if (b->n)
		return 0;
	rc = nats_open(&b->n, &o, deadline_ns < most ? deadline_ns : most, e);
	if (rc < 0)
		/* What only holds for a message has to be told of one. */
		return rc == -EBADMSG ? -EPROTO : rc;
	b->base.connects++;
	b->base.payload_max = nats_payload_max(b->n) - HEAD_BYTES;
	b->silent = 0;
	return 0;
}

static int js_open(struct broker **ret, const struct broker_options *o, struct err *e)
{
	struct broker_js *b = mem_alloc(sizeof(*b));
	int rc;

	b->base = (struct broker){.backend = &broker_nats, .payload_max = GUESS_BYTES - HEAD_BYTES};
	b->o = *o;
	rc = broker_address_parse(o->address, &b->a, e);
	for (size_t i = 0; !rc && i < b->a.servers.n; i++) {
		char text[300];

		snprintf(text, sizeof(text), "%s://%s", b->a.scheme, b->a.servers.v[i]);
		rc = url_parse(text, vec_add(&b->servers), e);
	}
	if (rc < 0) {
		broker_close(&b->base);
		return rc;
	}
	*ret = &b->base;
	return 0;
}

static void js_close(struct broker *base)
{
	struct broker_js *b = js_of(base);

	drop(b);
	vec_done(&b->servers);
	broker_address_done(&b->a);
	free(b);
}

/* Subjects have no dots within a name. */
static void subject_of(const struct broker_js *b, const char *host, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s.%s", b->a.name, *host ? host : "_");

	for (char *s = ret + strlen(b->a.name) + 1; n > 0 && *s; s++)
		if (strchr(".*> \t\r\n", *s))
			*s = '_';
}

/* An answer of JetStream. @return 0 or what its error means */
static int verdict(const char *json, const char *what, struct err *e)
{
	uint64_t code = fleet_json_u64(json, "error.code", 0), precise = fleet_json_u64(json, "error.err_code", 0);
	char text[200];

	if (!code)
		return 0;
	fleet_json_text(json, "error.description", text, sizeof(text));
	/* 10054: larger than the stream takes. */
	err_msg(e, precise == 10054 ? -EBADMSG : code == 404 ? -ENOENT : -EAGAIN, "NATS: %s: %s", what, text);
	return e->code;
}

static int publish_once(struct broker_js *b, const char *subject, const char *headers, const void *data, size_t n,
			uint64_t deadline_ns, struct err *e)
{
	struct nats_message m;
	int rc = connected(b, deadline_ns, e);

	if (rc < 0)
		return rc;
	if (n > b->base.payload_max)
		return err_msg(e, -EMSGSIZE, "NATS: %zu bytes, and the server takes %zu", n, b->base.payload_max);
	rc = nats_request(b->n, subject, headers, data, n, &m, deadline_ns, e);
	if (rc == -ENOENT) {
		err_msg(e, rc, "NATS: no stream takes '%.200s'", subject);
		return err_hint(e, "fleet makes one");
	}
	if (rc < 0) {
		drop(b);
		return rc;
	}
	rc = verdict(m.data, "publish", e);
	if (!rc && !fleet_json_u64(m.data, "seq", 0))
		rc = err_msg(e, -EPROTO, "NATS: an acknowledgement without a number");
	return rc;
}

static int js_publish(struct broker *base, const char *host, const char *id, const void *data, size_t n,
		      uint64_t deadline_ns, struct err *e)
{
	struct broker_js *b = js_of(base);
	char subject[200], headers[200];
	bool was_open = b->n;
	int rc;

	subject_of(b, host, subject, sizeof(subject));
	snprintf(headers, sizeof(headers), "Nats-Msg-Id: %s\r\n", id);
	rc = publish_once(b, subject, headers, data, n, deadline_ns, e);
	/* A connection that lay idle may have ended unnoticed: that is no failure yet. */
	if (rc < 0 && was_open && !b->n)
		rc = publish_once(b, subject, headers, data, n, deadline_ns, e);
	return rc;
}

static int api(struct broker_js *b, const char *what, const char *body, struct nats_message *m, struct err *e)
{
	char subject[300];
	int rc;

	snprintf(subject, sizeof(subject), "$JS.API.%s", what);
	rc = nats_request(b->n, subject, "", body, strlen(body), m, clock_mono_ns() + API_NS, e);
	if (rc == -ENOENT)
		return err_msg(e, -ENOTSUP, "NATS: the server has no JetStream");
	return rc ?: verdict(m->data, what, e);
}

static int make_stream(struct broker_js *b, struct err *e)
{
	struct nats_message m;
	char what[128], body[512];
	int rc;

	snprintf(what, sizeof(what), "STREAM.INFO.%s", b->a.name);
	rc = api(b, what, "", &m, e);
	if (rc != -ENOENT)
		return rc;
	snprintf(what, sizeof(what), "STREAM.CREATE.%s", b->a.name);
	snprintf(body, sizeof(body),
		 "{\"name\":\"%s\",\"subjects\":[\"%s.>\"],\"retention\":\"limits\",\"discard\":\"old\",\"storage\":\"file\","
		 "\"num_replicas\":%" PRIu32 ",\"max_age\":%" PRIu64 ",\"max_bytes\":%" PRIu64 ",\"max_consumers\":-1,"
		 "\"max_msgs\":-1,\"duplicate_window\":%llu}",
		 b->a.name, b->a.name, b->o.replicas ?: 1, b->o.keep_ns, b->o.keep_bytes,
		 b->o.keep_ns && b->o.keep_ns < DEDUPE_NS ? (unsigned long long)b->o.keep_ns
							   : (unsigned long long)DEDUPE_NS);
	return api(b, what, body, &m, e);
}

static int make_consumer(struct broker_js *b, struct err *e)
{
	struct nats_message m;
	char what[256], body[512];

	snprintf(what, sizeof(what), "CONSUMER.DURABLE.CREATE.%s.%s", b->a.name, b->o.group);
	snprintf(body, sizeof(body),
		 "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"%s\",\"deliver_policy\":\"all\","
		 "\"ack_policy\":\"explicit\",\"ack_wait\":%" PRIu64 ",\"max_deliver\":-1,\"max_ack_pending\":4096,"
		 "\"replay_policy\":\"instant\"}}",
		 b->a.name, b->o.group, b->o.ack_wait_ns);
	return api(b, what, body, &m, e);
}

static int prepare(struct broker_js *b, struct err *e)
{
	int rc = connected(b, clock_mono_ns() + CONNECT_NS, e);

	if (rc < 0 || b->prepared)
		return rc;
	rc = make_stream(b, e);
	rc = rc ?: make_consumer(b, e);
	b->prepared = !rc;
	return rc;
}

/* "$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQ.SEQ.TIME.PENDING", in newer servers with two words more behind ACK. */
static void read_handle(const char *handle, uint64_t *ret_stored_ns, uint64_t *ret_pending)
{
	const char *word[12];
	size_t n = 0;

	for (const char *s = handle; s && n < 12; s = strchr(s, '.')) {
		s += *s == '.';
		word[n++] = s;
	}
	*ret_stored_ns = n == 9 ? strtoull(word[7], NULL, 10) : n == 12 ? strtoull(word[9], NULL, 10) : 0;
	*ret_pending = n == 9 ? strtoull(word[8], NULL, 10) : n == 12 ? strtoull(word[10], NULL, 10) : UINT64_MAX;
}

static void take(struct deliveries *ret, const struct nats_message *m)
{
	struct delivery d = {.data = mem_alloc(m->n + 1), .n = m->n, .handle = mem_strdup(m->reply)};

	memcpy(d.data, m->data, m->n);
	read_handle(d.handle, &d.stored_ns, &ret->pending);
	vec_push(&ret->v, d);
}

/* Ask once. @return 1: it was answered, 0: it was not, or -errno */
static int pull(struct broker_js *b, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e)
{
	char subject[256], body[128], inbox[96];
	uint64_t deadline = clock_mono_ns() + wait_ns + API_NS / 2;
	struct nats_message m;
	size_t got = 0;
	int rc;

	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", b->a.name, b->o.group);
	if (wait_ns)
		snprintf(body, sizeof(body), "{\"batch\":%zu,\"expires\":%" PRIu64 "}", most, wait_ns);
	else
		snprintf(body, sizeof(body), "{\"batch\":%zu,\"no_wait\":true}", most);
	snprintf(inbox, sizeof(inbox), "%s", nats_inbox(b->n));
	rc = nats_publish(b->n, subject, inbox, "", body, strlen(body), deadline, e);
	while (!rc && got < most) {
		rc = nats_next(b->n, &m, deadline, e);
		if (rc <= 0)
			return rc;
		rc = 0;
		/* Messages keep the subject that they were published with; word of a request comes to its inbox. */
		if (!strncmp(m.reply, "$JS.ACK.", 8)) {
			take(ret, &m);
			got++;
		} else if (strcmp(m.subject, inbox)) {
			continue;
		} else if (m.status == 409 || m.status == 503) {
			b->prepared = false;
			return m.status == 503 ? err_msg(e, -EAGAIN, "NATS: the consumer is not there") : 1;
		} else if (m.status != 100) {
			return 1;
		}
	}
	return rc ?: 1;
}

static int js_fetch(struct broker *base, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e)
{
	struct broker_js *b = js_of(base);
	int rc = prepare(b, e);

	if (!rc) {
		rc = pull(b, most, 0, ret, e);
		if (rc > 0 && !ret->v.n) {
			ret->pending = 0;
			rc = pull(b, 1, wait_ns, ret, e);
		}
		/* While the group's leader is being elected nobody answers; a server that is cut off never does. */
		b->silent = rc ? 0 : b->silent + 1;
		if (!rc && b->silent >= 2)
			rc = err_msg(e, -ETIMEDOUT, "NATS: the server does not answer");
	}
	if (rc < 0)
		drop(b);
	/* What came before a failure is as good as any other. */
	return ret->v.n || rc > 0 ? 0 : rc;
}

static int js_ack(struct broker *base, const struct deliveries *d, struct err *e)
{
	struct broker_js *b = js_of(base);
	int rc = 0;

	if (!b->n)
		return err_msg(e, -ENOTCONN, "NATS: the connection ended before the acknowledgement");
	vec_for(&d->v, it)
		rc = rc ?: nats_publish(b->n, it->handle, "", "", "+ACK", 4, clock_mono_ns() + API_NS, e);
	if (rc < 0)
		drop(b);
	return rc;
}

const struct broker_backend broker_nats = {.schemes = "|nats|tls|", .open = js_open, .close = js_close,
					   .publish = js_publish, .fetch = js_fetch, .ack = js_ack};
