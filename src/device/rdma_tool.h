#pragma once

#include "rdma_netlink.h"

/* The same as rdma_netlink.h tells, by the tool rdma of iproute2: where netlink cannot be asked from here. */

/**
 * Run `rdma -j` for each kind of resource.
 *
 * @return 0, or -errno: it is not there, takes too long, fails, or writes what is not understood
 */
int rdma_tool_read(struct rdma_state *ret, struct err *e);

/**
 * Parse what `rdma -j dev show` or `rdma -j -d resource show KIND` writes: an array of objects.
 *
 * @param kind what was asked for; RDMA_KINDS: devices, which have to be known before anything else
 * @return 0, -EBADMSG: not such a document. Members that are not known are passed over
 */
int rdma_tool_parse(const char *text, size_t n, enum rdma_kind kind, struct rdma_state *ret, struct err *e);
