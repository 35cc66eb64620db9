/* Datagrams: connected and not, empty, truncated, many in one call, to nobody. */
#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * A datagram that finds no room is dropped, so a sender waits for the receiver's word each time
 * that CREDIT of them are on the way.
 */
enum { CREDIT = 8, MSGS_UP = 50, MSGS_DOWN = 21 };

/* Every seventh datagram is empty where that can be told from the end of a connection. */
static size_t dgram_len(const struct tcase *c, unsigned i)
{
	bool has_end = transport_type(cases[c->index].transport) == SOCK_SEQPACKET;

	return i % 7 == 3 && !has_end ? 0 : message_len(i) / 3 + 1;
}

static void dgram_send(struct tcase *c, struct flow *f, int fd, unsigned n, int step)
{
	for (unsigned i = 0; i < n; i++) {
		if (i >= CREDIT)
			step_wait(c, step);
		send_once(f, fd, buf, dgram_len(c, i));
	}
}

static void dgram_recv(struct tcase *c, struct flow *f, int fd, unsigned n, int step)
{
	for (unsigned i = 0; i < n; i++) {
		ssize_t r = recv(fd, buf, BUF_BYTES, 0);

		if (r != (ssize_t)dgram_len(c, i))
			die("datagram %u: received %zd bytes", i, r);
		flow_received(f, r);
		step_post(c, step);
	}
}

void dgram_client(struct tcase *c, int fd)
{
	dgram_send(c, &c->flows[UP], fd, MSGS_UP * shared->scale, STEP_UP);
	dgram_recv(c, &c->flows[DOWN], fd, MSGS_DOWN * shared->scale, STEP_DOWN);
}

void dgram_server(struct tcase *c, int fd)
{
	dgram_recv(c, &c->flows[UP], fd, MSGS_UP * shared->scale, STEP_UP);
	dgram_send(c, &c->flows[DOWN], fd, MSGS_DOWN * shared->scale, STEP_DOWN);
}

enum { BATCH = 6 };

static void batch_init(struct mmsghdr *m, struct iovec *v, bool sending)
{
	memset(m, 0, BATCH * sizeof(*m));
	for (int i = 0; i < BATCH; i++) {
		v[i].iov_base = buf + i * 5000;
		v[i].iov_len = sending ? message_len(i) : 5000;
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
}

/* Each datagram is a message, not each call. */
static void batch_send(struct tcase *c, struct flow *f, int fd, unsigned rounds, int step)
{
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];

	for (unsigned round = 0; round < rounds; round++) {
		int done = 0;

		batch_init(m, v, true);
		while (done < BATCH) {
			int r = sendmmsg(fd, m + done, BATCH - done, MSG_NOSIGNAL);

			if (r <= 0)
				die("sendmmsg");
			for (int i = done; i < done + r; i++)
				flow_sent(f, m[i].msg_len);
			done += r;
		}
		step_wait(c, step);
	}
}

static void batch_recv(struct tcase *c, struct flow *f, int fd, unsigned rounds, int step)
{
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];

	for (unsigned round = 0; round < rounds; round++) {
		int done = 0;

		batch_init(m, v, false);
		while (done < BATCH) {
			int r = recvmmsg(fd, m + done, BATCH - done, MSG_WAITFORONE, NULL);

			if (r <= 0)
				die("recvmmsg");
			for (int i = done; i < done + r; i++)
				flow_received(f, m[i].msg_len);
			done += r;
		}
		step_post(c, step);
	}
}

void mmsg_client(struct tcase *c, int fd)
{
	batch_send(c, &c->flows[UP], fd, 8 * shared->scale, STEP_UP);
	batch_recv(c, &c->flows[DOWN], fd, 3 * shared->scale, STEP_DOWN);
}

void mmsg_server(struct tcase *c, int fd)
{
	batch_recv(c, &c->flows[UP], fd, 8 * shared->scale, STEP_UP);
	batch_send(c, &c->flows[DOWN], fd, 3 * shared->scale, STEP_DOWN);
}

/* The receiver's buffer is too small: the rest of each datagram is thrown away. */
void trunc_client(struct tcase *c, int fd)
{
	for (unsigned i = 0; i < 10 * shared->scale; i++) {
		send_once(&c->flows[UP], fd, buf, 1000);
		step_wait(c, STEP_UP);
	}
}

void trunc_server(struct tcase *c, int fd)
{
	for (unsigned i = 0; i < 10 * shared->scale; i++) {
		ssize_t r = recv(fd, buf, 90, 0);

		if (r != 90)
			die("receive the start of a datagram");
		flow_received(&c->flows[UP], r);
		step_post(c, STEP_UP);
	}
}

/* Unconnected: one socket sends to two receivers by turns; the first of them may answer. */
enum { TX, RX1, RX2 };

struct sendto_plan {
	enum transport over;
	bool mapped;	   /* an AF_INET6 socket sends to ::ffff:127.0.0.1 */
	bool named_sender; /* it binds its address, rather than to get one at the first send */
	unsigned up, down;
};

enum { PLAN_UDP4, PLAN_UDP6, PLAN_MAPPED, PLAN_PATH, PLAN_ABSTRACT };

static const struct sendto_plan sendto_plans[] = {
	[PLAN_UDP4] = {OVER_UDP4, false, true, 30, 8},
	[PLAN_UDP6] = {OVER_UDP6, false, false, 33, 7},
	[PLAN_MAPPED] = {OVER_UDP4, true, false, 27, 6},
	[PLAN_PATH] = {OVER_UNIX_DGRAM_PATH, false, false, 31, 0},
	[PLAN_ABSTRACT] = {OVER_UNIX_DGRAM, false, true, 29, 5},
};

