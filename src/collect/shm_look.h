#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "proc_abi.h"
#include "worker.h"

struct proc_probe;

/*
 * Looks at memory maps in a child process: each needs the lock of a map, which may be held for long. A
 * process that a look waits for is given up with the child, and the next look gets another one.
 */
struct shm_look {
	struct worker w;
	struct proc_probe *probe; /**< NULL: /proc only */
	uint64_t stuck;		  /**< looks that were given up */
	uint64_t cpu_ns;	  /**< CPU time of the children, those given up left out */
};

void shm_look_init(struct shm_look *l, struct proc_probe *probe);
void shm_look_done(struct shm_look *l);

/**
 * As proc_probe_maps().
 *
 * @return also -ETIMEDOUT: a memory map was locked; what came until then is true
 */
int shm_look_all(struct shm_look *l, int (*cb)(void *ctx, const struct proc_map *m), void *ctx, struct err *e);

/** As proc_maps_list(); @return also -ETIMEDOUT */
int shm_look_process(struct shm_look *l, uint32_t pid, uint64_t start_ns,
		     int (*cb)(void *ctx, const struct proc_map *m), void *ctx);

/** As proc_maps_path(); @return also -ETIMEDOUT. @p size is LOOK_TEXT_BYTES at most */
int shm_look_path(struct shm_look *l, const struct proc_map *m, bool internal, char *buf, size_t size);

#define LOOK_TEXT_BYTES 4352

/** As proc_maps_resident(); @return also -ETIMEDOUT */
int shm_look_resident(struct shm_look *l, uint32_t pid, uint64_t start, uint64_t end, uint64_t *ret_bytes);
