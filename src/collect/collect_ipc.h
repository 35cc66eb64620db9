#pragma once

#include "collect.h"
#include "ipc_probe.h"

/* Private to the collector of pipes, queues, files and memory copies. */

/* linux/magic.h */
#define IPC_ANON_INODE_MAGIC 0x09041934u
#define IPC_PIDFS_MAGIC	     0x50494446u

#define IPC_FILES_PER_PROCESS 1000	/* files with an entity of their own; more are folded */
#define IPC_FILES	      50000	/* likewise, on the whole host */

struct ipc_facts;
struct ipc_files;
struct ipc_passes;
struct ipc_turns;
struct ipc_watcher;

/** Which files have an entity of their own. */
struct ipc_files *ipc_files_new(void);
void ipc_files_free(struct ipc_files *f);

/** Node of the file that a sample is about: its own, or the one for all further files. */
uint32_t ipc_file_node(struct ipc_files *f, struct graph *g, const struct ipc_sample *s);

/**
 * What the file or FIFO of a sample is called, when there is something new to say: its path, or as
 * long as nobody could be asked for that, the path's last part, which the probe saw.
 */
bool ipc_name(struct ipc_files *f, const struct ipc_sample *s, char *ret, size_t size);

/** Calls on files that have no entity of their own, since open. */
uint64_t ipc_files_folded(const struct ipc_files *f);

/** What one table of System V objects says of one. */
struct ipc_sysv {
	int32_t key;
	uint64_t amount; /**< bytes that wait in a queue, semaphores in a set */
};

/** What the kernel tells when asked: it is asked once an interval, or once a device. */
struct ipc_facts *ipc_facts_new(void);
void ipc_facts_free(struct ipc_facts *f);
/** An interval begins: what was asked about queues and semaphores is old. */
void ipc_facts_outdated(struct ipc_facts *f);
/**
 * @return of queue or semaphore set @p id, until it is outdated; NULL: gone, or not in our
 * namespace
 */
const struct ipc_sysv *ipc_facts_sysv(struct ipc_facts *f, bool sem, uint64_t id, uint32_t ipcns);
/** Type of the file system with device @p dev, which @p pid uses. @return NULL: not known */
const char *ipc_facts_fs_type(struct ipc_facts *f, uint32_t dev, uint32_t pid);

/** Descriptors that were sent and not received yet. */
struct ipc_passes *ipc_passes_new(void);
void ipc_passes_free(struct ipc_passes *p);
/** Take over an event; what it refers to is looked for by ipc_passes_match(). */
void ipc_passes_add(struct ipc_passes *p, struct collect *c, const struct ipc_passed *ev);
/** Take over those that the probe has. */
int ipc_passes_read(struct ipc_passes *p, struct collect *c, struct err *e);
/** Put what has arrived into the graph. */
void ipc_passes_match(struct ipc_passes *p, struct collect *c, struct graph *g);
/** Add the processes that it holds the numbers of to @p used. */
void ipc_passes_mark(const struct ipc_passes *p, uint64_t *used);
void ipc_passes_describe(const struct ipc_passes *p, struct graph *g);

/**
 * The process that @p caller knows by pid @p nspid, in its pid namespace @p pidns (inode number).
 * @return its number, or IDMAP_NONE
 */
uint32_t ipc_target(const struct procs *p, uint32_t caller, uint32_t nspid, uint32_t pidns);

/** Decides from the open files whether system calls have to be watched. */
struct ipc_watcher *ipc_watcher_new(void);
void ipc_watcher_free(struct ipc_watcher *w);
int ipc_watcher_tick(struct ipc_watcher *w, struct collect *c, struct err *e);
/** One line about when calls were watched. */
void ipc_watcher_describe(const struct ipc_watcher *w, struct graph *g);

/** Keeps the cost of hooks within its bound: has calls watched in turns, if need be. */
struct ipc_turns *ipc_turns_new(const struct collect *c);
void ipc_turns_free(struct ipc_turns *t);
/** Append what moved to the samples, and what went by unwatched. */
int ipc_turns_read(struct collect *c, struct err *e);
void ipc_turns_describe(const struct ipc_turns *t, const struct collect *c, struct graph *g);

struct ipc_state {
	struct ipc_turns *turns;
	struct ipc_facts *facts;
	struct ipc_files *files;
	struct ipc_watcher *watcher;
	struct ipc_passes *passes;
	VEC(struct ipc_sample) samples; /**< of one interval */
	/** by number of process: its pid if the probe knows it as recorded, or 0 */
	VEC(uint32_t) recorded;
	uint64_t targets_unknown; /**< copies of memory of a process that could not be found */
};
