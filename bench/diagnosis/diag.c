/* Is held up in a known way, and says by whom: diag CASE [--healthy] [OPTION]... */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"

#define ROLES_MAX	256
#define CALIBRATE_LOOPS 4000000u

/* Who takes part: written by each as it starts, in memory that all processes share. */
struct roles {
	unsigned wanted, ready;
	bool over; /* who is to come to a stop does so */
	struct {
		char role[24];
		pid_t pid, tid;
	} of[ROLES_MAX];
};

struct start {
	unsigned slot;
	char name[16];
	void (*run)(void *);
	void *arg;
};

static struct roles *roles;
static struct timespec began;
static double loops_per_us;

void die(const char *what)
{
	fprintf(stderr, "diag: %s: %s\n", what, strerror(errno));
	exit(1);
}

void rest_us(unsigned us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000l};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double elapsed_s(void)
{
	return seconds(CLOCK_MONOTONIC) - ((double)began.tv_sec + (double)began.tv_nsec / 1e9);
}

static void on_signal(int signal)
{
	(void)signal;
	__atomic_store_n(&roles->over, true, __ATOMIC_RELAXED);
}

bool is_over(const struct diag *d)
{
	return elapsed_s() > d->after_s || __atomic_load_n(&roles->over, __ATOMIC_RELAXED);
}

static void spin(uint64_t loops)
{
	uint64_t x = loops;

	for (uint64_t i = 0; i < loops; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
}

/* The fastest of some: what else runs here can only make one slower. */
static void calibrate(void)
{
	double best = 1;

	for (int i = 0; i < 3; i++) {
		double start = seconds(CLOCK_THREAD_CPUTIME_ID), took;

		spin(CALIBRATE_LOOPS);
		took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
		if (took < best)
			best = took;
	}
	loops_per_us = CALIBRATE_LOOPS / (best * 1e6);
}

void work_us(unsigned us)
{
	spin((uint64_t)(us * loops_per_us));
}

void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

unsigned random_below(uint64_t *state, unsigned below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((*state >> 33) % below);
}

unsigned about_us(uint64_t *state, unsigned us)
{
	return us - us / 10 + random_below(state, us / 5 + 1);
}

static struct start *prepare(const char *role, const char *name, void (*run)(void *), void *arg)
{
	struct start *s = calloc(1, sizeof(*s));

	s->slot = __atomic_fetch_add(&roles->wanted, 1, __ATOMIC_RELAXED);
	if (s->slot >= ROLES_MAX)
		die("too many threads");
	snprintf(s->name, sizeof(s->name), "%s", name ? name : role);
	snprintf(roles->of[s->slot].role, sizeof(roles->of[s->slot].role), "%s", role);
	s->run = run;
	s->arg = arg;
	return s;
}

static void *begin(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	prctl(PR_SET_NAME, s.name);
	roles->of[s.slot].pid = getpid();
	roles->of[s.slot].tid = (pid_t)syscall(SYS_gettid);
	__atomic_add_fetch(&roles->ready, 1, __ATOMIC_RELEASE);
	s.run(s.arg);
	return NULL;
}

void start_thread(const char *role, const char *name, void (*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, begin, prepare(role, name, run, arg)))
		die("pthread_create");
	pthread_detach(t);
}

pid_t start_process(const char *role, const char *name, void (*run)(void *), void *arg)
{
	struct start *s = prepare(role, name, run, arg);
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		begin(s);
		_exit(0);
	}
	free(s);
	return pid;
}

static void report(const char *name)
{
	while (__atomic_load_n(&roles->ready, __ATOMIC_ACQUIRE) < roles->wanted)
		rest_us(1000);
	printf("{\"case\":\"%s\",\"pid\":%d,\"roles\":[", name, getpid());
	for (unsigned i = 0; i < roles->wanted; i++)
		printf("%s{\"role\":\"%s\",\"pid\":%d,\"tid\":%d}", i ? "," : "", roles->of[i].role,
		       roles->of[i].pid, roles->of[i].tid);
	printf("]}\n");
	fflush(stdout);
}

static const struct diag_case *const tables[] = {cpu_cases,  lock_cases, flow_cases,
						 disk_cases, rank_cases, quiet_cases};

static const struct diag_case *find(const char *name)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct diag_case *c = tables[t]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	return NULL;
}

static void usage(void)
{
	fprintf(stderr, "usage: diag CASE [--healthy] [--threads N] [--size US] [--seed N] [--after S]\n"
			"            [--seconds S] [--dir DIR]\n\n");
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct diag_case *c = tables[t]; c->name; c++)
			fprintf(stderr, "  %-16s %s\n", c->name, c->what);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"healthy", no_argument, NULL, 'h'},	  {"threads", required_argument, NULL, 't'},
		{"size", required_argument, NULL, 'b'},	  {"seed", required_argument, NULL, 'r'},
		{"after", required_argument, NULL, 'a'},  {"seconds", required_argument, NULL, 's'},
		{"dir", required_argument, NULL, 'd'},	  {NULL},
	};
	struct diag d = {.threads = 4, .size = 10000, .seed = 1, .after_s = 3, .dir = "/var/tmp"};
	const struct diag_case *c;
	double length_s = 60;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'h')
			d.healthy = true;
		else if (o == 't')
			d.threads = (unsigned)atoi(optarg);
		else if (o == 'b')
			d.size = (unsigned)atoi(optarg);
		else if (o == 'r')
			d.seed = strtoull(optarg, NULL, 10);
		else if (o == 'a')
			d.after_s = atof(optarg);
		else if (o == 's')
			length_s = atof(optarg);
		else if (o == 'd')
			d.dir = optarg;
		else
			usage();
	}
	c = optind + 1 == argc ? find(argv[optind]) : NULL;
	if (!c || d.threads < 1 || d.threads > DIAG_THREADS_MAX || d.size < 100)
		usage();
	clock_gettime(CLOCK_MONOTONIC, &began);
	roles = shared_memory(sizeof(*roles));
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
	calibrate();
	c->start(&d);
	report(c->name);
	while (elapsed_s() < length_s)
		rest_us(100000);
	/* The processes go with this one, and the threads need no farewell. */
	fflush(NULL);
	_exit(0);
}
