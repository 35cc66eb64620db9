/* Files: every way to read and write one, its names, copies within the kernel. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS = 8, FILE_BYTES = 6000 };

static int file, object;

static void must_move(struct tcase *c, enum dir dir, ssize_t r, size_t n, const char *what)
{
	if (r < 0 || (size_t)r != n)
		die("%s %zu bytes, and not %zd", what, n, r);
	did(c, object, dir, r);
}

static struct iovec *two_parts(struct iovec *v, size_t n)
{
	v[0] = (struct iovec){buf, n / 4};
	v[1] = (struct iovec){buf + n / 4, n - n / 4};
	return v;
}

static int open_again(const char *name, int flags)
{
	int fd = open(path_of(name), flags | O_CLOEXEC);

	if (fd < 0)
		die("open '%s'", name);
	return fd;
}

/* One file, opened under two names; written at places and at its end. */
static void names_writer(struct tcase *c, int role)
{
	int fd = open_again("file-a", O_WRONLY), end = open_again("file-b", O_WRONLY | O_APPEND);
	struct iovec v[2];

	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = FILE_BYTES + i;

		must_move(c, DIR_WRITE, write(fd, buf, n), n, "write");
		must_move(c, DIR_WRITE, pwrite(fd, buf, n, i), n, "pwrite");
		must_move(c, DIR_WRITE, writev(end, two_parts(v, n), 2), n, "writev");
		must_move(c, DIR_WRITE, pwritev(fd, two_parts(v, n), 2, i), n, "pwritev");
		must_move(c, DIR_WRITE, pwritev2(end, two_parts(v, n), 2, -1, RWF_APPEND), n,
			  "pwritev2");
	}
	step_post(c, STEP_A);
}

static void names_reader(struct tcase *c, int role)
{
	int fd = open_again("file-b", O_RDONLY);
	struct iovec v[2];

	gate(c);
	step_wait(c, STEP_A);
	for (int i = 0; i < ROUNDS / 2; i++) {
		size_t n = FILE_BYTES - i;

		must_move(c, DIR_READ, read(fd, buf, n), n, "read");
		must_move(c, DIR_READ, pread(fd, buf, n, i), n, "pread");
		must_move(c, DIR_READ, readv(fd, two_parts(v, n), 2), n, "readv");
		must_move(c, DIR_READ, preadv(fd, two_parts(v, n), 2, i), n, "preadv");
		must_move(c, DIR_READ, preadv2(fd, two_parts(v, n), 2, -1, 0), n, "preadv2");
	}
	if (pread(fd, buf, 100, 1 << 30) != 0)
		die("read after the end");
}

void file_names_run(struct tcase *c)
{
	char first[160];

	file = file_with("file-a", 0);
	object = object_of(c, file);
	snprintf(first, sizeof(first), "%s", path_of("file-a"));
	if (link(first, path_of("file-b")) < 0)
		die("make a second name");
	PLAY(c, {"w", names_writer}, {"r", names_reader});
}

/* A file that never had a name, and one that lost its own. */
static void memory_user(struct tcase *c, int role)
{
	int lost = file_with("file-lost", 0);

	if (unlink(path_of("file-lost")) < 0)
		die("remove a name");
	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		object = object_of(c, file);
		must_move(c, DIR_WRITE, write(file, buf, 500 + i), 500 + i, "write");
		must_move(c, DIR_READ, pread(file, buf, 400, 0), 400, "pread");
		object = object_of(c, lost);
		must_move(c, DIR_WRITE, pwrite(lost, buf, 700 + i, 0), 700 + i, "pwrite");
		must_move(c, DIR_READ, pread(lost, buf, 600, 1), 600, "pread");
	}
}

void file_memory_run(struct tcase *c)
{
	file = memfd_create("paths-memory", MFD_CLOEXEC);
	if (file < 0)
		die("make a file in memory");
	PLAY(c, {"u1", memory_user});
}

