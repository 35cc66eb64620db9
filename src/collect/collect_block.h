#pragma once

#include "collect.h"

struct blocks;

/** Never NULL. */
struct blocks *blocks_new(void);
void blocks_free(struct blocks *b);
/** Disks and partitions that move anything: just before threads are read, with which an interval ends. */
int collect_disks(struct collect *c, struct graph *g, struct err *e);
/** Which process makes their requests: once processes are known. */
int collect_block_io(struct collect *c, struct graph *g, struct err *e);
/** Requests of disks that the kernel counted and the probe did not see. */
void collect_blocks_describe(const struct collect *c, struct graph *g);
