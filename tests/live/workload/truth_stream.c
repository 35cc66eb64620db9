/* What the two ends of a stream do: plain, partial, vectored, peeking, closing, threaded. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void plain_client(struct tcase *c, int fd)
{
	send_messages(&c->flows[UP], fd, 40 * shared->scale);
	recv_exactly(&c->flows[DOWN], fd, message_sum(15 * shared->scale), 3000);
}

void plain_server(struct tcase *c, int fd)
{
	recv_exactly(&c->flows[UP], fd, message_sum(40 * shared->scale), 5000);
	send_messages(&c->flows[DOWN], fd, 15 * shared->scale);
}

/* A connection that nobody uses is no flow. */
void nodata(struct tcase *c, int fd)
{
}

static void set_nonblocking(int fd)
{
	int small = 8192;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) < 0)
		die("make a socket non-blocking");
}

static void wait_for(int fd, short events)
{
	struct pollfd p = {fd, events, 0};

	if (poll(&p, 1, 10000) != 1)
		die("poll");
}

static void partial_send(struct flow *f, int fd, size_t n)
{
	while (n) {
		ssize_t r = send(fd, buf, n < 100000 ? n : 100000, MSG_NOSIGNAL);

		if (r > 0) {
			flow_sent(f, r);
			n -= r;
		} else if (errno == EAGAIN) {
			wait_for(fd, POLLOUT);
		} else if (errno != EINTR) {
			die("send");
		}
	}
}

/* Read slowly in small pieces; try once more than there is, so that EAGAIN is met on both sides. */
static void partial_recv(struct flow *f, int fd, size_t n)
{
	for (unsigned i = 0; n; i++) {
		ssize_t r = recv(fd, buf, n < 7001 ? n : 7001, 0);

		if (r > 0) {
			flow_received(f, r);
			n -= r;
		} else if (r < 0 && errno == EAGAIN) {
			wait_for(fd, POLLIN);
		} else if (r == 0 || errno != EINTR) {
			die("receive");
		}
		if (i < 50 && i % 5 == 0)
			sleep_us(500);
	}
}

void partial_client(struct tcase *c, int fd)
{
	set_nonblocking(fd);
	partial_send(&c->flows[UP], fd, 400000 * shared->scale);
	partial_recv(&c->flows[DOWN], fd, 70001 * shared->scale);
}

void partial_server(struct tcase *c, int fd)
{
	set_nonblocking(fd);
	partial_recv(&c->flows[UP], fd, 400000 * shared->scale);
	partial_send(&c->flows[DOWN], fd, 70001 * shared->scale);
}

enum { FEW_IOVS = 6, MANY_IOVS = 200, FEW_BYTES = 1050, MANY_BYTES = 20100 };

static void iov_fill(struct iovec *v, int n, size_t unit)
{
	char *p = buf;

	for (int i = 0; i < n; i++) {
		v[i].iov_base = p;
		v[i].iov_len = unit * (i + 1);
		p += v[i].iov_len;
	}
}

static size_t iov_sum(const struct iovec *v, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += v[i].iov_len;
	return sum;
}

/* A blocking stream takes all of it in one call, unless a signal interrupts; checked. */
static void iov_send(struct flow *f, int fd, int rounds)
{
	struct iovec few[FEW_IOVS], many[MANY_IOVS];
	struct msghdr m = {.msg_iov = many, .msg_iovlen = MANY_IOVS};

	iov_fill(few, FEW_IOVS, 50);
	iov_fill(many, MANY_IOVS, 1);
	for (int i = 0; i < rounds; i++) {
		ssize_t r = writev(fd, few, FEW_IOVS);

		if (r != FEW_BYTES)
			die("writev returned %zd", r);
		flow_sent(f, r);
		r = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (r != MANY_BYTES)
			die("sendmsg returned %zd", r);
		flow_sent(f, r);
	}
}

static void iov_recv(struct flow *f, int fd, int rounds)
{
	struct iovec few[FEW_IOVS], many[MANY_IOVS];
	size_t left = (size_t)rounds * (FEW_BYTES + MANY_BYTES);

	iov_fill(few, FEW_IOVS, 77);
	iov_fill(many, MANY_IOVS, 1);
	for (int i = 0; left; i++) {
		struct msghdr m = {.msg_iov = many, .msg_iovlen = MANY_IOVS};
		ssize_t r = i % 2 ? recvmsg(fd, &m, 0) : readv(fd, few, FEW_IOVS);

		if (r <= 0 || (size_t)r > left)
			die("vectored receive returned %zd", r);
		flow_received(f, r);
		left -= r;
	}
}