static const struct sendto_plan *plan_of(const struct tcase *c)
{
	return &sendto_plans[c->plan];
}

static void sendto_once(struct flow *f, int fd, size_t n, const union any_addr *a, socklen_t len)
{
	ssize_t r = sendto(fd, buf, n, MSG_NOSIGNAL, &a->sa, len);

	if (r < 0)
		die("sendto");
	flow_sent(f, r);
}

static void answers_recv(struct tcase *c, const struct sendto_plan *p, int fd)
{
	struct flow *f;

	if (!p->down)
		return;
	f = flow_between(c, RX1, TX, transport_kind(p->over));
	for (unsigned i = 0; i < p->down * shared->scale; i++) {
		ssize_t r = recv(fd, buf, BUF_BYTES, 0);

		if (r < 0)
			die("receive an answer");
		flow_received(f, r);
		step_post(c, STEP_DOWN);
	}
}

static void sendto_sender(struct tcase *c, int role)
{
	const struct sendto_plan *p = plan_of(c);
	enum transport via = p->mapped ? OVER_UDP_MAPPED : p->over;
	union any_addr to[3];
	socklen_t len[3];
	int fd = sock_for(c, via, RX1, &to[RX1], &len[RX1]);

	close(sock_for(c, via, RX2, &to[RX2], &len[RX2]));
	if (p->named_sender) {
		close(fd);
		fd = sock_bind(c, p->over, TX);
	}
	gate(c);
	for (unsigned i = 0; i < p->up * shared->scale; i++) {
		int rx = i % 3 == 2 ? RX2 : RX1;

		sendto_once(flow_between(c, TX, rx, transport_kind(p->over)), fd, 100 + i % 2000,
			    &to[rx], len[rx]);
		step_wait(c, STEP_UP);
	}
	step_post(c, STEP_A);
	answers_recv(c, p, fd);
}

static unsigned sent_to(const struct sendto_plan *p, int rx)
{
	unsigned all = p->up * shared->scale;

	return rx == RX2 ? all / 3 : all - all / 3;
}

static void answers_send(struct tcase *c, const struct sendto_plan *p, int fd,
			 const union any_addr *to, socklen_t len)
{
	struct flow *f = flow_between(c, RX1, TX, transport_kind(p->over));

	step_wait(c, STEP_A);
	for (unsigned i = 0; i < p->down * shared->scale; i++) {
		sendto_once(f, fd, 2000 + i % 500, to, len);
		step_wait(c, STEP_DOWN);
	}
}

static void sendto_receiver(struct tcase *c, int role)
{
	const struct sendto_plan *p = plan_of(c);
	struct flow *f = flow_between(c, TX, role, transport_kind(p->over));
	union any_addr from;
	socklen_t len = 0;
	int fd = sock_bind(c, p->over, role);

	gate(c);
	for (unsigned i = 0; i < sent_to(p, role); i++) {
		/* The second one does not ask who sent it, as many a log server does. */
		ssize_t r;

		len = sizeof(from);
		r = role == RX1 ? recvfrom(fd, buf, BUF_BYTES, 0, &from.sa, &len)
				: recv(fd, buf, BUF_BYTES, 0);
		if (r < 0)
			die("receive");
		flow_received(f, r);
		step_post(c, STEP_UP);
	}
	if (role == RX1 && p->down)
		answers_send(c, p, fd, &from, len);
}

static void sendto_run(struct tcase *c, int plan)
{
	enum kind kind = transport_kind(sendto_plans[plan].over);

	c->plan = plan;
	role_add(c, "tx", true);
	role_add(c, "rx1", true);
	role_add(c, "rx2", true);
	flow_add(c, TX, RX1, kind);
	flow_add(c, TX, RX2, kind);
	if (sendto_plans[plan].down)
		flow_add(c, RX1, TX, kind);
	role_start(c, RX1, sendto_receiver);
	role_start(c, RX2, sendto_receiver);
	role_start(c, TX, sendto_sender);
	case_play(c, NULL);
}

void sendto_udp4_run(struct tcase *c)
{
	sendto_run(c, PLAN_UDP4);
}

void sendto_udp6_run(struct tcase *c)
{
	sendto_run(c, PLAN_UDP6);
}

void sendto_mapped_run(struct tcase *c)
{
	sendto_run(c, PLAN_MAPPED);
}

void sendto_path_run(struct tcase *c)
{
	sendto_run(c, PLAN_PATH);
}

void sendto_abstract_run(struct tcase *c)
{
	sendto_run(c, PLAN_ABSTRACT);
}

/* The discard port of a loopback address that nobody binds. */
static const char nobody_addr[] = "127.9.9.9";
enum { NOBODY_PORT = 9 };

static void nobody_sender(struct tcase *c, int role)
{
	union any_addr a = {.in = {.sin_family = AF_INET, .sin_port = htons(NOBODY_PORT)}};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || inet_pton(AF_INET, nobody_addr, &a.in.sin_addr) != 1)
		die("open a socket");
	gate(c);
	for (unsigned i = 0; i < 12 * shared->scale; i++)
		sendto_once(&c->flows[UP], fd, message_len(i), &a, sizeof(a.in));
}

void nobody_run(struct tcase *c)
{
	struct flow *f;

	role_add(c, "tx", true);
	f = flow_add(c, TX, -1, KIND_UDP);
	snprintf(f->external, sizeof(f->external), "%s:%d", nobody_addr, NOBODY_PORT);
	role_start(c, TX, nobody_sender);
	case_play(c, NULL);
}
