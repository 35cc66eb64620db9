/* The same transfers by io_uring: in the caller, in a kernel worker, by a polling kernel thread. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Of the case that this process plays; flags are for each ring, and for each request. */
static int in[2], in_object, out[2], out_object;
static unsigned setup_flags, request_flags;

enum { MESSAGES = 20, FIXED_BYTES = 4096 };

/* Registered: not the first page, which the program file may back; Linux 6.1 refuses that. */
static char *const fixed = buf + 65536;

static int open_pipe(struct tcase *c, int *ends)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("make a pipe");
	return object_of(c, ends[0]);
}

/* A process that cannot have such a ring cannot play. */
static void try_ring(struct tcase *c)
{
	struct io_uring ring;
	int rc = io_uring_queue_init(4, &ring, setup_flags);

	if (rc < 0)
		case_skip(c, "io_uring: %s", strerror(-rc));
	io_uring_queue_exit(&ring);
}

static void ring_open(struct io_uring *ring)
{
	int rc = io_uring_queue_init(8, ring, setup_flags);

	if (rc < 0) {
		errno = -rc;
		die("make a ring");
	}
}

static struct io_uring_sqe *request(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe) {
		errno = EBUSY;
		die("find a place in a ring");
	}
	return sqe;
}

/* Submit what was prepared; the result of that one request. */
static int ring_do(struct io_uring *ring, struct io_uring_sqe *sqe)
{
	struct io_uring_cqe *cqe;
	int rc, res;

	sqe->flags |= request_flags;
	rc = io_uring_submit(ring);
	while (rc >= 0 && (rc = io_uring_wait_cqe(ring, &cqe)) == -EINTR)
		;
	if (rc < 0) {
		errno = -rc;
		die("wait for a request");
	}
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

static size_t ring_must(struct io_uring *ring, struct io_uring_sqe *sqe, const char *what)
{
	int res = ring_do(ring, sqe);

	if (res <= 0) {
		errno = -res;
		die("%s by io_uring", what);
	}
	return res;
}

/*
 * Transfers number i of each kind in turn: plain, vector, registered buffer. The descriptor is an
 * index of the ring's own table, so it is none of the process.
 */
static void prepare(struct io_uring_sqe *sqe, unsigned i, bool writes, struct iovec *v, size_t n)
{
	v[0] = (struct iovec){buf, n / 2};
	v[1] = (struct iovec){buf + n / 2, n - n / 2};
	if (i % 3 == 0 && writes)
		io_uring_prep_write(sqe, 0, buf, n, 0);
	else if (i % 3 == 0)
		io_uring_prep_read(sqe, 0, buf, n, 0);
	else if (i % 3 == 1 && writes)
		io_uring_prep_writev(sqe, 0, v, 2, 0);
	else if (i % 3 == 1)
		io_uring_prep_readv(sqe, 0, v, 2, 0);
	else if (writes)
		io_uring_prep_write_fixed(sqe, 0, fixed, n, 0, 0);
	else
		io_uring_prep_read_fixed(sqe, 0, fixed, n, 0, 0);
	sqe->flags |= IOSQE_FIXED_FILE;
}

static void ring_with(struct io_uring *ring, int fd)
{
	struct iovec v = {fixed, FIXED_BYTES};
	int rc;

	ring_open(ring);
	rc = io_uring_register_buffers(ring, &v, 1);
	if (rc >= 0)
		rc = io_uring_register_files(ring, &fd, 1);
	if (rc < 0) {
		errno = -rc;
		die("register with a ring");
	}
}

static void ring_messages(struct tcase *c, struct io_uring *ring)
{
	struct iovec v[2];

	for (unsigned i = 0; i < MESSAGES; i++) {
		struct io_uring_sqe *sqe = request(ring);

		prepare(sqe, i, true, v, message_len(i));
		did(c, in_object, DIR_WRITE, ring_must(ring, sqe, "write"));
	}
}

static void ring_writer(struct tcase *c, int role)
{
	struct io_uring ring;

	ring_with(&ring, in[1]);
	gate(c);
	ring_messages(c, &ring);
}

/* Nobody can have seen this ring before it is used. */
static void new_ring_writer(struct tcase *c, int role)
{
	struct io_uring ring;

	gate(c);
	ring_with(&ring, in[1]);
	ring_messages(c, &ring);
}

static void plain_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, in_object, in[0], message_sum(MESSAGES), 1500);
}

