/* Nothing is wrong here. All but the tree of sleepers are busy, or have work now and then. */
#include <fcntl.h>
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

/* A person at a terminal: what is typed goes through a reader of it to a reader of a pipe. */
struct terminal {
	const struct diag *d;
	int master, slave, pipe[2];
};

static void type(void *arg)
{
	struct terminal *t = arg;
	uint64_t random = t->d->seed;

	for (;;) {
		rest_us(about_us(&random, t->d->size * 20));
		if (write(t->master, "what is the time\n", 17) != 17)
			die("write");
	}
}

static void watch(void *arg)
{
	struct terminal *t = arg;
	char line[256];

	/* What is typed comes back as an echo. */
	while (read(t->master, line, sizeof(line)) > 0)
		work_us(20);
	die("read");
}

static void shell(void *arg)
{
	struct terminal *t = arg;
	char line[256];
	ssize_t n;

	while ((n = read(t->slave, line, sizeof(line))) > 0) {
		work_us(300);
		if (write(t->pipe[1], line, (size_t)n) != n)
			die("write");
	}
	die("read");
}

static void drink(void *arg)
{
	struct terminal *t = arg;
	char line[256];

	while (read(t->pipe[0], line, sizeof(line)) > 0)
		work_us(100);
	die("read");
}

static void terminal(const struct diag *d)
{
	struct terminal *t = calloc(1, sizeof(*t));

	t->d = d;
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || grantpt(t->master) || unlockpt(t->master))
		die("posix_openpt");
	t->slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0 || pipe(t->pipe))
		die("open");
	start_process("typist", NULL, type, t);
	start_process("screen", NULL, watch, t);
	start_process("shell", NULL, shell, t);
	start_process("reader", NULL, drink, t);
}

/* The two sides of one program, of which one sends at a rate, as it was told to. */
struct pace {
	const struct diag *d;
	int fd[2];
};

static void give(void *arg)
{
	static char block[16384];
	struct pace *p = arg;

	for (;;) {
		rest_us(p->d->size);
		if (write(p->fd[0], block, sizeof(block)) != sizeof(block))
			die("write");
	}
}

static void take(void *arg)
{
	static char block[16384];
	struct pace *p = arg;

	while (read(p->fd[1], block, sizeof(block)) > 0)
		;
	die("read");
}

static void paced(const struct diag *d)
{
	struct pace *p = calloc(1, sizeof(*p));

	p->d = d;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd))
		die("socketpair");
	start_process("giver", "side", give, p);
	start_process("taker", "side", take, p);
}

const struct diag_case quiet_cases[] = {
	{"poller", "looks for work all the time, by design", poller},
	{"idle-server", "a server with little to do", idle_server},
	{"terminal", "a person types now and then what others read", terminal},
	{"paced", "one side of a program sends at a rate", paced},
	{"sleepers", "a tree of processes that only sleep", sleepers},
	{0},
};
