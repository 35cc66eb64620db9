#pragma once

#include "err.h"
#include "graph.h"
#include "procs.h"
#include "probe.h"
#include "wait_row.h"
#include "worker.h"

struct collect_options {
	const uint32_t *pids; /**< [npids] record these and their descendants; 0: the whole host */
	size_t npids;
	bool no_redact;
	bool no_ebpf;	   /**< /proc only */
	bool require_ebpf; /**< a probe that does not open is an error */
	const char *host_id; /**< what this host is called among others; NULL: not said */
	uint32_t netns_pid;  /**< only sockets of this process's network namespace; 0: of all */
	double max_overhead_pct; /**< what hooks may take of a CPU; 0: GOVERNOR_DEFAULT_PCT, < 0: no bound */
	bool sample_memory; /**< sample who answers accesses to memory; an error where the CPUs cannot */
	bool numa_exact;   /**< where memory lies: read numa_maps instead of sampling pages */
	/** Folder with a /sys that describes the PMUs, for tests: events of other kinds, by the names of these; NULL: this host */
	const char *pmu_root;
	struct probe_options probe;
};

/** Processes, sockets, connections and channels: below, nothing is forgotten. */
#define SWEEP_ABOVE 4096

struct channels;
struct connections;
struct block_probe;
struct blocks;
struct rdma;
struct nics;
struct containers;
struct device_calls;
struct devices;
struct exchange;
struct flows;
struct ipc_probe;
struct ipc_state;
struct machine;
struct counters;
struct mem_samples;
struct placements;
struct proc_probe;
struct sched_probe;
struct sock_probe;
struct sock_turns;
struct shm;
struct waits;

/** All sources of one recording, and what they share. One thread uses it. */
struct collect {
	struct collect_options o;
	struct procs procs;
	struct flows *flows;
	struct channels *channels;
	struct connections *connections;
	uint32_t netns; /**< inode number of the only network namespace that counts; 0: all do */
	struct exchange *exchange;
	bool goes_on;	    /**< no sample says that it is the last: what is due at the end is done now and then */
	unsigned sweeping;  /**< ticks that still look for what can be forgotten */
	size_t sweep_above; /**< things kept in mind that make it worth while */
	struct proc_probe *proc_probe;	 /**< NULL: not available */
	struct sched_probe *sched_probe; /**< likewise */
	struct sock_probe *sock_probe;
	struct sock_turns *sock_turns; /**< of sock_turns.c; NULL: the observation has not begun */
	struct ipc_probe *ipc_probe;
	struct block_probe *block_probe;
	struct ipc_state *ipc; /**< of collect_ipc.c; NULL: not used yet */
	struct shm *shm;
	struct blocks *blocks; /**< of collect_block.c */
	struct rdma *rdma; /**< of collect_rdma.c */
	struct nics *nics; /**< of collect_nic.c */
	struct containers *containers; /**< of collect_container.c */
	struct devices *devices; /**< of collect_device.c */
	struct device_calls *device_calls;
	struct machine *machine; /**< of collect_machine.c */
	struct placements *placements; /**< of collect_numa.c */
	struct counters *counters;     /**< of collect_counters.c */
	struct mem_samples *mem_samples; /**< of collect_mem.c; NULL: not asked for */
	struct waits *waits; /**< of collect_wait.c */
	/** Sources that did not open, or that could not be read. */
	VEC(struct trouble { const char *source; char *why; uint64_t readings; /**< that failed, 0: did not open */ }) troubles;
	uint64_t ticks; /**< samples so far */
	/** CLOCK_MONOTONIC at which the last sample read what threads did: what follows takes time and counts as the next one's */
	uint64_t read_ns;
	struct slow_reader reader; /**< for files that wait for the lock of a memory map */
	uint64_t unreadable;
	uint64_t lost_events; /**< of the process table, when it was last made whole */
	struct proc_stat_list *stats; /**< CPU times by /proc, when there is no probe */
	uint64_t host_cpu[4];
	VEC(struct irq_time { uint64_t ns[2]; /**< hard, soft */ }) irq_ns; /**< of each CPU, since boot, at the last interval */
	/** CPU time of this process until the first sample was kept; 0: not yet */
	uint64_t start_cpu_ns;
};

/** Open the sources. Those that fail are remembered, unless they are required. */
int collect_open(struct collect *c, const struct collect_options *o, struct err *e);

/**
 * Put what happened since the last call into @p g. A source that cannot be read this time counts as a loss, and
 * the others go on.
 *
 * @param last this is the end: look once more at what is read rarely
 */
void collect_sample(struct collect *c, struct graph *g, bool last);

/**
 * Between two samples there is something to do at CLOCK_MONOTONIC collect_due_ns(): what hooks cost is kept within its
 * bound. UINT64_MAX: no. Too late is no harm but to how good that is.
 */
