#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "procs.h"
#include "sock_abi.h"
#include "vec.h"

/*
 * Process-to-process flows: how much each process gave to each other one, by kind of path, summed
 * over all the sockets, pipes and queues between the two. Those add what they know in each round;
 * what can no longer change is added for good, so that its details may be forgotten.
 */

enum flow_kind {
	FLOW_OTHER,
	FLOW_TCP,
	FLOW_UDP,
	FLOW_UNIX,
	FLOW_IP, /**< raw IP, SCTP, … */
	FLOW_PIPE,
	FLOW_FIFO,
	FLOW_EVENTFD,
	FLOW_POSIX_QUEUE,
	FLOW_SYSV_QUEUE,
	FLOW_MEMORY_COPY, /**< process_vm_readv(2), process_vm_writev(2) */
	FLOW_KINDS
};

/** An amount of data. Times are CLOCK_BOOTTIME ns, 0: nothing moved yet. */
struct moved {
	uint64_t bytes;
	uint64_t calls; /**< that moved something; messages where the path keeps their bounds */
	uint64_t first_ns, last_ns;
};

void moved_add(struct moved *to, const struct moved *m);

/** What each of several processes moved. Zeroed: none. */
struct shares {
	VEC(struct share { uint32_t proc; struct moved m; }) list;
};

void shares_add(struct shares *s, uint32_t proc, const struct moved *m);
uint64_t shares_bytes(const struct shares *s);
/** CLOCK_BOOTTIME of the last transfer, 0: none. */
uint64_t shares_last_ns(const struct shares *s);

#define PROC_NONE UINT32_MAX

/** One direction of a path: who put in, who took out. */
struct crossing {
	enum flow_kind kind;
	const struct shares *sent, *received;
	/** who gets what nobody has taken yet; PROC_NONE: the endpoint `outside` */
	uint32_t holder;
	/** its remote address is the end that is no process here; NULL: no end */
	const struct sock_facts *outside;
};

struct exchange;

struct exchange *exchange_new(struct procs *p);
void exchange_free(struct exchange *x);

/** A new round: what was not added for good is to be added again. */
void exchange_begin(struct exchange *x);

/** @param for_good counts from the next round on, without being added again */
void exchange_add(struct exchange *x, const struct crossing *c, bool for_good);

/** Put the flows that changed since the last call into the interval's graph, as totals so far. */
void exchange_emit(struct exchange *x, struct graph *g, uint64_t realtime_offset_ns);

/**
 * Forget flows that were emitted and have an end that ended and is not in @p used any more; then
 * add the processes of the others to @p used.
 *
 * @param used bit per process number, procs_bits() words
 */
void exchange_sweep(struct exchange *x, uint64_t *used);

/** Node of the endpoint with that address; unix sockets by inode. */
uint32_t endpoint_node(struct graph *g, const struct sock_facts *s, bool remote, bool external);

/** "TCP", "UDP", "UNIX_STREAM", … */
const char *sock_proto_name(unsigned proto);
