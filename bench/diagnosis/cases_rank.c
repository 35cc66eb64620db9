/* Processes that meet after each step, as ranks of a job do. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "diag.h"

#define CHECKPOINT_BYTES (256 * 1024)

enum fault { COMPUTES, ROTATES, NICED, WRITES, STOPS };

struct meeting {
	pthread_barrier_t all;
};

struct rank {
	const struct diag *d;
	struct meeting *m;
	enum fault fault;
	unsigned number;
	int fd;
};

static void checkpoint(struct rank *r)
{
	static char data[CHECKPOINT_BYTES] __attribute__((aligned(4096)));

	for (int i = 0; i < 4; i++)
		if (pwrite(r->fd, data, sizeof(data), i * (off_t)sizeof(data)) < 0 || fsync(r->fd))
			die("checkpoint");
}

static bool is_slow(const struct rank *r, unsigned turn)
{
	return !r->d->healthy && (r->fault == ROTATES ? r->number == turn : r->number == 1);
}

static void run(void *arg)
{
	struct rank *r = arg;
	const struct diag *d = r->d;
	uint64_t random = d->seed;

	if (r->fault == NICED && is_slow(r, 0) && setpriority(PRIO_PROCESS, 0, 19))
		die("setpriority");
	for (;;) {
		bool slow = is_slow(r, random_below(&random, d->threads));

		work_us(slow && (r->fault == COMPUTES || r->fault == ROTATES) ? d->size : d->size / 10);
		if (slow && r->fault == WRITES)
			checkpoint(r);
		if (slow && r->fault == STOPS && is_over(d))
			raise(SIGSTOP);
		pthread_barrier_wait(&r->m->all);
		/* As for a device. */
		rest_us(d->healthy ? d->size : d->size / 5);
	}
}

/* Keeps a CPU for itself, in bursts of many ms. */
static void neighbour(void *arg)
{
	for (;;)
		work_us(100000);
}

static void ranks_start(const struct diag *d, enum fault fault)
{
	struct meeting *m = shared_memory(sizeof(*m));
	pthread_barrierattr_t a;

	pthread_barrierattr_init(&a);
	pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	if (pthread_barrier_init(&m->all, &a, d->threads))
		die("pthread_barrier_init");
	for (unsigned i = 0; i < d->threads; i++) {
		struct rank *r = calloc(1, sizeof(*r));
		char path[256], number[12];

		*r = (struct rank){d, m, fault, i, -1};
		snprintf(path, sizeof(path), "%s/diag.%d", d->dir, getpid());
		snprintf(number, sizeof(number), "%u", i);
		setenv("RANK", number, 1);
		if (fault == WRITES) {
			r->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
			if (r->fd < 0 || unlink(path))
				die(path);
		}
		start_process(fault != ROTATES && i == 1 ? "slow" : "rank", "rank", run, r);
	}
	for (unsigned i = 0; fault == NICED && !d->healthy && i < (unsigned)sysconf(_SC_NPROCESSORS_ONLN); i++)
		start_process("neighbour", NULL, neighbour, NULL);
}

static void rank_slow(const struct diag *d)
{
	ranks_start(d, COMPUTES);
}

static void rank_rotating(const struct diag *d)
{
	ranks_start(d, ROTATES);
}

static void rank_niced(const struct diag *d)
{
	ranks_start(d, NICED);
}

static void rank_writes(const struct diag *d)
{
	ranks_start(d, WRITES);
}

static void rank_stopped(const struct diag *d)
{
	ranks_start(d, STOPS);
}

const struct diag_case rank_cases[] = {
	{"rank-slow", "one rank computes longer than its equals", rank_slow},
	{"rank-rotating", "another rank each step", rank_rotating},
	{"rank-niced", "one rank gets little CPU beside others", rank_niced},
	{"rank-writes", "one rank writes to disk in each step", rank_writes},
	{"rank-stopped", "one rank is stopped by a signal, after a while", rank_stopped},
	{0},
};
