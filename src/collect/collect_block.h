#pragma once

#include "collect.h"

struct blocks;

/** Never NULL. */
struct blocks *blocks_new(void);
void blocks_free(struct blocks *b);
/** Disks and partitions that move anything. */
int collect_blocks(struct collect *c, struct graph *g, struct err *e);
/** Requests of disks that the kernel counted and the probe did not see. */
void collect_blocks_describe(const struct collect *c, struct graph *g);
