/*
 * A process of many threads that do next to nothing, and one that is busy a third of the time.
 *
 *   crowd THREADS SECONDS
 *
 * Prints "ready" when all are there. Ends by itself after SECONDS, and with its parent.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 20000
#define SECONDS_MAX 600

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void *idle(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "crowd-%u", (unsigned)(uintptr_t)arg);
	prctl(PR_SET_NAME, name);
	for (;;)
		rest(2000 + (long)(uintptr_t)arg % 1000);
	return NULL;
}

static void *busy(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "crowd-busy");
	for (;;) {
		for (uint64_t until = now_ns() + 20000000; now_ns() < until;)
			continue;
		rest(40);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc == 3 ? atol(argv[1]) : 0, seconds = argc == 3 ? atol(argv[2]) : 0;
	pthread_attr_t small;
	pthread_t t;

	if (threads < 1 || threads > THREADS_MAX || seconds < 1 || seconds > SECONDS_MAX) {
		fprintf(stderr, "usage: crowd THREADS SECONDS\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)seconds);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN + 16384);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t, &small, i ? idle : busy, (void *)(uintptr_t)i)) {
			perror("crowd: thread");
			return 1;
		}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
