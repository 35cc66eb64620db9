/* Conversations over connected sockets: one client, one server, both directions, every call. */

#include "io.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

enum { CLIENT, SERVER };

/* What a conversation does beside its two legs. */
enum stream_flag {
	SMALL_BUFFERS = 1,
	HALF_CLOSE = 2, /* the client shuts down its sending side before the answer */
};

struct stream {
	enum transport t;
	struct leg up, down;
	unsigned flags;
};

static void prepare(struct act *a, int fd, const struct stream *s)
{
	bool ring = s->up.tx == HOW_URING || s->up.tx == HOW_SQPOLL;

	if (ring && !uring_works())
		act_skip(a, "io_uring is not available");
	if (!(s->flags & SMALL_BUFFERS))
		return;
	net_set(a, fd, SOL_SOCKET, SO_SNDBUF, 4096);
	net_set(a, fd, SOL_SOCKET, SO_RCVBUF, 4096);
}

static void client(struct act *a)
{
	const struct stream *s = a->k->param;
	struct flow *up = act_flow(a, CLIENT, SERVER, net_kind(s->t));
	struct flow *down = act_flow(a, SERVER, CLIENT, net_kind(s->t));
	int fd = net_connect(a, s->t, 0);

	prepare(a, fd, s);
	act_ready(a);
	io_send_leg(a, up, fd, &s->up);
	if (s->flags & HALF_CLOSE) {
		if (shutdown(fd, SHUT_WR) < 0)
			act_die(a, "shutdown");
		io_receive_to_end(a, down, fd);
		return;
	}
	io_receive_leg(a, down, fd, &s->down);
}

static void server(struct act *a)
{
	const struct stream *s = a->k->param;
	struct flow *up = act_flow(a, CLIENT, SERVER, net_kind(s->t));
	struct flow *down = act_flow(a, SERVER, CLIENT, net_kind(s->t));
	int fd = net_accept(a, net_listen(a, s->t, 0));

	prepare(a, fd, s);
	act_ready(a);
	if (!(s->flags & HALF_CLOSE)) {
		io_receive_leg(a, up, fd, &s->up);
		io_send_leg(a, down, fd, &s->down);
		return;
	}
	io_receive_to_end(a, up, fd);
	io_send_leg(a, down, fd, &s->down);
	if (shutdown(fd, SHUT_WR) < 0)
		act_die(a, "shutdown");
}

/* LEG(how it is sent, how it is received, messages, smallest size, step) */
#define LEG(tx_, rx_, n, b, s) {.tx = HOW_##tx_, .rx = HOW_##rx_, .count = n, .base = b, .step = s}

#define STREAM(id, doc_, transport_, up_, down_, flags_)                                           \
	{                                                                                          \
		.name = id, .doc = doc_, .nroles = 2,                                              \
		.roles = (const struct role[]){{id "-c", client}, {id "-s", server}},              \
		.param = &(const struct stream){                                                   \
			.t = transport_, .up = up_, .down = down_, .flags = flags_                 \
		},                                                                                 \
	}
#define UP(...)	  LEG(__VA_ARGS__)
#define DOWN(...) LEG(__VA_ARGS__)
#define SILENT	  LEG(SEND, SEND, 0, 0, 0)

