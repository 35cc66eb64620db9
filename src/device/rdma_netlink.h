#pragma once

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "vec.h"

/* RDMA devices and what processes made of them, by the kernel's RDMA netlink family. */

struct rdma_dev {
	uint32_t index;
	char name[64];
};

enum rdma_kind { RDMA_QP, RDMA_MR, RDMA_PD, RDMA_CQ, RDMA_KINDS };

#define RDMA_UNKNOWN UINT32_MAX

/** A queue pair, memory region, protection domain or completion queue. RDMA_UNKNOWN: not told. */
struct rdma_resource {
	enum rdma_kind kind;
	uint32_t dev;	   /**< index of the device */
	uint32_t number;   /**< of the QP, PD or CQ; of an MR its number, which is no key */
	uint32_t pid;	   /**< owner; RDMA_UNKNOWN: the kernel */
	uint32_t pdn;	   /**< QP, MR: its protection domain */
	uint32_t port, remote; /**< QP: port, and number of the queue pair at the other end */
	uint32_t type, state;  /**< QP: IB_QPT_…, IB_QPS_… */
	uint32_t sq_psn, rq_psn; /**< QP: packet numbers, modulo 2^24, of the next one sent and the next one expected */
	uint32_t lkey, rkey;   /**< MR; the kernel tells them to privileged readers only */
	uint64_t length;       /**< MR: bytes; CQ: entries */
	char owner[32];	       /**< part of the kernel that owns it; "": a process does */
};

struct rdma_state {
	VEC(struct rdma_dev) devices;
	VEC(struct rdma_resource) resources;
};

/** Ask for all. @return 0, or -errno; -EPROTONOSUPPORT: this kernel has no RDMA, or it is not loaded */
int rdma_netlink_read(struct rdma_state *ret, struct err *e);
void rdma_state_done(struct rdma_state *s);

/**
 * Parse answers of the kernel: one netlink message after the other.
 *
 * @param kind what was asked for; RDMA_KINDS: devices
 * @return 1: the last one was there, 0: more follow, -errno: the kernel's, or -EBADMSG
 */
int rdma_netlink_parse(const void *data, size_t n, enum rdma_kind kind, struct rdma_state *ret);

/** "RC", "UD" …; "INIT", "RTS" …; NULL: not known */
const char *rdma_qp_type_name(uint32_t type);
const char *rdma_qp_state_name(uint32_t state);
