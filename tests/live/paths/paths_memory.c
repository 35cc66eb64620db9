/* Memory copied between processes, also across pid namespaces. */
#include "paths.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ACTOR, TARGET }; /* roles */
enum { ROUNDS = 12, COPY_BYTES = 5000, THREADS = 2 };

/* Two parts on each side, cut at different places. */
static ssize_t copy(pid_t pid, bool writes, size_t n, void *remote)
{
	char *far = remote;
	struct iovec own[2] = {{buf, n / 3}, {buf + 100000, n - n / 3}};
	struct iovec theirs[2] = {{far, n / 2}, {far + 50000, n - n / 2}};

	return writes ? process_vm_writev(pid, own, 2, theirs, 2, 0)
		      : process_vm_readv(pid, own, 2, theirs, 2, 0);
}

/* @p host: the target as others know it; @p pid: as the caller does. */
static void copy_counted(struct tcase *c, pid_t pid, pid_t host, bool writes, size_t n)
{
	ssize_t r = copy(pid, writes, n, buf);

	if (r <= 0)
		die("copy memory");
	moved(c, writes ? host_pid() : host, writes ? host : host_pid(), -1, r);
}

/* Lets itself be read and written, and does nothing. */
static void target(struct tcase *c, int role)
{
	gate(c);
}

static void copy_failing(pid_t pid)
{
	must_fail(copy(pid, false, COPY_BYTES, nowhere()), EFAULT, "read from nowhere");
	must_fail(copy(0x3fffffff, true, COPY_BYTES, buf), ESRCH, "write to no process");
}

/* The second part is not there: what was copied until then counts. */
static void copy_partial(struct tcase *c, pid_t pid)
{
	struct iovec own = {buf, 3000};
	struct iovec theirs[2] = {{buf, 1000}, {nowhere(), 2000}};
	ssize_t r = process_vm_readv(pid, &own, 1, theirs, 2, 0);

	if (r != 1000)
		die("copy a part of memory, and not %zd bytes", r);
	moved(c, pid, host_pid(), -1, r);
}

static void vm_reader(struct tcase *c, int role)
{
	pid_t pid = c->roles[TARGET].pid;

	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		copy_counted(c, pid, pid, false, COPY_BYTES + i);
	copy_failing(pid);
	copy_partial(c, pid);
}

void vm_read_run(struct tcase *c)
{
	role_add(c, "act", true);
	role_add(c, "tgt", true);
	role_start(c, TARGET, target);
	while (!c->roles[TARGET].pid)
		sleep_us(1000);
	role_start(c, ACTOR, vm_reader);
	case_play(c, NULL);
}

/* Each thread of the writer, and both directions at once. */
static void *vm_thread(void *arg)
{
	struct tcase *c = arg;
	pid_t pid = c->roles[TARGET].pid;

	for (int i = 0; i < ROUNDS; i++)
		copy_counted(c, pid, pid, i % 4 != 3, COPY_BYTES - i);
	return NULL;
}

static void vm_writer(struct tcase *c, int role)
{
	pthread_t t[THREADS];

	gate(c);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, vm_thread, c))
			die("start a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

void vm_write_run(struct tcase *c)
{
	role_add(c, "act", true);
	role_add(c, "tgt", true);
	role_start(c, TARGET, target);
	while (!c->roles[TARGET].pid)
		sleep_us(1000);
	role_start(c, ACTOR, vm_writer);
	case_play(c, NULL);
}

/*
 * OUTSIDE makes a pid namespace; FIRST is 1 in it, and SECOND 2. SECOND copies from 1, which is
 * another process than the host's 1; OUTSIDE writes to SECOND by the host's number.
 */
enum { OUTSIDE, FIRST, SECOND };

static void second(struct tcase *c, int role)
{
	host_enter(c, role);
	step_post(c, STEP_A);
	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		copy_counted(c, 1, c->roles[FIRST].pid, false, COPY_BYTES + 7 * i);
}

static void first(struct tcase *c, int role)
{
	host_enter(c, role);
	role_start(c, SECOND, second);
	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		copy_counted(c, 2, c->roles[SECOND].pid, false, 300 + i);
}

static void outside(struct tcase *c, int role)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		die("make a pid namespace");
	role_start(c, FIRST, first);
	step_wait(c, STEP_A);
	pid = c->roles[SECOND].pid;
	gate(c);
	for (int i = 0; i < ROUNDS; i++)
		copy_counted(c, pid, pid, true, 1100 + i);
}

void vm_namespace_run(struct tcase *c)
{
	role_add(c, "out", true);
	role_add(c, "1st", true);
	role_add(c, "2nd", true);
	role_start(c, OUTSIDE, outside);
	case_play(c, NULL);
}
