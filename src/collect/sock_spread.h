#pragma once

#include "idmap.h"
#include "sock_probe.h"
#include "vec.h"

/*
 * Who moved what went through TCP connections that were watched in turns. How much each of them carried in each
 * direction is known, and the looks tell which threads used it, in how many messages: the sum of a connection stays
 * exact, its split over threads and the number of messages are as in the looks.
 */

struct sock_share {
	struct task_ident task;
	uint64_t bytes, msgs;
	char comm[TASK_COMM_BYTES];
};

/** One direction of a connection, as the newest look that saw something of it saw it. */
struct sock_looked {
	uint64_t sk_id;
	uint32_t dir;
	size_t from, n; /**< in shares */
};

struct sock_spread {
	VEC(struct sock_sample) seen, totals; /**< of one reading */
	VEC(struct sock_looked) looked[2];
	VEC(struct sock_share) shares[2];
	struct idmap by_side[2];
	int now; /**< which of the two is the newest */
};

/** Take over a sample with SOCK_SEEN or SOCK_TOTAL. */
void sock_spread_add(struct sock_spread *s, const struct sock_sample *sample);

/**
 * Tell of all that was added since the last call as of what threads moved. The bytes are those of the totals, to the
 * byte. What was seen of a call's beginning may have been told of before, as far as it had come: then it is less.
 *
 * @param held whether something may have gone by unwatched; else who moved it is told by this reading or the next one
 * @param cb with a `task` of zeros where neither a look nor the end of the connection told who uses it; to be 0
 * @return 0, or what @p cb returned
 */
int sock_spread_settle(struct sock_spread *s, bool held, int (*cb)(void *ctx, const struct sock_sample *s), void *ctx);

void sock_spread_done(struct sock_spread *s);
