/* Threads: time on each CPU, in run queues, switches. From the scheduler, or from clock ticks of /proc. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "collect.h"
#include "perf_count.h"
#include "perf_pmu.h"
#include "sched_probe.h"

_Static_assert((int)CORE_EVENTS == SCHED_COUNTS, "events of a core go by the same numbers in the probe");

struct sampling {
	struct collect *c;
	struct graph *g;
	VEC(uint64_t) busy_ns; /* of each CPU, by all threads of the host */
};

static void add_busy(struct sampling *x, const struct sched_sample *s)
{
	for (size_t i = 0; i < s->ncpus; i++) {
		while (x->busy_ns.n <= s->cpus[i].cpu)
			vec_push(&x->busy_ns, 0);
		x->busy_ns.v[s->cpus[i].cpu] += s->cpus[i].run_ns;
	}
}

static void emit_busy(struct sampling *x)
{
	for (size_t i = 0; i < x->busy_ns.n; i++) {
		struct node *cpu = graph_new_node(x->g, &cpu_type);

		SET(cpu, cpu, cpu_id, i);
		SET(cpu, cpu, busy_ns, x->busy_ns.v[i]);
		graph_add_node(x->g, cpu);
	}
}

#define ADD(T, x, f, v) SET(T, x, f, (HAS(T, x, f) ? GET(T, x, f) : 0) + (v))
#define ADD_COUNT(f)                                   \
	do {                                           \
		ADD(thread, thread, f, v);             \
		ADD(process, process, f, v);           \
		SET(ran_on, d, f, v);                  \
	} while (0)

/* What hardware counters gained while it ran on a CPU, as far as there was a counter free. */
static void add_counts(struct graph *g, struct node *thread, struct edge *d, const struct sched_counts *counts)
{
	struct node *process = g->nodes.v[GET(thread, thread, process)];

	for (enum core_event e = 0; e < CORE_EVENTS; e++) {
		const struct sched_count *c = &counts->v[e];
		uint64_t v;

		if (!c->running_ns || !count_scaled(c->raw, c->enabled_ns, c->running_ns, &v))
			continue;
		switch (e) {
		case CORE_CYCLES:
			ADD_COUNT(cycles);
			break;
		case CORE_INSTRUCTIONS:
			ADD_COUNT(instructions);
			break;
		case CORE_LLC_REFERENCES:
			ADD_COUNT(llc_references);
			break;
		case CORE_LLC_MISSES:
			ADD_COUNT(llc_misses);
			break;
		default:
			ADD_COUNT(l1i_misses);
		}
	}
}

static void ran_on_cpus(struct graph *g, struct node *thread, const struct sched_sample *s)
{
	for (size_t i = 0; i < s->ncpus; i++) {
		struct node *cpu = graph_new_node(g, &cpu_type);
		struct edge *d;

		SET(cpu, cpu, cpu_id, s->cpus[i].cpu);
		d = graph_new_edge(g, &ran_on_type, thread->index, graph_add_node(g, cpu)->index);
		SET(ran_on, d, run_ns, s->cpus[i].run_ns);
		if (s->cpus[i].has_counts)
			add_counts(g, thread, d, &s->cpus[i].counts);
		graph_add_edge(g, d);
	}
}

static const char *policy_name(uint32_t policy)
{
	/* include/uapi/linux/sched.h; 7: since v6.12 */
	static const char *const names[] = {"other", "fifo", "rr", "batch", NULL, "idle", "deadline", "ext"};

	return policy < sizeof(names) / sizeof(names[0]) ? names[policy] : NULL;
}

static void add_rank(struct graph *g, struct node *n, const struct sched_rank *r)
{
	const char *policy = policy_name(r->policy);

	if (policy)
		SET(thread, n, policy, graph_str(g, policy));
	SET(thread, n, nice, r->nice);
	SET(thread, n, rt_priority, r->rt_priority);
}

/* Who took the CPU is told like who ended a wait: also when it was not asked for. */
static void add_rivals(struct sampling *x, uint32_t thread, const struct sched_sample *s)
{
	for (size_t i = 0; i < s->nrivals; i++) {
		const struct task_ident *id = &s->rivals[i].task;
		uint32_t proc = procs_get(&x->c->procs, id->tgid, id->leader_start_ns);
		struct edge *d;

		if (id->tgid == x->c->procs.own_pid || procs_is_helper(&x->c->procs, proc))
			continue;
		d = graph_new_edge(x->g, &preempts_type,
				   procs_thread(&x->c->procs, x->g, proc, id->tid, id->start_ns, s->rivals[i].comm)->index,
				   thread);
		SET(preempts, d, times, s->rivals[i].times);
		graph_add_edge(x->g, d);
	}
}

