#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"
#include "idmap.h"

/** Start times are compared in these steps: /proc tells them no finer. */
#define START_STEP_NS 10000000ull

/** One process that was seen, alive or ended. */
struct proc {
	uint32_t pid, ppid;
	uint64_t start_ns; /**< rounded down to START_STEP_NS */
	char name[16];
	char *cmdline; /**< blanks between arguments, secrets masked; NULL: not known */
	char *exe, *cgroup, *environment; /**< as in the registry; NULL: not known */
	uint32_t uid, nspid, netns, pidns, mntns, threads;
	uint64_t rss_bytes;
	uint32_t rings; /**< open io_uring instances */
	uint64_t end_ns; /**< 0: alive */
	int exit_status;
	uint64_t look; /**< number of the last look at all processes that found it */
	bool has_ids, has_namespaces, has_exit, has_details, kthread;
	bool selected; /**< to be recorded for its own sake */
	bool dirty;    /**< facts changed since the last interval */
};

/**
 * All processes, found by pid and start time, or by pid among those alive. Numbers stay valid until
 * procs_sweep() gives up those that ended and that nobody uses.
 */
struct procs {
	VEC(struct proc) v; /**< pid 0: a free place */
	VEC(uint32_t) free;
	struct idmap by_ident, by_pid;
	uint32_t own_pid;
	char own_name[16];
	uint64_t made;	/**< processes seen so far */
	uint64_t looks; /**< looks at all processes so far */
	bool select_all; /**< but this program and its helpers: what it costs is told elsewhere */
	bool redact;
	/**
	 * Called before a process that nobody announced is made: reads what began meanwhile, so
	 * that it is known whose child it is. May be NULL.
	 */
	void (*learn)(void *ctx);
	void *learn_ctx;
	bool learning; /**< do not call it: it is under way */
};

void procs_init(struct procs *p, bool select_all, bool redact);
void procs_done(struct procs *p);

/** The process with that pid and start; made when it is new. @return its number */
uint32_t procs_get(struct procs *p, uint32_t pid, uint64_t start_ns);
/** The live process with that pid, or IDMAP_NONE. */
uint32_t procs_live(const struct procs *p, uint32_t pid);
/** Select @p pid and what descends from it, now and later. */
void procs_select(struct procs *p, uint32_t pid);
/** One that a process began as its copy: this program's own are helpers, not of the host's work. */
void procs_copied(struct procs *p, uint32_t proc, uint32_t parent_pid);
/** Likewise of one whose beginning was not seen: its parent and name tell. */
void procs_found(struct procs *p, uint32_t proc);
/** Whether it is one: what it does to others is told as cost only. */
bool procs_is_helper(const struct procs *p, uint32_t proc);
/** It runs a program of its own now: a helper no more. */
void procs_runs_program(struct procs *p, uint32_t proc);
/** Make selection follow parents: to be called after processes were added. */
void procs_spread_selection(struct procs *p);

/** Words of a set of process numbers. */
static inline size_t procs_bits(const struct procs *p)
{
	return p->v.n / 64 + 1;
}

static inline void procs_set_bit(uint64_t *set, uint32_t proc)
{
	set[proc / 64] |= 1ull << proc % 64;
}

static inline bool procs_bit(const uint64_t *set, uint32_t proc)
{
	return set[proc / 64] >> proc % 64 & 1;
}

/**
 * Forget processes that ended before @p before_ns (CLOCK_BOOTTIME) and were emitted since.
 *
 * @param used [procs_bits()] those that somebody still holds the number of
 */
void procs_sweep(struct procs *p, const uint64_t *used, uint64_t before_ns);

/** Take over a command line of NUL-separated arguments. */
void procs_set_cmdline(struct procs *p, uint32_t proc, const char *s, size_t n);

/** Take over the command name that thread @p tid of the process has now. */
void procs_set_name(struct procs *p, uint32_t proc, uint32_t tid, const char comm[16]);

/** Node of a process in an interval's graph: identity, and all facts when they are new. */
uint32_t procs_node(struct procs *p, struct graph *g, uint32_t proc);
/** Node of a thread, with its process. @param comm NULL: not known */
struct node *procs_thread(struct procs *p, struct graph *g, uint32_t proc, uint32_t tid,
			  uint64_t start_ns, const char *comm);
