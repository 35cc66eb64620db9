/* The shared board: processes of a case, their meeting points, and the counters of their flows. */

#include "truth.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a role waits for another one before it calls the case broken. */
enum { WAIT_SECONDS = 30 };

static struct case_board *board_of(struct act *a)
{
	return &a->b->cases[a->case_no];
}

void act_die(struct act *a, const char *what)
{
	int err = errno;
	char name[16];

	prctl(PR_GET_NAME, name);
	fprintf(stderr, "truth: case '%s', process '%s': %s: %s\n", a->k->name, name, what,
		err ? strerror(err) : "failed");
	_exit(1);
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Wait while the word is @value; false when time runs out. seconds 0: for ever. */
static bool sleep_on(uint32_t *word, uint32_t value, int seconds)
{
	struct timespec ts = {.tv_sec = seconds};

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, seconds ? &ts : NULL, NULL, 0) == 0)
		return true;
	return errno == EAGAIN || errno == EINTR;
}

static void await(struct act *a, uint32_t *word, uint32_t at_least, int seconds)
{
	uint32_t v;

	while ((v = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < at_least)
		if (!sleep_on(word, v, seconds))
			act_die(a, "wait for the other processes of the case");
}

void act_ready(struct act *a)
{
	struct case_board *c = board_of(a);

	__atomic_add_fetch(&c->ready, 1, __ATOMIC_RELEASE);
	wake(&c->ready);
	await(a, &c->go, 1, 0);
}

void act_skip(struct act *a, const char *why)
{
	struct case_board *c = board_of(a);

	snprintf(c->skip_reason, sizeof(c->skip_reason), "%s", why);
	__atomic_store_n(&c->skipped, 1, __ATOMIC_RELEASE);
	_exit(0);
}

void act_post(struct act *a, unsigned slot, uint32_t value)
{
	assert(slot < MAX_SLOTS && value);
	__atomic_store_n(&board_of(a)->slot[slot], value, __ATOMIC_RELEASE);
	wake(&board_of(a)->slot[slot]);
}

uint32_t act_wait(struct act *a, unsigned slot)
{
	assert(slot < MAX_SLOTS);
	await(a, &board_of(a)->slot[slot], 1, WAIT_SECONDS);
	return __atomic_load_n(&board_of(a)->slot[slot], __ATOMIC_ACQUIRE);
}

void act_step(struct act *a, unsigned slot)
{
	assert(slot < MAX_SLOTS);
	__atomic_add_fetch(&board_of(a)->slot[slot], 1, __ATOMIC_RELEASE);
	wake(&board_of(a)->slot[slot]);
}

void act_wait_steps(struct act *a, unsigned slot, uint32_t n)
{
	assert(slot < MAX_SLOTS);
	await(a, &board_of(a)->slot[slot], n, WAIT_SECONDS);
}

static struct proc_row *row_of(struct act *a, unsigned role)
{
	assert(role < a->k->nroles + a->k->nshort);
	return &a->b->procs[board_of(a)->first_proc + role];
}

void act_set_name(struct act *a)
{
	prctl(PR_SET_NAME, row_of(a, a->role)->name);
}

int act_fork(struct act *a, unsigned role, void (*fn)(struct act *a))
{
	struct act child = *a;
	int parent = getpid();
	int pid = fork();

	if (pid < 0)
		act_die(a, "fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	child.role = role;
	act_set_name(&child);
	__atomic_store_n(&row_of(&child, role)->pid, getpid(), __ATOMIC_RELEASE);
	wake((uint32_t *)&row_of(&child, role)->pid);
	fn(&child);
	_exit(0);
}

void act_reap(struct act *a, int pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		act_die(a, "wait for a child");
	errno = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		act_die(a, "a child did not end well");
}

int act_pid(struct act *a, unsigned role)
{
	uint32_t *word = (uint32_t *)&row_of(a, role)->pid;

	await(a, word, 1, WAIT_SECONDS);
	return (int)__atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void lock(struct act *a)
{
	while (__atomic_exchange_n(&a->b->lock, 1, __ATOMIC_ACQUIRE))
		sleep_on(&a->b->lock, 1, 1);
}

static void unlock(struct act *a)
{
	__atomic_store_n(&a->b->lock, 0, __ATOMIC_RELEASE);
	wake(&a->b->lock);
}

static struct flow *find_flow(struct act *a, unsigned from, unsigned to, enum kind kind,
			      const char *external)
{
	struct flow *f;
	unsigned i;

	for (i = 0; i < a->b->nflows; i++) {
		f = &a->b->flows[i];
		if (f->case_no == a->case_no && f->from == from && f->to == to &&
		    f->kind == (uint32_t)kind && strcmp(f->external, external) == 0)
			return f;
	}
	assert(a->b->nflows < MAX_FLOWS);
	f = &a->b->flows[a->b->nflows++];
	f->case_no = a->case_no;
	f->from = from;
	f->to = to;
	f->kind = kind;
	snprintf(f->external, sizeof(f->external), "%s", external);
	return f;
}

struct flow *act_flow(struct act *a, unsigned from, unsigned to, enum kind kind)
{
	struct flow *f;

	lock(a);
	f = find_flow(a, from, to, kind, "");
	unlock(a);
	return f;
}

struct flow *act_flow_outside(struct act *a, unsigned from, enum kind kind, const char *external)
{
	struct flow *f;

	lock(a);
	f = find_flow(a, from, TO_OUTSIDE, kind, external);
	unlock(a);
	return f;
}

void flow_flag(struct flow *f, enum flow_flag flag)
{
	__atomic_or_fetch(&f->flags, (uint32_t)flag, __ATOMIC_RELAXED);
}

void flow_sent(struct flow *f, uint64_t bytes)
{
	__atomic_add_fetch(&f->bytes_sent, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->messages_sent, 1, __ATOMIC_RELAXED);
}

void flow_received(struct flow *f, uint64_t bytes)
{
	__atomic_add_fetch(&f->bytes_received, bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->messages_received, 1, __ATOMIC_RELAXED);
}

void act_hold(struct act *a)
{
	struct case_board *c = board_of(a);

	__atomic_add_fetch(&c->done, 1, __ATOMIC_RELEASE);
	wake(&c->done);
	await(a, &c->release, 1, 0);
}
