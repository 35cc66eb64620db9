/* A process that asks a vendor's library and may be given up: see accel_worker.h. */
#include "accel_worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "strbuf.h"

/* One that hung is asked again after this; each try may leave a process that cannot be killed. */
#define RETRY_NS (60 * NS_PER_SEC)
#define TRIES_MOST 3

/* The other end of the socket in the child, where it is the only thing that is open. */
#define CHILD_FD 3

/* More devices, processes or links than any host has: the answer is not from our child. */
#define ITEMS_MOST 65536

struct message {
	struct accel_head head;
	uint32_t devices, processes, links;
};

struct accel_worker {
	const struct accel_source *source;
	uint64_t deadline_ns;
	pid_t child; /* 0: there is none */
	int fd;	     /* -1 likewise */
	bool asked, no_library, absent;
	unsigned tries;
	uint64_t asked_ns, retry_ns;
	struct strbuf in;
	struct accel_report report;
	struct accel_head head;
	char broke[sizeof(((struct accel_head *)0)->why)]; /* how the library failed; "": it did not */
	pid_t gone[TRIES_MOST]; /* given up, not reaped yet */
	unsigned ngone;
};

/* Nothing else that this process has open may live on in a child that hangs. */
static void keep_only(int fd)
{
	if (fd != CHILD_FD)
		dup2(fd, CHILD_FD);
	if (!syscall(SYS_close_range, CHILD_FD + 1, ~0u, 0))
		return;
	for (int i = CHILD_FD + 1; i < 65536; i++)
		close(i);
}

