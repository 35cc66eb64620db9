#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "err.h"
#include "route.h"
#include "vec.h"

/* Who may ask what, and how often. Decides from what a request says; all calls are safe from any thread. */
struct guard;

#define TOKEN_BYTES_MAX 256
#define TOKEN_BYTES_MIN 16

struct guard_options {
	const char *token_file;	  /**< NULL: whoever reaches the address may do everything */
	bool loopback;		  /**< only this host reaches the address */
	const char *const *hosts; /**< [nhosts] further names under which browsers may reach it */
	size_t nhosts;
	uint32_t rate_hz; /**< requests a second and client, twice that at once; 0: no limit */
};

/**
 * Read the tokens: a line each, `read TOKEN`, `control TOKEN`, or `TOKEN`, which may do both; lines that
 * begin with # are passed over. A file that others may read is refused.
 */
int guard_open(struct guard **ret, const struct guard_options *o, struct err *e);
void guard_free(struct guard *g);

enum refusal { REFUSE_NOT, REFUSE_RATE, REFUSE_HOST, REFUSE_ORIGIN, REFUSE_TOKEN, REFUSE_RIGHT, REFUSE_COUNT };

/** What a request says of itself; NULL: it does not. */
struct credentials {
	const struct sockaddr *from;
	const char *host, *origin, *authorization;
	bool tls;
};

/**
 * @param wanted    what the route asks for
 * @param ret_right what this client may do
 */
enum refusal guard_check(struct guard *g, const struct credentials *c, enum right wanted,
			 enum right *ret_right);

/** @return whether the text of an address is one that only this host reaches */
bool is_loopback(const struct sockaddr *a);
