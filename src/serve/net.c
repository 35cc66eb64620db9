/* Streams to other programs: addresses, deadlines, TLS. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "mem.h"

struct stream {
	int fd;
	uint64_t deadline_ns;
	gnutls_session_t tls; /* NULL: in the clear */
	gnutls_certificate_credentials_t credentials;
};

static const struct {
	const char *name;
	uint16_t port;
} schemes[] = {{"http", 80}, {"https", 443}, {"nats", 4222}, {"tls", 4222}};

static bool scheme_of(const char *text, struct url *ret, const char **ret_rest)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t n = strlen(schemes[i].name);

		if (strncasecmp(text, schemes[i].name, n) || strncmp(text + n, "://", 3))
			continue;
		snprintf(ret->scheme, sizeof(ret->scheme), "%s", schemes[i].name);
		ret->port = schemes[i].port;
		*ret_rest = text + n + 3;
		return true;
	}
	return false;
}

static bool read_port(const char *s, size_t n, uint16_t *ret)
{
	unsigned v = 0;

	if (!n || n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	*ret = (uint16_t)v;
	return v > 0 && v <= UINT16_MAX;
}

int url_parse(const char *text, struct url *ret, struct err *e)
{
	const char *at, *end, *host_end, *path;
	size_t n = strlen(text), host_n;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || strchr("\\\"<>^`{|}", text[i]))
			return err_msg(e, -EINVAL, "an address has no blanks and no special characters");
	if (n >= URL_BYTES_MAX || !scheme_of(text, ret, &at))
		return err_msg(e, -EINVAL, "'%.100s' is no address of http, https, nats or tls", text);
	end = at + strcspn(at, "/?#");
	path = end;
	if (memchr(at, '@', (size_t)(end - at)) || strchr(path, '#'))
		return err_msg(e, -EINVAL, "'%.100s': users and fragments have no place in it", text);
	if (*at == '[') {
		host_end = memchr(at, ']', (size_t)(end - at));
		at++;
	} else {
		host_end = memchr(at, ':', (size_t)(end - at));
		host_end = host_end ?: end;
	}
	host_n = host_end ? (size_t)(host_end - at) : 0;
	if (!host_n || host_n >= sizeof(ret->host))
		return err_msg(e, -EINVAL, "'%.100s' names no host", text);
	memcpy(ret->host, at, host_n);
	if (*host_end == ']')
		host_end++;
	if (host_end < end && (*host_end != ':' || !read_port(host_end + 1, (size_t)(end - host_end - 1), &ret->port)))
		return err_msg(e, -EINVAL, "'%.100s' has no port", text);
	if (strlen(path) + 2 > sizeof(ret->path))
		return err_msg(e, -EINVAL, "'%.100s...' is too long", text);
	snprintf(ret->path, sizeof(ret->path), "%s%s", *path == '/' ? "" : "/", path);
	return 0;
}

/* "/a" allows "/a", "/a/b" and "/a?c", but not "/ab"; nothing allows what has ".." in it. */
static bool path_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	if (strstr(path, "..") || strstr(path, "%2e") || strstr(path, "%2E"))
		return !strcmp(path, top);
	while (n > 1 && top[n - 1] == '/')
		n--;
	return n <= 1 || (!strncmp(path, top, n) && strchr("/?", path[n]));
}

bool url_allowed(const struct url *u, const struct url *allowed, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(u->scheme, allowed[i].scheme) && !strcasecmp(u->host, allowed[i].host) &&
		    u->port == allowed[i].port && path_below(u->path, allowed[i].path))
			return true;
	return false;
}

static int wait_for(int fd, short events, uint64_t deadline_ns, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = clock_mono_ns();
		int rc;

		if (now >= deadline_ns)
			return err_msg(e, -ETIMEDOUT, "no answer in time");
		rc = poll(&p, 1, (int)((deadline_ns - now) / NS_PER_MS) + 1);
		if (rc > 0)
			return 0;
		if (rc < 0 && errno != EINTR)
			return err_set(e, -errno, "poll");
	}
}

static bool is_link_local(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 16) == 0xa9fe;
	if (a->sa_family == AF_INET6) {
		const struct in6_addr *in = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

		return IN6_IS_ADDR_LINKLOCAL(in) ||
		       (IN6_IS_ADDR_V4MAPPED(in) && in->s6_addr[12] == 0xa9 && in->s6_addr[13] == 0xfe);
	}
	return false;
}

