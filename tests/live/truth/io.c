/* Moves bytes over connected sockets by every kind of call, and counts what the calls returned. */

#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

enum { IOVECS = 64, IOVEC_BYTES = 97, SLOW_BYTES = 3000, POLL_MS = 20000 };

/* The state that a way of moving data needs beside the socket. */
struct io {
	struct act *a;
	struct flow *f;
	int fd;
	enum how how;
	unsigned char *buf;
	int pipe[2]; /* splice */
	int file;    /* sendfile */
	struct uring *ring;
	unsigned zerocopy_calls;
};

unsigned leg_count(const struct act *a, const struct leg *l)
{
	return l->count * a->b->scale;
}

size_t leg_size(const struct leg *l, unsigned i)
{
	return l->base + (size_t)(i % 7) * l->step;
}

uint64_t leg_total(const struct act *a, const struct leg *l)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < leg_count(a, l); i++)
		sum += leg_size(l, i);
	return sum;
}

unsigned char *io_buffer(struct act *a)
{
	static unsigned char *buf;

	if (!buf) {
		buf = malloc(IO_MESSAGE_MAX);
		if (!buf)
			act_die(a, "allocate a buffer");
		memset(buf, 'x', IO_MESSAGE_MAX);
	}
	return buf;
}

void io_poll(struct act *a, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int rc = poll(&p, 1, POLL_MS);

	if (rc == 0)
		errno = ETIMEDOUT;
	if (rc <= 0)
		act_die(a, "poll");
}

