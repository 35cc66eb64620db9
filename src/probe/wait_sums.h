#pragma once

#include "bpf/wait_abi.h"
#include "idmap.h"
#include "map.h"
#include "sched_probe.h"

/*
 * Private to the layer: turns what the sched programs keep of waits into differences by reading.
 * A thread's newest sum is still with the thread when it is read, and comes again, larger, through
 * the map later; a wait that goes on is reported up to the reading, and again as a whole when it
 * ends. So totals are kept for whatever is not settled yet, and only what they gained is reported.
 */

/** A thread and what it waits for. */
struct on_key {
	uint64_t a, b, start_ns;
	uint32_t tid;
	uint16_t cause, kind;
};

struct on_total {
	struct wait_times finished;
	uint64_t open_ns; /**< of this reading; 0: none */
	uint64_t waits, waited_ns; /**< reported so far */
	uint32_t word;
};

struct by_total {
	struct wait_times flushed;
	struct wait_times pending; /**< of this reading */
	uint64_t waits, waited_ns; /**< reported so far */
	uint32_t word;
};

static inline uint64_t on_key_hash(struct on_key k)
{
	return hash_bytes(&k, sizeof(k), 0);
}

static inline bool on_key_equal(struct on_key x, struct on_key y)
{
	return !memcmp(&x, &y, sizeof(x));
}

static inline uint64_t wait_key_hash(struct wait_key k)
{
	return hash_bytes(&k, sizeof(k), 0);
}

static inline bool wait_key_equal(struct wait_key x, struct wait_key y)
{
	return !memcmp(&x, &y, sizeof(x));
}

MAP_DEFINE(on_map, struct on_key, struct on_total, on_key_hash, on_key_equal)
MAP_DEFINE(by_map, struct wait_key, struct by_total, wait_key_hash, wait_key_equal)

/** Zeroed: empty. The second map of each pair is empty between calls. */
struct wait_sums {
	struct on_map on[2];
	struct by_map by[2];
};

void wait_sums_done(struct wait_sums *w);

/** From the map: what a thread did before it turned to something else. */
void wait_sums_flushed(struct wait_sums *w, const struct wait_key *k, const struct wait_value *v);

/** From a thread's record, at most once for each thread between two reports. */
void wait_sums_record(struct wait_sums *w, const struct sched_totals *t);

/** Who can name threads: the probe. */
struct wait_names {
	/** @return NULL: not known (any more) */
	const struct task_ident *(*find)(void *ctx, uint32_t tid, uint64_t start_ns);
	void *ctx;
	bool complete; /**< a thread that it does not find is gone: forget what it had */
};

/** Report what was gained; see sched_probe_waits(). */
int wait_sums_report(struct wait_sums *w, const struct wait_names *names,
		     int (*cb)(void *ctx, const struct wait_sample *s), void *ctx);
