/* Child processes that may hang, and reading files through one: see worker.h. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "privilege.h"

#define CHILD_FD  3	/* the socket in a child that keeps nothing else */
#define DONE_MS	  20	/* one that is not stuck ends sooner */
#define PATH_MOST 256

/* All that this process has, and what those had used that it gave up: one thread starts and ends them. */
static VEC(pid_t) running;
static uint64_t ended_cpu_ns;

static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t workers_cpu_ns(void)
{
	uint64_t sum = ended_cpu_ns;

	vec_for(&running, pid)
		sum += cpu_ns_of(*pid);
	return sum;
}

void workers_each(void (*cb)(void *ctx, pid_t pid), void *ctx)
{
	vec_for(&running, pid)
		cb(ctx, *pid);
}

static void forget_running(pid_t pid)
{
	for (size_t i = 0; i < running.n; i++)
		if (running.v[i] == pid)
			running.v[i] = running.v[--running.n];
	if (!running.n)
		vec_done(&running);
}

/* @last: -1: all that follow */
static void close_range_of(int first, int last)
{
	/* As the system call says it: older headers have no name for it. */
	if (first > last && last >= 0)
		return;
	if (!syscall(SYS_close_range, first, last < 0 ? ~0u : (unsigned)last, 0))
		return;
	if (last < 0)
		last = (int)sysconf(_SC_OPEN_MAX) - 1;
	for (int i = first; i <= last && i < 65536; i++)
		close(i);
}

static int keep_only(int fd)
{
	if (fd != CHILD_FD)
		dup2(fd, CHILD_FD);
	close_range_of(CHILD_FD + 1, -1);
	return CHILD_FD;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void worker_keep_files(int *keep, size_t n)
{
	int first = STDERR_FILENO + 1;

	qsort(keep, n, sizeof(*keep), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < first)
			continue;
		close_range_of(first, keep[i] - 1);
		first = keep[i] + 1;
	}
	close_range_of(first, -1);
}

/* It reads other processes and asks probes; who has fewer privileges keeps those. */
static void give_up_privileges(void)
{
	struct err e;

	privilege_keep(PRIVILEGES_OBSERVE, &e);
}

int worker_start(struct worker *w, enum worker_files files, void (*serve)(void *ctx, int fd), void *ctx)
{
	pid_t parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	w->pid = fork();
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		give_up_privileges();
		if (getppid() == parent)
			serve(ctx, files == WORKER_CLOSE ? keep_only(fds[1]) : fds[1]);
		_exit(0);
	}
	close(fds[1]);
	w->fd = fds[0];
	if (w->pid < 0) {
		int rc = -errno;

		close(TAKE_FD(w->fd));
		return rc;
	}
	vec_push(&running, w->pid);
	return 0;
}

bool worker_is_runnable(const struct worker *w)
{
	char path[64], text[256], *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", w->pid);
	CLEANUP_CLOSE int fd = w->fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	/* The state stands behind the name, which may have brackets of its own. */
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}

void worker_reap(struct worker *w)
{
	for (size_t i = 0; i < w->gone.n;)
		if (waitpid(w->gone.v[i], NULL, WNOHANG))
			w->gone.v[i] = w->gone.v[--w->gone.n];
		else
			i++;
}

void worker_give_up(struct worker *w)
{
	if (w->fd < 0)
		return;
	close(TAKE_FD(w->fd));
	/* One that ended by itself and was not reaped still tells. */
	ended_cpu_ns += cpu_ns_of(w->pid);
	forget_running(w->pid);
	kill(w->pid, SIGKILL);
	vec_push(&w->gone, w->pid);
	worker_reap(w);
}

void worker_done(struct worker *w)
{
	worker_give_up(w);
	for (unsigned i = 0; i < DONE_MS && w->gone.n; i++) {
		nanosleep(&(struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
		worker_reap(w);
	}
	vec_done(&w->gone);
}

struct read_question {
	uint64_t offset;
	char path[PATH_MOST]; /* as much as is sent */
};

/* An answer: the result, and behind it what was read. */
struct read_answer {
	int64_t n;
	char bytes[SLOW_READ_BYTES];
};

static void serve_reads(void *ctx, int fd)
{
	static struct read_answer a; /* of the child alone */
	struct read_question q;

	(void)ctx;
	while (recv(fd, &q, sizeof(q), 0) > (ssize_t)sizeof(q.offset)) {
		CLEANUP_CLOSE int f = open(q.path, O_RDONLY | O_CLOEXEC);
		a.n = f < 0 ? -errno : pread(f, a.bytes, sizeof(a.bytes), (off_t)q.offset);
		if (f >= 0 && a.n < 0)
			a.n = -errno;
		if (send(fd, &a, sizeof(a.n) + (a.n > 0 ? (size_t)a.n : 0), 0) < 0)
			return;
	}
}

void slow_reader_init(struct slow_reader *r, uint64_t stuck_ns)
{
	memset(r, 0, sizeof(*r));
	r->w.fd = -1;
	r->stuck_ns = stuck_ns;
}

void slow_reader_done(struct slow_reader *r)
{
	worker_done(&r->w);
}

ssize_t slow_read(struct slow_reader *r, const char *path, uint64_t offset, void *buf, size_t size)
{
	struct read_question q = {.offset = offset};
	size_t length = strlen(path) + 1;
	struct pollfd p = {.events = POLLIN};
	struct read_answer a;
	ssize_t n;
	int rc;

	if (length > sizeof(q.path))
		return -ENAMETOOLONG;
	memcpy(q.path, path, length);
	worker_reap(&r->w);
	if (r->w.fd < 0 && (rc = worker_start(&r->w, WORKER_CLOSE, serve_reads, NULL)) < 0)
		return rc;
	if (send(r->w.fd, &q, offsetof(struct read_question, path) + length, MSG_NOSIGNAL) < 0) {
		worker_give_up(&r->w);
		return -EPIPE;
	}
	p.fd = r->w.fd;
	while ((rc = poll(&p, 1, (int)(r->stuck_ns / NS_PER_MS))) < 0 && errno == EINTR)
		;
	n = rc > 0 ? recv(r->w.fd, &a, sizeof(a), 0) : -1;
	if (n < (ssize_t)sizeof(a.n)) {
		worker_give_up(&r->w);
		r->stuck += rc == 0;
		return rc == 0 ? -ETIMEDOUT : -EPIPE;
	}
	if (a.n > 0)
		memcpy(buf, a.bytes, (size_t)a.n < size ? (size_t)a.n : size);
	return a.n > (int64_t)size ? (ssize_t)size : (ssize_t)a.n;
}
