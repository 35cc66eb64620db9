#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "net.h"
#include "vec.h"

/*
 * What agents and the fleet have in common with a replicated log, whichever it is: publish and have it acknowledged;
 * fetch as a member of a group, and acknowledge what has been stored. A broker is used by one thread, connects when it
 * has to, and connects again after failures.
 */

#define BROKER_NAME_BYTES 65

/** Texts are borrowed while the broker is open; NULL: not given. */
struct broker_options {
	const char *address; /**< nats://HOST[:PORT][,HOST[:PORT]]…[/STREAM], tls://…, kafka://…/TOPIC */
	struct login login;
	const char *const *settings; /**< [nsettings] NAME=VALUE for a backend that has such: Kafka's properties */
	size_t nsettings;
	/* Of who fetches. */
	const char *group;	/**< members share the work; NULL: does not fetch */
	uint64_t ack_wait_ns;	/**< what is not acknowledged by then is delivered again, to whoever asks */
	uint32_t replicas;	/**< of a stream that is made because it is not there */
	uint64_t keep_ns, keep_bytes; /**< of such a stream: the oldest makes room */
};

/** A message that was fetched. */
struct delivery {
	char *data; /**< [n] owned */
	size_t n;
	char *handle; /**< by which the backend acknowledges it; owned; NULL: it needs none */
	uint64_t stored_ns; /**< when the broker took it, since 1970; 0: it does not tell */
};

struct deliveries {
	VEC(struct delivery) v;
	uint64_t pending; /**< messages that wait behind these; UINT64_MAX: not known */
};

void deliveries_clear(struct deliveries *d);
void deliveries_done(struct deliveries *d);

struct broker;

/** A backend: one file, one entry in the table of broker.c. */
struct broker_backend {
	const char *schemes; /**< of its addresses, `|` around each */
	/** Read the options; connects to nobody. */
	int (*open)(struct broker **ret, const struct broker_options *o, struct err *e);
	void (*close)(struct broker *b);
	int (*publish)(struct broker *b, const char *host, const char *id, const void *data, size_t n,
		       uint64_t deadline_ns, struct err *e);
	int (*fetch)(struct broker *b, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e);
	int (*ack)(struct broker *b, const struct deliveries *d, struct err *e);
};

/** What each backend's own structure begins with. */
struct broker {
	const struct broker_backend *backend;
	size_t payload_max; /**< bytes of a message; known once connected, before that a guess */
	uint64_t connects;  /**< that succeeded */
};

extern const struct broker_backend broker_nats, broker_kafka;

/** Whether @p address is one that a backend takes. */
bool broker_is_address(const char *address);
int broker_open(struct broker **ret, const struct broker_options *o, struct err *e);
/** NULL is fine. */
void broker_close(struct broker *b);

/**
 * Publish, and wait until the broker has it safely.
 *
 * @param host messages of one host stay in order
 * @param id   unique: a message that is published twice under one id is kept once, as far as the backend can
 * @return 0: acknowledged; -EBADMSG: it will never be taken; -EMSGSIZE: not in one piece, see payload_max; other -errno:
 *         try again later, under the same id
 */
int broker_publish(struct broker *b, const char *host, const char *id, const void *data, size_t n, uint64_t deadline_ns,
		   struct err *e);

/**
 * Fetch what the group has not acknowledged yet, or wait for it.
 *
 * @param ret cleared first; the caller's, deliveries_done()
 * @return 0, also when nothing came, or -errno: try again later
 */
int broker_fetch(struct broker *b, size_t most, uint64_t wait_ns, struct deliveries *ret, struct err *e);
/** All of @p d is stored. What cannot be acknowledged will come again. */
int broker_ack(struct broker *b, const struct deliveries *d, struct err *e);

/** The parts of an address. */
struct broker_address {
	char scheme[8];
	VEC(char *) servers; /**< "HOST:PORT" or "HOST", owned */
	char name[BROKER_NAME_BYTES]; /**< of stream or topic; "witty" when it is not given */
};

int broker_address_parse(const char *text, struct broker_address *ret, struct err *e);
void broker_address_done(struct broker_address *a);
