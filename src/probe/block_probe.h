#pragma once

#include <stdint.h>

#include "block_abi.h"
#include "err.h"
#include "probe.h"

/* Requests of disks, by disk and by process. */

struct block_probe;

int block_probe_open(struct block_probe **ret, const struct probe_options *o, struct err *e);
void block_probe_close(struct block_probe *p);

/** What disks completed since the last call. @return 0, -errno, or what @p cb returned */
int block_probe_disks(struct block_probe *p,
		      int (*cb)(void *ctx, const struct block_key *k, const struct block_value *v), void *ctx,
		      struct err *e);
/** What processes handed to disks since the last call. @return as block_probe_disks() */
int block_probe_ios(struct block_probe *p,
		    int (*cb)(void *ctx, const struct block_io_key *k, const struct block_io_value *v), void *ctx,
		    struct err *e);

/** Microseconds from which a bucket counts; up to that of the next one. */
uint64_t block_bucket_us(uint32_t bucket);

void block_probe_health(struct block_probe *p, struct probe_health *ret);
