/* A child process that looks at the memory of others and may be given up: see placement_worker.h. */
#include "placement_worker.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "clock.h"
#include "vec.h"
#include "worker.h"

#define WAITING_MOST 1024
#define STARVED_NS   (10 * NS_PER_SEC) /* for one process, of a child that only waits for a CPU */

struct question {
	uint32_t pid, pages;
	uint64_t tag;
};

struct placement_worker {
	struct placement_options o;
	uint64_t stuck_ns;
	struct worker child;
	VEC(struct question) asked; /* [0] is looked at now */
	uint64_t since_ns;	    /* when it had no other to look at any more */
};

/*
 * Nodes and segments that there are none of are not sent, so that more answers wait for who takes them once
 * a tick: what there is comes without a gap.
 */
static size_t nodes_bytes(const struct placement *p)
{
	return offsetof(struct placement, nodes) + p->nnodes * sizeof(p->nodes[0]);
}

static size_t segments_bytes(const struct placement *p)
{
	return p->nsegments * sizeof(p->segments[0]);
}

static bool send_answer(int fd, const struct placement *p)
{
	struct iovec parts[] = {{(void *)(uintptr_t)p, nodes_bytes(p)},
				{(void *)(uintptr_t)p->segments, segments_bytes(p)}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	return sendmsg(fd, &m, 0) >= 0;
}

static void serve(void *ctx, int fd)
{
	struct placement_options each = *(const struct placement_options *)ctx;
	struct question q;
	struct placement p;

	while (recv(fd, &q, sizeof(q), 0) == sizeof(q)) {
		each.pages = q.pages;
		placement_sample(&each, q.pid, q.tag, &p);
		if (!send_answer(fd, &p))
			return;
	}
}

static int start(struct placement_worker *w)
{
	w->since_ns = clock_mono_ns();
	return worker_start(&w->child, WORKER_CLOSE, serve, &w->o);
}

int placement_worker_open(struct placement_worker **ret, const struct placement_options *o, uint64_t stuck_ns,
			  struct err *e)
{
	struct placement_worker *w = mem_alloc(sizeof(*w));
	int rc;

	w->o = *o;
	w->stuck_ns = stuck_ns;
	w->child.fd = -1;
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
	worker_done(&w->child);
	vec_done(&w->asked);
	free(w);
}

static int send_question(struct placement_worker *w, const struct question *q)
{
	return send(w->child.fd, q, sizeof(*q), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int placement_worker_ask(struct placement_worker *w, uint32_t pid, uint64_t tag, uint32_t pages)
{
	struct question q = {.pid = pid, .pages = pages, .tag = tag};

	if (w->asked.n >= WAITING_MOST || w->child.fd < 0 || send_question(w, &q) < 0)
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

	worker_give_up(&w->child);
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
	ssize_t n = recv(w->child.fd, p, sizeof(*p), MSG_DONTWAIT);

	if (n >= (ssize_t)offsetof(struct placement, nodes) && p->nnodes <= PLACEMENT_NODES &&
	    p->nsegments <= PLACEMENT_SEGMENTS && n == (ssize_t)(nodes_bytes(p) + segments_bytes(p))) {
		memmove(p->segments, (char *)p + nodes_bytes(p), segments_bytes(p));
		return 1;
	}
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

/* Too long, and not for want of a CPU: a busy host is no locked memory map. */
static bool is_stuck(const struct placement_worker *w, uint64_t now)
{
	uint64_t took = now - w->since_ns;

	return took >= w->stuck_ns && (took >= STARVED_NS || !worker_is_runnable(&w->child));
}

int placement_worker_take(struct placement_worker *w, uint64_t wait_ns,
			  void (*cb)(void *ctx, const struct placement *p), void *ctx)
{
	uint64_t now = clock_mono_ns(), until = now + wait_ns;
	struct placement p;

	worker_reap(&w->child);
	if (w->child.fd < 0)
		return -EPIPE;
	while (w->asked.n) {
		int rc = receive(w, &p), wait_ms;

		if (rc > 0) {
			drop_first(w);
			cb(ctx, &p);
			continue;
		}
		now = clock_mono_ns();
		if (rc < 0 || is_stuck(w, now)) {
			rc = first_failed(w, rc < 0 ? rc : -ETIMEDOUT, &p);
			cb(ctx, &p);
			if (rc < 0)
				return rc;
			continue;
		}
		if (now >= until)
			return 0;
		wait_ms = (int)((until - now) / NS_PER_MS) + 1;
		poll(&(struct pollfd){.fd = w->child.fd, .events = POLLIN}, 1, wait_ms < 10 ? wait_ms : 10);
	}
	return 0;
}
