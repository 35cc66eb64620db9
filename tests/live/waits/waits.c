/*
 * Blocks in many ways at once, and writes down who waited how long, and who ended it: waits OUT [DIR [RECORDING]]
 * RECORDING: what is being made of it, whose looks are waited for where something is known by a later look only.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waits.h"

#define PAIR_ROUNDS 20
#define PATIENCE_S  180

const char *wait_dir = "/var/tmp";

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void pause_us(unsigned us)
{
	struct timespec t = {.tv_nsec = us * 1000l};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void die(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *waiter(void *arg)
{
	struct wait_run *r = arg;

	r->pid = getpid();
	__atomic_store_n(&r->waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (int i = 0; i < ROUNDS; i++) {
		r->begin_ns = now_ns();
		r->c->wait(r);
		r->waited_ns += now_ns() - r->begin_ns;
	}
	return NULL;
}

static void *waker(void *arg)
{
	struct wait_run *r = arg;

	r->waker = (pid_t)syscall(SYS_gettid);
	while (!__atomic_load_n(&r->waiter, __ATOMIC_ACQUIRE))
		pause_us(1000);
	for (int i = 0; i < ROUNDS; i++) {
		pause_us(PERIOD_US);
		r->c->wake(r);
	}
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Transactions of the recording so far: a counter in the index that SQLite keeps of its write-ahead log
 * (walformat.html). Mapped once, as calls would be waits.
 */
static const volatile uint32_t *transactions;

static void find_transactions(const char *recording)
{
	enum { CHANGES_AT = 8, HEAD_BYTES = 48 };
	char path[300], *head;
	int fd;

	snprintf(path, sizeof(path), "%s-shm", recording);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	head = fd < 0 ? MAP_FAILED : mmap(NULL, HEAD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		die(path);
	close(fd);
	transactions = (const volatile void *)(head + CHANGES_AT);
}

/* Until a look that began later than now is over. */
static void await_look(void)
{
	uint32_t before;
	int tries = 0;

	if (!transactions)
		return;
	for (before = *transactions; *transactions - before < 2; pause_us(20000))
		if (++tries == PATIENCE_S * 50) {
			errno = ETIMEDOUT;
			die("a look");
		}
}

/* Two processes and one lock in memory that they share: each waits for the other. */
struct pair {
	pthread_mutex_t lock;
	int started;
	struct {
		pid_t pid;
		uint64_t waited_ns;
	} side[2];
};

static void pair_side(struct pair *p, int me)
{
	p->side[me].pid = getpid();
	__atomic_add_fetch(&p->started, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&p->started, __ATOMIC_ACQUIRE) < 2)
		pause_us(1000);
	for (int i = 0; i < PAIR_ROUNDS; i++) {
		uint64_t start = now_ns();

		pthread_mutex_lock(&p->lock);
		p->side[me].waited_ns += now_ns() - start;
		pause_us(PERIOD_US);
		pthread_mutex_unlock(&p->lock);
		pause_us(PERIOD_US / 10);
	}
}

static struct pair *pair_start(pid_t children[2])
{
	struct pair *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;

	if (p == MAP_FAILED)
		die("mmap");
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&p->lock, &a);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		pair_side(p, i);
		/* What memory the word lies in is asked for at the next look. */
		await_look();
		_exit(0);
	}
	return p;
}

static void write_run(FILE *f, const struct wait_run *r, const char *separator)
{
	fprintf(f, "%s\n{\"case\":\"%s\",\"possible\":%s", separator, r->c->name, r->possible ? "true" : "false");
	fprintf(f, ",\"pid\":%d,\"tid\":%d,\"cause\":\"%s\",\"type\":\"%s\",\"object\":\"%s\"", r->pid, r->waiter,
		r->c->cause, r->c->object, r->object);
	fprintf(f, ",\"waker\":\"%s\",\"wakers\":[", r->c->waker ? r->c->waker : "thread");
	if (r->waker)
		fprintf(f, "%d", r->waker);
	for (size_t i = 0; i < r->nchildren; i++)
		fprintf(f, "%s%d", i ? "," : "", r->children[i]);
	fprintf(f, "],\"waited_ns\":%llu}", (unsigned long long)r->waited_ns);
}

static void write_pair(FILE *f, const struct pair *p)
{
	for (int i = 0; i < 2; i++)
		fprintf(f,
			",\n{\"case\":\"mutex_shared_%d\",\"possible\":true,\"pid\":%d,\"tid\":%d,\"cause\":\"futex\","
			"\"type\":\"futex\",\"object\":\"\",\"waker\":\"thread\",\"wakers\":[%d],\"waited_ns\":%llu,"
			"\"same_object\":\"pair\"}",
			i, p->side[i].pid, p->side[i].pid, p->side[!i].pid,
			(unsigned long long)p->side[i].waited_ns);
}

static void write_truth(const char *path, const struct wait_run *runs, const struct pair *pair)
{
	FILE *f = fopen(path, "we");

	if (!f)
		die(path);
	fprintf(f, "{\"waits\":[");
	for (size_t i = 0; i < n_wait_cases; i++)
		write_run(f, &runs[i], i ? "," : "");
	write_pair(f, pair);
	fprintf(f, "\n]}\n");
	if (fclose(f))
		die(path);
}

static void finish(struct wait_run *r, pthread_t threads[2])
{
	if (!r->possible || r->finished)
		return;
	pthread_join(threads[0], NULL);
	if (r->c->wake)
		pthread_join(threads[1], NULL);
	r->finished = true;
}

static void start(struct wait_run *r, pthread_t threads[2])
{
	if (!r->possible)
		return;
	if (pthread_create(&threads[0], NULL, waiter, r))
		die("pthread_create");
	if (r->c->wake && pthread_create(&threads[1], NULL, waker, r))
		die("pthread_create");
	if (r->c->alone)
		finish(r, threads);
}

int main(int argc, char **argv)
{
	struct wait_run *runs = calloc(n_wait_cases, sizeof(*runs));
	pthread_t(*threads)[2] = calloc(n_wait_cases, sizeof(*threads));
	pid_t children[2];
	struct pair *pair;
	sigset_t set;

	if (argc < 2) {
		fprintf(stderr, "usage: waits OUT [DIR [RECORDING]]\n");
		return 2;
	}
	if (argc > 2)
		wait_dir = argv[2];
	if (argc > 3)
		find_transactions(argv[3]);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* All of it first: to run another program holds up the threads of this one. */
	for (size_t i = 0; i < n_wait_cases; i++) {
		runs[i].c = &wait_cases[i];
		runs[i].possible = !runs[i].c->setup || !runs[i].c->setup(&runs[i]);
	}
	pair = pair_start(children);
	for (size_t i = 0; i < n_wait_cases; i++)
		start(&runs[i], threads[i]);
	for (size_t i = 0; i < n_wait_cases; i++)
		finish(&runs[i], threads[i]);
	for (int i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
	write_truth(argv[1], runs, pair);
	/* What the cases hold until the end is left to the kernel, without a leak check. */
	fflush(NULL);
	_exit(0);
}
