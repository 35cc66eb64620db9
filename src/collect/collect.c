/* The sources of a recording: opened in order, sampled together, described at the end. */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "block_probe.h"
#include "channels.h"
#include "cleanup.h"
#include "collect_block.h"
#include "collect_container.h"
#include "collect_device.h"
#include "collect_machine.h"
#include "collect_nic.h"
#include "collect_rdma.h"
#include "flows.h"
#include "ipc_probe.h"
#include "proc_probe.h"
#include "sched_probe.h"
#include "sock_probe.h"
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

static int failed(struct collect *c, const char *source, struct err *e)
{
	struct open_failure *f;

	if (c->o.require_ebpf) {
		err_ctx(e, "%s", source);
		return err_hint(e, "leave out --require ebpf to record what works without it");
	}
	f = vec_add(&c->failures);
	f->source = source;
	snprintf(f->why, sizeof(f->why), "%.390s", e->msg);
	return 0;
}

static int open_probes(struct collect *c, struct err *e)
{
	int rc = 0;

	if (c->o.no_ebpf) {
		err_msg(e, -ENOTSUP, "switched off by --no-ebpf");
		rc = failed(c, "probe proc", e);
		rc = rc ?: failed(c, "probe sched", e);
		rc = rc ?: failed(c, "probe sock", e);
		rc = rc ?: failed(c, "probe ipc", e);
		return rc ?: failed(c, "probe block", e);
	}
	if (proc_probe_open(&c->proc_probe, &c->o.probe, e) < 0)
		rc = failed(c, "probe proc", e);
	if (!rc && sched_probe_open(&c->sched_probe, &c->o.probe, e) < 0)
		rc = failed(c, "probe sched", e);
	if (!rc && sock_probe_open(&c->sock_probe, &c->o.probe, e) < 0)
		rc = failed(c, "probe sock", e);
	if (!rc && ipc_probe_open(&c->ipc_probe, &c->o.probe, e) < 0)
		rc = failed(c, "probe ipc", e);
	if (!rc && block_probe_open(&c->block_probe, &c->o.probe, e) < 0)
		rc = failed(c, "probe block", e);
	return rc;
}

int collect_open(struct collect *c, const struct collect_options *o, struct err *e)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->o = *o;
	c->devices = devices_new();
	c->containers = containers_new();
	c->nics = nics_new();
	c->rdma = rdma_new();
	c->blocks = blocks_new();
	c->machine = machine_new(NULL);
	/* Before anything is open that its child must not keep. */
	c->placements = placements_new(o->numa_exact, c->machine);
	c->counters = counters_new(c->machine);
	slow_reader_init(&c->reader, READ_STUCK_NS);
	procs_init(&c->procs, !o->npids, !o->no_redact);
	c->flows = flows_new();
	c->waits = waits_new();
	c->channels = channels_new();
	c->exchange = exchange_new(&c->procs);
	c->shm = shm_new();
	c->sweep_above = SWEEP_ABOVE;
	rc = open_probes(c, e);
	rc = rc ?: collect_procs(c, false, e);
	if (c->proc_probe) {
		c->procs.learn = collect_procs_learn;
		c->procs.learn_ctx = c;
	}
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

int collect_sample(struct collect *c, struct graph *g, bool last, struct err *e)
{
	int rc = 0;

	collect_host(c, g);
	if (c->ticks)
		rc = collect_procs(c, last, e);
	rc = rc ?: collect_rings(c, last, e);
	collect_procs_details(c);
	rc = rc ?: (c->sched_probe ? collect_threads(c, g, last, e) : collect_threads_proc(c, g));
	rc = rc ?: collect_sockets(c, g, last, e);
	rc = rc ?: collect_ipc(c, g, e);
	if (!rc && c->sched_probe)
		rc = collect_waits(c, g);
	if (!rc) {
		collect_shm(c, g, last);
		collect_numa(c, g, last);
		collect_counters(c->counters, g, !c->ticks);
		collect_containers(c, g);
		collect_nics(c, g);
		collect_rdma(c, g, last);
		rc = collect_blocks(c, g, e);
		collect_devices(c, g, last);
		collect_flows(c, g);
		collect_procs_emit(c, g);
	}
	c->ticks++;
	return rc;
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

void collect_describe(struct collect *c, struct graph *g)
{
	static const struct {
		const char *source, *instead;
	} fallback[] = {
		{"probe proc",
		 "processes by reading /proc: those that live between two looks are not seen"},
		{"probe sched",
		 "CPU time by clock ticks of /proc; no run-queue delay, no migrations"},
		{"probe sock", "no socket traffic and no flows"},
		{"probe block",
		 "disks by /proc/diskstats: no times of single requests, no processes"},
		{"probe ipc", "nothing about pipes, queues, files and copies of memory"},
	};
	struct probe_health h;
	uint64_t map_bytes = 0, cpu_ns;

	vec_for(&c->failures, f)
		for (size_t i = 0; i < sizeof(fallback) / sizeof(fallback[0]); i++)
			if (!strcmp(fallback[i].source, f->source)) {
				char why[600];

				snprintf(why, sizeof(why), "%s; instead: %s", f->why,
					 fallback[i].instead);
				graph_add_status(g, f->source, "off", "/proc", why);
			}
	if (c->proc_probe) {
		proc_probe_health(c->proc_probe, &h);
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
	}
	if (c->sched_probe) {
		sched_probe_health(c->sched_probe, &h);
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
	}
	if (c->sock_probe) {
		sock_probe_health(c->sock_probe, &h);
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
	}
	if (c->block_probe) {
		block_probe_health(c->block_probe, &h);
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
	}
	if (c->ipc_probe) {
		ipc_probe_health(c->ipc_probe, &h);
		describe_probe(g, &h);
		map_bytes += h.map_bytes;
		collect_ipc_describe(c, g);
	}
	collect_shm_describe(c, g);
	collect_numa_describe(c, g);
	collect_counters_describe(c->counters, g);
	collect_devices_describe(c, g);
	collect_rdma_describe(c, g);
	graph_add_loss(g, "collector proc", "unreadable", c->unreadable);
	graph_add_loss(g, "collector proc", "memory_map_locked", c->reader.stuck);
	cpu_ns = own_cpu_ns();
	graph_add_cost(g, "cpu", "ns", (double)(c->start_cpu_ns ? cpu_ns - c->start_cpu_ns : 0));
	graph_add_cost(g, "cpu_start", "ns", (double)(c->start_cpu_ns ?: cpu_ns));
	describe_memory(g);
	graph_add_cost(g, "maps", "bytes", (double)map_bytes);
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
	flows_free(c->flows);
	waits_free(c->waits);
	channels_free(c->channels);
	exchange_free(c->exchange);
	shm_free(c->shm);
	placements_free(c->placements);
	counters_free(c->counters);
	slow_reader_done(&c->reader);
	machine_free(c->machine);
	devices_free(c->devices);
	containers_free(c->containers);
	nics_free(c->nics);
	rdma_free(c->rdma);
	blocks_free(c->blocks);
	procs_done(&c->procs);
	collect_threads_proc_done(c);
	vec_done(&c->failures);
	memset(c, 0, sizeof(*c));
}
