#pragma once

#include "procs.h"
#include "sock_probe.h"
#include "proc_probe.h"

/*
 * Who sent how much to whom. What each end of each socket did is added up for the whole recording;
 * the two ends are joined by the kernel's own peer (unix), by the addresses within a network
 * namespace (TCP, UDP), across namespaces where the address is not a loopback one.
 */

struct flows;

struct flows *flows_new(struct procs *p);
void flows_free(struct flows *f);

/** Add what a thread moved through a socket in one interval. */
void flows_add(struct flows *f, uint32_t proc, const struct sock_sample *s);

/** Learn of an open socket and one of its holders. */
void flows_add_holder(struct flows *f, uint32_t proc, const struct sock_facts *s);

bool flows_knows(const struct flows *f, const struct sock_facts *s);

/** TCP segments that a socket has sent again since the last call about it; 0 for one never seen. */
uint32_t flows_retransmits(struct flows *f, const struct sock_facts *s, uint32_t total);

/** A socket sends to one that nobody is known to hold: a look at the open files may tell. */
bool flows_want_holders(const struct flows *f);

/**
 * Put the flows that changed since the last call into the interval's graph, as totals so far.
 *
 * @param realtime_offset_ns what to add to CLOCK_BOOTTIME to get the time since 1970
 */
void flows_emit(struct flows *f, struct graph *g, uint64_t realtime_offset_ns);

/** "TCP", "UDP", "UNIX_STREAM", … */
const char *sock_proto_name(unsigned proto);
/** Node of the endpoint with that address; unix sockets by inode. */
uint32_t endpoint_node(struct graph *g, const struct sock_facts *s, bool remote, bool external);
