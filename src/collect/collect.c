/* The sources of a recording: opened in order, sampled together, described at the end. */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "block_probe.h"
#include "channels.h"
#include "cleanup.h"
#include "clock.h"
#include "collect_block.h"
#include "collect_container.h"
#include "collect_device.h"
#include "collect_machine.h"
#include "collect_nic.h"
#include "collect_rdma.h"
#include "connections.h"
#include "device_calls.h"
#include "flows.h"
#include "ipc_probe.h"
#include "perf_pmu.h"
#include "proc_probe.h"
#include "sched_probe.h"
#include "sock_probe.h"
#include "sock_turns.h"
#include "worker.h"

#define READ_STUCK_NS 100000000ull /* to wait for a file of /proc that reads a process's memory */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t realtime_offset_ns(void)
{
	return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
}

/* The probes, in the order in which they are opened, and what there is without each. */
#define PROBE(name)                                                                                \
	static int open_##name(struct collect *c, struct err *e)                                   \
	{                                                                                          \
		return name##_probe_open(&c->name##_probe, &c->o.probe, e);                        \
	}                                                                                          \
	static bool health_of_##name(const struct collect *c, struct probe_health *ret)            \
	{                                                                                          \
		if (c->name##_probe)                                                               \
			name##_probe_health(c->name##_probe, ret);                                 \
		return c->name##_probe;                                                            \
	}

PROBE(proc)
PROBE(sched)
PROBE(sock)
PROBE(ipc)
PROBE(block)

/* With counters only if there are some: they cost something at each switch. */
static int open_sched_counting(struct collect *c, struct err *e)
{
	int rc;

	c->o.probe.count_events = counters_of_cores(c->counters) ? CORE_EVENTS : 0;
	rc = open_sched(c, e);
	if (!rc && c->o.probe.count_events)
		counters_for_threads(c->counters, c->sched_probe);
	return rc;
}

static const struct probe_source {
	const char *source, *instead;
	int (*open)(struct collect *c, struct err *e);
	bool (*health)(const struct collect *c, struct probe_health *ret); /* false: not open */
} probes[] = {
	{"probe proc", "processes by reading /proc: those that live between two looks are not seen",
	 open_proc, health_of_proc},
	{"probe sched", "CPU time by clock ticks of /proc; no run-queue delay, no migrations", open_sched_counting,
	 health_of_sched},
	{"probe sock", "no socket traffic and no flows", open_sock, health_of_sock},
	{"probe ipc", "nothing about pipes, queues, files and copies of memory", open_ipc, health_of_ipc},
	{"probe block", "disks by /proc/diskstats: no times of single requests, no processes", open_block,
	 health_of_block},
};

/* A source that fails is left out, unless all are wanted. */
static int without(struct collect *c, const struct probe_source *p, struct err *e)
{
	char why[600];

	if (c->o.require_ebpf) {
		err_ctx(e, "%s", p->source);
		return err_hint(e, "leave out --require ebpf to record what works without it");
	}
	snprintf(why, sizeof(why), "%.390s; instead: %s", e->msg, p->instead);
	vec_push(&c->troubles, ((struct trouble){.source = p->source, .why = mem_strdup(why)}));
	return 0;
}

/* The network namespace of the process that stands for it. */
static int find_netns(struct collect *c, struct err *e)
{
	char path[64];
	struct stat st;

	if (!c->o.netns_pid)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/ns/net", c->o.netns_pid);
	if (stat(path, &st) < 0)
		return err_set(e, -errno, "look at '%s'", path);
	c->netns = (uint32_t)st.st_ino;
	return 0;
}

static int open_probes(struct collect *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (c->o.no_ebpf)
			err_msg(e, -ENOTSUP, "switched off by --no-ebpf");
		else if (probes[i].open(c, e) >= 0)
			continue;
		rc = without(c, &probes[i], e);
	}
	return rc;
}

