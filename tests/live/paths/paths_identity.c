/* One pipe or FIFO under many names and descriptors, and its short-lived users. */
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int end[2], object;

static void open_pipe(struct tcase *c)
{
	if (pipe2(end, O_CLOEXEC) < 0)
		die("make a pipe");
	object = object_of(c, end[0]);
}

enum { NAMES = 4, NAMED_BYTES = 600 };

/* The same pipe by copies of the descriptor, and opened anew through /proc. */
static void names_of(int fd, int mode, int *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	ret[0] = fd;
	ret[1] = dup(fd);
	ret[2] = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	ret[3] = open(path, mode | O_CLOEXEC);
	if (ret[1] < 0 || ret[2] < 0 || ret[3] < 0)
		die("duplicate a descriptor");
}

static void dup_writer(struct tcase *c, int role)
{
	int fds[NAMES];

	names_of(end[1], O_WRONLY, fds);
	gate(c);
	for (int i = 0; i < 3 * NAMES; i++)
		put(c, object, fds[i % NAMES], NAMED_BYTES);
}

static void dup_reader(struct tcase *c, int role)
{
	int fds[NAMES];

	names_of(end[0], O_RDONLY, fds);
	gate(c);
	for (int i = 0; i < 3 * NAMES; i++)
		take(c, object, fds[i % NAMES], NAMED_BYTES, 400);
}

void pipe_dup_run(struct tcase *c)
{
	open_pipe(c);
	PLAY(c, {"w", dup_writer}, {"r", dup_reader});
}

/* A writer that executes itself between two halves. */
enum { BEFORE_EXEC = 12, AFTER_EXEC = 17 };

static void keep_open(int fd)
{
	if (fcntl(fd, F_SETFD, 0) < 0)
		die("keep a descriptor over exec");
}

static void exec_writer(struct tcase *c, int role)
{
	char text[6][12], exe[256];
	const int numbers[6] = {c->index, role, object, end[1], shared_fd, ledger_fd};
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		die("find the program");
	exe[n] = '\0';
	gate(c);
	put_messages(c, object, end[1], BEFORE_EXEC);
	keep_open(end[1]);
	keep_open(shared_fd);
	keep_open(ledger_fd);
	for (int i = 0; i < 6; i++)
		snprintf(text[i], sizeof(text[i]), "%d", numbers[i]);
	execl(exe, "paths", "--after-exec", text[0], text[1], text[2], text[3], text[4], text[5],
	      NULL);
	die("execute '%s'", exe);
}

void pipe_exec_continue(struct tcase *c, int role, int passed, int fd)
{
	role_enter(c, role);
	put_messages(c, passed, fd, AFTER_EXEC);
	hold(c);
	_exit(0);
}

static void exec_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], message_sum(BEFORE_EXEC) + message_sum(AFTER_EXEC), 3000);
}

void pipe_exec_run(struct tcase *c)
{
	open_pipe(c);
	PLAY(c, {"w", exec_writer}, {"r", exec_reader});
}

/* Processes that live for some 5 ms. */
enum { BRIEF_LIVES = 10, BRIEF_BYTES = 3000 };

static void brief_life(struct tcase *c, int role)
{
	sleep_us(2000);
	put(c, object, end[1], BRIEF_BYTES);
	sleep_us(2000);
}

static void brief_parent(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < BRIEF_LIVES; i++)
		role_start(c, 2 + i, brief_life);
	reap();
}

static void brief_reader(struct tcase *c, int role)
{
	gate(c);
	take(c, object, end[0], BRIEF_LIVES * BRIEF_BYTES, BRIEF_BYTES);
}

void pipe_brief_run(struct tcase *c)
{
	open_pipe(c);
	role_add(c, "par", true);
	role_add(c, "r", true);
	for (int i = 0; i < BRIEF_LIVES; i++)
		role_add(c, "w", false);
	role_start(c, 0, brief_parent);
	role_start(c, 1, brief_reader);
	case_play(c, NULL);
}

/* Pipes that are made, used and gone between two looks, with both of their users. */
enum { NEWBORN_PAIRS = 5, NEWBORN_BYTES = 5000 };

static void newborn_writer(struct tcase *c, int role)
{
	put(c, object, end[1], NEWBORN_BYTES);
}

