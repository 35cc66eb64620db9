/* A pretend serving system for the quickstart: something to see on any host. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * client --TCP--> router --TCP--> worker 0 --pipe--> logger
 *                        --Unix-> worker 1 --pipe-->
 *
 * Worker 0 also has a thread that computes all the time. A client asks, the router passes the
 * request to one worker and the answer back, and the worker writes one line for the logger.
 */
enum {
	REQUEST_BYTES = 512,
	REPLY_BYTES = 8192,
	LOG_BYTES = 64,
	REQUESTS_PER_S = 500,
	WORKERS = 2,
	SECONDS_MAX = 86400,
};

static void die(const char *what)
{
	fprintf(stderr, "demo: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void read_all(int fd, void *buf, size_t n)
{
	char *p = buf;

	while (n > 0) {
		ssize_t got = read(fd, p, n);

		if (got == 0)
			exit(0); /* the other side has ended: so do we */
		if (got < 0 && errno != EINTR)
			die("read");
		if (got > 0) {
			p += got;
			n -= (size_t)got;
		}
	}
}

static void write_all(int fd, const void *buf, size_t n)
{
	const char *p = buf;

	while (n > 0) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EPIPE)
			exit(0);
		if (put < 0 && errno != EINTR)
			die("write");
		if (put > 0) {
			p += put;
			n -= (size_t)put;
		}
	}
}

/** Make a listening socket on loopback. @param ret_addr its address, with the port it was given */
static int listen_tcp(struct sockaddr_in *ret_addr)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		die("listen on 127.0.0.1");
	*ret_addr = a;
	return fd;
}

/** Make a listening Unix socket under an abstract name: no file is left behind. */
static int listen_unix(struct sockaddr_un *ret_addr, socklen_t *ret_len)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "witty-demo-%d", (int)getpid());
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 8) < 0)
		die("listen on a unix socket");
	*ret_addr = a;
	*ret_len = len;
	return fd;
}

static int connect_to(const void *addr, socklen_t len)
{
	const struct sockaddr *a = addr;
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, a, len) < 0)
		die("connect");
	return fd;
}

static int accept_one(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	return fd;
}

static void *compute(void *arg)
{
	volatile uint64_t *sum = arg;

	prctl(PR_SET_NAME, "demo-compute");
	for (;;)
		*sum = *sum * 6364136223846793005u + 1442695040888963407u;
	return NULL;
}

static void run_worker(int listener, int log_fd, bool busy)
{
	static uint64_t sum;
	char request[REQUEST_BYTES], reply[REPLY_BYTES], line[LOG_BYTES];
	pthread_t thread;
	int fd = accept_one(listener);

	if (busy && pthread_create(&thread, NULL, compute, &sum) != 0)
		die("start a thread");
	memset(reply, 'a', sizeof(reply));
	memset(line, ' ', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (;;) {
		read_all(fd, request, sizeof(request));
		write_all(fd, reply, sizeof(reply));
		write_all(log_fd, line, sizeof(line));
	}
}

static void run_logger(int log_fd)
{
	char line[LOG_BYTES];

	for (;;)
		read_all(log_fd, line, sizeof(line));
}

static void run_router(int listener, const int workers[static WORKERS])
{
	char request[REQUEST_BYTES], reply[REPLY_BYTES];
	int client = accept_one(listener);

	for (unsigned int turn = 0;; turn++) {
		int worker = workers[turn % WORKERS];

		read_all(client, request, sizeof(request));
		write_all(worker, request, sizeof(request));
		read_all(worker, reply, sizeof(reply));
		write_all(client, reply, sizeof(reply));
	}
}

static void run_client(int fd, unsigned int seconds)
{
	const struct timespec pause = {.tv_nsec = 1000000000 / REQUESTS_PER_S};
	char request[REQUEST_BYTES], reply[REPLY_BYTES];
	struct timespec start, now;

	memset(request, 'q', sizeof(request));
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		write_all(fd, request, sizeof(request));
		read_all(fd, reply, sizeof(reply));
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < (time_t)seconds);
}

/** Fork a child called @p name that ends with its parent. @return 0 in the child, else its pid */
static pid_t spawn(const char *name)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		exit(0);
	return 0;
}

static unsigned int parse_seconds(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || n > SECONDS_MAX) {
		fprintf(stderr, "usage: witty-demo [SECONDS, at most %d]\n", SECONDS_MAX);
		exit(2);
	}
	return (unsigned int)n;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? parse_seconds(argv[1]) : 10;
	struct sockaddr_in front, back;
	struct sockaddr_un local;
	socklen_t local_len;
	int front_fd = listen_tcp(&front), back_fd = listen_tcp(&back);
	int local_fd = listen_unix(&local, &local_len);
	int log_fds[2];

	signal(SIGPIPE, SIG_IGN);
	if (pipe(log_fds) < 0)
		die("pipe");
	if (spawn("demo-logger") == 0) {
		close(log_fds[1]);
		run_logger(log_fds[0]);
	}
	close(log_fds[0]);
	if (spawn("demo-worker-0") == 0)
		run_worker(back_fd, log_fds[1], true);
	if (spawn("demo-worker-1") == 0)
		run_worker(local_fd, log_fds[1], false);
	close(log_fds[1]);
	if (spawn("demo-router") == 0) {
		int workers[WORKERS] = {connect_to(&back, sizeof(back)), connect_to(&local, local_len)};

		run_router(front_fd, workers);
	}
	prctl(PR_SET_NAME, "demo-client");
	run_client(connect_to(&front, sizeof(front)), seconds);
	return 0;
}