uint64_t collect_due_ns(const struct collect *c);
/** Do what is due; nothing, if it is too early. */
void collect_due(struct collect *c);

/** Status, losses and costs so far into @p g. */
void collect_describe(struct collect *c, struct graph *g);

/** The window begins: what was seen while the sources were opened one by one is not of it. Before the first sample. */
void collect_begin(struct collect *c);
/** Start-up ends here: CPU time used from now on is the cost of observing. */
void collect_started(struct collect *c);

void collect_close(struct collect *c);

/* The parts, each in its file. */
void collect_host(struct collect *c, struct graph *g);
int collect_procs(struct collect *c, bool last, struct err *e);
/** As struct procs' learn(), with the collection as context. */
void collect_procs_learn(void *ctx);
/** Who has io_uring instances open, at the start and at the end. */
int collect_rings(struct collect *c, bool last, struct err *e);
/** Facts that cost a look at /proc, of processes that live long enough to be looked at. */
void collect_procs_details(struct collect *c);
void collect_procs_emit(struct collect *c, struct graph *g);
int collect_threads(struct collect *c, struct graph *g, bool last, struct err *e);
/** What the threads waited for, and who woke them: of the reading that collect_threads() made. */
int collect_waits(struct collect *c, struct graph *g);
/**
 * The newest waits of some length, in no order, once the last sample was taken.
 *
 * @param scratch a graph for what they refer to; texts in the rows live as long as it does
 * @param cb return 0 to go on
 * @param ret_from_ns all waits that ended since then are there, CLOCK_MONOTONIC; 0: since the beginning
 * @return 0, -errno, or what @p cb returned
 */
int collect_segments(struct collect *c, struct graph *scratch,
		     int (*cb)(void *ctx, const struct wait_row *row), void *ctx, uint64_t *ret_from_ns,
		     struct err *e);
struct waits *waits_new(void);
void waits_free(struct waits *w);
void collect_flows(struct collect *c, struct graph *g);
int collect_sockets(struct collect *c, struct graph *g, bool last, struct err *e);
/** What moved while the other sources were opened is not of the observation: forget it. */
void collect_sockets_begin(struct collect *c);
/** Learn of all sockets that are open now, who holds them, and who accepts connections. */
int collect_open_sockets(struct collect *c, struct graph *g, struct err *e);
int collect_ipc(struct collect *c, struct graph *g, struct err *e);
/** What collect_due_ns() and collect_due() are for calls. */
uint64_t collect_turn_due_ns(const struct collect *c);
int collect_turn(struct collect *c, struct err *e);
/** A look that is under way ends: what is done next is no part of it. */
int collect_turn_pause(struct collect *c, struct err *e);
void collect_ipc_describe(struct collect *c, struct graph *g);
/** Add the processes that it holds the numbers of to @p used. */
void collect_ipc_mark(const struct collect *c, uint64_t *used);
void collect_ipc_done(struct collect *c);
void collect_shm(struct collect *c, struct graph *g, bool last);
void collect_shm_describe(const struct collect *c, struct graph *g);
struct shm *shm_new(void);
void shm_free(struct shm *s);
/** The machine, and where processes and threads are on it; after collect_threads(). */
void collect_numa(struct collect *c, struct graph *g, bool last);
void collect_numa_describe(const struct collect *c, struct graph *g);
/** Counters of the CPUs and around them, into the nodes that collect_numa() made. */
void collect_counters(struct counters *s, struct graph *g, bool first);
void collect_counters_describe(const struct counters *s, struct graph *g);
/** @param pmu_root folder with another /sys that tells what can be counted; NULL: that of @p m */
struct counters *counters_new(const struct machine *m, const char *pmu_root);
/** Whether there are counters of CPUs. */
bool counters_of_cores(const struct counters *s);
/** Have what the CPUs' counters gain counted for threads, too; before sched_probe_start(). */
void counters_for_threads(struct counters *s, struct sched_probe *p);
void counters_free(struct counters *s);
/** Sampled accesses to memory. @param pmu_root as counters_new() has it. @return 0, or -errno with the reason */
int mem_samples_new(struct mem_samples **ret, const struct machine *m, const char *pmu_root, struct err *e);
void mem_samples_free(struct mem_samples *s);
/** Into the threads of @p g, after collect_threads(); @p s may be NULL. */
void collect_mem(struct mem_samples *s, struct graph *g, bool first);
void collect_mem_describe(const struct mem_samples *s, struct graph *g);
struct placements *placements_new(bool exact, const struct machine *m);
void placements_free(struct placements *p);
void collect_threads_proc(struct collect *c, struct graph *g);
void collect_threads_proc_done(struct collect *c);

/** Nanoseconds to add to CLOCK_BOOTTIME to get the time since 1970. */
uint64_t realtime_offset_ns(void);
