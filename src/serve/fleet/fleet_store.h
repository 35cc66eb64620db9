#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "fleet/fleet_message.h"
#include "strbuf.h"

/*
 * What a fleet knows, in one SQLite file: of each host its newest snapshot, which messages were taken in, and counts by
 * the minute. Bounded by the number of hosts: of each host and boot one snapshot, of the messages only ranges of numbers.
 * Several processes may share it; each of them opens it by itself.
 */
struct fleet_store;

#define FLEET_RUNS_MAX	  16 /* of a host whose numbers are remembered: older ones have left every log */
#define FLEET_MINUTES_MAX 60

int fleet_store_open(struct fleet_store **ret, const char *path, struct err *e);
/** NULL is fine. */
void fleet_store_close(struct fleet_store *s);

/** All between the two is one transaction: durable when fleet_store_commit() returns 0. */
int fleet_store_begin(struct fleet_store *s, struct err *e);
int fleet_store_commit(struct fleet_store *s, struct err *e);
void fleet_store_rollback(struct fleet_store *s);

/**
 * Take a message in, unless that was done before: then it changes nothing. One that is older than what is there counts, and
 * leaves the newer one as it is.
 *
 * @return 1: new, 0: known already, or -errno
 */
int fleet_store_put(struct fleet_store *s, const struct fleet_message *m, uint64_t now_ns, struct err *e);

/** A host as it was told last. Texts are borrowed for the call. */
struct fleet_host {
	const char *host, *boot, *run;
	uint64_t seq, start_ns, end_ns, interval_ns;
	uint64_t received_ns;	   /**< since 1970, by the clock of who took it */
	uint64_t taken;		   /**< messages of all its runs that are remembered */
	uint64_t missing;	   /**< numbers between the first and the last of a run that never came */
	uint64_t duplicates;	   /**< messages that came again */
	uint64_t runs;
	uint64_t last_hour, bytes_last_hour; /**< messages, and their compressed bytes, in the newest 60 minutes */
	const char *payload; /**< [n] of the newest snapshot; NULL: not asked for */
	size_t n;
};

/**
 * Call @p cb for each host, by name, then boot.
 *
 * @param since_ns hosts whose newest snapshot ended later than this
 * @param payload  whether the snapshots are wanted
 * @param cb       anything but 0 stops the walk and is returned
 */
int fleet_store_each(struct fleet_store *s, uint64_t since_ns, bool payload,
		     int (*cb)(void *ctx, const struct fleet_host *h, struct err *e), void *ctx, struct err *e);

/** Forget hosts that were last heard of before this. @return how many, or -errno */
int fleet_store_forget(struct fleet_store *s, uint64_t before_ns, struct err *e);

struct fleet_store_counts {
	uint64_t hosts, taken, duplicates, missing;
	uint64_t payload_bytes; /**< of the snapshots that are kept */
	uint64_t version;	/**< goes up with each message, whoever took it in */
};
int fleet_store_count(struct fleet_store *s, struct fleet_store_counts *ret, struct err *e);