void iov_client(struct tcase *c, int fd)
{
	struct iovec few[FEW_IOVS], many[MANY_IOVS];

	iov_fill(few, FEW_IOVS, 50);
	iov_fill(many, MANY_IOVS, 1);
	if (iov_sum(few, FEW_IOVS) != FEW_BYTES || iov_sum(many, MANY_IOVS) != MANY_BYTES)
		die("sizes of the vectors");
	iov_send(&c->flows[UP], fd, 12 * shared->scale);
	iov_recv(&c->flows[DOWN], fd, 5 * shared->scale);
}

void iov_server(struct tcase *c, int fd)
{
	iov_recv(&c->flows[UP], fd, 12 * shared->scale);
	iov_send(&c->flows[DOWN], fd, 5 * shared->scale);
}

static void peek_recv(struct flow *f, int fd, size_t n)
{
	while (n) {
		ssize_t seen = recv(fd, buf, 2500, MSG_PEEK);
		size_t r;

		if (seen <= 0)
			die("peek");
		recv(fd, buf, 10, MSG_PEEK | MSG_DONTWAIT);
		r = recv_once(f, fd, buf, seen);
		n -= r;
	}
}

void peek_client(struct tcase *c, int fd)
{
	send_messages(&c->flows[UP], fd, 30 * shared->scale);
	peek_recv(&c->flows[DOWN], fd, message_sum(11 * shared->scale));
}

void peek_server(struct tcase *c, int fd)
{
	peek_recv(&c->flows[UP], fd, message_sum(30 * shared->scale));
	send_messages(&c->flows[DOWN], fd, 11 * shared->scale);
}

void half_client(struct tcase *c, int fd)
{
	send_messages(&c->flows[UP], fd, 17 * shared->scale);
	if (shutdown(fd, SHUT_WR) < 0)
		die("shutdown");
	recv_to_eof(&c->flows[DOWN], fd, 2000);
}

void half_server(struct tcase *c, int fd)
{
	recv_to_eof(&c->flows[UP], fd, 6000);
	send_messages(&c->flows[DOWN], fd, 23 * shared->scale);
	close(fd);
}

/* Send until the kernel says that the peer is gone. What it took before that was sent. */
static void send_into_void(struct flow *f, int fd)
{
	for (int i = 0; i < 100; i++) {
		ssize_t r = send(fd, buf, 333, MSG_NOSIGNAL);

		if (r < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		if (r < 0)
			die("send to a closed peer");
		flow_sent(f, r);
		/* The reset is on its way: on a slow machine it takes more than some calls. */
		if (i >= 10)
			usleep(20000);
	}
	errno = EISCONN;
	die("send to a closed peer never failed");
}

/* The reader closes with unread data: more is sent than is received, and that is the truth. */
void reset_client(struct tcase *c, int fd)
{
	send_messages(&c->flows[UP], fd, 20);
	step_post(c, STEP_UP);
	step_wait(c, STEP_DOWN);
	send_into_void(&c->flows[UP], fd);
}

void reset_server(struct tcase *c, int fd)
{
	step_wait(c, STEP_UP);
	recv_exactly(&c->flows[UP], fd, 1234, 1000);
	send_messages(&c->flows[DOWN], fd, 3);
	close(fd);
	step_post(c, STEP_DOWN);
}

/* The reader closes after it read all: TCP still takes one send, which nobody will receive. */
void closed_client(struct tcase *c, int fd)
{
	send_messages(&c->flows[UP], fd, 20);
	recv_to_eof(&c->flows[DOWN], fd, 900);
	send_into_void(&c->flows[UP], fd);
}

void closed_server(struct tcase *c, int fd)
{
	recv_exactly(&c->flows[UP], fd, message_sum(20), 5000);
	send_messages(&c->flows[DOWN], fd, 7);
	close(fd);
}

enum { NTHREADS = 4 };

struct worker {
	struct flow *flow;
	int fd;
	unsigned messages; /* 0: receive until the end */
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char own[3000];

	for (unsigned i = 0; i < w->messages; i++)
		send_all(w->flow, w->fd, buf, message_len(i));
	if (w->messages)
		return NULL;
	while (recv_once(w->flow, w->fd, own, sizeof(own)))
		;
	return NULL;
}

static void workers(struct flow *f, int fd, unsigned messages)
{
	struct worker w = {f, fd, messages};
	pthread_t t[NTHREADS];

	for (int i = 0; i < NTHREADS; i++) {
		errno = pthread_create(&t[i], NULL, worker_main, &w);
		if (errno)
			die("start a thread");
	}
	for (int i = 0; i < NTHREADS; i++)
		pthread_join(t[i], NULL);
	if (messages && shutdown(fd, SHUT_WR) < 0)
		die("shutdown");
}

void threads_client(struct tcase *c, int fd)
{
	workers(&c->flows[UP], fd, 20 * shared->scale);
	workers(&c->flows[DOWN], fd, 0);
}

void threads_server(struct tcase *c, int fd)
{
	workers(&c->flows[UP], fd, 0);
	workers(&c->flows[DOWN], fd, 9 * shared->scale);
}
