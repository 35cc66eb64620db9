/* Anonymous pipes: whole, partial and failing transfers, several writers, readers, threads. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the case that this process plays: made by the runner, inherited by the roles. */
static int end[2], object;

static void open_pipe(struct tcase *c, int flags)
{
	if (pipe2(end, flags | O_CLOEXEC) < 0)
		die("make a pipe");
	object = object_of(c, end[0]);
}

enum { PLAIN_MESSAGES = 40, IOV_ROUNDS = 12 };

static void plain_writer(struct tcase *c, int role)
{
	gate(c);
	put_messages(c, object, end[1], PLAIN_MESSAGES);
}

static void plain_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], message_sum(PLAIN_MESSAGES), 1000);
}

void pipe_plain_run(struct tcase *c)
{
	open_pipe(c, 0);
	PLAY(c, {"w", plain_writer}, {"r", plain_reader});
}

/* Three parts of different length; the same for both ends. */
static struct iovec *iov_of(struct iovec *v, size_t scale)
{
	v[0] = (struct iovec){buf, 100 * scale};
	v[1] = (struct iovec){buf + 5000, 0};
	v[2] = (struct iovec){buf + 9000, 33 * scale};
	return v;
}

static void iov_writer(struct tcase *c, int role)
{
	struct iovec v[3];

	gate(c);
	for (unsigned i = 1; i <= IOV_ROUNDS; i++) {
		if (writev(end[1], iov_of(v, i), 3) != 133 * (ssize_t)i)
			die("writev");
		did(c, object, DIR_WRITE, 133 * i);
	}
}

static void iov_reader(struct tcase *c, int role)
{
	size_t left = 133 * IOV_ROUNDS * (IOV_ROUNDS + 1) / 2;
	struct iovec v[3];

	gate(c);
	while (left) {
		ssize_t r = readv(end[0], iov_of(v, 3), 3);

		if (r <= 0)
			die("readv");
		did(c, object, DIR_READ, r);
		left -= r;
	}
}

void pipe_iov_run(struct tcase *c)
{
	open_pipe(c, 0);
	PLAY(c, {"w", iov_writer}, {"r", iov_reader});
}

/* A full pipe takes a part, then nothing. */
enum { PARTIAL_ROUNDS = 3, PARTIAL_BYTES = 100000 };

static void partial_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < PARTIAL_ROUNDS; i++) {
		ssize_t r = write(end[1], buf, PARTIAL_BYTES);

		if (r <= 0 || r >= PARTIAL_BYTES)
			die("a partial write, and not of %zd bytes", r);
		did(c, object, DIR_WRITE, r);
		must_fail(write(end[1], buf, PARTIAL_BYTES), EAGAIN, "write to a full pipe");
		step_post(c, STEP_A);
		step_wait(c, STEP_B);
	}
}

static void partial_reader(struct tcase *c, int role)
{
	ssize_t r;

	gate(c);
	for (int i = 0; i < PARTIAL_ROUNDS; i++) {
		step_wait(c, STEP_A);
		while ((r = read(end[0], buf, 30000)) > 0)
			did(c, object, DIR_READ, r);
		must_fail(r, EAGAIN, "read from an empty pipe");
		step_post(c, STEP_B);
	}
}

void pipe_partial_run(struct tcase *c)
{
	open_pipe(c, O_NONBLOCK);
	PLAY(c, {"w", partial_writer}, {"r", partial_reader});
}

/* The reader goes away; what was read before counts, what fails does not. */
enum { BROKEN_BYTES = 7000 };

static void broken_writer(struct tcase *c, int role)
{
	close(end[0]);
	gate(c);
	put(c, object, end[1], BROKEN_BYTES);
	step_wait(c, STEP_A);
	must_fail(write(end[1], buf, 10), EPIPE, "write to a pipe without a reader");
}

static void broken_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], BROKEN_BYTES - 1000, 2000);
	close(end[0]);
	step_post(c, STEP_A);
}

void pipe_broken_run(struct tcase *c)
{
	open_pipe(c, 0);
	role_add(c, "w", true);
	role_add(c, "r", true);
	role_start(c, 0, broken_writer);
	role_start(c, 1, broken_reader);
	close(end[0]);
	case_play(c, NULL);
}

