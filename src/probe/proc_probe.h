#pragma once

#include <stdint.h>

#include "err.h"
#include "probe.h"
#include "proc_abi.h"

/* Processes, threads and open files: what begins and ends, and all there is at one moment. */

struct proc_probe;

/** Opens with whatever works: events, or iterators, or both. Fails when neither does. */
int proc_probe_open(struct proc_probe **ret, const struct probe_options *o, struct err *e);
void proc_probe_close(struct proc_probe *p);

/**
 * Forks, execs and exits since the last call, in order of time.
 *
 * @param cb return 0 to go on; anything else ends the call and is returned; only the bytes up to
 *           `ev->size` may be read
 * @return 0, -ENOTSUP when there are no events here, -errno, or what @p cb returned
 */
int proc_probe_events(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_event *ev),
		      void *ctx, struct err *e);

/** For epoll: readable when events should be fetched before the next tick. -1: there are none. */
int proc_probe_fd(const struct proc_probe *p);

/** All threads of the host now, threads of a process in order. @return as proc_probe_events() */
int proc_probe_tasks(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_task *t),
		     void *ctx, struct err *e);

enum proc_files {
	PROC_FILES_SOCKETS = 1 << 0,
	PROC_FILES_OTHERS = 1 << 1,
	PROC_FILES_ALL = 3,
	PROC_FILES_DMABUFS = 1 << 2, /**< are among the others too */
};

/**
 * All open files of all processes now, whatever network namespace their sockets are in.
 *
 * @param what PROC_FILES_…
 * @param cb   only the bytes up to `f->size` may be read: `sock`, `tcp` and the queues are there
 *             only for sockets
 * @return as proc_probe_events()
 */
int proc_probe_files(struct proc_probe *p, unsigned what,
		     int (*cb)(void *ctx, const struct proc_file *f), void *ctx, struct err *e);

/**
 * All shared mappings (MAP_SHARED) of all processes now, those of a process one after the other.
 * A process whose memory map is being changed is waited for, as a reader of /proc/PID/maps would.
 *
 * @return as proc_probe_events()
 */
int proc_probe_maps(struct proc_probe *p, int (*cb)(void *ctx, const struct proc_map *m), void *ctx,
		    struct err *e);

/** The file that proc_probe_maps() needs, -1: it does not work. */
int proc_probe_maps_fd(const struct proc_probe *p);

void proc_probe_health(struct proc_probe *p, struct probe_health *ret);
