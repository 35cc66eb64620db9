/* Sockets and addresses for the ground-truth cases: loopback ports and Unix names by slot. */

#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static bool is_unix(enum transport t)
{
	return t >= T_UNIX_STREAM;
}

enum kind net_kind(enum transport t)
{
	if (is_unix(t))
		return KIND_UNIX;
	return t == T_UDP4 || t == T_UDP6 ? KIND_UDP : KIND_TCP;
}

static int type_of(enum transport t)
{
	switch (t) {
	case T_UDP4:
	case T_UDP6:
	case T_UNIX_DGRAM:
	case T_UNIX_DGRAM_ABSTRACT:
		return SOCK_DGRAM;
	case T_UNIX_SEQPACKET:
		return SOCK_SEQPACKET;
	default:
		return SOCK_STREAM;
	}
}

static int family_of(enum transport t, bool server)
{
	if (is_unix(t))
		return AF_UNIX;
	if (t == T_TCP6 || t == T_UDP6 || (t == T_TCP_MAPPED && !server))
		return AF_INET6;
	return AF_INET;
}

int net_socket(struct act *a, enum transport t, bool server)
{
	int family = family_of(t, server);
	int fd = socket(family, type_of(t) | SOCK_CLOEXEC, 0);

	if (fd < 0 && family == AF_INET6 && errno == EAFNOSUPPORT)
		act_skip(a, "this kernel has no IPv6");
	if (fd < 0)
		act_die(a, "socket");
	return fd;
}

static void unix_addr(struct act *a, enum transport t, unsigned slot, struct addr *ret)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->ss;
	bool abstract = t == T_UNIX_STREAM_ABSTRACT || t == T_UNIX_DGRAM_ABSTRACT;
	int n;

	memset(ret, 0, sizeof(*ret));
	un->sun_family = AF_UNIX;
	/* The folder's name is unique to this run: it serves for the abstract names as well. */
	n = snprintf(un->sun_path + abstract, sizeof(un->sun_path) - abstract, "%s/%s.%u", a->b->dir,
		     a->k->name, slot);
	ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

static void inet_addr_of(enum transport t, bool server, unsigned port, struct addr *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->ss;

	memset(ret, 0, sizeof(*ret));
	if (family_of(t, server) == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ret->len = sizeof(*in);
		return;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	in6->sin6_addr = in6addr_loopback;
	if (t == T_TCP_MAPPED)
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &in6->sin6_addr);
	ret->len = sizeof(*in6);
}

static void bind_only(struct act *a, enum transport t, int fd, unsigned slot)
{
	struct addr addr;

	if (is_unix(t))
		unix_addr(a, t, slot, &addr);
	else
		inet_addr_of(t, true, 0, &addr);
	if (bind(fd, (struct sockaddr *)&addr.ss, addr.len) < 0) {
		if (addr.ss.ss_family == AF_INET6 && errno == EADDRNOTAVAIL)
			act_skip(a, "no IPv6 address on loopback");
		act_die(a, "bind");
	}
}

/* The port, or 1 for a Unix name: what the other roles wait for. */
static void publish(struct act *a, enum transport t, int fd, unsigned slot)
{
	act_post(a, slot, is_unix(t) ? 1 : net_port(a, fd, false));
}

void net_bind(struct act *a, enum transport t, int fd, unsigned slot)
{
	bind_only(a, t, fd, slot);
	publish(a, t, fd, slot);
}

int net_listen(struct act *a, enum transport t, unsigned slot)
{
	int fd = net_socket(a, t, true);

	bind_only(a, t, fd, slot);
	if (listen(fd, 64) < 0)
		act_die(a, "listen");
	publish(a, t, fd, slot); /* only now: who is told of the port may connect */
	return fd;
}

void net_addr(struct act *a, enum transport t, unsigned slot, struct addr *ret)
{
	uint32_t port = act_wait(a, slot);

	if (is_unix(t))
		unix_addr(a, t, slot, ret);
	else
		inet_addr_of(t, false, port, ret);
}

int net_connect(struct act *a, enum transport t, unsigned slot)
{
	int fd = net_socket(a, t, false);
	struct addr addr;

	net_addr(a, t, slot, &addr);
	if (connect(fd, (struct sockaddr *)&addr.ss, addr.len) < 0)
		act_die(a, "connect");
	return fd;
}

int net_accept(struct act *a, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		act_die(a, "accept");
	return fd;
}

unsigned net_port(struct act *a, int fd, bool remote)
{
	struct addr addr = {.len = sizeof(addr.ss)};
	int rc;

	if (remote)
		rc = getpeername(fd, (struct sockaddr *)&addr.ss, &addr.len);
	else
		rc = getsockname(fd, (struct sockaddr *)&addr.ss, &addr.len);
	if (rc < 0)
		act_die(a, "socket name");
	if (addr.ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&addr.ss)->sin6_port);
	return ntohs(((struct sockaddr_in *)&addr.ss)->sin_port);
}

void net_nonblock(struct act *a, int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		act_die(a, "set O_NONBLOCK");
}

void net_set(struct act *a, int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)) < 0)
		act_die(a, "setsockopt");
}
