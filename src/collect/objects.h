#pragma once

#include "graph.h"

/*
 * Nodes of the things that threads share: whoever finds one, by a read or by a wait, makes the same
 * entity of it. Device numbers are the kernel's: major << 20 | minor.
 */

/** @param dev of a FIFO's file system; 0: an anonymous pipe */
struct node *object_pipe(struct graph *g, uint64_t ino, uint32_t dev);

/** @param generation ipc_eventfd_generation() tells it; 0: made before calls were watched */
struct node *object_eventfd(struct graph *g, uint64_t id, uint32_t generation);

/** @param ipcns inode number of the IPC namespace; likewise below */
struct node *object_posix_queue(struct graph *g, uint64_t ino, uint32_t ipcns);
struct node *object_sysv_queue(struct graph *g, uint64_t msqid, uint32_t ipcns);
struct node *object_sysv_sem(struct graph *g, uint64_t semid, uint32_t ipcns);

/** @param ino 0: several files, folded together; @p dev is not looked at */
struct node *object_file(struct graph *g, uint64_t ino, uint32_t dev);
struct node *object_block_device(struct graph *g, uint32_t dev);

/** "MAJOR:MINOR" */
const char *object_dev_str(struct graph *g, uint32_t dev);
