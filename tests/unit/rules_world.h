#pragma once

/* A small host whose figures are all known, and faults to put into it, for tests of rules. */
#include "hot.h"
#include "rule.h"
#include "study.h"
#include "waitfor.h"

#define SECOND 1000000000ull
#define WINDOW (10 * SECOND)
#define MIB    (1ull << 20)

/* A healthy host with two NUMA nodes of two CPUs and a job of two ranks, and all that rules look
 * at. */
struct world {
	struct graph g;
	struct topology t;
	struct hot hot;
	struct waitfor w;
	struct timeline time;
	struct findings f;
	uint32_t host, cpu[4], numa[2], set[2], box, rank[2], thread[2], gpu[2], nic, port, disk,
	    file, shm, loader;
	struct edge *traffic[2]; /* of the memory of each node */
};

struct node *at(struct world *w, uint32_t node);
const char *str(struct world *w, const char *s);
uint32_t add_process(struct world *w, uint64_t pid, const char *name);
void set_times(struct world *w, uint32_t thread, double run_s, double runq_s);
void may_use(struct world *w, uint32_t thread, const char *cpus);
void ran_on(struct world *w, uint32_t thread, unsigned cpu, double s);
uint32_t add_thread(struct world *w, uint32_t process, uint64_t tid, const char *name, double run_s,
		    double runq_s, unsigned cpu);
void waits(struct world *w, uint32_t thread, uint32_t object, const char *cause, double s);
void place(struct world *w, uint32_t process, unsigned cpu_node, unsigned memory_node);
void flow(struct world *w, uint32_t from, uint32_t to, const char *kind, uint64_t bytes,
	  uint64_t messages);
void begin(struct world *w);
void analyse(struct world *w);
void find(struct world *w);
void done(struct world *w);
const struct rule_verdict *verdict(const struct world *w, const char *rule);

/* Faults. Those of waits come after analyse(), all others before it. */
void many_threads(struct world *w);
void neighbour(struct world *w);
void idle_gpu(struct world *w);
void busy_gpu(struct world *w);
void memory_stalls(struct world *w);
void faults(struct world *w);
uint32_t outside(struct world *w);
void tiny(struct world *w);
void pattern(struct world *w, enum wait_pattern_kind kind);
void convoy(struct world *w);
void producer(struct world *w);
void pressure(struct world *w);
void barrier(struct world *w);
void hang(struct world *w);
void serial(struct world *w);
void problem(struct world *w, const char *id);
void uneven(struct world *w);