static bool send_all(const void *p, size_t n)
{
	for (const char *s = p; n;) {
		ssize_t sent = send(CHILD_FD, s, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		s += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool send_report(const struct accel_report *r)
{
	struct message m = {
		.head = r->head,
		.devices = (uint32_t)r->devices.n,
		.processes = (uint32_t)r->processes.n,
		.links = (uint32_t)r->links.n,
	};

	return send_all(&m, sizeof(m)) && send_all(r->devices.v, m.devices * sizeof(*r->devices.v)) &&
	       send_all(r->processes.v, m.processes * sizeof(*r->processes.v)) &&
	       send_all(r->links.v, m.links * sizeof(*r->links.v));
}

__attribute__((noreturn)) static void serve(const struct accel_source *s, bool no_library, int fd, pid_t parent)
{
	struct accel_report r = {0};
	void *state = NULL;
	char question;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A crash of the vendor's library is reported, not kept as a file. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (getppid() != parent)
		_exit(0);
	keep_only(fd);
	while (recv(CHILD_FD, &question, 1, 0) == 1) {
		accel_report_done(&r);
		s->read(&state, no_library, &r);
		r.head.real_ns = clock_real_ns();
		if (!send_report(&r))
			break;
	}
	_exit(0);
}

static int start(struct accel_worker *w)
{
	int fds[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	w->child = fork();
	if (!w->child)
		serve(w->source, w->no_library, fds[1], parent);
	close(fds[1]);
	if (w->child < 0) {
		int rc = -errno;

		w->child = 0;
		close(fds[0]);
		return rc;
	}
	w->fd = fds[0];
	w->tries++;
	return 0;
}

static void reap(struct accel_worker *w)
{
	for (unsigned i = 0; i < w->ngone;)
		if (waitpid(w->gone[i], NULL, WNOHANG))
			w->gone[i] = w->gone[--w->ngone];
		else
			i++;
}

static void give_up(struct accel_worker *w)
{
	if (!w->child)
		return;
	close(w->fd);
	w->fd = -1;
	kill(w->child, SIGKILL);
	w->gone[w->ngone++] = w->child;
	w->child = 0;
	w->asked = false;
	w->retry_ns = clock_mono_ns() + RETRY_NS;
	strbuf_clear(&w->in);
	reap(w);
}

static void failed(struct accel_worker *w, const char *why)
{
	if (why)
		snprintf(w->broke, sizeof(w->broke), "%s", why);
	else
		snprintf(w->broke, sizeof(w->broke), "no answer within %llu s: the driver hangs",
			 (unsigned long long)(w->deadline_ns / NS_PER_SEC));
	w->head.state = ACCEL_FAILED;
	memcpy(w->head.why, w->broke, sizeof(w->head.why));
	give_up(w);
	/* At once, as the tool may still work, and is bounded by itself. */
	if (!w->no_library) {
		w->no_library = true;
		w->retry_ns = 0;
	}
}

void accel_worker_ask(struct accel_worker *w)
{
	reap(w);
	if (w->asked || w->absent)
		return;
	if (!w->child && (w->ngone == TRIES_MOST || w->tries >= TRIES_MOST || clock_mono_ns() < w->retry_ns))
		return;
	if (!w->child && start(w) < 0) {
		w->head.state = ACCEL_FAILED;
		snprintf(w->head.why, sizeof(w->head.why), "no process can be started for it");
		return;
	}
	w->asked_ns = clock_mono_ns();
	if (send(w->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		w->asked = true;
	else
		failed(w, "its process ended: the library crashed");
}

struct accel_worker *accel_worker_new(const struct accel_source *s, uint64_t deadline_ns)
{
	struct accel_worker *w = mem_alloc(sizeof(*w));

	w->source = s;
	w->deadline_ns = deadline_ns;
	w->fd = -1;
	w->head.state = ACCEL_ABSENT;
	snprintf(w->head.why, sizeof(w->head.why), "no answer yet");
	accel_worker_ask(w);
	return w;
}

void accel_worker_free(struct accel_worker *w)
{
	if (!w)
		return;
	if (w->child)
		give_up(w);
	/* One that does not hang ends at once. */
	for (unsigned i = 0; i < 20 && w->ngone; i++) {
		nanosleep(&(struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
		reap(w);
	}
	strbuf_done(&w->in);
	accel_report_done(&w->report);
	free(w);
}

/* @return 1: a whole answer is there, 0: not yet, -EBADMSG */
static int whole(const struct accel_worker *w, struct message *m)
{
	size_t want = sizeof(*m);

	if (w->in.n < want)
		return 0;
	memcpy(m, w->in.s, sizeof(*m));
	if (m->devices > ITEMS_MOST || m->processes > ITEMS_MOST || m->links > ITEMS_MOST)
		return -EBADMSG;
	want += m->devices * sizeof(struct accel) + m->processes * sizeof(struct accel_process) +
		m->links * sizeof(struct accel_link);
	return w->in.n < want ? 0 : w->in.n == want ? 1 : -EBADMSG;
}

#define TAKE_ITEMS(list, count)                                                                    \
	do {                                                                                       \
		vec_clear(list);                                                                   \
		vec_reserve(list, (count) + 1);                                                    \
		memcpy((list)->v, p, (count) * sizeof(*(list)->v));                                \
		(list)->n = (count);                                                               \
		p += (count) * sizeof(*(list)->v);                                                 \
	} while (0)

static void unpack(struct accel_worker *w, const struct message *m)
{
	const char *p = w->in.s + sizeof(*m);

	w->report.head = m->head;
	TAKE_ITEMS(&w->report.devices, m->devices);
	TAKE_ITEMS(&w->report.processes, m->processes);
	TAKE_ITEMS(&w->report.links, m->links);
	w->asked = false;
	strbuf_clear(&w->in);
	w->absent = m->head.state == ACCEL_ABSENT;
	/* That the library hung stays the reason, whatever the tool says afterwards. */
	if (w->broke[0]) {
		struct accel_head *h = &w->report.head;

		h->state = h->state == ACCEL_OK || h->state == ACCEL_REDUCED ? ACCEL_REDUCED : ACCEL_FAILED;
		memcpy(h->why, w->broke, sizeof(h->why));
		w->absent |= h->state == ACCEL_FAILED;
	}
	w->head = w->report.head;
	if (w->absent)
		give_up(w);
}

/* @return 1: more was read, 0: nothing is there, -errno: the other end is gone */
static int receive(struct accel_worker *w)
{
	char block[16384];
	ssize_t n = recv(w->fd, block, sizeof(block), MSG_DONTWAIT);

	if (n > 0) {
		strbuf_addn(&w->in, block, (size_t)n);
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}

const struct accel_report *accel_worker_take(struct accel_worker *w, uint64_t wait_ns)
{
	uint64_t until = clock_mono_ns() + wait_ns;

	while (w->asked) {
		struct message m;
		int rc = receive(w), done = rc > 0 ? whole(w, &m) : 0;
		uint64_t now = clock_mono_ns();

		if (rc < 0 || done < 0) {
			failed(w, "its process ended: the library crashed");
			return NULL;
		}
		if (done) {
			unpack(w, &m);
			return &w->report;
		}
		if (rc > 0)
			continue;
		if (now - w->asked_ns >= w->deadline_ns) {
			failed(w, NULL);
			return NULL;
		}
		if (now >= until)
			return NULL;
		poll(&(struct pollfd){.fd = w->fd, .events = POLLIN}, 1, (int)((until - now) / NS_PER_MS) + 1);
	}
	return NULL;
}

const struct accel_head *accel_worker_head(const struct accel_worker *w)
{
	return &w->head;
}

const struct accel_source *accel_worker_source(const struct accel_worker *w)
{
	return w->source;
}
