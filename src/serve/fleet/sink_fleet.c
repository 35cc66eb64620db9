/* A subscriber that publishes snapshots and findings to a broker, for a fleet. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "fleet/broker.h"
#include "fleet/fleet_message.h"
#include "fleet/fleet_trim.h"
#include "fleet/publisher.h"
#include "hosts.h"
#include "mem.h"
#include "server.h"
#include "sink.h"

#define TIMEOUT_NS (10 * NS_PER_SEC)
#define HEAD_BYTES 512 /* most that the line in front takes */

struct publisher {
	struct broker *broker;
	char run[24];
	uint64_t seq;
};

void publisher_free(struct publisher *p)
{
	if (!p)
		return;
	broker_close(p->broker);
	free(p);
}

static int check(struct sink_settings *o, const struct sink_limits *l, struct err *e)
{
	struct broker_options b = {.address = o->url_text, .login = l->login, .settings = l->broker_settings,
				   .nsettings = l->nbroker_settings};
	struct publisher *p;
	uint64_t random;
	int rc;

	/* Whoever may give orders here is not thereby allowed to send everything elsewhere. */
	if (!l->trusted)
		return err_msg(e, -EACCES, "only the operator names brokers of a fleet: serve --publish");
	p = mem_alloc(sizeof(*p));
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = clock_real_ns();
	snprintf(p->run, sizeof(p->run), "%016" PRIx64, random);
	rc = broker_open(&p->broker, &b, e);
	if (rc < 0) {
		publisher_free(p);
		return rc;
	}
	o->publisher = p;
	return 0;
}

static void copy_text(char *ret, size_t size, const char *text)
{
	snprintf(ret, size, "%s", text ?: "");
}

static void name_host(struct fleet_message *m, const struct graph *g)
{
	struct host_identity id = host_identity_of(g);
	char own[64] = "";

	gethostname(own, sizeof(own) - 1);
	copy_text(m->host, sizeof(m->host), id.host_id ?: id.hostname ?: own);
	for (char *s = m->host; *s; s++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-", *s))
			*s = '_';
	m->host[64] = '\0';
	if (!m->host[0])
		strcpy(m->host, "host");
	copy_text(m->boot, sizeof(m->boot), id.boot_id);
}

static void render(const struct sink_settings *o, struct server *s, struct snapshot *snap, struct strbuf *b)
{
	struct snapshot *analysed = board_analysed(s->board);
	const struct strbuf *findings = NULL;
	struct fleet_message m = {.seq = ++o->publisher->seq, .start_ns = snap->start_ns, .end_ns = snap->end_ns,
				  .interval_ns = o->interval_ns, .part = 1, .parts = 1};
	struct strbuf packed = {0};
	enum encoding plain;
	struct graph part;

	copy_text(m.run, sizeof(m.run), o->publisher->run);
	if (analysed)
		findings = snapshot_text(analysed, RENDER_FINDINGS, NULL, NULL, ENCODING_PLAIN, &plain);
	graph_init(&part);
	pthread_mutex_lock(&snap->lock);
	name_host(&m, &snap->g);
	fleet_trim(&snap->g, s->o->publish_entities ?: SIZE_MAX, &part);
	pthread_mutex_unlock(&snap->lock);
	fleet_pack(&part, findings && findings->n ? findings->s : NULL, &packed);
	graph_done(&part);
	m.payload = packed.s;
	m.n = packed.n;
	fleet_message_write(&m, b);
	strbuf_done(&packed);
	snapshot_unref(analysed);
}

static int publish(struct publisher *p, const struct fleet_message *m, struct err *e)
{
	struct strbuf b = {0};
	char id[256];
	int rc;

	fleet_message_write(m, &b);
	fleet_message_id(m, id, sizeof(id));
	rc = broker_publish(p->broker, m->host, id, b.s, b.n, clock_mono_ns() + TIMEOUT_NS, e);
	strbuf_done(&b);
	return rc;
}

/* In as many parts as the broker makes it. */
static int publish_parts(struct publisher *p, const struct fleet_message *whole, struct err *e)
{
	size_t most = p->broker->payload_max > 2 * HEAD_BYTES ? p->broker->payload_max - HEAD_BYTES : HEAD_BYTES;
	size_t parts = whole->n ? (whole->n + most - 1) / most : 1;
	int rc = 0;

	if (parts > FLEET_PARTS_MAX)
		return err_msg(e, -EBADMSG, "%zu bytes, and the broker takes %zu at once", whole->n, most);
	for (size_t i = 0; !rc && i < parts; i++) {
		struct fleet_message m = *whole;

		m.part = (uint32_t)i + 1;
		m.parts = (uint32_t)parts;
		m.payload = whole->payload + i * most;
		m.n = whole->n - i * most < most ? whole->n - i * most : most;
		rc = publish(p, &m, e);
	}
	return rc;
}

static int deliver(const struct sink_settings *o, const struct sink_limits *l, const struct strbuf *b, struct err *e)
{
	struct fleet_message m;
	int rc = fleet_message_read(&m, b->s, b->n, e);

	(void)l;
	rc = rc ?: publish_parts(o->publisher, &m, e);
	/* What it takes at once is known only now. */
	if (rc == -EMSGSIZE)
		rc = publish_parts(o->publisher, &m, e);
	return rc;
}

const struct sink_kind sink_fleet = {.name = "FleetPublisher", .doc = "snapshots and findings to a broker, for a fleet",
				     .takes_url = true, .takes_broker = true, .remote = true, .check = check,
				     .render = render, .deliver = deliver};
