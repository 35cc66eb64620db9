#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sock_abi.h"

/** An entry of the kernel's connection tracking whose addresses were rewritten on the way. */
struct conntrack {
	uint8_t proto; /**< SOCK_PROTO_TCP or SOCK_PROTO_UDP */
	struct sock_addr_abi src,
	    dst; /**< as the one who began sees it: own address, and the other one */
	struct sock_addr_abi reply_src; /**< as the other one sees it: own address */
	struct sock_addr_abi reply_dst; /**< and that of the one who began */
};

/**
 * Read a line of /proc/net/nf_conntrack.
 * @return whether it is an entry of TCP or UDP whose addresses or ports were rewritten
 */
bool conntrack_parse(const char *line, struct conntrack *ret);
