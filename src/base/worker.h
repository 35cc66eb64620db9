#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vec.h"

/*
 * A child process for what may hang in the kernel, out of reach of signals: reading what another process's
 * memory map tells means waiting for its lock. The child is given up instead of waited for.
 */

struct worker {
	pid_t pid;
	int fd;		 /**< socket to it (SOCK_SEQPACKET); -1: there is none */
	VEC(pid_t) gone; /**< given up, not reaped yet */
};

enum worker_files {
	WORKER_CLOSE, /**< nothing that is open here lives on in it, should it hang */
	WORKER_KEEP,  /**< it needs what is open here, and what it waits for heeds SIGKILL */
};

/**
 * Start it. It dies with this process.
 *
 * @param w     zeroed with fd -1, or one that was given up
 * @param serve runs in the child, with its end of the socket; the child ends when it returns
 * @return 0, or -errno
 */
int worker_start(struct worker *w, enum worker_files files, void (*serve)(void *ctx, int fd), void *ctx);

/**
 * In a child that keeps files: close all but those, and standard ones. A copy of a BPF link keeps its program attached.
 *
 * @param keep [n], sorted by this; negative ones are none
 */
void worker_keep_files(int *keep, size_t n);

/** Kill it and do not wait. Nothing when there is none. */
void worker_give_up(struct worker *w);

/** Whether it runs, or would if it had a CPU: then it is not held up by what it looks at. False where nobody tells. */
bool worker_is_runnable(const struct worker *w);

/** Reap those given up that have ended. */
void worker_reap(struct worker *w);

/** Give it up, and wait a moment for those that are not stuck. */
void worker_done(struct worker *w);

/** CPU time that all workers of this process have used, those included that it gave up. */
uint64_t workers_cpu_ns(void);

/** Call @p cb with each worker that runs. */
void workers_each(void (*cb)(void *ctx, pid_t pid), void *ctx);

/** Reads files for this process, which is not held up by those that take long. */
struct slow_reader {
	struct worker w;
	uint64_t stuck_ns;
	uint64_t stuck; /**< files given up so far */
};

void slow_reader_init(struct slow_reader *r, uint64_t stuck_ns);
void slow_reader_done(struct slow_reader *r);

/**
 * Read a file of /proc from @p offset on: at most @p size bytes, and SLOW_READ_BYTES.
 *
 * @return bytes, 0 at the end, or -errno; -ETIMEDOUT: it took longer than stuck_ns
 */
ssize_t slow_read(struct slow_reader *r, const char *path, uint64_t offset, void *buf, size_t size);

#define SLOW_READ_BYTES 16384
