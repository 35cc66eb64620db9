/* io_uring by bare system calls, with and without a kernel thread that polls the queue. */
#include "truth.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One request at a time: what is tested is who is charged with the transfer, not the queue. */
struct ring {
	int fd;
	bool sqpoll;
	_Atomic uint32_t *sq_tail, *sq_flags, *cq_head, *cq_tail;
	uint32_t *sq_array;
	uint32_t sq_mask, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static int ring_setup(unsigned entries, struct io_uring_params *p)
{
	return syscall(__NR_io_uring_setup, entries, p);
}

static char *ring_map(int fd, size_t size, off_t what)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

	if (p == MAP_FAILED)
		die("map a ring");
	return p;
}

static void ring_open(struct ring *r, bool sqpoll)
{
	struct io_uring_params p = {.flags = sqpoll ? IORING_SETUP_SQPOLL : 0,
				    .sq_thread_idle = 100};
	char *sq, *cq;

	r->fd = ring_setup(8, &p);
	if (r->fd < 0)
		die("io_uring_setup");
	r->sqpoll = sqpoll;
	sq = ring_map(r->fd, p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
	cq = ring_map(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes), IORING_OFF_CQ_RING);
	r->sqes = (void *)ring_map(r->fd, p.sq_entries * sizeof(*r->sqes), IORING_OFF_SQES);
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_flags = (void *)(sq + p.sq_off.flags);
	r->sq_array = (void *)(sq + p.sq_off.array);
	r->sq_mask = *(uint32_t *)(sq + p.sq_off.ring_mask);
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->cq_mask = *(uint32_t *)(cq + p.cq_off.ring_mask);
	r->cqes = (void *)(cq + p.cq_off.cqes);
}

static void ring_enter(struct ring *r, unsigned submit, unsigned flags)
{
	unsigned wait = flags & IORING_ENTER_GETEVENTS ? 1 : 0;

	while (syscall(__NR_io_uring_enter, r->fd, submit, wait, flags, NULL, 0) < 0)
		if (errno != EINTR)
			die("io_uring_enter");
}

/* The result of one request: bytes, or a negative errno. */
static int ring_do(struct ring *r, int op, int fd, size_t n)
{
	uint32_t tail = atomic_load(r->sq_tail), i = tail & r->sq_mask;
	uint32_t head = atomic_load(r->cq_head);
	int res;

	memset(&r->sqes[i], 0, sizeof(r->sqes[i]));
	r->sqes[i].opcode = op;
	r->sqes[i].fd = fd;
	r->sqes[i].addr = (uintptr_t)buf;
	r->sqes[i].len = n;
	r->sqes[i].msg_flags = op == IORING_OP_SEND ? MSG_NOSIGNAL : 0;
	r->sq_array[i] = i;
	atomic_store(r->sq_tail, tail + 1);
	if (!r->sqpoll)
		ring_enter(r, 1, IORING_ENTER_GETEVENTS);
	else if (atomic_load(r->sq_flags) & IORING_SQ_NEED_WAKEUP)
		ring_enter(r, 1, IORING_ENTER_SQ_WAKEUP);
	while (atomic_load(r->cq_tail) == head) {
		/* The poller may have gone to sleep just before it saw the new tail. */
		if (r->sqpoll && atomic_load(r->sq_flags) & IORING_SQ_NEED_WAKEUP)
			ring_enter(r, 1, IORING_ENTER_SQ_WAKEUP);
		sleep_us(50);
	}
	res = r->cqes[head & r->cq_mask].res;
	atomic_store(r->cq_head, head + 1);
	return res;
}

static void ring_send(struct ring *r, struct flow *f, int fd, unsigned messages)
{
	for (unsigned i = 0; i < messages; i++) {
		for (size_t left = message_len(i); left;) {
			int res = ring_do(r, IORING_OP_SEND, fd, left);

			if (res <= 0) {
				errno = -res;
				die("send by io_uring");
			}
			flow_sent(f, res);
			left -= res;
		}
	}
}

static void ring_recv(struct ring *r, struct flow *f, int fd, size_t n)
{
	while (n) {
		int res = ring_do(r, IORING_OP_RECV, fd, n < 3000 ? n : 3000);

		if (res <= 0) {
			errno = -res;
			die("receive by io_uring");
		}
		flow_received(f, res);
		n -= res;
	}
}

static void ring_client(struct tcase *c, int fd, bool sqpoll)
{
	struct ring r;

	ring_open(&r, sqpoll);
	ring_send(&r, &c->flows[UP], fd, 30 * shared->scale);
	ring_recv(&r, &c->flows[DOWN], fd, message_sum(13 * shared->scale));
}

static void ring_server(struct tcase *c, int fd, bool sqpoll)
{
	struct ring r;

	ring_open(&r, sqpoll);
	ring_recv(&r, &c->flows[UP], fd, message_sum(30 * shared->scale));
	ring_send(&r, &c->flows[DOWN], fd, 13 * shared->scale);
}

void uring_client(struct tcase *c, int fd)
{
	ring_client(c, fd, false);
}

void uring_server(struct tcase *c, int fd)
{
	ring_server(c, fd, false);
}

void sqpoll_client(struct tcase *c, int fd)
{
	ring_client(c, fd, true);
}

void sqpoll_server(struct tcase *c, int fd)
{
	ring_server(c, fd, true);
}

static void try_ring(struct tcase *c, unsigned flags)
{
	struct io_uring_params p = {.flags = flags};
	int fd = ring_setup(8, &p);

	if (fd < 0)
		case_skip(c, "io_uring_setup: %s", strerror(errno));
	close(fd);
}

void uring_run(struct tcase *c)
{
	try_ring(c, 0);
	pair_run(c);
}

void sqpoll_run(struct tcase *c)
{
	try_ring(c, IORING_SETUP_SQPOLL);
	pair_run(c);
}