static int connect_one(const struct addrinfo *a, uint64_t deadline_ns, struct err *e)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failed = 0, on = 1, rc;
	socklen_t n = sizeof(failed);

	if (fd < 0)
		return err_set(e, -errno, "socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!connect(fd, a->ai_addr, a->ai_addrlen))
		return fd;
	rc = errno == EINPROGRESS ? wait_for(fd, POLLOUT, deadline_ns, e) : err_set(e, -errno, "connect");
	if (!rc && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) && failed)
		rc = err_set(e, -failed, "connect");
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int stream_open(struct stream **ret, const struct url *u, uint64_t deadline_ns, struct err *e)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list;
	struct in6_addr number;
	struct stream *s;
	char port[8];
	bool literal = inet_pton(AF_INET, u->host, &number) == 1 || inet_pton(AF_INET6, u->host, &number) == 1;
	int rc, fd = -1;

	if (literal)
		hints.ai_flags = AI_NUMERICHOST;
	snprintf(port, sizeof(port), "%u", u->port);
	rc = getaddrinfo(u->host, port, &hints, &list);
	if (rc)
		return err_msg(e, -EHOSTUNREACH, "find host '%s': %s", u->host, gai_strerror(rc));
	err_msg(e, -EHOSTUNREACH, "host '%s' has no address that may be used", u->host);
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		if (literal || !is_link_local(a->ai_addr))
			fd = connect_one(a, deadline_ns, e);
	freeaddrinfo(list);
	if (fd < 0)
		return err_ctx(e, "connect to %s port %u", u->host, u->port);
	s = mem_alloc(sizeof(*s));
	s->fd = fd;
	s->deadline_ns = deadline_ns;
	*ret = s;
	return 0;
}

static int tls_failed(struct stream *s, int code, const char *what, struct err *e)
{
	if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
		unsigned status = gnutls_session_get_verify_cert_status(s->tls);
		gnutls_datum_t text = {0};

		gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
		err_msg(e, -EACCES, "%s: %s", what, text.data ? (const char *)text.data : gnutls_strerror(code));
		gnutls_free(text.data);
		return e->code;
	}
	return err_msg(e, -EPROTO, "%s: %s", what, gnutls_strerror(code));
}

/* @return 0: try again, or -errno */
static int tls_wait(struct stream *s, int code, const char *what, struct err *e)
{
	if (code != GNUTLS_E_AGAIN && code != GNUTLS_E_INTERRUPTED)
		return tls_failed(s, code, what, e);
	return wait_for(s->fd, gnutls_record_get_direction(s->tls) ? POLLOUT : POLLIN, s->deadline_ns, e);
}

static int read_files(gnutls_certificate_credentials_t to, const struct login *l, struct err *e)
{
	int rc = l->ca_file ? gnutls_certificate_set_x509_trust_file(to, l->ca_file, GNUTLS_X509_FMT_PEM)
			    : gnutls_certificate_set_x509_system_trust(to);

	if (rc < 0)
		return err_msg(e, -EINVAL, "read authorities%s%s: %s", l->ca_file ? " of " : "", l->ca_file ?: "",
			       gnutls_strerror(rc));
	rc = l->cert_file ? gnutls_certificate_set_x509_key_file(to, l->cert_file, l->key_file, GNUTLS_X509_FMT_PEM) : 0;
	if (rc < 0)
		return err_msg(e, -EINVAL, "read certificate '%s' and its key: %s", l->cert_file, gnutls_strerror(rc));
	return 0;
}

int login_check(const struct login *l, struct err *e)
{
	gnutls_certificate_credentials_t c;
	int rc;

	gnutls_certificate_allocate_credentials(&c);
	rc = read_files(c, l, e);
	gnutls_certificate_free_credentials(c);
	return rc;
}

int stream_secure(struct stream *s, const struct url *u, const struct login *l, struct err *e)
{
	int rc;

	gnutls_certificate_allocate_credentials(&s->credentials);
	rc = read_files(s->credentials, l, e);
	if (rc < 0)
		return rc;
	gnutls_init(&s->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	gnutls_set_default_priority(s->tls);
	gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, s->credentials);
	gnutls_server_name_set(s->tls, GNUTLS_NAME_DNS, u->host, strlen(u->host));
	gnutls_session_set_verify_cert(s->tls, u->host, 0);
	gnutls_transport_set_int(s->tls, s->fd);
	while ((rc = gnutls_handshake(s->tls)) < 0)
		if (gnutls_error_is_fatal(rc) || rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED) {
			rc = tls_wait(s, rc, "TLS", e);
			if (rc < 0)
				return rc;
		}
	return 0;
}

void stream_deadline(struct stream *s, uint64_t deadline_ns)
{
	s->deadline_ns = deadline_ns;
}

