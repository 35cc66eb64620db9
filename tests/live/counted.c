/*
 * counted - counts events for threads by the same way as those of hardware, on events whose number is known.
 *
 * A folder describes a PMU of CPUs whose events are the kernel's own: page faults stand for cycles, context
 * switches for instructions, time for references to the cache; misses of the cache are an event that the
 * machine does not have. Children make exact numbers of them, and the sources of a recording are asked.
 * Status 77: not allowed here.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "sched_probe.h"

#define PAGES	2000
#define TURNS	1500
#define SPIN_NS 150000000ull

static char root[] = "/tmp/counted.XXXXXX";
static int problems;

static void check(bool good, const char *what, uint64_t have, uint64_t want)
{
	printf("%s: %s: %" PRIu64 ", to be %" PRIu64 "\n", good ? "ok" : "wrong", what, have, want);
	problems += !good;
}

static void put(const char *name, const char *text)
{
	char path[300], *s;
	FILE *f;

	snprintf(path, sizeof(path), "%s/sys/bus/event_source/devices/cpu/%s", root, name);
	for (s = path + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		mkdir(path, 0755);
	}
	f = fopen(path, "we");
	if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Since it was asked last: while the process waits for its next turn, the kernel may take pages, and the CPU. */
static uint64_t since_last(bool switches)
{
	static uint64_t before;
	struct rusage u;
	uint64_t now, gain;

	getrusage(RUSAGE_SELF, &u);
	now = (uint64_t)(switches ? u.ru_nvcsw + u.ru_nivcsw : u.ru_minflt + u.ru_majflt);
	gain = now - before;
	before = now;
	return gain;
}

/* Instrumented, it would touch the pages of the sanitizer's notes, too. */
__attribute__((no_sanitize("address"))) static uint64_t fault(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, bytes, MADV_NOHUGEPAGE))
		return 0;
	for (size_t i = 0; i < bytes; i += page)
		((volatile char *)p)[i] = 1;
	return since_last(false);
}

/* Sleeps so often; each time it has to be switched out, and in again. */
static uint64_t turn(void)
{
	for (int i = 0; i < TURNS; i++)
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	return since_last(true);
}

/* Never gives its CPU up by itself: only the look at each CPU tells of it. */
static uint64_t spin(void)
{
	uint64_t start = cpu_ns();

	while (cpu_ns() - start < SPIN_NS)
		;
	return cpu_ns() - start;
}

struct child {
	const char *name;
	uint64_t (*work)(void);
	pid_t pid;
	int go[2], done[2];
	uint64_t made;
};

static struct child children[] = {{.name = "faults", .work = fault}, {.name = "turns", .work = turn}, {.name = "spins", .work = spin}};

#define CHILDREN (sizeof(children) / sizeof(children[0]))

static void start(struct child *c)
{
	char byte = 0;
	uint64_t made;

	if (pipe(c->go) || pipe(c->done) || (c->pid = fork()) < 0) {
		perror("counted: fork");
		exit(1);
	}
	if (c->pid) {
		if (read(c->done[0], &byte, 1) != 1)
			exit(1);
		return;
	}
	/* The product takes children with its own name for helpers, which it does not record. */
	prctl(PR_SET_NAME, c->name);
	if (write(c->done[1], &byte, 1) != 1)
		_exit(1);
	/* Work is done twice, so that one interval has it all; what is told is of the second time. */
	while (read(c->go[0], &byte, 1) == 1) {
		made = c->work();
		if (write(c->done[1], &made, sizeof(made)) != sizeof(made))
			_exit(1);
	}
	_exit(0);
}

static void work(struct child *c)
{
	char byte = 1;

	if (write(c->go[1], &byte, 1) != 1 || read(c->done[0], &c->made, sizeof(c->made)) != sizeof(c->made)) {
		perror("counted: child");
		exit(1);
	}
}

static const struct node *thread_of(const struct graph *g, pid_t pid)
{
	vec_for(&g->nodes, n)
		if ((*n)->type == &thread_type && GET(thread, *n, tid) == (uint64_t)pid)
			return *n;
	return NULL;
}

static uint64_t on_edges(const struct graph *g, const struct node *thread)
{
	uint64_t sum = 0;

	vec_for(&g->edges, d)
		if ((*d)->type == &ran_on_type && (*d)->source == thread->index && HAS(ran_on, *d, cycles))
			sum += GET(ran_on, *d, cycles);
	return sum;
}