/* One source could not be read this time: the others go on, and what it had to say counts as lost. */
static void read_failed(struct collect *c, const char *source, const struct err *e)
{
	struct trouble *t = NULL;

	vec_for(&c->troubles, it)
		if (it->readings && !strcmp(it->source, source))
			t = it;
	if (!t) {
		t = vec_add(&c->troubles);
		t->source = source;
		t->why = mem_strdup(e->msg);
	}
	t->readings++;
}

int collect_open(struct collect *c, const struct collect_options *o, struct err *e)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->o = *o;
	c->devices = devices_new();
	c->device_calls = device_calls_new();
	c->containers = containers_new();
	c->nics = nics_new();
	c->rdma = rdma_new();
	c->blocks = blocks_new();
	c->machine = machine_new(NULL);
	/* Before anything is open that its child must not keep. */
	c->placements = placements_new(o->numa_exact, c->machine);
	c->counters = counters_new(c->machine, o->pmu_root);
	slow_reader_init(&c->reader, READ_STUCK_NS);
	procs_init(&c->procs, !o->npids, !o->no_redact);
	c->flows = flows_new();
	c->waits = waits_new();
	c->channels = channels_new();
	c->connections = connections_new();
	c->exchange = exchange_new(&c->procs);
	c->shm = shm_new();
	c->sweep_above = SWEEP_ABOVE;
	rc = o->sample_memory ? mem_samples_new(&c->mem_samples, c->machine, o->pmu_root, e) : 0;
	rc = rc ?: open_probes(c, e);
	rc = rc ?: collect_procs(c, false, e);
	if (c->proc_probe) {
		c->procs.learn = collect_procs_learn;
		c->procs.learn_ctx = c;
	}
	rc = rc ?: find_netns(c, e);
	for (size_t i = 0; !rc && i < o->npids; i++) {
		if (procs_live(&c->procs, o->pids[i]) == IDMAP_NONE)
			rc = err_msg(e, -ESRCH, "no process %u", o->pids[i]);
		else
			procs_select(&c->procs, o->pids[i]);
	}
	if (rc)
		collect_close(c);
	return rc;
}

static int sample_procs(struct collect *c, struct graph *g, bool last, struct err *e)
{
	(void)g;
	return c->ticks ? collect_procs(c, last, e) : 0;
}

static int sample_rings(struct collect *c, struct graph *g, bool last, struct err *e)
{
	int rc = collect_rings(c, last, e);

	(void)g;
	/* The next ones are the first to need what is known of their processes. */
	collect_procs_details(c);
	return rc;
}

static int sample_threads(struct collect *c, struct graph *g, bool last, struct err *e)
{
	int rc = 0;

	if (c->sched_probe)
		rc = collect_threads(c, g, last, e);
	else
		collect_threads_proc(c, g);
	/* Not when all of them have been told of, which takes time on a busy host. */
	c->read_ns = c->sched_probe && !rc ? sched_probe_read_ns(c->sched_probe) : clock_mono_ns();
	return rc;
}

static int sample_ipc(struct collect *c, struct graph *g, bool last, struct err *e)
{
	(void)last;
	return collect_ipc(c, g, e);
}

static int sample_waits(struct collect *c, struct graph *g, bool last, struct err *e)
{
	(void)last;
	(void)e;
	return c->sched_probe ? collect_waits(c, g) : 0;
}

static int sample_disks(struct collect *c, struct graph *g, bool last, struct err *e)
{
	(void)last;
	return collect_disks(c, g, e);
}

static int sample_block_io(struct collect *c, struct graph *g, bool last, struct err *e)
{
	(void)last;
	return collect_block_io(c, g, e);
}

/* In this order: who acted is known before what was done. */
static const struct part {
	const char *source;
	int (*sample)(struct collect *c, struct graph *g, bool last, struct err *e);
} parts[] = {
	{"collector proc", sample_procs},   {"collector io_uring", sample_rings},
	/* Requests per second are those of the interval, which ends when threads are read. */
	{"collector block", sample_disks},  {"collector sched", sample_threads},
	{"collector sock", collect_sockets}, {"collector ipc", sample_ipc},
	{"collector wait", sample_waits},    {"collector block", sample_block_io},
};