/* copy_file_range() within one file system, of a part and up to the end. */
static void copier(struct tcase *c, int role)
{
	int to = file_with("copied", 0), from_object = object, to_object = object_of(c, to);
	loff_t in = 0, out = 0;
	ssize_t r;

	gate(c);
	while ((r = copy_file_range(file, &in, to, &out, 2500, 0)) > 0) {
		did(c, from_object, DIR_READ, r);
		did(c, to_object, DIR_WRITE, r);
	}
	if (r < 0)
		die("copy a file");
}

void file_copy_run(struct tcase *c)
{
	file = file_with("copy-from", FILE_BYTES);
	object = object_of(c, file);
	PLAY(c, {"cp", copier});
}

/* Devices and folders are no files here, and a read at the end is no transfer. */
static void quiet_user(struct tcase *c, int role)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int dir = open(shared->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (null < 0 || zero < 0 || dir < 0)
		die("open a device");
	gate(c);
	for (int i = 0; i < ROUNDS; i++) {
		if (write(null, buf, 100) != 100 || read(zero, buf, 100) != 100)
			die("use a device");
		if (read(file, buf, 100) != 0 || write(file, buf, 0) != 0)
			die("read at the end");
		must_fail(read(dir, buf, 100), EISDIR, "read a folder");
		must_fail(pread(file, buf, 100, -1), EINVAL, "read before the start");
	}
}

/* What has no inode of its own is none either: a timer, a signal, a watch of a folder. */
static void nameless_user(struct tcase *c, int role)
{
	struct itimerspec soon = {.it_value = {0, 1}};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), watch = inotify_init1(IN_CLOEXEC);
	int signals;
	sigset_t usr2;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	sigprocmask(SIG_BLOCK, &usr2, NULL);
	signals = signalfd(-1, &usr2, SFD_CLOEXEC);
	if (timer < 0 || watch < 0 || signals < 0 ||
	    inotify_add_watch(watch, shared->dir, IN_CREATE) < 0)
		die("open what has no name");
	gate(c);
	raise(SIGUSR2);
	close(file_with("watched", 0));
	if (timerfd_settime(timer, 0, &soon, NULL) < 0 || read(timer, buf, 8) != 8)
		die("read a timer");
	if (read(signals, buf, 128) != 128 || read(watch, buf, 4096) <= 0)
		die("read a signal and a watch");
}

void file_quiet_run(struct tcase *c)
{
	file = file_with("quiet", 0);
	object = object_of(c, file);
	PLAY(c, {"u", quiet_user}, {"n", nameless_user});
}

/* The older asynchronous interface of the kernel. */
enum { AIO_BYTES = 4096, AIO_ROUNDS = 5 };

static void aio_do(struct tcase *c, aio_context_t ctx, unsigned op, int64_t at)
{
	struct iocb request = {.aio_fildes = file,
			       .aio_lio_opcode = op,
			       .aio_offset = at,
			       .aio_buf = (uintptr_t)buf,
			       .aio_nbytes = AIO_BYTES};
	struct iocb *list[] = {&request};
	struct io_event done;

	if (syscall(SYS_io_submit, ctx, 1, list) != 1 ||
	    syscall(SYS_io_getevents, ctx, 1, 1, &done, NULL) != 1 || done.res != AIO_BYTES)
		die("transfer by io_submit");
	did(c, object, op == IOCB_CMD_PREAD ? DIR_READ : DIR_WRITE, AIO_BYTES);
}

static void aio_user(struct tcase *c, int role)
{
	aio_context_t ctx = 0;

	if (syscall(SYS_io_setup, 4, &ctx) < 0)
		die("io_setup");
	gate(c);
	for (int i = 0; i < AIO_ROUNDS; i++) {
		aio_do(c, ctx, IOCB_CMD_PWRITE, i * AIO_BYTES);
		aio_do(c, ctx, IOCB_CMD_PREAD, i * AIO_BYTES);
	}
}

void file_aio_run(struct tcase *c)
{
	file = file_with("aio", 0);
	object = object_of(c, file);
	PLAY(c, {"u", aio_user});
}
