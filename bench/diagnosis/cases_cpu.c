/* Too much work for one thread, or for the CPUs that it may use. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "diag.h"

/* One thread computes what all others need. */
struct solver {
	const struct diag *d;
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	unsigned questions, answers;
};

static void solve(void *arg)
{
	struct solver *s = arg;
	uint64_t random = s->d->seed;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (!s->questions)
			pthread_cond_wait(&s->asked, &s->lock);
		s->questions--;
		pthread_mutex_unlock(&s->lock);
		work_us(about_us(&random, s->d->healthy ? s->d->size / 50 : s->d->size));
		pthread_mutex_lock(&s->lock);
		s->answers++;
		pthread_cond_signal(&s->answered);
		pthread_mutex_unlock(&s->lock);
	}
}

static void want_answer(void *arg)
{
	struct solver *s = arg;
	uint64_t random = s->d->seed + 1;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		s->questions++;
		pthread_cond_signal(&s->asked);
		while (!s->answers)
			pthread_cond_wait(&s->answered, &s->lock);
		s->answers--;
		pthread_mutex_unlock(&s->lock);
		work_us(50);
		rest_us(about_us(&random, s->d->healthy ? s->d->size : 200));
	}
}

static void compute(const struct diag *d)
{
	struct solver *s = calloc(1, sizeof(*s));

	s->d = d;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->asked, NULL);
	pthread_cond_init(&s->answered, NULL);
	start_thread("solver", NULL, solve, s);
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("client", NULL, want_answer, s);
}

/* Works in bursts: all the time, or for a tenth of it. */
static void crunch(void *arg)
{
	const struct diag *d = arg;
	uint64_t random = d->seed;

	for (;;) {
		work_us(about_us(&random, d->healthy ? d->size / 20 : d->size));
		if (d->healthy)
			rest_us(about_us(&random, d->size));
	}
}

/* Under a quota, which the group that it runs in brings. */
static void spinners(const struct diag *d)
{
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("spinner", NULL, crunch, (void *)d);
}

static void oversubscribed(const struct diag *d)
{
	unsigned n = d->healthy ? 1 : d->threads * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	for (unsigned i = 0; i < n; i++)
		start_thread("cruncher", NULL, crunch, (void *)d);
}

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

struct job {
	const struct diag *d;
	unsigned cpu;
};

/* Its threads inherit the mask. */
static void pinned_job(void *arg)
{
	struct job *j = arg;

	pin(j->cpu);
	crunch((void *)j->d);
}

/* Two jobs of one thread each, on one CPU, while another has nothing to do. */
static void same_cpu(const struct diag *d)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), first = (unsigned)(d->seed % cpus);

	for (unsigned i = 0; i < 2; i++) {
		struct job *j = calloc(1, sizeof(*j));

		*j = (struct job){d, d->healthy ? (first + i) % cpus : first};
		start_process("job", i ? "job-b" : "job-a", pinned_job, j);
	}
}

/* A process with many threads whose mask has one CPU. */
static void narrow(const struct diag *d)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	if (!d->healthy)
		pin((unsigned)(d->seed % cpus));
	for (unsigned i = 0; i < (d->healthy ? cpus : d->threads); i++)
		start_thread("worker", NULL, crunch, (void *)d);
}

/* A thread of little weight keeps a lock while others take the CPU from it. */
struct inversion {
	const struct diag *d;
	pthread_mutex_t lock;
	unsigned cpu;
};

static void weak_holder(void *arg)
{
	struct inversion *v = arg;

	pin(v->cpu);
	if (setpriority(PRIO_PROCESS, 0, 19))
		die("setpriority");
	for (;;) {
		pthread_mutex_lock(&v->lock);
		work_us(v->d->healthy ? v->d->size / 100 : v->d->size / 5);
		pthread_mutex_unlock(&v->lock);
		rest_us(v->d->healthy ? v->d->size : 1000);
	}
}

static void crunch_there(void *arg)
{
	struct inversion *v = arg;

	pin(v->cpu);
	crunch((void *)v->d);
}

static void urgent(void *arg)
{
	struct inversion *v = arg;

	for (;;) {
		rest_us(v->d->size / 5);
		pthread_mutex_lock(&v->lock);
		work_us(50);
		pthread_mutex_unlock(&v->lock);
	}
}

static void inversion(const struct diag *d)
{
	struct inversion *v = calloc(1, sizeof(*v));

	v->d = d;
	v->cpu = (unsigned)(d->seed % (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	pthread_mutex_init(&v->lock, NULL);
	start_thread("holder", "background", weak_holder, v);
	start_thread("waiter", "urgent", urgent, v);
	if (!d->healthy)
		start_thread("cruncher", NULL, crunch_there, v);
}

const struct diag_case cpu_cases[] = {
	{"compute", "all wait for what one thread computes", compute},
	{"spinners", "threads that compute, for a group with a quota", spinners},
	{"oversubscribed", "more threads that compute than CPUs", oversubscribed},
	{"same-cpu", "two jobs pinned to one CPU while another idles", same_cpu},
	{"narrow", "threads that may use one CPU only", narrow},
	{"inversion", "a lock kept by a thread that gets no CPU", inversion},
	{0},
};
