#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "fleet/broker.h"
#include "graph.h"
#include "strbuf.h"

/*
 * Many hosts as one: a thread fetches what their agents publish and stores it before it acknowledges; whoever asks gets
 * one graph of the newest snapshot of each host, with the connections between them joined.
 */
struct fleet;

struct fleet_options {
	struct broker_options broker; /**< with a group */
	const char *store;	      /**< path of the store; processes that share a group on one machine share it */
	uint64_t stale_ns;	      /**< a host whose newest snapshot is older is left out of the graph */
	uint64_t forget_ns;	      /**< a host that was silent for so long is forgotten */
	uint64_t clock_ns;	      /**< by so much the clocks of hosts may differ */
};

/** Of this process, since it started. */
struct fleet_counts {
	uint64_t fetched, taken, duplicates; /**< messages; those that were known already */
	uint64_t refused;		     /**< messages that are none */
	uint64_t failures;		     /**< of broker or store; each was tried again */
	uint64_t pending;		     /**< that the broker holds for the group; UINT64_MAX: not known */
	uint64_t lag_ns;   /**< from the broker's taking the last message to its being stored; 0: not known */
	uint64_t world_ns; /**< what the last graph took to be made */
	uint64_t hosts, stale; /**< in that graph; and left out of it */
	uint64_t joined;       /**< connections between hosts in it */
	bool connected;
	char failure[200]; /**< the last one; "": none since */
};

/** @param o copied, but not what it points to */
int fleet_open(struct fleet **ret, const struct fleet_options *o, struct err *e);
/** Begin to fetch. */
int fleet_start(struct fleet *f, struct err *e);
/** NULL is fine. */
void fleet_close(struct fleet *f);

/**
 * The graph of all hosts that are heard of. One thread calls it.
 *
 * @param ret initialized and empty
 * @return 0, or -errno: the store cannot be read
 */
int fleet_graph(struct fleet *f, struct graph *ret, struct err *e);
/** How many threads work on all hosts: one for each CPU that this process may use, at most 4. */
unsigned fleet_threads(void);
/** The hosts as a JSON array: who, when, and what came of each. Any thread. */
int fleet_list(struct fleet *f, struct strbuf *b, struct err *e);
void fleet_get(struct fleet *f, struct fleet_counts *ret);
