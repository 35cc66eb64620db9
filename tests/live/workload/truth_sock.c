/* Sockets of the ground-truth workload: opening them over each transport, counted transfers. */
#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum kind transport_kind(enum transport t)
{
	switch (t) {
	case OVER_UDP4:
	case OVER_UDP6:
	case OVER_UDP_MAPPED:
		return KIND_UDP;
	case OVER_UNIX:
	case OVER_UNIX_ABS:
	case OVER_SEQPACKET:
	case OVER_UNIX_DGRAM:
	case OVER_UNIX_DGRAM_PATH:
		return KIND_UNIX;
	default:
		return KIND_TCP;
	}
}

int transport_type(enum transport t)
{
	switch (t) {
	case OVER_UDP4:
	case OVER_UDP6:
	case OVER_UDP_MAPPED:
	case OVER_UNIX_DGRAM:
	case OVER_UNIX_DGRAM_PATH:
		return SOCK_DGRAM;
	case OVER_SEQPACKET:
		return SOCK_SEQPACKET;
	default:
		return SOCK_STREAM;
	}
}

static int server_family(enum transport t)
{
	if (transport_kind(t) == KIND_UNIX)
		return AF_UNIX;
	return t == OVER_TCP6 || t == OVER_UDP6 ? AF_INET6 : AF_INET;
}

static socklen_t unix_name(struct tcase *c, enum transport t, int slot, struct sockaddr_un *a)
{
	const char *name = cases[c->index].name;
	char *p = a->sun_path;
	size_t size = sizeof(a->sun_path);
	int n;

	a->sun_family = AF_UNIX;
	if (t == OVER_UNIX || t == OVER_UNIX_DGRAM_PATH) {
		n = snprintf(p, size, "%s/%s.%d", shared->dir, name, slot) + 1;
	} else {
		*p = '\0';
		n = snprintf(p + 1, size - 1, "truth.%d.%s.%d", (int)shared->main_pid, name, slot) + 1;
	}
	return offsetof(struct sockaddr_un, sun_path) + n;
}

static socklen_t bind_addr(struct tcase *c, enum transport t, int slot, union any_addr *a)
{
	memset(a, 0, sizeof(*a));
	switch (server_family(t)) {
	case AF_UNIX:
		return unix_name(c, t, slot, &a->un);
	case AF_INET6:
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_addr = in6addr_loopback;
		return sizeof(a->in6);
	default:
		a->in.sin_family = AF_INET;
		a->in.sin_addr.s_addr = htonl(t == OVER_TCP_ANY ? INADDR_ANY : INADDR_LOOPBACK);
		return sizeof(a->in);
	}
}

int sock_bind(struct tcase *c, enum transport t, int slot)
{
	struct addr_slot *s = &c->addrs[slot];
	union any_addr a;
	socklen_t len = bind_addr(c, t, slot, &a);
	int fd = socket(server_family(t), transport_type(t) | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, &a.sa, len) < 0)
		die("bind a socket");
	if (transport_type(t) != SOCK_DGRAM && listen(fd, 64) < 0)
		die("listen");
	s->len = sizeof(s->addr);
	if (getsockname(fd, &s->addr.sa, &s->len) < 0)
		die("getsockname");
	if (t == OVER_TCP_ANY)
		s->addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sem_post(&s->known);
	return fd;
}

int sock_for(struct tcase *c, enum transport t, int slot, union any_addr *ret, socklen_t *ret_len)
{
	struct addr_slot *s = &c->addrs[slot];
	int fd;

	sem_take(&s->known);
	sem_post(&s->known); /* others may wait for it too */
	*ret = s->addr;
	*ret_len = s->len;
	if (t == OVER_TCP_MAPPED || t == OVER_UDP_MAPPED) {
		memset(ret, 0, sizeof(*ret));
		ret->in6.sin6_family = AF_INET6;
		ret->in6.sin6_port = s->addr.in.sin_port;
		ret->in6.sin6_addr.s6_addr[10] = 0xff;
		ret->in6.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&ret->in6.sin6_addr.s6_addr[12], &s->addr.in.sin_addr, 4);
		*ret_len = sizeof(ret->in6);
	}
	fd = socket(ret->sa.sa_family, transport_type(t) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("open a socket");
	return fd;
}

int sock_connect(struct tcase *c, enum transport t, int slot)
{
	union any_addr a;
	socklen_t len;
	int fd = sock_for(c, t, slot, &a, &len);

	if (connect(fd, &a.sa, len) < 0)
		die("connect");
	return fd;
}

int sock_accept(int listener)
{
	int fd;

	do
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		die("accept");
	return fd;
}

size_t send_once(struct flow *f, int fd, const void *p, size_t n)
{
	ssize_t r;

	do
		r = send(fd, p, n, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		die("send %zu bytes", n);
	flow_sent(f, r);
	return r;
}

void send_all(struct flow *f, int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		size_t r = send_once(f, fd, at, n);

		at += r;
		n -= r;
	}
}

void send_messages(struct flow *f, int fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_all(f, fd, buf, message_len(i));
}

size_t recv_once(struct flow *f, int fd, void *p, size_t n)
{
	ssize_t r;

	do
		r = recv(fd, p, n, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		die("receive");
	if (r)
		flow_received(f, r);
	return r;
}

void recv_exactly(struct flow *f, int fd, size_t n, size_t chunk)
{
	while (n) {
		size_t r = recv_once(f, fd, buf, n < chunk ? n : chunk);

		if (!r) {
			errno = EPIPE;
			die("%zu bytes are missing at the end of the stream", n);
		}
		n -= r;
	}
}

void recv_to_eof(struct flow *f, int fd, size_t chunk)
{
	while (recv_once(f, fd, buf, chunk))
		;
}

/* Datagram sockets of a pair are bound and connected at both ends. */
static int dgram_open(struct tcase *c, enum transport t, int own)
{
	struct addr_slot *other = &c->addrs[!own];
	int fd = sock_bind(c, t, own);

	sem_take(&other->known);
	if (connect(fd, &other->addr.sa, other->len) < 0)
		die("connect");
	return fd;
}

static void pair_client(struct tcase *c, int role)
{
	const struct case_def *d = &cases[c->index];
	bool dgram = transport_type(d->transport) == SOCK_DGRAM;
	int fd = dgram ? dgram_open(c, d->transport, CLI) : sock_connect(c, d->transport, SRV);

	gate(c);
	d->client(c, fd);
}

static void pair_server(struct tcase *c, int role)
{
	const struct case_def *d = &cases[c->index];
	bool dgram = transport_type(d->transport) == SOCK_DGRAM;
	int fd = dgram ? dgram_open(c, d->transport, SRV) : sock_bind(c, d->transport, SRV);

	if (!dgram)
		fd = sock_accept(fd);
	gate(c);
	d->server(c, fd);
}

void pair_run(struct tcase *c)
{
	const struct case_def *d = &cases[c->index];
	enum kind kind = transport_kind(d->transport);

	role_add(c, "cli", true);
	role_add(c, "srv", true);
	flow_add(c, CLI, SRV, kind)->blind_receive = d->blind_up;
	flow_add(c, SRV, CLI, kind);
	role_start(c, SRV, pair_server);
	role_start(c, CLI, pair_client);
	case_play(c, NULL);
}
