#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "strbuf.h"

/*
 * Connections to other programs: an address, a stream with or without TLS, and deadlines on everything.
 * Blocks its thread, never longer than the deadline (and than the name service takes).
 */

#define URL_BYTES_MAX 2048

struct url {
	char scheme[8];	  /**< "http", "https", "nats", "tls" */
	char host[256];	  /**< name or address, without brackets */
	uint16_t port;	  /**< that of the scheme when it is not given */
	char path[1024];  /**< with the query, begins with '/' */
};

/** Parse. No user names, no fragments, no control characters. @return 0, or -EINVAL */
int url_parse(const char *text, struct url *ret, struct err *e);

/**
 * Whether @p u is at or below one of the allowed ones: same scheme, host and port, and a path that begins
 * with theirs.
 */
bool url_allowed(const struct url *u, const struct url *allowed, size_t n);

struct stream;

/**
 * Connect. Addresses of link-local networks (where clouds keep their secrets) are refused unless the URL
 * itself has that address.
 *
 * @param deadline_ns CLOCK_MONOTONIC; holds for the connection and, until stream_deadline(), for all that follows
 */
int stream_open(struct stream **ret, const struct url *u, uint64_t deadline_ns, struct err *e);
/** Go on with TLS; certificates are checked against the system's authorities and the host's name. */
int stream_secure(struct stream *s, const struct url *u, const char *ca_file, struct err *e);
void stream_deadline(struct stream *s, uint64_t deadline_ns);
/** @return 0, or -errno: all of it was not written */
int stream_write(struct stream *s, const void *p, size_t n, struct err *e);
/** @return bytes, 0 at the end, or -errno */
ssize_t stream_read(struct stream *s, void *p, size_t n, struct err *e);
/** Whether something can be read at once. */
bool stream_readable(struct stream *s);
/** NULL is fine. */
void stream_close(struct stream *s);

/**
 * One request of HTTP/1.1, on a connection of its own. Redirects are answers like any others: nobody
 * follows them.
 *
 * @param headers lines that end in CR LF, or ""
 * @param ca_file PEM with authorities for https; NULL: the system's
 * @param out     receives the body, at most @p max bytes of it; NULL: it is not wanted
 * @return the status, or -errno
 */
int http_request(const char *method, const struct url *u, const char *headers, const void *body, size_t body_n,
		 const char *ca_file, uint64_t deadline_ns, struct strbuf *out, size_t max, struct err *e);