static void sample_part(struct collect *c, const struct part *p, struct graph *g, bool last)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = p->sample(c, g, last, &e);
	if (rc && !e.code)
		err_set(&e, rc, "read");
	if (rc)
		read_failed(c, p->source, &e);
}

void collect_due(struct collect *c)
{
	struct err e;

	err_clear(&e);
	if (collect_turn(c, &e))
		read_failed(c, "collector ipc turns", &e);
	err_clear(&e);
	if (sock_turns_do(c, &e))
		read_failed(c, "collector sock turns", &e);
}

uint64_t collect_due_ns(const struct collect *c)
{
	uint64_t calls = collect_turn_due_ns(c), sockets = sock_turns_due_ns(c);

	return calls < sockets ? calls : sockets;
}

/* What the sampling itself does is no part of a look. */
static void pause_look(struct collect *c)
{
	struct err e;

	err_clear(&e);
	if (collect_turn_pause(c, &e))
		read_failed(c, "collector ipc turns", &e);
}

void collect_sample(struct collect *c, struct graph *g, bool last)
{
	collect_due(c);
	pause_look(c);
	collect_host(c, g);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sample_part(c, &parts[i], g, last);
	collect_shm(c, g, last);
	collect_numa(c, g, last);
	collect_counters(c->counters, g, !c->ticks);
	collect_mem(c->mem_samples, g, !c->ticks);
	collect_containers(c, g);
	collect_nics(c, g);
	collect_rdma(c, g, last);
	collect_devices(c, g, last);
	device_calls_emit(c, g, last);
	collect_flows(c, g);
	collect_procs_emit(c, g);
	c->ticks++;
}

static void describe_probe(struct graph *g, const struct probe_health *h)
{
	char source[64], cost[80];

	for (size_t i = 0; i < h->nhooks; i++) {
		const struct probe_hook *k = &h->hooks[i];
		char why[400];

		snprintf(source, sizeof(source), "%s.%s", h->probe, k->name);
		snprintf(why, sizeof(why), "%s%s%s", k->why,
			 k->attached || !k->missing ? "" : "; not known: ",
			 k->attached || !k->missing ? "" : k->missing);
		graph_add_status(g, source,
				 !k->attached ? "off" : k->why[0] ? "reduced" : "ok",
				 k->rung, why[0] ? why : NULL);
		if (!k->has_stats || !k->run_count)
			continue;
		snprintf(cost, sizeof(cost), "%s runs", source);
		graph_add_cost(g, cost, "runs", (double)k->run_count);
		snprintf(cost, sizeof(cost), "%s time", source);
		graph_add_cost(g, cost, "ns", (double)k->run_ns);
	}
	for (size_t i = 0; i < h->nnotes; i++)
		graph_add_status(g, h->probe, "blind", NULL, h->notes[i]);
	graph_add_loss(g, h->probe, "ring_full", h->ring_full);
	graph_add_loss(g, h->probe, "map_full", h->map_full);
	graph_add_loss(g, h->probe, "read_fault", h->read_fault);
	graph_add_loss(g, h->probe, "skipped", h->skipped);
}

/* This process and its helpers. Pages that they share since the fork are counted once. */
struct footprint {
	uint64_t bytes;
	bool unknown;
};

static void add_footprint(void *ctx, pid_t pid)
{
	struct footprint *f = ctx;
	unsigned long long kib;
	bool found = false;
	char path[64], line[256];
	CLEANUP_FCLOSE FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Pss: %llu kB", &kib) == 1;
	f->unknown |= !found;
	f->bytes += found ? kib * 1024 : 0;
}

