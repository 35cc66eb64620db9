/* Processes of the ground-truth workload: names, gates, counters, and how they end. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longest time that one process waits for another: generous, an emulated guest is slow. */
enum { PATIENCE_S = 180 };

static const char *own_case = "-";
static char own_name[NAME_BYTES] = "truth";

void die(const char *fmt, ...)
{
	int code = errno;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* After another process failed, the ones that waited for it have nothing to add. */
	if (!shared || !atomic_exchange(&shared->failed, true))
		fprintf(stderr, "truth: case %s, %s: %s: %s\n", own_case, own_name, text,
			strerror(code));
	_exit(1);
}

void sem_take(sem_t *s)
{
	for (int tries = 0; tries < PATIENCE_S * 10; tries++) {
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += 100000000;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		if (!sem_clockwait(s, CLOCK_MONOTONIC, &t))
			return;
		if (errno != ETIMEDOUT && errno != EINTR)
			die("wait for another process");
		if (atomic_load(&shared->failed))
			_exit(1);
	}
	errno = ETIMEDOUT;
	die("wait for another process");
}

void step_post(struct tcase *c, int step)
{
	sem_post(&c->step[step]);
}

void step_wait(struct tcase *c, int step)
{
	sem_take(&c->step[step]);
}

void sleep_us(unsigned us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000L};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

size_t message_sum(unsigned n)
{
	size_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += message_len(i);
	return sum;
}

int role_add(struct tcase *c, const char *suffix, bool held)
{
	struct role *r = &c->roles[c->nroles];
	int n;

	if (c->nroles >= MAX_ROLES) {
		errno = ENOSPC;
		die("add role %s", suffix);
	}
	n = snprintf(r->name, sizeof(r->name), "%s.%s", cases[c->index].name, suffix);
	if (n >= NAME_BYTES) {
		errno = ENAMETOOLONG;
		die("add role %s", suffix);
	}
	r->held = held;
	return c->nroles++;
}

struct flow *flow_add(struct tcase *c, int src, int dst, enum kind kind)
{
	struct flow *f = &c->flows[c->nflows];

	if (c->nflows >= MAX_FLOWS) {
		errno = ENOSPC;
		die("add a flow");
	}
	c->nflows++;
	f->src = src;
	f->dst = dst;
	f->kind = kind;
	return f;
}

struct flow *flow_between(struct tcase *c, int src, int dst, enum kind kind)
{
	for (int i = 0; i < c->nflows; i++) {
		struct flow *f = &c->flows[i];

		if (f->src == src && f->dst == dst && f->kind == kind)
			return f;
	}
	errno = ENOENT;
	die("flow from role %d to %d", src, dst);
}

void role_enter(struct tcase *c, int role)
{
	own_case = cases[c->index].name;
	if (role >= 0)
		memcpy(own_name, c->roles[role].name, sizeof(own_name));
	else
		snprintf(own_name, sizeof(own_name), "%s.run", own_case);
	prctl(PR_SET_NAME, own_name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (role >= 0)
		atomic_store(&c->roles[role].pid, getpid());
}

void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = wait(&status)) > 0 || errno == EINTR) {
		if (pid > 0 && (!WIFEXITED(status) || WEXITSTATUS(status))) {
			errno = ECHILD;
			die("process %d ended with status %#x", (int)pid, (unsigned)status);
		}
	}
}

pid_t role_start(struct tcase *c, int role, role_fn fn)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	role_enter(c, role);
	fn(c, role);
	if (c->roles[role].held)
		hold(c);
	reap();
	_exit(0);
}

void gate(struct tcase *c)
{
	sem_post(&c->ready);
	/* Without a limit: --wait-start waits for a person. The parent's death ends it. */
	while (sem_wait(&c->start) < 0)
		if (errno != EINTR)
			die("wait for the start");
	alarm(PATIENCE_S);
}

/*
 * Transactions so far: a counter in the index that SQLite keeps of its write-ahead log (walformat.html). Mapped, as
 * calls would be in the recording.
 */
static const volatile uint32_t *recording_transactions(void)
{
	enum { CHANGES_AT = 8, HEAD_BYTES = 48 };
	static const volatile uint32_t *changes;
	char path[300], *head;
	int fd;

	if (changes)
		return changes;
	snprintf(path, sizeof(path), "%s-shm", shared->recording);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	head = fd < 0 ? MAP_FAILED : mmap(NULL, HEAD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		die("map '%s'", path);
	close(fd);
	changes = (const volatile void *)(head + CHANGES_AT);
	return changes;
}

void await_look(void)
{
	const volatile uint32_t *now;
	uint32_t before;
	int tries = 0;

	if (!shared->recording[0])
		return;
	now = recording_transactions();
	for (before = *now; *now - before < 2; sleep_us(20000))
		if (++tries == PATIENCE_S * 50) {
			errno = ETIMEDOUT;
			die("wait for '%s' to be written", shared->recording);
		}
}

void hold(struct tcase *c)
{
	sem_post(&c->done);
	alarm(0);
	while (sem_wait(&c->release) < 0)
		if (errno != EINTR)
			die("wait for the end");
}

static int held_roles(const struct tcase *c)
{
	int n = 0;

	for (int i = 0; i < c->nroles; i++)
		n += c->roles[i].held;
	return n;
}

void case_play(struct tcase *c, void (*after_start)(struct tcase *c))
{
	int n = held_roles(c);

	for (int i = 0; i < n; i++)
		sem_take(&c->ready);
	sem_post(&shared->ready);
	while (sem_wait(&shared->go) < 0)
		if (errno != EINTR)
			die("wait for the start");
	for (int i = 0; i < n; i++)
		sem_post(&c->start);
	if (after_start)
		after_start(c);
	for (int i = 0; i < n; i++)
		sem_take(&c->done);
	await_look();
	for (int i = 0; i < n; i++)
		sem_post(&c->release);
	reap();
}

void case_skip(struct tcase *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->skipped, sizeof(c->skipped), fmt, ap);
	va_end(ap);
	c->nroles = 0;
	c->nflows = 0;
	sem_post(&shared->ready);
	_exit(0);
}