static void ring_reader(struct tcase *c, int role)
{
	size_t left = message_sum(MESSAGES);
	struct io_uring ring;
	struct iovec v[2];

	ring_with(&ring, in[0]);
	gate(c);
	for (unsigned i = 0; left; i++) {
		struct io_uring_sqe *sqe = request(&ring);
		size_t r;

		prepare(sqe, i, false, v, left < 1500 ? left : 1500);
		r = ring_must(&ring, sqe, "read");
		did(c, in_object, DIR_READ, r);
		left -= r;
	}
}

static void uring_pipe(struct tcase *c)
{
	try_ring(c);
	in_object = open_pipe(c, in);
	PLAY(c, {"w", ring_writer}, {"r", ring_reader});
}

void uring_pipe_run(struct tcase *c)
{
	uring_pipe(c);
}

/* Made and used at once. */
void uring_new_run(struct tcase *c)
{
	try_ring(c);
	in_object = open_pipe(c, in);
	PLAY(c, {"w", new_ring_writer}, {"r", plain_reader});
}

/* By a worker thread of the kernel, which belongs to the process. */
void uring_async_run(struct tcase *c)
{
	request_flags = IOSQE_ASYNC;
	uring_pipe(c);
}

/* By a kernel thread that polls the queue: no system call at all. */
void uring_poll_run(struct tcase *c)
{
	setup_flags = IORING_SETUP_SQPOLL;
	uring_pipe(c);
}

/* Completed by the submitter alone, when it asks. */
void uring_defer_run(struct tcase *c)
{
	setup_flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	uring_pipe(c);
}

/* Requests that leave no result behind when they succeed. */
enum { SKIP_BYTES = 1000 };

static void skip_writer(struct tcase *c, int role)
{
	struct io_uring ring;

	ring_open(&ring);
	gate(c);
	for (int i = 0; i < MESSAGES; i++) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_write(sqe, in[1], buf, SKIP_BYTES, 0);
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
		if (io_uring_submit(&ring) != 1)
			die("submit a request");
		did(c, in_object, DIR_WRITE, SKIP_BYTES);
	}
}

static void skip_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, in_object, in[0], MESSAGES * SKIP_BYTES, 900);
}

void uring_skip_run(struct tcase *c)
{
	try_ring(c);
	in_object = open_pipe(c, in);
	PLAY(c, {"w", skip_writer}, {"r", skip_reader});
}

/* From pipe to pipe, after a copy of each message to a third. */
enum { SPLICE_BYTES = 3000, SPLICE_ROUNDS = 10 };

static int copy[2], copy_object;

static void splice_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < SPLICE_ROUNDS; i++) {
		put(c, in_object, in[1], SPLICE_BYTES);
		step_post(c, STEP_A);
	}
}

static void splicer(struct tcase *c, int role)
{
	struct io_uring ring;

	ring_open(&ring);
	gate(c);
	for (int i = 0; i < SPLICE_ROUNDS; i++) {
		struct io_uring_sqe *sqe;

		step_wait(c, STEP_A);
		sqe = request(&ring);
		io_uring_prep_tee(sqe, in[0], copy[1], 1000, 0);
		did(c, copy_object, DIR_WRITE, ring_must(&ring, sqe, "tee"));
		for (size_t left = SPLICE_BYTES; left;) {
			size_t r;

			sqe = request(&ring);
			io_uring_prep_splice(sqe, in[0], -1, out[1], -1, left, 0);
			r = ring_must(&ring, sqe, "splice");
			did(c, in_object, DIR_READ, r);
			did(c, out_object, DIR_WRITE, r);
			left -= r;
		}
	}
}

