#pragma once

#include "exchange.h"

/*
 * Things that anybody who has them may write and read: pipes, queues, eventfds. What went in goes
 * to those who take out, in proportion.
 */

struct channels;

struct channels *channels_new(void);
void channels_free(struct channels *c);

/**
 * Add what a process put into or took out of a thing.
 *
 * @param id1,id2 identify it among those of its kind while it exists
 */
void channels_add(struct channels *c, enum flow_kind kind, uint64_t id1, uint64_t id2,
		  uint32_t proc, bool received, const struct moved *m);

/** Add what went from one process straight to another. */
void channels_add_direct(struct channels *c, enum flow_kind kind, uint32_t from, uint32_t to,
			 const struct moved *m);

/** Add all to the round that has begun; what went through things that are empty is settled. */
void channels_contribute(struct channels *c, struct exchange *x);

/**
 * Settle and forget those that nothing went through since @p before_ns and that hold nothing; add
 * the processes of the others to @p used.
 */
void channels_sweep(struct channels *c, struct exchange *x, uint64_t before_ns, uint64_t *used);

size_t channels_size(const struct channels *c);
