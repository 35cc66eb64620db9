/* A child process that looks at the memory of others and may be given up: see placement_worker.h. */
#include "placement_worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "vec.h"

#define WAITING_MOST 1024

struct question {
	uint32_t pid, pages;
	uint64_t tag;
};

struct placement_worker {
	const struct placement_options *o;
	uint64_t stuck_ns;
	pid_t child;
	int fd; /* -1: there is no child */
	VEC(struct question) asked; /* [0] is looked at now */
	uint64_t since_ns;	    /* when it had no other to look at any more */
	VEC(pid_t) gone;	    /* given up, not reaped yet */
};

/* The other end of a socket in the child, where it is the only thing that is open. */
#define CHILD_FD 3

/* Nodes that there are none of are not sent, so that more answers wait for who takes them once a tick. */
static size_t answer_bytes(const struct placement *p)
{
	return offsetof(struct placement, nodes) + p->nnodes * sizeof(p->nodes[0]);
}

/*
 * Nothing that this process has open may live on in a child that hangs: BPF programs would stay
 * attached, a recording locked.
 */
static void keep_only(int fd)
{
	if (fd != CHILD_FD)
		dup2(fd, CHILD_FD);
	if (!syscall(SYS_close_range, CHILD_FD + 1, ~0u, 0))
		return;
	for (int i = CHILD_FD + 1, n = (int)sysconf(_SC_OPEN_MAX); i < n && i < 65536; i++)
		close(i);
}

__attribute__((noreturn)) static void serve(const struct placement_options *o, int fd, pid_t parent)
{
	struct placement_options each = *o;
	struct question q;
	struct placement p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	keep_only(fd);
	signal(SIGPIPE, SIG_IGN);
	while (recv(CHILD_FD, &q, sizeof(q), 0) == sizeof(q)) {
		each.pages = q.pages;
		placement_sample(&each, q.pid, q.tag, &p);
		if (send(CHILD_FD, &p, answer_bytes(&p), 0) < 0)
			break;
	}
	_exit(0);
}

static int start(struct placement_worker *w)
{
	int fds[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	w->child = fork();
	if (!w->child)
		serve(w->o, fds[1], parent);
	close(fds[1]);
	if (w->child < 0) {
		int rc = -errno;

		close(fds[0]);
		return rc;
	}
	w->fd = fds[0];
	w->since_ns = clock_mono_ns();
	return 0;
}

static void reap(struct placement_worker *w)
{
	for (size_t i = 0; i < w->gone.n;)
		if (waitpid(w->gone.v[i], NULL, WNOHANG))
			w->gone.v[i] = w->gone.v[--w->gone.n];
		else
			i++;
}

static void give_up(struct placement_worker *w)
{
	if (w->fd < 0)
		return;
	close(w->fd);
	w->fd = -1;
	kill(w->child, SIGKILL);
	vec_push(&w->gone, w->child);
	reap(w);
}

int placement_worker_open(struct placement_worker **ret, const struct placement_options *o, uint64_t stuck_ns,
			  struct err *e)
{
	struct placement_worker *w = mem_alloc(sizeof(*w));
	int rc;

	w->o = o;
	w->stuck_ns = stuck_ns;
	w->fd = -1;
	rc = start(w);
	if (rc < 0) {
		free(w);
		return err_set(e, rc, "start the process that looks at memory");
	}
	*ret = w;
	return 0;
}

void placement_worker_close(struct placement_worker *w)
{
	if (!w)
		return;
	give_up(w);
	/* One that is not stuck ends at once. */
	for (unsigned i = 0; i < 20 && w->gone.n; i++) {
		nanosleep(&(struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
		reap(w);
	}
	vec_done(&w->asked);
	vec_done(&w->gone);
	free(w);
}

static int send_question(struct placement_worker *w, const struct question *q)
{
	return send(w->fd, q, sizeof(*q), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int placement_worker_ask(struct placement_worker *w, uint32_t pid, uint64_t tag, uint32_t pages)
{
	struct question q = {.pid = pid, .pages = pages, .tag = tag};

	if (w->asked.n >= WAITING_MOST || w->fd < 0 || send_question(w, &q) < 0)
		return -EAGAIN;
	if (!w->asked.n)
		w->since_ns = clock_mono_ns();
	vec_push(&w->asked, q);
	return 0;
}

size_t placement_worker_waiting(const struct placement_worker *w)
{
	return w->asked.n;
}

static void drop_first(struct placement_worker *w)
{
	memmove(&w->asked.v[0], &w->asked.v[1], --w->asked.n * sizeof(w->asked.v[0]));
	w->since_ns = clock_mono_ns();
}

/* Start another one, and ask it about those that the stuck one did not come to. */
static int replace(struct placement_worker *w)
{
	int rc;

	give_up(w);
	rc = start(w);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < w->asked.n; i++)
		if (send_question(w, &w->asked.v[i]) < 0) {
			w->asked.n = i;
			break;
		}
	return 0;
}

/* @return 1: an answer, 0: none is there, -errno: the other end is gone */
static int receive(struct placement_worker *w, struct placement *p)
{
	ssize_t n = recv(w->fd, p, sizeof(*p), MSG_DONTWAIT);

	if (n >= (ssize_t)offsetof(struct placement, nodes) && n == (ssize_t)answer_bytes(p))
		return 1;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}

/* The answer for the process that takes too long, or that its reader died of. */
static int first_failed(struct placement_worker *w, int error, struct placement *p)
{
	memset(p, 0, sizeof(*p));
	p->pid = w->asked.v[0].pid;
	p->tag = w->asked.v[0].tag;
	p->error = error;
	drop_first(w);
	return replace(w);
}

int placement_worker_take(struct placement_worker *w, uint64_t wait_ns,
			  void (*cb)(void *ctx, const struct placement *p), void *ctx)
{
	uint64_t now = clock_mono_ns(), until = now + wait_ns;
	struct placement p;

	reap(w);
	if (w->fd < 0)
		return -EPIPE;
	while (w->asked.n) {
		int rc = receive(w, &p), wait_ms;

		if (rc > 0) {
			drop_first(w);
			cb(ctx, &p);
			continue;
		}
		now = clock_mono_ns();
		if (rc < 0 || now - w->since_ns >= w->stuck_ns) {
			rc = first_failed(w, rc < 0 ? rc : -ETIMEDOUT, &p);
			cb(ctx, &p);
			if (rc < 0)
				return rc;
			continue;
		}
		if (now >= until)
			return 0;
		wait_ms = (int)((until - now) / NS_PER_MS) + 1;
		poll(&(struct pollfd){.fd = w->fd, .events = POLLIN}, 1, wait_ms < 10 ? wait_ms : 10);
	}
	return 0;
}