/* Three writers, two readers. By turns, so that each reader has something of each writer. */
enum { MANY_WRITERS = 3, MANY_READERS = 2, MANY_ROUNDS = 10, MANY_BYTES = 512 };
enum { STEP_READER = 0, STEP_WRITER = 4, STEP_WRITTEN = 8 };

static void many_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < MANY_ROUNDS * MANY_READERS; i++) {
		step_wait(c, STEP_WRITER + role);
		put(c, object, end[1], MANY_BYTES);
		step_post(c, STEP_WRITTEN);
	}
}

static void many_reader(struct tcase *c, int role)
{
	int own = role - MANY_WRITERS;

	gate(c);
	if (own == 0)
		step_post(c, STEP_READER);
	for (int i = 0; i < MANY_ROUNDS; i++) {
		step_wait(c, STEP_READER + own);
		for (int w = 0; w < MANY_WRITERS; w++)
			step_post(c, STEP_WRITER + w);
		for (int w = 0; w < MANY_WRITERS; w++)
			step_wait(c, STEP_WRITTEN);
		take(c, object, end[0], MANY_WRITERS * MANY_BYTES, MANY_BYTES);
		step_post(c, STEP_READER + !own);
	}
}

void pipe_many_run(struct tcase *c)
{
	open_pipe(c, 0);
	PLAY(c, {"w0", many_writer}, {"w1", many_writer}, {"w2", many_writer}, {"r0", many_reader},
	     {"r1", many_reader});
}

/* Threads of one process are told apart. */
enum { WRITE_THREADS = 3, READ_THREADS = 2, RECORDS = 40, RECORD_BYTES = 256 };

static void *thread_writes(void *arg)
{
	for (int i = 0; i < RECORDS; i++)
		put(arg, object, end[1], RECORD_BYTES);
	return NULL;
}

static void *thread_reads(void *arg)
{
	struct tcase *c = arg;

	for (int i = 0; i < WRITE_THREADS * RECORDS / READ_THREADS; i++) {
		char own[RECORD_BYTES]; /* not the buffer of the process: two threads read */
		ssize_t r = read(end[0], own, sizeof(own));

		if (r != sizeof(own))
			die("a whole record, and not %zd bytes", r);
		did(c, object, DIR_READ, r);
	}
	return NULL;
}

static void threads_do(struct tcase *c, int n, void *(*fn)(void *))
{
	pthread_t t[WRITE_THREADS];

	gate(c);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, fn, c))
			die("start a thread");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void threads_writer(struct tcase *c, int role)
{
	threads_do(c, WRITE_THREADS, thread_writes);
}

static void threads_reader(struct tcase *c, int role)
{
	threads_do(c, READ_THREADS, thread_reads);
}

void pipe_threads_run(struct tcase *c)
{
	open_pipe(c, 0);
	PLAY(c, {"w", threads_writer}, {"r", threads_reader});
}

/* Packets: what a short read leaves of one is lost, and was never received. */
enum { PACKETS = 15, PACKET_BYTES = 900, PACKET_READ = 700 };

static void packet_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < PACKETS; i++)
		put(c, object, end[1], PACKET_BYTES);
	step_post(c, STEP_A);
}

static void packet_reader(struct tcase *c, int role)
{
	gate(c);
	step_wait(c, STEP_A);
	for (int i = 0; i < PACKETS; i++)
		take(c, object, end[0], PACKET_READ, PACKET_READ);
}

void pipe_packet_run(struct tcase *c)
{
	open_pipe(c, O_DIRECT);
	PLAY(c, {"w", packet_writer}, {"r", packet_reader});
}

/* Calls that move nothing, around one that does. */
static void quiet_writer(struct tcase *c, int role)
{
	gate(c);
	if (write(end[1], buf, 0) != 0)
		die("write nothing");
	must_fail(write(end[1], nowhere(), 100), EFAULT, "write from nowhere");
	must_fail(write(end[0], buf, 100), EBADF, "write to the read end");
	must_fail(pwrite(end[1], buf, 100, 0), ESPIPE, "pwrite to a pipe");
	must_fail(write(-1, buf, 100), EBADF, "write to no descriptor");
	must_fail(write(100000, buf, 100), EBADF, "write to a descriptor out of range");
	put(c, object, end[1], 11);
	step_post(c, STEP_A);
}

