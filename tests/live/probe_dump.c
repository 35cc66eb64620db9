/*
 * Prints the facts of one probe as text lines, for live tests: probe_dump PROBE SECONDS [REFUSE...]
 * SECONDS "-": until the end of standard input, and one more reading after that.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "probe.h"
#include "probe_dump.h"
#include "sched_probe.h"

static int on_sched(void *ctx, const struct sched_sample *s)
{
	printf("sched tid=%u tgid=%u start=%" PRIu64 " run_ns=%" PRIu64 " runq_ns=%" PRIu64
	       " vol=%" PRIu64 " invol=%" PRIu64 " migr=%" PRIu64 " wake=%" PRIu64
	       " flags=%u comm=%s cpus=",
	       s->task.tid, s->task.tgid, (uint64_t)s->task.start_ns, s->run_ns, s->runq_ns, s->voluntary,
	       s->involuntary, s->migrations, s->wakeups, s->flags, s->comm);
	for (size_t i = 0; i < s->ncpus; i++)
		printf("%s%u:%" PRIu64, i ? "," : "", s->cpus[i].cpu, s->cpus[i].run_ns);
	printf("\n");
	return 0;
}

void dump_health(const struct probe_health *h)
{
	for (size_t i = 0; i < h->nhooks; i++) {
		const struct probe_hook *k = &h->hooks[i];

		printf("hook probe=%s name=%s rung=%s runs=%" PRIu64 " ns_per_run=%.1f why=%s\n",
		       h->probe, k->name, k->rung, k->run_count,
		       k->run_count ? (double)k->run_ns / (double)k->run_count : 0.0, k->why);
	}
	printf("health probe=%s emitted=%" PRIu64 " ring_full=%" PRIu64 " map_full=%" PRIu64
	       " read_fault=%" PRIu64 " map_bytes=%" PRIu64 "\n",
	       h->probe, h->emitted, h->ring_full, h->map_full, h->read_fault, h->map_bytes);
	for (size_t i = 0; i < h->nnotes; i++)
		printf("note probe=%s %s\n", h->probe, h->notes[i]);
}

/* One reading a second, so that a line that says "ready" can be waited for. */
void dump_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

bool dump_wait(double left)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	if (left >= 0) {
		usleep((useconds_t)((left < 1 ? left : 1) * 1e6));
		return left > 1;
	}
	return poll(&in, 1, 1000) <= 0 || read(STDIN_FILENO, &c, 1) > 0;
}

static int dump_sched(double seconds, const struct probe_options *o, struct err *e)
{
	struct sched_probe *p;
	struct probe_health h;
	uint64_t window_ns = 0;
	bool more = true;
	int rc = sched_probe_open(&p, o, e);

	if (rc)
		return rc;
	sched_probe_start(p);
	dump_ready();
	for (double left = seconds; more && !rc; left -= 1) {
		more = dump_wait(left);
		rc = sched_probe_read(p, false, on_sched, NULL, &window_ns, e);
		printf("window ns=%" PRIu64 "\n", window_ns);
		fflush(stdout);
	}
	sched_probe_health(p, &h);
	dump_health(&h);
	sched_probe_close(p);
	return rc;
}

int main(int argc, char **argv)
{
	struct probe_options o = {0};
	struct err e = {0};
	double seconds;
	int rc;

	if (argc < 3) {
		fprintf(stderr, "usage: probe_dump sched|sock|ipc|proc|tasks|files|maps|caps SECONDS|- [REFUSE...]\n");
		return 2;
	}
	o.refuse = (const char *const *)argv + 3;
	o.nrefuse = (size_t)argc - 3;
	seconds = strcmp(argv[2], "-") ? atof(argv[2]) : -1;
	if (!strcmp(argv[1], "sched"))
		rc = dump_sched(seconds, &o, &e);
	else if (!strcmp(argv[1], "ipc"))
		rc = dump_ipc(seconds, &o, &e);
	else
		rc = dump_other(argv[1], seconds, &o, &e);
	if (rc)
		fprintf(stderr, "error: %s\nhint: %s\n", e.msg, e.hint);
	return rc == -ENOTSUP ? 77 : rc != 0;
}