/* What is not known is left out. */
static void describe_memory(struct graph *g)
{
	struct footprint all = {0};
	unsigned long long size, resident;
	CLEANUP_FCLOSE FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) == 2)
		graph_add_cost(g, "rss", "bytes", (double)resident * (double)sysconf(_SC_PAGESIZE));
	add_footprint(&all, getpid());
	workers_each(add_footprint, &all);
	if (!all.unknown)
		graph_add_cost(g, "pss with helpers", "bytes", (double)all.bytes);
}

static uint64_t own_cpu_ns(void)
{
	return now_ns(CLOCK_PROCESS_CPUTIME_ID) + workers_cpu_ns();
}

static void describe_troubles(struct collect *c, struct graph *g)
{
	vec_for(&c->troubles, t) {
		char why[600];

		if (!t->readings) {
			graph_add_status(g, t->source, "off", "/proc", t->why);
			continue;
		}
		snprintf(why, sizeof(why), "could not be read %llu times: %s",
			 (unsigned long long)t->readings, t->why);
		graph_add_status(g, t->source, "reduced", NULL, why);
		graph_add_loss(g, t->source, "failed_readings", t->readings);
	}
}

void collect_describe(struct collect *c, struct graph *g)
{
	struct probe_health h;
	uint64_t map_bytes = 0, cpu_ns;

	describe_troubles(c, g);
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (!probes[i].health(c, &h))
			continue;
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
	}
	if (c->ipc_probe)
		collect_ipc_describe(c, g);
	sock_turns_describe(c, g);
	collect_shm_describe(c, g);
	collect_numa_describe(c, g);
	collect_counters_describe(c->counters, g);
	if (c->mem_samples)
		collect_mem_describe(c->mem_samples, g);
	collect_devices_describe(c, g);
	collect_rdma_describe(c, g);
	collect_blocks_describe(c, g);
	connections_describe(c, g);
	graph_add_loss(g, "collector proc", "unreadable", c->unreadable);
	graph_add_loss(g, "collector proc", "memory_map_locked", c->reader.stuck);
	cpu_ns = own_cpu_ns();
	graph_add_cost(g, "cpu", "ns", (double)(c->start_cpu_ns ? cpu_ns - c->start_cpu_ns : 0));
	graph_add_cost(g, "cpu_start", "ns", (double)(c->start_cpu_ns ?: cpu_ns));
	describe_memory(g);
	graph_add_cost(g, "maps", "bytes", (double)map_bytes);
}

void collect_begin(struct collect *c)
{
	/* First, as it sets the time that intervals are measured from. */
	if (c->sched_probe)
		sched_probe_start(c->sched_probe);
	collect_sockets_begin(c);
}

void collect_started(struct collect *c)
{
	c->start_cpu_ns = own_cpu_ns();
}

void collect_close(struct collect *c)
{
	proc_probe_close(c->proc_probe);
	sched_probe_close(c->sched_probe);
	sock_probe_close(c->sock_probe);
	ipc_probe_close(c->ipc_probe);
	block_probe_close(c->block_probe);
	collect_ipc_done(c);
	sock_turns_free(c->sock_turns);
	flows_free(c->flows);
	waits_free(c->waits);
	channels_free(c->channels);
	connections_free(c->connections);
	exchange_free(c->exchange);
	shm_free(c->shm);
	placements_free(c->placements);
	counters_free(c->counters);
	mem_samples_free(c->mem_samples);
	slow_reader_done(&c->reader);
	machine_free(c->machine);
	devices_free(c->devices);
	device_calls_free(c->device_calls);
	containers_free(c->containers);
	nics_free(c->nics);
	rdma_free(c->rdma);
	blocks_free(c->blocks);
	procs_done(&c->procs);
	collect_threads_proc_done(c);
	vec_for(&c->troubles, t)
		free(t->why);
	vec_done(&c->troubles);
	vec_done(&c->irq_ns);
	memset(c, 0, sizeof(*c));
}