static void quiet_reader(struct tcase *c, int role)
{
	gate(c);
	must_fail(pread(end[0], buf, 100, 0), ESPIPE, "pread from a pipe");
	step_wait(c, STEP_A);
	must_fail(read(end[0], nowhere(), 100), EFAULT, "read to nowhere");
	take(c, object, end[0], 11, 100);
	must_fail(read(end[0], buf, 100), EAGAIN, "read from an empty pipe");
}

void pipe_quiet_run(struct tcase *c)
{
	open_pipe(c, O_NONBLOCK);
	PLAY(c, {"w", quiet_writer}, {"r", quiet_reader});
}

/* A process that wakes itself up. */
enum { SELF_ROUNDS = 20, SELF_BYTES = 5 };

static void self_player(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < SELF_ROUNDS; i++) {
		put(c, object, end[1], SELF_BYTES);
		take(c, object, end[0], SELF_BYTES, 3);
	}
}

void pipe_self_run(struct tcase *c)
{
	open_pipe(c, 0);
	PLAY(c, {"s", self_player});
}

/* A writer that is killed within a call that has moved a part. */
enum { KILLER, VICTIM, KILLED_BYTES = 200000 };

static void killed_writer(struct tcase *c, int role)
{
	if (write(end[1], buf, KILLED_BYTES) >= 0)
		die("write that never ends");
}

static void killer(struct tcase *c, int role)
{
	size_t total = 0;
	int filled = 0;
	pid_t victim;

	gate(c);
	victim = role_start(c, VICTIM, killed_writer);
	while (filled < 65536 && !ioctl(end[0], FIONREAD, &filled))
		sleep_us(1000);
	kill(victim, SIGKILL);
	if (waitpid(victim, NULL, 0) != victim || fcntl(end[0], F_SETFL, O_NONBLOCK) < 0)
		die("wait for a child");
	for (ssize_t r; (r = read(end[0], buf, 30000)) > 0; total += r)
		did(c, object, DIR_READ, r);
	did_before_death(c, victim, object, DIR_WRITE, total);
}

void pipe_killed_run(struct tcase *c)
{
	open_pipe(c, 0);
	role_add(c, "r", true);
	role_add(c, "w", false);
	role_start(c, KILLER, killer);
	case_play(c, NULL);
}

#ifdef __x86_64__
/* read() and write() have other numbers here, those of close() and stat() among 64-bit calls. */
enum { COMPAT_READ = 3, COMPAT_WRITE = 4, COMPAT_ROUNDS = 10, COMPAT_BYTES = 777 };

static long compat_call(long number, int fd, void *p, long n)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"((long)fd), "c"(p), "d"(n)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
}

/* A 32-bit call has no room for the address of the usual buffer. */
static void *low_memory(void)
{
	void *p = mmap(NULL, COMPAT_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (p == MAP_FAILED)
		die("map low memory");
	return p;
}

static void compat_do(struct tcase *c, long number, int fd, enum dir dir)
{
	void *p = low_memory();

	gate(c);
	for (int i = 0; i < COMPAT_ROUNDS; i++) {
		if (compat_call(number, fd, p, COMPAT_BYTES) != COMPAT_BYTES)
			die("a 32-bit call");
		did(c, object, dir, COMPAT_BYTES);
	}
}

static void compat_writer(struct tcase *c, int role)
{
	compat_do(c, COMPAT_WRITE, end[1], DIR_WRITE);
}

static void compat_reader(struct tcase *c, int role)
{
	compat_do(c, COMPAT_READ, end[0], DIR_READ);
}

/* Where the kernel has no such calls, trying one is deadly. */
static bool has_compat(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid)
		_exit(compat_call(COMPAT_WRITE, -1, low_memory(), 1) != -EBADF);
	if (waitpid(pid, &status, 0) != pid)
		die("wait for a child");
	return status == 0;
}

void pipe_compat_run(struct tcase *c)
{
	open_pipe(c, 0);
	if (!has_compat())
		case_skip(c, "this kernel has no 32-bit calls");
	PLAY(c, {"w", compat_writer}, {"r", compat_reader});
}
#else
void pipe_compat_run(struct tcase *c)
{
	case_skip(c, "not on this processor");
}
#endif