int stream_write(struct stream *s, const void *p, size_t n, struct err *e)
{
	const char *at = p;

	while (n) {
		ssize_t k;
		int rc = 0;

		if (s->tls) {
			k = gnutls_record_send(s->tls, at, n);
			if (k < 0)
				rc = tls_wait(s, (int)k, "send", e);
		} else {
			k = send(s->fd, at, n, MSG_NOSIGNAL);
			if (k < 0)
				rc = errno == EAGAIN || errno == EINTR ? wait_for(s->fd, POLLOUT, s->deadline_ns, e) :
									 err_set(e, -errno, "send");
		}
		if (rc < 0)
			return rc;
		if (k > 0) {
			at += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

ssize_t stream_read(struct stream *s, void *p, size_t n, struct err *e)
{
	for (;;) {
		ssize_t k;
		int rc;

		if (s->tls) {
			k = gnutls_record_recv(s->tls, p, n);
			if (k >= 0)
				return k;
			/* Many servers end without saying so. */
			if (k == GNUTLS_E_PREMATURE_TERMINATION)
				return 0;
			rc = tls_wait(s, (int)k, "receive", e);
		} else {
			k = recv(s->fd, p, n, 0);
			if (k >= 0)
				return k;
			rc = errno == EAGAIN || errno == EINTR ? wait_for(s->fd, POLLIN, s->deadline_ns, e) :
								 err_set(e, -errno, "receive");
		}
		if (rc < 0)
			return rc;
	}
}

bool stream_readable(struct stream *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	return (s->tls && gnutls_record_check_pending(s->tls) > 0) || poll(&p, 1, 0) > 0;
}

void stream_close(struct stream *s)
{
	if (!s)
		return;
	if (s->tls) {
		gnutls_bye(s->tls, GNUTLS_SHUT_WR);
		gnutls_deinit(s->tls);
	}
	if (s->credentials)
		gnutls_certificate_free_credentials(s->credentials);
	close(s->fd);
	free(s);
}

/* The status line and what follows it, as far as it is wanted. */
static int read_answer(struct stream *s, struct strbuf *out, size_t max, struct err *e)
{
	struct strbuf head = {0};
	const char *end = NULL;
	char buf[8192];
	int status = 0;
	ssize_t n;

	while (!end && (n = stream_read(s, buf, sizeof(buf), e)) > 0) {
		strbuf_addn(&head, buf, (size_t)n);
		end = strstr(head.s, "\r\n\r\n");
		if (!end && head.n > 65536)
			break;
	}
	if (!end || sscanf(head.s, "HTTP/1.%*1[01] %3d", &status) != 1 || status < 100) {
		strbuf_done(&head);
		return n < 0 ? (int)n : err_msg(e, -EPROTO, "the answer is no HTTP/1.1");
	}
	if (out) {
		size_t got = head.n - (size_t)(end + 4 - head.s);

		strbuf_addn(out, end + 4, got < max ? got : max);
		while (out->n < max && (n = stream_read(s, buf, sizeof(buf), e)) > 0)
			strbuf_addn(out, buf, out->n + (size_t)n <= max ? (size_t)n : max - out->n);
		if (n < 0)
			status = (int)n;
	}
	strbuf_done(&head);
	return status;
}

int http_request(const char *method, const struct url *u, const char *headers, const void *body, size_t body_n,
		 const struct login *l, uint64_t deadline_ns, struct strbuf *out, size_t max, struct err *e)
{
	bool v6 = strchr(u->host, ':');
	struct stream *s = NULL;
	struct strbuf head = {0};
	int rc = stream_open(&s, u, deadline_ns, e);

	if (!rc && !strcmp(u->scheme, "https"))
		rc = stream_secure(s, u, l, e);
	/* HTTP/1.0 in the request: the answer then comes in one piece and ends with the connection. */
	strbuf_addf(&head, "%s %s HTTP/1.0\r\nHost: %s%s%s:%u\r\nUser-Agent: witty-profiler/" WITTY_VERSION
			   "\r\nConnection: close\r\nAccept: application/json\r\n%sContent-Length: %zu\r\n\r\n",
		    method, u->path, v6 ? "[" : "", u->host, v6 ? "]" : "", u->port, headers, body_n);
	rc = rc ?: stream_write(s, head.s, head.n, e);
	rc = rc ?: stream_write(s, body, body_n, e);
	rc = rc ?: read_answer(s, out, max, e);
	stream_close(s);
	strbuf_done(&head);
	return rc < 0 ? err_ctx(e, "%s %s://%s:%u", method, u->scheme, u->host, u->port) : rc;
}
