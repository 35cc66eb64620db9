/*
 * A host at its worst, in known amounts: processes that begin and end, many connections, and
 * connections that come and go. Prints what it did as one JSON object.
 *
 *   storm SECONDS FORKS_PER_SECOND CONNECTIONS CHURN_PER_SECOND
 *
 * Every connection (two sockets of this process, over loopback) carries one message a second. Ends by
 * itself after SECONDS, and with its parent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES	64
#define SECONDS_MAX	7200
#define FORKS_MAX	5000
#define CONNECTIONS_MAX 9900 /* two files each, of the 20 000 that many hosts allow */
#define STEPS		100 /* a second is done in so many parts */

struct storm {
	unsigned seconds, forks_per_s, connections, churn_per_s;
	int (*ends)[2]; /* [connections] */
	int listener;
	struct sockaddr_in addr;
	uint64_t forks, forks_failed, messages, churned;
};

static void fail(const char *what)
{
	fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned number(const char *s, unsigned max)
{
	char *end;
	unsigned long v = strtoul(s, &end, 10);

	if (end == s || *end || v > max) {
		fprintf(stderr, "storm: '%s': not a number up to %u\n", s, max);
		exit(2);
	}
	return (unsigned)v;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void open_listener(struct storm *s)
{
	socklen_t n = sizeof(s->addr);

	s->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	s->listener = socket(AF_INET, SOCK_STREAM, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&s->addr, sizeof(s->addr)) < 0 ||
	    listen(s->listener, 128) < 0 || getsockname(s->listener, (struct sockaddr *)&s->addr, &n) < 0)
		fail("listen");
}

static void connect_pair(struct storm *s, int ends[2])
{
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&s->addr, sizeof(s->addr)) < 0)
		fail("connect");
	ends[1] = accept(s->listener, NULL, NULL);
	if (ends[1] < 0)
		fail("accept");
}

static void pass_message(struct storm *s, const int ends[2])
{
	char message[MESSAGE_BYTES] = {0};

	if (send(ends[0], message, sizeof(message), 0) != MESSAGE_BYTES ||
	    recv(ends[1], message, sizeof(message), MSG_WAITALL) != MESSAGE_BYTES)
		fail("message");
	s->messages++;
}

/* Abortive, so that loopback's ports do not run out in TIME_WAIT. */
static void close_pair(const int ends[2])
{
	struct linger l = {.l_onoff = 1};

	setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(ends[0]);
	close(ends[1]);
}

static void fork_one(struct storm *s)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0)
		s->forks_failed++;
	else if (waitpid(pid, NULL, 0) == pid)
		s->forks++;
}

static void churn_one(struct storm *s)
{
	int ends[2];

	connect_pair(s, ends);
	pass_message(s, ends);
	close_pair(ends);
	s->churned++;
}

/* The share of @p per_second that belongs to a step, so that STEPS of them make the whole. */
static unsigned part(unsigned per_second, unsigned step)
{
	return per_second * (step + 1) / STEPS - per_second * step / STEPS;
}

static void step(struct storm *s, unsigned i)
{
	for (unsigned n = part(s->forks_per_s, i); n; n--)
		fork_one(s);
	for (unsigned n = part(s->churn_per_s, i); n; n--)
		churn_one(s);
	for (unsigned k = s->connections * i / STEPS; k < s->connections * (i + 1) / STEPS; k++)
		pass_message(s, s->ends[k]);
}

static void run(struct storm *s)
{
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < (uint64_t)s->seconds * STEPS; i++) {
		uint64_t due = start + i * (1000000000ull / STEPS), now = now_ns();

		if (now > start + s->seconds * 1000000000ull)
			break;
		if (now < due)
			usleep((useconds_t)((due - now) / 1000));
		step(s, (unsigned)(i % STEPS));
	}
}

int main(int argc, char **argv)
{
	struct storm s = {0};
	struct rlimit files;

	if (argc != 5) {
		fprintf(stderr, "usage: storm SECONDS FORKS_PER_SECOND CONNECTIONS CHURN_PER_SECOND\n");
		return 2;
	}
	s.seconds = number(argv[1], SECONDS_MAX);
	s.forks_per_s = number(argv[2], FORKS_MAX);
	s.connections = number(argv[3], CONNECTIONS_MAX);
	s.churn_per_s = number(argv[4], FORKS_MAX);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		fail("setrlimit");
	s.ends = calloc(s.connections + 1, sizeof(*s.ends));
	if (!s.ends)
		fail("calloc");
	open_listener(&s);
	for (unsigned i = 0; i < s.connections; i++)
		connect_pair(&s, s.ends[i]);
	run(&s);
	printf("{\"forks\": %llu, \"forks_failed\": %llu, \"messages\": %llu, \"churned\": %llu}\n",
	       (unsigned long long)s.forks, (unsigned long long)s.forks_failed,
	       (unsigned long long)s.messages, (unsigned long long)s.churned);
	return 0;
}