const struct kase cases_stream[] = {
	STREAM("tcp4", "TCP over IPv4, send and recv", T_TCP4, UP(SEND, SEND, 100, 101, 333),
	       DOWN(SEND, SEND, 40, 7, 1009), 0),
	STREAM("tcp6", "TCP over IPv6, write and read", T_TCP6, UP(RW, RW, 90, 201, 331),
	       DOWN(RW, RW, 30, 17, 2003), 0),
	STREAM("tcpmapped", "TCP, the client's socket is IPv6 with a v4-mapped address", T_TCP_MAPPED,
	       UP(SEND, RW, 80, 301, 113), DOWN(RW, SEND, 20, 27, 3001), 0),
	STREAM("tcp1way", "TCP, nothing comes back", T_TCP4, UP(SEND, SEND, 50, 401, 127), SILENT, 0),
	STREAM("tcpvec", "TCP, writev and readv", T_TCP4, UP(VEC, VEC, 60, 501, 709),
	       DOWN(VEC, VEC, 25, 37, 577), 0),
	STREAM("tcpmsg", "TCP, sendmsg and recvmsg over 64 pieces", T_TCP4,
	       UP(MSG, MSG, 60, 601, 811), DOWN(MSG, MSG, 25, 47, 587), 0),
	STREAM("tcppeek", "TCP, MSG_PEEK before each recv", T_TCP4, UP(SEND, PEEK, 60, 701, 97),
	       DOWN(SEND, PEEK, 25, 57, 593), 0),
	STREAM("tcppartial", "TCP, non-blocking, small buffers, slow reader: partial writes, EAGAIN",
	       T_TCP4, UP(PARTIAL, SLOW, 4, 60013, 10007), DOWN(PARTIAL, SLOW, 2, 50021, 20011),
	       SMALL_BUFFERS),
	STREAM("tcphalf", "TCP, half-closed by the client before the answer", T_TCP4,
	       UP(SEND, SEND, 30, 801, 89), DOWN(SEND, SEND, 35, 67, 599), HALF_CLOSE),
	STREAM("tcpzc", "TCP, MSG_ZEROCOPY with notices on the error queue", T_TCP4,
	       UP(ZEROCOPY, SEND, 30, 20011, 1013), DOWN(SEND, SEND, 35, 77, 601), 0),
	STREAM("tcplarge", "TCP, large messages", T_TCP4, UP(SEND, SEND, 24, 500009, 60013),
	       DOWN(SEND, SEND, 6, 300007, 30011), 0),
	STREAM("tcpsendfile", "sendfile from a file to TCP", T_TCP4,
	       UP(SENDFILE, SEND, 20, 30011, 17011), DOWN(SEND, SEND, 15, 87, 607), 0),
	STREAM("tcpspliceout", "splice from a pipe to TCP", T_TCP4,
	       UP(SPLICE, SEND, 20, 20021, 7013), DOWN(SEND, SEND, 15, 97, 613), 0),
	STREAM("tcpsplicein", "splice from TCP to a pipe: receives pass no socket hook", T_TCP4,
	       UP(SEND, SPLICE, 20, 20023, 7019), DOWN(SEND, SEND, 15, 107, 617), 0),
	STREAM("tcpuring", "io_uring over TCP", T_TCP4, UP(URING, URING, 50, 901, 1709),
	       DOWN(URING, URING, 35, 117, 619), 0),
	STREAM("tcpsqpoll", "io_uring over TCP, submitted by a kernel thread", T_TCP4,
	       UP(SQPOLL, SQPOLL, 50, 1001, 1721), DOWN(SQPOLL, SQPOLL, 35, 127, 631), 0),

	STREAM("ustream", "Unix stream, bound to a path", T_UNIX_STREAM, UP(SEND, SEND, 90, 102, 337),
	       DOWN(SEND, SEND, 40, 8, 1013), 0),
	STREAM("uabstract", "Unix stream, abstract name, write and read", T_UNIX_STREAM_ABSTRACT,
	       UP(RW, RW, 80, 202, 347), DOWN(RW, RW, 30, 18, 1019), 0),
	STREAM("uvec", "Unix stream, writev and readv", T_UNIX_STREAM, UP(VEC, VEC, 60, 302, 349),
	       DOWN(VEC, VEC, 30, 28, 1021), 0),
	STREAM("umsg", "Unix stream, sendmsg and recvmsg over 64 pieces", T_UNIX_STREAM,
	       UP(MSG, MSG, 60, 402, 353), DOWN(MSG, MSG, 30, 38, 1031), 0),
	STREAM("upeek", "Unix stream, MSG_PEEK before each recv", T_UNIX_STREAM,
	       UP(SEND, PEEK, 60, 502, 359), DOWN(SEND, PEEK, 30, 48, 1033), 0),
	STREAM("upartial", "Unix stream, non-blocking, small buffers, slow reader", T_UNIX_STREAM,
	       UP(PARTIAL, SLOW, 4, 60017, 10009), DOWN(PARTIAL, SLOW, 2, 50023, 20021),
	       SMALL_BUFFERS),
	STREAM("uhalf", "Unix stream, half-closed by the client before the answer", T_UNIX_STREAM,
	       UP(SEND, SEND, 30, 602, 367), DOWN(SEND, SEND, 35, 58, 1039), HALF_CLOSE),
	STREAM("usendfile", "sendfile from a file to a Unix stream", T_UNIX_STREAM,
	       UP(SENDFILE, SEND, 20, 30013, 17021), DOWN(SEND, SEND, 15, 68, 1049), 0),
	STREAM("uspliceout", "splice from a pipe to a Unix stream", T_UNIX_STREAM,
	       UP(SPLICE, SEND, 20, 20029, 7027), DOWN(SEND, SEND, 15, 78, 1051), 0),
	STREAM("usplicein", "splice from a Unix stream to a pipe: receives pass no socket hook",
	       T_UNIX_STREAM, UP(SEND, SPLICE, 20, 20047, 7039), DOWN(SEND, SEND, 15, 88, 1061), 0),
	STREAM("uuring", "io_uring over a Unix stream", T_UNIX_STREAM, UP(URING, URING, 50, 702, 1723),
	       DOWN(URING, URING, 35, 98, 641), 0),
	STREAM("useqpacket", "Unix seqpacket", T_UNIX_SEQPACKET, UP(SEND, SEND, 70, 802, 373),
	       DOWN(SEND, SEND, 30, 108, 1063), 0),
	STREAM("useqmsg", "Unix seqpacket, sendmsg and recvmsg", T_UNIX_SEQPACKET,
	       UP(MSG, MSG, 70, 902, 379), DOWN(MSG, PEEK, 30, 118, 643), 0),
};
const unsigned ncases_stream = sizeof(cases_stream) / sizeof(*cases_stream);
