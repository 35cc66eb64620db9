#pragma once

#include <gnutls/abstract.h>

#include "err.h"

/*
 * How users of NATS prove who they are without telling a secret: a key of Ed25519, whose public half is a name that
 * begins with U, and where accounts are used, a JWT that says what its holder may do.
 */

#define NKEY_NAME_BYTES	     57 /* 56 letters of base 32 */
#define NKEY_SIGNATURE_BYTES 87 /* 64 bytes in base64url */

struct nkey {
	char name[NKEY_NAME_BYTES]; /**< the public key */
	char *jwt;		    /**< owned; NULL: there is none */
	gnutls_privkey_t key;
};

/**
 * Read a file of credentials (JWT and seed, as `nsc` writes it), or one that holds a user's seed alone: a line that begins with SU.
 * A file that others may read is refused.
 *
 * @param ret nkey_done() after success only
 */
int nkey_read(struct nkey *ret, const char *path, struct err *e);
void nkey_done(struct nkey *k);
/** Sign the text of a nonce. */
int nkey_sign(const struct nkey *k, const char *nonce, char ret[NKEY_SIGNATURE_BYTES], struct err *e);
