#pragma once

#include "graph.h"
#include "sock_probe.h"

/*
 * Connections that leave the host, one by one, with what was moved through them: by these the
 * recordings of several hosts are joined.
 */

/** So many are kept; the others are counted as lost, and stay flows to an address. */
#define CONNECTIONS_MAX 32768

struct collect;
struct connections;

struct connections *connections_new(void);
void connections_free(struct connections *x);

/** What a process moved through a socket in an interval, if its other end is not on this host. */
void connections_add(struct collect *c, struct graph *g, uint32_t proc, const struct sock_sample *s,
		     uint64_t realtime_offset_ns);

/**
 * Look which of them have rewritten addresses, and which addresses the network namespaces have.
 * Costs a read of the kernel's table of tracked connections.
 */
void connections_look(struct collect *c, struct graph *g);
/** Whether it is time for that, for who never ends: each 5 s, and at most a fiftieth of the time is spent on it. */
bool connections_due(const struct collect *c);

void connections_describe(const struct collect *c, struct graph *g);
