#pragma once

#include "collect.h"

/* Private to the collector of pipes, queues, files and memory copies. */

#define IPC_FILES_PER_PROCESS 1000	/* files with an entity of their own; more are folded */
#define IPC_FILES	      50000	/* likewise, on the whole host */

struct ipc_files;
struct ipc_watcher;
struct ipc_sample;

/** Which files have an entity of their own. */
struct ipc_files *ipc_files_new(void);
void ipc_files_free(struct ipc_files *f);

/**
 * Node of the file that a sample is about: its own, or the one for all further files of the process.
 * @param owner process that used it, by start time and pid
 */
uint32_t ipc_file_node(struct ipc_files *f, struct graph *g, const struct ipc_sample *s,
		       uint64_t owner_start_ns);

/** Path that descriptor @p fd of process @p pid stands for now, checked against @p name. */
bool ipc_path(char *ret, size_t size, uint32_t pid, int fd, const char *name);

/** Decides from the open files whether system calls have to be watched. */
struct ipc_watcher *ipc_watcher_new(void);
void ipc_watcher_free(struct ipc_watcher *w);
int ipc_watcher_tick(struct ipc_watcher *w, struct collect *c, struct err *e);
/** One line about when calls were watched. */
void ipc_watcher_describe(const struct ipc_watcher *w, struct graph *g);

struct ipc_state {
	struct ipc_files *files;
	struct ipc_watcher *watcher;
};
