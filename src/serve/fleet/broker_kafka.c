/* Kafka as the log, by librdkafka: an idempotent producer; members of a consumer group that commit what is stored. */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fleet/broker.h"
#include "mem.h"

#define TEXT 512
#define SESSION_LEAST_NS (6 * NS_PER_SEC) /* group.min.session.timeout.ms of brokers */

struct broker_rk {
	struct broker base;
	struct broker_address a;
	rd_kafka_t *k;
	bool fetches;
	/* Of the message that is under way. */
	bool done;
	rd_kafka_resp_err_t result;
};

static struct broker_rk *rk_of(struct broker *b)
{
	return (struct broker_rk *)b;
}

static void on_delivery(rd_kafka_t *k, const rd_kafka_message_t *m, void *ctx)
{
	struct broker_rk *b = ctx;

	(void)k;
	/* Of an attempt that was given up there may be late word. */
	if (m->_private != (void *)b)
		return;
	b->done = true;
	b->result = m->err;
}

static int set(rd_kafka_conf_t *c, const char *name, const char *value, struct err *e)
{
	char why[TEXT];

	if (!value || rd_kafka_conf_set(c, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
		return 0;
	return err_msg(e, -EINVAL, "Kafka: %.300s", why);
}

static int set_pair(rd_kafka_conf_t *c, const char *pair, struct err *e)
{
	const char *sign = strchr(pair, '=');
	char name[128];

	if (!sign || (size_t)(sign - pair) >= sizeof(name))
		return err_msg(e, -EINVAL, "'%.100s' is no NAME=VALUE", pair);
	snprintf(name, sizeof(name), "%.*s", (int)(sign - pair), pair);
	return set(c, name, sign + 1, e);
}

static int configure(struct broker_rk *b, rd_kafka_conf_t *c, const struct broker_options *o, struct err *e)
{
	char *servers = mem_strdup(""), wait_ms[24];
	int rc = 0;

	vec_for(&b->a.servers, s) {
		size_t n = strlen(servers);

		servers = mem_realloc(servers, n + strlen(*s) + 2);
		sprintf(servers + n, "%s%s", n ? "," : "", *s);
	}
	rc = set(c, "bootstrap.servers", servers, e);
	rc = rc ?: set(c, "client.id", "witty-profiler", e);
	rc = rc ?: set(c, "log_level", "0", e);
	if (o->login.user) {
		rc = rc ?: set(c, "sasl.mechanism", "PLAIN", e);
		rc = rc ?: set(c, "security.protocol", o->login.ca_file ? "sasl_ssl" : "sasl_plaintext", e);
		rc = rc ?: set(c, "sasl.username", o->login.user, e);
		rc = rc ?: set(c, "sasl.password", o->login.password, e);
	} else if (o->login.ca_file) {
		rc = rc ?: set(c, "security.protocol", "ssl", e);
	}
	rc = rc ?: set(c, "ssl.ca.location", o->login.ca_file, e);
	rc = rc ?: set(c, "ssl.certificate.location", o->login.cert_file, e);
	rc = rc ?: set(c, "ssl.key.location", o->login.key_file, e);
	if (o->group) {
		rc = rc ?: set(c, "group.id", o->group, e);
		rc = rc ?: set(c, "enable.auto.commit", "false", e);
		/* After so long without a sign of life the others get what a member had. */
		snprintf(wait_ms, sizeof(wait_ms), "%llu",
			 (unsigned long long)((o->ack_wait_ns < SESSION_LEAST_NS ? SESSION_LEAST_NS : o->ack_wait_ns) / NS_PER_MS));
		rc = rc ?: set(c, "session.timeout.ms", wait_ms, e);
		rc = rc ?: set(c, "auto.offset.reset", "earliest", e);
		rc = rc ?: set(c, "allow.auto.create.topics", "true", e);
	} else {
		rc = rc ?: set(c, "enable.idempotence", "true", e);
		rc = rc ?: set(c, "acks", "all", e);
		rc = rc ?: set(c, "message.timeout.ms", "9000", e);
		rc = rc ?: set(c, "linger.ms", "0", e);
		rd_kafka_conf_set_dr_msg_cb(c, on_delivery);
	}
	for (size_t i = 0; !rc && i < o->nsettings; i++)
		rc = set_pair(c, o->settings[i], e);
	rd_kafka_conf_set_opaque(c, b);
	free(servers);
	return rc;
}

static int subscribe(struct broker_rk *b, struct err *e)
{
	rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t rc;

	rd_kafka_poll_set_consumer(b->k);
	rd_kafka_topic_partition_list_add(l, b->a.name, RD_KAFKA_PARTITION_UA);
	rc = rd_kafka_subscribe(b->k, l);
	rd_kafka_topic_partition_list_destroy(l);
	return rc ? err_msg(e, -EIO, "Kafka: subscribe: %s", rd_kafka_err2str(rc)) : 0;
}

static int rk_open(struct broker **ret, const struct broker_options *o, struct err *e)
{
	struct broker_rk *b = mem_alloc(sizeof(*b));
	rd_kafka_conf_t *c = rd_kafka_conf_new();
	char why[TEXT];
	int rc;

	/* message.max.bytes, less what the protocol takes. */
	b->base = (struct broker){.backend = &broker_kafka, .payload_max = 900000};
	b->fetches = o->group;
	rc = broker_address_parse(o->address, &b->a, e);
	rc = rc ?: configure(b, c, o, e);
	if (!rc) {
		b->k = rd_kafka_new(o->group ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, c, why, sizeof(why));
		if (b->k)
			c = NULL;
		else
			rc = err_msg(e, -EINVAL, "Kafka: %.300s", why);
	}
	if (c)
		rd_kafka_conf_destroy(c);
	if (!rc && b->fetches)
		rc = subscribe(b, e);
	if (rc < 0) {
		broker_close(&b->base);
		return rc;
	}
	b->base.connects = 1;
	*ret = &b->base;
	return 0;
}

static void rk_close(struct broker *base)
{
	struct broker_rk *b = rk_of(base);

	if (b->k) {
		if (b->fetches)
			rd_kafka_consumer_close(b->k);
		else
			rd_kafka_purge(b->k, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		rd_kafka_destroy(b->k);
	}
	broker_address_done(&b->a);
	free(b);
}

static int failed(rd_kafka_resp_err_t code, struct err *e)
{
	int rc = code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ? -EBADMSG
	       : code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT     ? -ETIMEDOUT
							      : -EAGAIN;

	return err_msg(e, rc, "Kafka: %s", rd_kafka_err2str(code));
}

static int rk_publish(struct broker *base, const char *host, const char *id, const void *data, size_t n,
		      uint64_t deadline_ns, struct err *e)
{
	struct broker_rk *b = rk_of(base);
	rd_kafka_resp_err_t code;

	b->done = false;
	code = rd_kafka_producev(b->k, RD_KAFKA_V_TOPIC(b->a.name), RD_KAFKA_V_KEY(host, strlen(host)),
				 RD_KAFKA_V_HEADER("id", id, -1), RD_KAFKA_V_VALUE((void *)(uintptr_t)data, n),
				 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(b), RD_KAFKA_V_END);
	if (code)
		return failed(code, e);
	while (!b->done && clock_mono_ns() < deadline_ns)
		rd_kafka_poll(b->k, 100);
	if (!b->done) {
		/* It is tried again as a whole: this attempt must not go on by itself. */
		rd_kafka_purge(b->k, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		while (!b->done && rd_kafka_outq_len(b->k))
			rd_kafka_poll(b->k, 100);
		return err_msg(e, -ETIMEDOUT, "Kafka: no acknowledgement in time");
	}
	return b->result ? failed(b->result, e) : 0;
}

static void take(struct deliveries *ret, const rd_kafka_message_t *m)
{
	rd_kafka_timestamp_type_t type;
	int64_t ms = rd_kafka_message_timestamp(m, &type);
	struct delivery d = {.data = mem_alloc(m->len + 1), .n = m->len, .stored_ns = ms > 0 ? (uint64_t)ms * NS_PER_MS : 0};

	memcpy(d.data, m->payload, m->len);
	vec_push(&ret->v, d);
}

static int rk_fetch(struct broker *base, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e)
{
	struct broker_rk *b = rk_of(base);
	int wait_ms = (int)(wait_ns / NS_PER_MS);

	while (ret->v.n < most) {
		/* For the first one there is time. */
		rd_kafka_message_t *m = rd_kafka_consumer_poll(b->k, ret->v.n ? 0 : wait_ms);
		rd_kafka_resp_err_t code = m ? m->err : 0;

		if (!m)
			break;
		if (!code)
			take(ret, m);
		rd_kafka_message_destroy(m);
		if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
			break;
		if (code && !ret->v.n)
			return failed(code, e);
	}
	return 0;
}

static int rk_ack(struct broker *base, const struct deliveries *d, struct err *e)
{
	rd_kafka_resp_err_t code = d->v.n ? rd_kafka_commit(rk_of(base)->k, NULL, 0) : 0;

	return code && code != RD_KAFKA_RESP_ERR__NO_OFFSET ? failed(code, e) : 0;
}

const struct broker_backend broker_kafka = {.schemes = "|kafka|", .open = rk_open, .close = rk_close,
					    .publish = rk_publish, .fetch = rk_fetch, .ack = rk_ack};