static bool within(uint64_t v, uint64_t want, uint64_t slack)
{
	return v + slack >= want && v <= want + slack;
}

static void look(const struct graph *g, const struct child *c)
{
	const struct node *t = thread_of(g, c->pid), *p;

	if (!t || !HAS(thread, t, cycles) || !HAS(thread, t, instructions) || !HAS(thread, t, llc_references)) {
		check(false, c->name, 0, 1);
		return;
	}
	p = g->nodes.v[GET(thread, t, process)];
	if (c->work == fault)
		/* And those of what it does once it has asked. */
		check(within(GET(thread, t, cycles), c->made, 8), "page faults of the thread", GET(thread, t, cycles), c->made);
	if (c->work == turn)
		/*
		 * It counts when the next one comes: the switch to it, so one for each time it was switched out. A kernel
		 * keeps a switch from all tracers now and then, which then counts for whoever comes next.
		 */
		check(within(GET(thread, t, instructions), c->made, TURNS / 100), "context switches of the thread",
		      GET(thread, t, instructions), c->made);
	if (c->work == spin) {
		uint64_t ran = GET(thread, t, run_ns);

		check(within(GET(thread, t, llc_references), ran, ran / 50 + 2000000), "time of a thread by its counter, ns",
		      GET(thread, t, llc_references), ran);
		check(ran + 5000000 >= c->made, "time that it ran, ns, at least", ran, c->made);
	}
	check(HAS(process, p, cycles) && GET(process, p, cycles) == GET(thread, t, cycles), "the process has those of its thread",
	      GET(process, p, cycles), GET(thread, t, cycles));
	check(on_edges(g, t) == GET(thread, t, cycles), "by CPU it is as many", on_edges(g, t), GET(thread, t, cycles));
	check(!HAS(thread, t, llc_misses) && !HAS(process, p, llc_misses), "what cannot be counted is not 0 but unknown", 0, 0);
	check(HAS(thread, t, l1i_misses) && GET(thread, t, l1i_misses) <= 64, "an event that does not happen",
	      GET(thread, t, l1i_misses), 0);
}

static void sample(struct collect *c, struct graph *g, bool last)
{
	graph_init(g);
	collect_sample(c, g, last);
}

static int observe(struct collect *c, const char *name, const char *const *refuse, size_t nrefuse)
{
	struct collect_options o = {.pmu_root = root, .probe = {.refuse = refuse, .nrefuse = nrefuse, .max_tasks = 4096}};
	struct graph g;
	struct err e;
	int rc = collect_open(c, &o, &e);

	printf("%s\n", name);
	if (rc < 0) {
		printf("wrong: %s\n", e.msg);
		return 1;
	}
	if (!c->sched_probe) {
		printf("skip: probe sched does not open here\n");
		return 77;
	}
	collect_begin(c);
	sample(c, &g, false);
	graph_done(&g);
	/* What comes with being new (its own copies of pages) is of this interval. */
	for (size_t i = 0; i < CHILDREN; i++)
		work(&children[i]);
	sample(c, &g, false);
	graph_done(&g);
	for (size_t i = 0; i < CHILDREN; i++)
		work(&children[i]);
	sample(c, &g, true);
	for (size_t i = 0; i < CHILDREN; i++)
		look(&g, &children[i]);
	graph_done(&g);
	return 0;
}

int main(int argc, char **argv)
{
	struct collect c = {0};
	char command[64];
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(root))
		return 1;
	put("type", "1");
	put("events/cpu-cycles", "config=0x2");	      /* PERF_COUNT_SW_PAGE_FAULTS */
	put("events/instructions", "config=0x3");     /* PERF_COUNT_SW_CONTEXT_SWITCHES */
	put("events/cache-references", "config=0x0"); /* PERF_COUNT_SW_CPU_CLOCK */
	put("events/cache-misses", "config=0x99");
	put("events/l1i_cache_refill", "config=0x7"); /* PERF_COUNT_SW_ALIGNMENT_FAULTS */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < CHILDREN; i++)
		start(&children[i]);
	rc = observe(&c, argc > 1 ? argv[1] : "best", (const char *const *)argv + 1, (size_t)(argc - 1));
	collect_close(&c);
	for (size_t i = 0; i < CHILDREN; i++) {
		kill(children[i].pid, SIGKILL);
		waitpid(children[i].pid, NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command))
		perror(command);
	if (!rc)
		printf("%d problems\n", problems);
	return rc ?: problems ? 1 : 0;
}
