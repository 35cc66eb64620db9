#pragma once

#include "idmap.h"
#include "sched_probe.h"
#include "vec.h"

/*
 * Private to the layer: waits that only their time is known of are spread over what the same thread was seen to wait
 * for, and over who ended that, as often as each was seen. Sums stay exact. So are those that nobody was seen to end
 * while nobody could be.
 */

/** A thread with such waits; by wait_sample.ended: what for, by whom. */
struct plain_thread {
	struct task_ident id;
	uint64_t waits[2], ns[2]; /**< to be spread */
	uint64_t seen[2];   /**< waits in samples, over which they are */
	uint64_t before[2]; /**< of those, in samples reported so far */
	uint64_t gave_waits[2], gave_ns[2];
};

/** Zeroed: empty. */
struct wait_plain {
	VEC(struct plain_thread) threads;
	VEC(struct wait_sample) samples;
	struct idmap by_thread;
	bool unwatched; /**< wake-ups were not watched all the time since the last report */
};

void wait_plain_done(struct wait_plain *p);

/** A thread of this reading; each once, before any sample. */
void wait_plain_thread(struct wait_plain *p, const struct task_ident *id, uint64_t waits, uint64_t ns);

/** Keep a sample of this reading until the report; @p ctx is the struct wait_plain. */
int wait_plain_sample(void *ctx, const struct wait_sample *s);

/** Report all samples with what was spread over them, and begin anew. @return 0, or what @p cb returned */
int wait_plain_report(struct wait_plain *p, int (*cb)(void *ctx, const struct wait_sample *s), void *ctx);