static void add_io(struct node *process, const struct sched_usage *u)
{
	ADD(process, process, called_read_bytes, u->called_read_bytes);
	ADD(process, process, called_written_bytes, u->called_write_bytes);
	ADD(process, process, storage_read_bytes, u->storage_read_bytes);
	ADD(process, process, storage_written_bytes, u->storage_write_bytes);
	ADD(process, process, cancelled_write_bytes, u->cancelled_write_bytes);
}

static int on_thread(void *ctx, const struct sched_sample *s)
{
	struct sampling *x = ctx;
	uint32_t proc = procs_get(&x->c->procs, s->task.tgid, s->task.leader_start_ns);
	struct node *process, *n;

	procs_set_name(&x->c->procs, proc, s->task.tid, s->comm);
	add_busy(x, s);
	if (!x->c->procs.v.v[proc].selected)
		return 0;
	n = procs_thread(&x->c->procs, x->g, proc, s->task.tid, s->task.start_ns, s->comm);
	SET(thread, n, run_ns, s->run_ns);
	SET(thread, n, runq_ns, s->runq_ns);
	SET(thread, n, blocked_ns, s->blocked_ns);
	SET(thread, n, observed_ns, s->observed_ns);
	SET(thread, n, voluntary_switches, s->voluntary);
	SET(thread, n, involuntary_switches, s->involuntary);
	SET(thread, n, migrations, s->migrations);
	SET(thread, n, wakeups, s->wakeups);
	if (s->has_usage) {
		SET(thread, n, user_ns, s->usage.user_ns);
		SET(thread, n, system_ns, s->usage.system_ns);
		SET(thread, n, minor_faults, s->usage.minor_faults);
		SET(thread, n, major_faults, s->usage.major_faults);
	}
	process = x->g->nodes.v[GET(thread, n, process)];
	ADD(process, process, cpu_ns, s->run_ns);
	if (s->flags & SCHED_IO)
		add_io(process, &s->usage);
	if (s->has_rank)
		add_rank(x->g, n, &s->rank);
	ran_on_cpus(x->g, n, s);
	add_rivals(x, n->index, s);
	return 0;
}

int collect_threads(struct collect *c, struct graph *g, bool last, struct err *e)
{
	struct sampling x = {.c = c, .g = g};
	int rc;

	rc = sched_probe_read(c->sched_probe, last, on_thread, &x, NULL, e);
	if (!rc)
		emit_busy(&x);
	vec_done(&x.busy_ns);
	return rc;
}

/* Last CPU time of each thread, by (tid, start). */
struct proc_stat_list {
	struct idmap by_ident;
	VEC(uint64_t) ticks;
};

void collect_threads_proc_done(struct collect *c)
{
	if (!c->stats)
		return;
	idmap_done(&c->stats->by_ident);
	vec_done(&c->stats->ticks);
	free(c->stats);
	c->stats = NULL;
}

static void thread_of_stat(struct collect *c, struct graph *g, uint32_t proc, uint32_t tid, char *text)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK), used;
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long user, system, start;
	char name[16] = {0};
	struct node *n, *process;
	uint32_t i;

	if (!open || !close)
		return;
	memcpy(name, open + 1, strnlen(open + 1, (size_t)(close - open - 1 > 15 ? 15 : close - open - 1)));
	if (sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
		   &user, &system, &start) != 3)
		return;
	i = idmap_get(&c->stats->by_ident, tid, start);
	if (i == IDMAP_NONE) {
		i = (uint32_t)c->stats->ticks.n;
		vec_push(&c->stats->ticks, c->ticks ? 0 : user + system);
		idmap_put(&c->stats->by_ident, tid, start, i);
	}
	used = (user + system - c->stats->ticks.v[i]) * tick_ns;
	c->stats->ticks.v[i] = user + system;
	if (c->ticks && !used)
		return;
	n = procs_thread(&c->procs, g, proc, tid, start * tick_ns, name);
	SET(thread, n, run_ns, used);
	process = g->nodes.v[GET(thread, n, process)];
	SET(process, process, cpu_ns, used + (HAS(process, process, cpu_ns) ? GET(process, process, cpu_ns) : 0));
}

static void threads_of(struct collect *c, struct graph *g, uint32_t proc)
{
	char path[96], text[1024];
	struct dirent *de;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/task", c->procs.v.v[proc].pid);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		unsigned tid = (unsigned)strtoul(de->d_name, NULL, 10);
		size_t n;
		FILE *f;

		if (!tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", c->procs.v.v[proc].pid, tid);
		f = fopen(path, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		text[n] = '\0';
		fclose(f);
		thread_of_stat(c, g, proc, tid, text);
	}
	if (d)
		closedir(d);
}

void collect_threads_proc(struct collect *c, struct graph *g)
{
	if (!c->stats)
		c->stats = mem_alloc(sizeof(*c->stats));
	for (uint32_t i = 0; i < c->procs.v.n; i++)
		if (c->procs.v.v[i].pid && !c->procs.v.v[i].end_ns && c->procs.v.v[i].selected)
			threads_of(c, g, i);
}
