#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "net.h"

/*
 * A client of NATS for one thread: it sends, and waits for what comes with a deadline. It answers the server's
 * pings whenever it is used, and is closed and opened anew when anything fails.
 */

#define NATS_SERVERS_MAX 16
#define NATS_BODY_MAX	 (64u << 20) /* bytes of one message that is received */

struct nats;

/** All texts are borrowed while nats_open() runs; NULL: not given. */
struct nats_options {
	const struct url *servers; /**< [n] any of them will do; "tls": with TLS even if the server does not ask for it */
	size_t n;
	struct login login;
	bool only_sends; /**< nothing is subscribed to: nats_next(), nats_request() are not used */
};

/** Something that came. Borrowed until the next call that uses the connection. */
struct nats_message {
	const char *subject;
	const char *reply;   /**< "": nobody waits for an answer */
	unsigned status;     /**< of the first header line: 100, 404, 503 …; 0: a message as any other */
	const char *headers; /**< [headers_n] "NATS/1.0 …" up to the empty line; NULL: none */
	size_t headers_n;
	const char *data;    /**< [n], with a NUL behind */
	size_t n;
};

/**
 * Connect to the first of the servers that answers, beginning with any.
 *
 * @param deadline_ns CLOCK_MONOTONIC; each server has an equal part of what is left
 */
int nats_open(struct nats **ret, const struct nats_options *o, uint64_t deadline_ns, struct err *e);
/** NULL is fine. */
void nats_close(struct nats *n);

/** Bytes of a message, headers included, that the server takes. */
size_t nats_payload_max(const struct nats *n);
/** A new subject on which answers to it arrive here; valid until the next one is asked for. */
const char *nats_inbox(struct nats *n);

/** Wait until the server has taken all that was sent. @return 0; -EBADMSG: something was too large; other -errno */
int nats_flush(struct nats *n, uint64_t deadline_ns, struct err *e);
/** @param reply, @p headers (lines with CR LF, without the first one) "": none */
int nats_publish(struct nats *n, const char *subject, const char *reply, const char *headers, const void *data,
		 size_t size, uint64_t deadline_ns, struct err *e);
/** The next message. @return 1, 0: none until the deadline, or -errno: the connection is of no use any more */
int nats_next(struct nats *n, struct nats_message *ret, uint64_t deadline_ns, struct err *e);
/**
 * Publish and wait for the answer; what else arrives meanwhile is dropped.
 *
 * @return 0; -ETIMEDOUT; -ENOENT: nobody listens to that subject; other -errno: the connection is of no use any more
 */
int nats_request(struct nats *n, const char *subject, const char *headers, const void *data, size_t size,
		 struct nats_message *ret, uint64_t deadline_ns, struct err *e);
