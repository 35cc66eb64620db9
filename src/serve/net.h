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

/** How this program and the other one convince each other. Texts are borrowed; NULL: not given. */
struct login {
	const char *ca_file;		  /**< PEM with the authorities for the other one; NULL: the system's */
	const char *cert_file, *key_file; /**< PEM: what is shown to who asks for a certificate, both or none */
	const char *token, *user, *password; /**< for brokers */
	const char *credentials_file;	     /**< for NATS, as nkey_read() takes it; read at each connection */
};

/** Whether the files of TLS can be read and fit. @return 0 or -errno */
int login_check(const struct login *l, struct err *e);

struct stream;

/**
 * Connect. Addresses of link-local networks (where clouds keep their secrets) are refused unless the URL
 * itself has that address.
 *
 * @param deadline_ns CLOCK_MONOTONIC; holds for the connection and, until stream_deadline(), for all that follows
 */
int stream_open(struct stream **ret, const struct url *u, uint64_t deadline_ns, struct err *e);
/**
 * Go on with TLS; certificates are checked against the authorities and the host's name.
 *
 * @param l its files; the rest is for protocols above
 */
int stream_secure(struct stream *s, const struct url *u, const struct login *l, struct err *e);
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
 * @param l       files for https
 * @param out     receives the body, at most @p max bytes of it; NULL: it is not wanted
 * @return the status, or -errno
 */
int http_request(const char *method, const struct url *u, const char *headers, const void *body, size_t body_n,
		 const struct login *l, uint64_t deadline_ns, struct strbuf *out, size_t max, struct err *e);
