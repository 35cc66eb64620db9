#pragma once

#include "collect.h"
#include "rdma_netlink.h"
#include "rdma_sysfs.h"

struct rdma;

/** Never NULL. */
struct rdma *rdma_new(void);
void rdma_free(struct rdma *r);
void collect_rdma(struct collect *c, struct graph *g, bool last);
void collect_rdma_describe(const struct collect *c, struct graph *g);

/**
 * The queue pair of this host that is at the other end of @p qp: each must name the other, as numbers are of a
 * device only, and the numbers of packets must not contradict, where they are known: others, of other hosts, have
 * the same numbers. On the same device rather than on another.
 *
 * @return NULL: it is on another host, or several might be it
 */
const struct rdma_resource *rdma_other_end(const struct rdma_state *s, const struct rdma_resource *qp);
