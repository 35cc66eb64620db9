/* Reads the probes as fast as it can while threads send, receive and move: no update may be lost. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "err.h"
#include "sched_probe.h"
#include "sock_probe.h"

#define WORKERS	   4
#define READINGS   150
#define MESSAGES   20000 /* of each worker at least, however little of a CPU it has */
#define PATIENCE_S 90
#define PAGE	 4096 /* or less than one */

/* What one thread did, by its own count, and what the probes say of it. */
struct worker {
	pthread_t thread;
	uint32_t tid;
	uint64_t sent[2], received[2]; /* bytes, messages: by return values */
	uint64_t voluntary, involuntary;
	uint64_t seen_sent[2], seen_received[2];
	uint64_t seen_voluntary, seen_involuntary;
	uint64_t run_ns, cpus_ns;
	uint64_t faults, cpu_us; /* by getrusage() */
	struct sched_usage usage;
	bool has_usage;
	unsigned exits;
};

static struct worker workers[WORKERS];
static atomic_ulong messages[WORKERS]; /* so far */
static atomic_bool stop;
static atomic_int ready;
static long ncpu;

static void move_on(unsigned round)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(round % (unsigned)ncpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* a CPU that is not ours: stay */
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rusage usage;
	char buf[512] = {0}, *page;
	int fd[2];

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		exit(1);

	w->tid = (uint32_t)gettid();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) {
		perror("socketpair");
		exit(1);
	}
	atomic_fetch_add(&ready, 1);
	for (unsigned i = 0; !stop; i++) {
		ssize_t n = send(fd[0], buf, 1 + i % sizeof(buf), 0);

		w->sent[0] += (uint64_t)n;
		w->sent[1]++;
		n = recv(fd[1], buf, sizeof(buf), 0);
		w->received[0] += (uint64_t)n;
		w->received[1]++;
		if (i % 256)
			continue;
		messages[w - workers] = i;
		move_on(i / 256);
		/* A page fault. */
		if (madvise(page, PAGE, MADV_DONTNEED))
			exit(1);
		page[0] = 1;
	}
	close(fd[0]);
	close(fd[1]);
	getrusage(RUSAGE_THREAD, &usage);
	w->voluntary = (uint64_t)usage.ru_nvcsw;
	w->involuntary = (uint64_t)usage.ru_nivcsw;
	w->faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
	w->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	return NULL;
}

static struct worker *worker_of(uint32_t tid)
{
	for (size_t i = 0; i < WORKERS; i++)
		if (workers[i].tid == tid)
			return &workers[i];
	return NULL;
}

static int on_flow(void *ctx, const struct sock_sample *s)
{
	struct worker *w = worker_of(s->v.task.tid);
	uint64_t *sum;

	if (!w || s->v.sock.proto != SOCK_PROTO_UNIX_STREAM)
		return 0;
	sum = s->dir == SOCK_SENT ? w->seen_sent : w->seen_received;
	sum[0] += s->v.bytes;
	sum[1] += s->v.msgs;
	return 0;
}

static int on_thread(void *ctx, const struct sched_sample *s)
{
	struct worker *w = worker_of(s->task.tid);

	if (!w)
		return 0;
	w->run_ns += s->run_ns;
	w->seen_voluntary += s->voluntary;
	w->seen_involuntary += s->involuntary;
	for (size_t i = 0; i < s->ncpus; i++)
		w->cpus_ns += s->cpus[i].run_ns;
	w->exits += (s->flags & SCHED_EXITED) != 0;
	if (!s->has_usage)
		return 0;
	w->has_usage = true;
	w->usage.user_ns += s->usage.user_ns;
	w->usage.system_ns += s->usage.system_ns;
	w->usage.minor_faults += s->usage.minor_faults;
	w->usage.major_faults += s->usage.major_faults;
	return 0;
}

static int reading(struct sock_probe *sock, struct sched_probe *sched, struct err *e)
{
	int rc = sock_probe_read(sock, on_flow, NULL, e);

	return rc ? rc : sched_probe_read(sched, false, on_thread, NULL, NULL, e);
}

static int same(const struct worker *w, const char *what, uint64_t seen, uint64_t least, uint64_t most)
{
	if (seen >= least && seen <= most)
		return 0;
	printf("thread %u: %s: %" PRIu64 " recorded, %" PRIu64 " to %" PRIu64 " happened\n", w->tid,
	       what, seen, least, most);
	return 1;
}

