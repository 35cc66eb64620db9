#pragma once

#include "truth.h"

#include <sys/socket.h>
#include <sys/types.h>

enum transport {
	T_TCP4,
	T_TCP6,
	T_TCP_MAPPED, /**< the client's socket is AF_INET6, the server's AF_INET */
	T_UDP4,
	T_UDP6,
	T_UNIX_STREAM,
	T_UNIX_SEQPACKET,
	T_UNIX_DGRAM,
	T_UNIX_STREAM_ABSTRACT,
	T_UNIX_DGRAM_ABSTRACT,
};

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

enum kind net_kind(enum transport t);

/** A socket for the client's side (@server false) or the server's; a case without IPv6 is skipped. */
int net_socket(struct act *a, enum transport t, bool server);

/**
 * Bind to loopback or to the Unix name that belongs to @slot, and post the port (or 1) there.
 * Ports are the kernel's choice.
 */
void net_bind(struct act *a, enum transport t, int fd, unsigned slot);

/** net_socket(), net_bind(), listen(). */
int net_listen(struct act *a, enum transport t, unsigned slot);

/** The address that another role posted to @slot, as a client of @t needs it. Waits for it. */
void net_addr(struct act *a, enum transport t, unsigned slot, struct addr *ret);

/** A socket connected to the listener of @slot. */
int net_connect(struct act *a, enum transport t, unsigned slot);

int net_accept(struct act *a, int listener);

/** Local and remote port of an IP socket, in host order. */
unsigned net_port(struct act *a, int fd, bool remote);

void net_nonblock(struct act *a, int fd);
void net_set(struct act *a, int fd, int level, int option, int value);
