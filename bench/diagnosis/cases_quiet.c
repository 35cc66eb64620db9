/* Nothing is wrong here. All but the tree of sleepers are busy, or have work now and then. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "diag.h"

struct poller {
	const struct diag *d;
	int fd[2];
	unsigned flag;
};

/* Looks for work without a pause, as those do who must answer within a microsecond. */
static void look(void *arg)
{
	struct poller *p = arg;
	struct pollfd f = {.fd = p->fd[0], .events = POLLIN};
	char c;

	for (;;) {
		if (p->d->seed % 3 == 1 && poll(&f, 1, 0) > 0 && read(p->fd[0], &c, 1) != 1)
			die("read");
		if (p->d->seed % 3 == 2)
			sched_yield();
		if (__atomic_exchange_n(&p->flag, 0, __ATOMIC_ACQUIRE))
			work_us(50);
	}
}

static void feed(void *arg)
{
	struct poller *p = arg;

	for (;;) {
		rest_us(p->d->size);
		__atomic_store_n(&p->flag, 1, __ATOMIC_RELEASE);
		if (p->d->seed % 3 == 1 && write(p->fd[1], "x", 1) != 1)
			die("write");
	}
}

static void poller(const struct diag *d)
{
	struct poller *p = calloc(1, sizeof(*p));

	p->d = d;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd))
		die("socketpair");
	start_thread("poller", NULL, look, p);
	start_thread("feeder", NULL, feed, p);
}

struct server {
	const struct diag *d;
	int fd[DIAG_THREADS_MAX][2];
};

static void serve(void *arg)
{
	struct server *s = arg;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	char c;

	for (unsigned i = 0; i < s->d->threads; i++) {
		e = (struct epoll_event){.events = EPOLLIN, .data.fd = s->fd[i][0]};
		if (epoll_ctl(ep, EPOLL_CTL_ADD, s->fd[i][0], &e))
			die("epoll_ctl");
	}
	while (epoll_wait(ep, &e, 1, 1000) >= 0) {
		if (read(e.data.fd, &c, 1) != 1)
			die("read");
		work_us(100);
		if (write(e.data.fd, &c, 1) != 1)
			die("write");
	}
}

struct client {
	struct server *s;
	unsigned number;
};

static void ask(void *arg)
{
	struct client *c = arg;
	int fd = c->s->fd[c->number][1];
	uint64_t random = c->s->d->seed + c->number;
	char b = 0;

	for (;;) {
		rest_us(about_us(&random, c->s->d->size * 10));
		if (write(fd, &b, 1) != 1 || read(fd, &b, 1) != 1)
			die("ask");
	}
}

static void idle_server(const struct diag *d)
{
	struct server *s = calloc(1, sizeof(*s));

	s->d = d;
	for (unsigned i = 0; i < d->threads; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, s->fd[i]))
			die("socketpair");
	start_process("server", NULL, serve, s);
	for (unsigned i = 0; i < d->threads; i++) {
		struct client *c = calloc(1, sizeof(*c));

		*c = (struct client){s, i};
		start_process("client", NULL, ask, c);
	}
}

static void sleep_deep(void *arg)
{
	unsigned depth = (unsigned)(uintptr_t)arg;

	if (depth)
		start_process("sleeper", NULL, sleep_deep, (void *)(uintptr_t)(depth - 1));
	for (;;)
		pause();
}

static void sleepers(const struct diag *d)
{
	for (unsigned i = 0; i < d->threads; i++)
		start_process("sleeper", NULL, sleep_deep, (void *)(uintptr_t)(i % 3));
}

const struct diag_case quiet_cases[] = {
	{"poller", "looks for work all the time, by design", poller},
	{"idle-server", "a server with little to do", idle_server},
	{"sleepers", "a tree of processes that only sleep", sleepers},
	{0},
};