static int verdict(const struct worker *w, bool refused)
{
	int bad = 0;

	bad += same(w, "bytes sent", w->seen_sent[0], w->sent[0], w->sent[0]);
	bad += same(w, "messages sent", w->seen_sent[1], w->sent[1], w->sent[1]);
	bad += same(w, "bytes received", w->seen_received[0], w->received[0], w->received[0]);
	bad += same(w, "messages received", w->seen_received[1], w->received[1], w->received[1]);
	/* A thread still blocks or is preempted a few times while it ends. */
	bad += same(w, "voluntary switches", w->seen_voluntary, w->voluntary, w->voluntary + 16);
	bad += same(w, "involuntary switches", w->seen_involuntary, w->involuntary,
		    w->involuntary + 16);
	bad += same(w, "run time by CPU, ns", w->cpus_ns, w->run_ns, w->run_ns);
	bad += same(w, "last records", w->exits, 1, 1);
	if (!w->has_usage)
		return bad + !refused;
	/*
	 * getrusage() scales what the ticks gave to the exact time. Threads that run between ticks, as many do on a
	 * busy machine, are met by few.
	 */
	bad += same(w, "page faults", w->usage.minor_faults + w->usage.major_faults, w->faults, w->faults + 16);
	bad += same(w, "user and system time, ns", w->usage.user_ns + w->usage.system_ns, w->cpu_us * 100,
		    w->cpu_us * 2000 + 100000000);
	return bad;
}

/*
 * A few read faults are told of any thread of the host, and records of threads that end by the thousand while we have no
 * CPU: what they touch is compared above.
 */
static int health(const struct probe_health *h)
{
	if (!h->map_full && h->read_fault < 10)
		return 0;
	printf("probe %s: map_full %" PRIu64 " ring_full %" PRIu64 " read_fault %" PRIu64 "\n", h->probe,
	       h->map_full, h->ring_full, h->read_fault);
	return 1;
}

/* Some readings, and as many more as it takes until every worker has done its part. */
static bool goes_on(int readings)
{
	if (readings < READINGS)
		return true;
	for (size_t i = 0; i < WORKERS; i++)
		if (messages[i] < MESSAGES)
			return true;
	return false;
}

/* pthread_join() returns before the last switch, which has the last record of a thread. */
static int read_last(struct sock_probe *sock, struct sched_probe *sched, struct err *e)
{
	for (int tries = 0; tries < PATIENCE_S * 10; tries++) {
		unsigned ended = 0;
		int rc = reading(sock, sched, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < WORKERS; i++)
			ended += workers[i].exits > 0;
		if (ended == WORKERS)
			break;
		usleep(100000);
	}
	/* Nothing comes after it. */
	return reading(sock, sched, e);
}

static int open_failed(int rc, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", rc == -EPERM || rc == -ENOTSUP ? "skipped" : "error", e->msg);
	return rc == -EPERM || rc == -ENOTSUP ? 77 : 1;
}

/* Arguments are names to refuse, so that the same holds for each rung. */
int main(int argc, char **argv)
{
	struct probe_options o = {.refuse = (const char *const *)argv + 1, .nrefuse = (size_t)argc - 1};
	struct sched_probe *sched;
	struct sock_probe *sock;
	struct probe_health hs, hk;
	struct err e = {0};
	uint64_t sent = 0;
	int rc, readings = 0, bad = 0;

	ncpu = sysconf(_SC_NPROCESSORS_CONF);
	rc = sock_probe_open(&sock, &o, &e);
	if (rc)
		return open_failed(rc, &e);
	rc = sched_probe_open(&sched, &o, &e);
	if (rc)
		return open_failed(rc, &e);
	sched_probe_start(sched);
	for (size_t i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	while (ready < WORKERS)
		usleep(1000);
	for (; goes_on(readings) && !rc; readings++) {
		rc = reading(sock, sched, &e);
		usleep(5000);
	}
	stop = true;
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	rc = rc ?: read_last(sock, sched, &e);
	if (rc) {
		fprintf(stderr, "error: %s\n", e.msg);
		return 1;
	}
	for (size_t i = 0; i < WORKERS; i++) {
		bad += verdict(&workers[i], o.nrefuse);
		sent += workers[i].sent[1];
	}
	sock_probe_health(sock, &hk);
	sched_probe_health(sched, &hs);
	bad += health(&hk) + health(&hs);
	printf("%" PRIu64 " messages, %d readings, rungs %s and %s: %s\n", sent, readings,
	       hk.hooks[0].rung, hs.hooks[0].rung, bad ? "different" : "all counted");
	sock_probe_close(sock);
	sched_probe_close(sched);
	return bad != 0;
}
