/* One-request-at-a-time io_uring, with or without a kernel thread that polls the queue. */

#include "io.h"

#include <errno.h>

#ifdef HAVE_LIBURING
#include <liburing.h>
#include <stdlib.h>

struct uring {
	struct io_uring ring;
};

struct uring *uring_new(struct act *a, bool sqpoll)
{
	struct io_uring_params p = {.flags = sqpoll ? IORING_SETUP_SQPOLL : 0, .sq_thread_idle = 50};
	struct uring *u = malloc(sizeof(*u));
	int rc;

	if (!u)
		act_die(a, "allocate a ring");
	rc = io_uring_queue_init_params(4, &u->ring, &p);
	if (rc < 0) {
		errno = -rc;
		act_die(a, "io_uring set-up");
	}
	return u;
}

void uring_free(struct uring *u)
{
	if (!u)
		return;
	io_uring_queue_exit(&u->ring);
	free(u);
}

static ssize_t finish(struct act *a, struct uring *u)
{
	struct io_uring_cqe *cqe;
	int rc = io_uring_submit(&u->ring);

	if (rc >= 0)
		rc = io_uring_wait_cqe(&u->ring, &cqe);
	if (rc < 0) {
		errno = -rc;
		act_die(a, "io_uring");
	}
	rc = cqe->res;
	io_uring_cqe_seen(&u->ring, cqe);
	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	return rc;
}

ssize_t uring_send(struct act *a, struct uring *u, int fd, const void *p, size_t n)
{
	io_uring_prep_send(io_uring_get_sqe(&u->ring), fd, p, n, MSG_NOSIGNAL);
	return finish(a, u);
}

ssize_t uring_recv(struct act *a, struct uring *u, int fd, void *p, size_t n)
{
	io_uring_prep_recv(io_uring_get_sqe(&u->ring), fd, p, n, 0);
	return finish(a, u);
}

bool uring_works(void)
{
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, 0) < 0)
		return false;
	io_uring_queue_exit(&ring);
	return true;
}

#else

struct uring *uring_new(struct act *a, bool sqpoll)
{
	errno = ENOSYS;
	act_die(a, "io_uring: built without liburing");
}

void uring_free(struct uring *u)
{
}

ssize_t uring_send(struct act *a, struct uring *u, int fd, const void *p, size_t n)
{
	errno = ENOSYS;
	return -1;
}

ssize_t uring_recv(struct act *a, struct uring *u, int fd, void *p, size_t n)
{
	errno = ENOSYS;
	return -1;
}

bool uring_works(void)
{
	return false;
}

#endif