static void newborn_reader(struct tcase *c, int role)
{
	take(c, object, end[0], NEWBORN_BYTES, 4000);
}

static void newborn_parent(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < NEWBORN_PAIRS; i++) {
		open_pipe(c);
		role_start(c, 1 + 2 * i, newborn_writer);
		role_start(c, 2 + 2 * i, newborn_reader);
		close(end[0]);
		close(end[1]);
		reap();
	}
}

void pipe_newborn_run(struct tcase *c)
{
	role_add(c, "par", true);
	for (int i = 0; i < NEWBORN_PAIRS; i++) {
		role_add(c, "w", false);
		role_add(c, "r", false);
	}
	role_start(c, 0, newborn_parent);
	case_play(c, NULL);
}

/* A FIFO under two names. */
enum { FIFO_MESSAGES = 25, FIFO_TURNS = 3 };

static int fifo_open(const char *name, int mode)
{
	int fd = open(path_of(name), mode | O_CLOEXEC);

	if (fd < 0)
		die("open the FIFO '%s'", name);
	return fd;
}

static void fifo_make(struct tcase *c, const char *name, const char *other)
{
	char first[160];

	snprintf(first, sizeof(first), "%s", path_of(name));
	if (mkfifo(first, 0600) < 0 || (other && link(first, path_of(other)) < 0))
		die("make a FIFO");
	/* Keeps it open, so that no open() waits for its other end. */
	end[0] = fifo_open(name, O_RDWR);
	object = object_of(c, end[0]);
}

static void fifo_writer(struct tcase *c, int role)
{
	int fd = fifo_open("fifo-a", O_WRONLY);

	gate(c);
	put_messages(c, object, fd, FIFO_MESSAGES);
}

static void fifo_reader(struct tcase *c, int role)
{
	int fd = fifo_open("fifo-b", O_RDONLY);

	if (object_of(c, fd) != object) {
		errno = EINVAL;
		die("one FIFO under two names");
	}
	gate(c);
	take(c, object, fd, message_sum(FIFO_MESSAGES), 2500);
}

void fifo_names_run(struct tcase *c)
{
	fifo_make(c, "fifo-a", "fifo-b");
	PLAY(c, {"w", fifo_writer}, {"r", fifo_reader});
}

/* Writers that come and go. */
static void turns_writer(struct tcase *c, int role)
{
	gate(c);
	for (int i = 0; i < FIFO_TURNS; i++) {
		int fd = fifo_open("fifo-turns", O_WRONLY);

		put(c, object, fd, 1500 + role);
		close(fd);
	}
}

static void turns_reader(struct tcase *c, int role)
{
	int fd = fifo_open("fifo-turns", O_RDONLY);

	gate(c);
	take(c, object, fd, FIFO_TURNS * (1501 + 1502), 1000);
}

void fifo_turns_run(struct tcase *c)
{
	fifo_make(c, "fifo-turns", NULL);
	PLAY(c, {"r", turns_reader}, {"w1", turns_writer}, {"w2", turns_writer});
}

/*
 * A pipe that one pair of processes uses, and later another pair: the two never meet. In between is
 * as much time as processes are held for a look at them.
 */
enum { HANDOVER_BYTES = 4000, PAIR = 2 };

static void handover_writer(struct tcase *c, int role)
{
	bool is_second = role >= PAIR;

	gate(c);
	if (is_second)
		step_wait(c, STEP_A);
	put(c, is_second ? object_emptied(c, object) : object, end[1], HANDOVER_BYTES + role);
}

static void handover_reader(struct tcase *c, int role)
{
	bool is_second = role >= PAIR;

	gate(c);
	if (is_second)
		step_wait(c, STEP_B);
	take(c, is_second ? object_emptied(c, object) : object, end[0], HANDOVER_BYTES + role - 1,
	     HANDOVER_BYTES * 2);
	if (is_second)
		return;
	await_look();
	step_post(c, STEP_A);
	step_post(c, STEP_B);
}

void pipe_handover_run(struct tcase *c)
{
	open_pipe(c);
	PLAY(c, {"w1", handover_writer}, {"r1", handover_reader}, {"w2", handover_writer},
	     {"r2", handover_reader});
}