static void splice_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, out_object, out[0], SPLICE_ROUNDS * SPLICE_BYTES, 2000);
}

static void copy_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, copy_object, copy[0], SPLICE_ROUNDS * 1000, 800);
}

void uring_splice_run(struct tcase *c)
{
	try_ring(c);
	in_object = open_pipe(c, in);
	out_object = open_pipe(c, out);
	copy_object = open_pipe(c, copy);
	PLAY(c, {"w", splice_writer}, {"s", splicer}, {"r", splice_reader}, {"c", copy_reader});
}

/* Files, and requests that fail. */
enum { FILE_BYTES = 20000, FILE_CHUNK = 3300 };

static void ring_file(struct tcase *c, int role)
{
	int fd = file_with("ring-file", 0), object = object_of(c, fd);
	struct io_uring ring;

	ring_open(&ring);
	gate(c);
	for (size_t at = 0; at < FILE_BYTES; at += FILE_CHUNK) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_write(sqe, fd, buf, FILE_CHUNK, at);
		did(c, object, DIR_WRITE, ring_must(&ring, sqe, "write a file"));
	}
	for (size_t at = 0; at < FILE_BYTES; at += FILE_CHUNK) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_read(sqe, fd, buf, FILE_CHUNK, at);
		did(c, object, DIR_READ, ring_must(&ring, sqe, "read a file"));
	}
	for (int i = 0; i < 3; i++) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_read(sqe, i ? in[1] : fd, buf, 100, i ? 0 : 1 << 20);
		if (ring_do(&ring, sqe) > 0)
			die("read at the write end of a pipe, or after the end of a file");
	}
}

void uring_file_run(struct tcase *c)
{
	try_ring(c);
	open_pipe(c, in);
	PLAY(c, {"io", ring_file});
}

/* eventfd */
enum { ADDS = 15 };

static void event_adder(struct tcase *c, int role)
{
	struct io_uring ring;
	uint64_t one = 1;

	ring_open(&ring);
	gate(c);
	for (int i = 0; i < ADDS; i++) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_write(sqe, in[0], &one, sizeof(one), 0);
		did(c, in_object, DIR_WRITE, ring_must(&ring, sqe, "add to an eventfd"));
	}
}

static void event_taker(struct tcase *c, int role)
{
	struct io_uring ring;
	uint64_t left = ADDS, n;

	ring_open(&ring);
	gate(c);
	while (left) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_read(sqe, in[0], &n, sizeof(n), 0);
		did(c, in_object, DIR_READ, ring_must(&ring, sqe, "read an eventfd"));
		left -= n;
	}
}

void uring_event_run(struct tcase *c)
{
	try_ring(c);
	in[0] = eventfd(0, EFD_CLOEXEC);
	if (in[0] < 0)
		die("make an eventfd");
	in_object = object_of(c, in[0]);
	PLAY(c, {"add", event_adder}, {"take", event_taker});
}

/* An eventfd that the kernel adds to: it is read, and no process wrote it. */
static void signal_taker(struct tcase *c, int role)
{
	struct io_uring ring;
	uint64_t n;

	ring_open(&ring);
	if (io_uring_register_eventfd(&ring, in[0]) < 0)
		die("register an eventfd");
	gate(c);
	for (int i = 0; i < ADDS; i++) {
		struct io_uring_sqe *sqe = request(&ring);

		io_uring_prep_nop(sqe);
		if (ring_do(&ring, sqe) < 0)
			die("do nothing by io_uring");
		if (read(in[0], &n, sizeof(n)) != sizeof(n))
			die("read an eventfd");
		did(c, in_object, DIR_READ, sizeof(n));
	}
}

void uring_signal_run(struct tcase *c)
{
	try_ring(c);
	in[0] = eventfd(0, EFD_CLOEXEC);
	if (in[0] < 0)
		die("make an eventfd");
	in_object = object_of(c, in[0]);
	PLAY(c, {"take", signal_taker});
}