static void io_open(struct io *io, struct act *a, struct flow *f, int fd, enum how how)
{
	*io = (struct io){.a = a, .f = f, .fd = fd, .how = how, .pipe = {-1, -1}, .file = -1};
	io->buf = io_buffer(a);
	if (how == HOW_SPLICE && pipe2(io->pipe, O_CLOEXEC) < 0)
		act_die(a, "pipe");
	if (how == HOW_URING || how == HOW_SQPOLL)
		io->ring = uring_new(a, how == HOW_SQPOLL);
	if (how == HOW_PARTIAL || how == HOW_SLOW)
		net_nonblock(a, fd);
	if (how == HOW_ZEROCOPY)
		net_set(a, fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	if (how != HOW_SENDFILE)
		return;
	io->file = memfd_create("truth-file", MFD_CLOEXEC);
	if (io->file < 0 || write(io->file, io->buf, IO_MESSAGE_MAX) != IO_MESSAGE_MAX)
		act_die(a, "make a file to send");
}

static void io_close(struct io *io)
{
	if (io->pipe[0] >= 0) {
		close(io->pipe[0]);
		close(io->pipe[1]);
	}
	if (io->file >= 0)
		close(io->file);
	uring_free(io->ring);
}

static int cut(struct iovec *v, unsigned char *p, size_t n, size_t piece)
{
	int i;

	for (i = 0; i < IOVECS && n > 0; i++) {
		v[i].iov_base = p;
		/* The last one takes the rest, so that a message stays one call. */
		v[i].iov_len = i == IOVECS - 1 || n < piece ? n : piece;
		p += v[i].iov_len;
		n -= v[i].iov_len;
	}
	return i;
}

static ssize_t splice_out(struct io *io, size_t n)
{
	size_t room = n < 65536 ? n : 65536;
	ssize_t filled = write(io->pipe[1], io->buf, room);
	ssize_t sent = 0, r;

	if (filled < 0)
		act_die(io->a, "fill the pipe");
	while (sent < filled) {
		r = splice(io->pipe[0], NULL, io->fd, NULL, (size_t)(filled - sent), SPLICE_F_MOVE);
		if (r <= 0)
			act_die(io->a, "splice to the socket");
		sent += r;
	}
	return sent;
}

static ssize_t tx(struct io *io, size_t n)
{
	struct iovec v[IOVECS];
	struct msghdr m = {.msg_iov = v};
	off_t at = 0;

	switch (io->how) {
	case HOW_RW:
		return write(io->fd, io->buf, n);
	case HOW_VEC:
		return writev(io->fd, v, cut(v, io->buf, n, n / 3 + 1));
	case HOW_MSG:
		m.msg_iovlen = (size_t)cut(v, io->buf, n, IOVEC_BYTES);
		return sendmsg(io->fd, &m, MSG_NOSIGNAL);
	case HOW_URING:
	case HOW_SQPOLL:
		return uring_send(io->a, io->ring, io->fd, io->buf, n);
	case HOW_SPLICE:
		return splice_out(io, n);
	case HOW_SENDFILE:
		return sendfile(io->fd, io->file, &at, n);
	case HOW_ZEROCOPY:
		io->zerocopy_calls++;
		return send(io->fd, io->buf, n, MSG_ZEROCOPY | MSG_NOSIGNAL);
	default:
		return send(io->fd, io->buf, n, MSG_NOSIGNAL);
	}
}

/* Take the completion notices: they come by recvmsg(), but are no received data. */
static void drain_zerocopy(struct io *io)
{
	struct sock_extended_err *e;
	unsigned seen = 0;
	char control[128];

	while (seen < io->zerocopy_calls) {
		struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
		struct cmsghdr *c;

		if (recvmsg(io->fd, &m, MSG_ERRQUEUE) < 0) {
			if (errno != EAGAIN)
				act_die(io->a, "read the error queue");
			io_poll(io->a, io->fd, 0); /* POLLERR is always reported */
			continue;
		}
		for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			e = (struct sock_extended_err *)CMSG_DATA(c);
			if (e->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
				seen += e->ee_data - e->ee_info + 1;
		}
	}
}

static void send_message(struct io *io, size_t n)
{
	ssize_t r;

	while (n > 0) {
		r = tx(io, n);
		if (r < 0 && errno == EAGAIN) {
			io_poll(io->a, io->fd, POLLOUT);
			continue;
		}
		if (r <= 0)
			act_die(io->a, "send");
		flow_sent(io->f, (uint64_t)r);
		n -= (size_t)r;
	}
}

void io_send_leg(struct act *a, struct flow *f, int fd, const struct leg *l)
{
	struct io io;
	unsigned i;

	if (l->count == 0)
		return;
	io_open(&io, a, f, fd, l->tx);
	if (l->tx == HOW_SENDFILE || l->tx == HOW_SPLICE)
		flow_flag(f, FLOW_LOOSE_SENT);
	for (i = 0; i < leg_count(a, l); i++)
		send_message(&io, leg_size(l, i));
	if (io.zerocopy_calls)
		drain_zerocopy(&io);
	io_close(&io);
}

static ssize_t splice_in(struct io *io, size_t n)
{
	ssize_t r = splice(io->fd, NULL, io->pipe[1], NULL, n < 65536 ? n : 65536, SPLICE_F_MOVE);

	if (r > 0 && read(io->pipe[0], io->buf, (size_t)r) != r)
		act_die(io->a, "empty the pipe");
	return r;
}

static ssize_t rx(struct io *io, size_t n)
{
	struct iovec v[IOVECS];
	struct msghdr m = {.msg_iov = v};

	switch (io->how) {
	case HOW_RW:
		return read(io->fd, io->buf, n);
	case HOW_VEC:
		return readv(io->fd, v, cut(v, io->buf, n, n / 3 + 1));
	case HOW_MSG:
		m.msg_iovlen = (size_t)cut(v, io->buf, n, IOVEC_BYTES);
		return recvmsg(io->fd, &m, 0);
	case HOW_URING:
	case HOW_SQPOLL:
		return uring_recv(io->a, io->ring, io->fd, io->buf, n);
	case HOW_SPLICE:
		return splice_in(io, n);
	case HOW_PEEK:
		if (recv(io->fd, io->buf, n, MSG_PEEK) < 0)
			return -1;
		return recv(io->fd, io->buf, n, 0);
	case HOW_SLOW:
		usleep(100);
		return recv(io->fd, io->buf, n < SLOW_BYTES ? n : SLOW_BYTES, 0);
	default:
		return recv(io->fd, io->buf, n, 0);
	}
}

static void receive_bytes(struct io *io, uint64_t total)
{
	ssize_t r;

	while (total > 0) {
		r = rx(io, total < IO_MESSAGE_MAX ? (size_t)total : IO_MESSAGE_MAX);
		if (r < 0 && errno == EAGAIN) {
			io_poll(io->a, io->fd, POLLIN);
			continue;
		}
		if (r == 0)
			errno = ECONNRESET;
		if (r <= 0)
			act_die(io->a, "receive");
		flow_received(io->f, (uint64_t)r);
		total -= (uint64_t)r;
	}
}

void io_receive_leg(struct act *a, struct flow *f, int fd, const struct leg *l)
{
	struct io io;

	if (l->count == 0)
		return;
	io_open(&io, a, f, fd, l->rx);
	if (l->rx == HOW_SPLICE)
		flow_flag(f, FLOW_BLIND_RECEIVE);
	receive_bytes(&io, leg_total(a, l));
	io_close(&io);
}

void io_send(struct act *a, struct flow *f, int fd, size_t n)
{
	struct io io;

	io_open(&io, a, f, fd, HOW_SEND);
	while (n > 0) {
		send_message(&io, n < IO_MESSAGE_MAX ? n : IO_MESSAGE_MAX);
		n -= n < IO_MESSAGE_MAX ? n : IO_MESSAGE_MAX;
	}
	io_close(&io);
}

void io_receive(struct act *a, struct flow *f, int fd, size_t n)
{
	struct io io;

	io_open(&io, a, f, fd, HOW_SEND);
	receive_bytes(&io, n);
	io_close(&io);
}

uint64_t io_receive_to_end(struct act *a, struct flow *f, int fd)
{
	unsigned char *buf = io_buffer(a);
	uint64_t sum = 0;
	ssize_t r;

	while ((r = recv(fd, buf, IO_MESSAGE_MAX, 0)) > 0) {
		flow_received(f, (uint64_t)r);
		sum += (uint64_t)r;
	}
	if (r < 0)
		act_die(a, "receive to the end");
	return sum;
}
