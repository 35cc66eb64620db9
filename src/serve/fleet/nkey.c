/* Keys of NATS: base 32 with a checksum around Ed25519, and files that hold them. */
#include "fleet/nkey.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "mem.h"

#define FILE_MAX    (64u << 10)
#define RAW_BYTES   32			 /* of a key, either half */
#define SEED_BYTES  (2 + RAW_BYTES + 2)  /* kinds, the key, checksum */
#define SEED_CHARS  58
#define KIND_SEED   (18 << 3)		 /* 'S' */
#define KIND_USER   (20 << 3)		 /* 'U' */

static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/* CRC-16/XMODEM. */
static uint16_t checksum(const uint8_t *p, size_t n)
{
	uint16_t crc = 0;

	for (size_t i = 0; i < n; i++) {
		crc = (uint16_t)(crc ^ p[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

/* @return whether it is @p size bytes, and no more */
static bool decode32(const char *s, size_t chars, uint8_t *ret, size_t size)
{
	uint32_t bits = 0, value = 0;
	size_t n = 0;

	for (size_t i = 0; i < chars; i++) {
		const char *d = s[i] ? strchr(base32, s[i]) : NULL;

		if (!d)
			return false;
		value = value << 5 | (uint32_t)(d - base32);
		bits += 5;
		if (bits < 8)
			continue;
		bits -= 8;
		if (n >= size)
			return false;
		ret[n++] = (uint8_t)(value >> bits);
	}
	/* Bits that fill the last letter mean nothing: not zero, another seed was meant. */
	return n == size && !(value & ((1u << bits) - 1));
}

static void encode32(const uint8_t *p, size_t n, char *ret)
{
	uint32_t bits = 0, value = 0;

	for (size_t i = 0; i < n; i++) {
		value = value << 8 | p[i];
		for (bits += 8; bits >= 5; bits -= 5)
			*ret++ = base32[value >> (bits - 5) & 31];
	}
	if (bits)
		*ret++ = base32[value << (5 - bits) & 31];
	*ret = '\0';
}

/* Only the seed goes in: the public half follows from it (RFC 8410, 7). */
static int import_seed(struct nkey *k, const uint8_t seed[RAW_BYTES], struct err *e)
{
	uint8_t der[16 + RAW_BYTES] = {0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20};
	uint8_t name[1 + RAW_BYTES + 2] = {KIND_USER};
	gnutls_datum_t file = {der, sizeof(der)}, x = {0};
	uint16_t crc;
	int rc;

	memcpy(der + 16, seed, RAW_BYTES);
	rc = gnutls_privkey_init(&k->key);
	if (rc < 0)
		return err_msg(e, -ENOMEM, "%s", gnutls_strerror(rc));
	rc = gnutls_privkey_import_x509_raw(k->key, &file, GNUTLS_X509_FMT_DER, NULL, 0);
	explicit_bzero(der, sizeof(der));
	if (!rc)
		rc = gnutls_privkey_export_ecc_raw(k->key, NULL, &x, NULL, NULL);
	if (rc < 0 || x.size != RAW_BYTES) {
		gnutls_free(x.data);
		gnutls_privkey_deinit(k->key);
		return err_msg(e, -EINVAL, "the seed is no key: %s", rc < 0 ? gnutls_strerror(rc) : "its length");
	}
	memcpy(name + 1, x.data, RAW_BYTES);
	gnutls_free(x.data);
	crc = checksum(name, 1 + RAW_BYTES);
	name[1 + RAW_BYTES] = (uint8_t)crc;
	name[2 + RAW_BYTES] = (uint8_t)(crc >> 8);
	encode32(name, sizeof(name), k->name);
	return 0;
}

static int read_seed(struct nkey *k, const char *text, struct err *e)
{
	uint8_t raw[SEED_BYTES];
	uint16_t crc;
	int rc;

	if (!decode32(text, SEED_CHARS, raw, sizeof(raw)) || (text[SEED_CHARS] && !strchr(" \t\r\n", text[SEED_CHARS])))
		return err_msg(e, -EINVAL, "the seed is not 58 letters of base 32");
	crc = checksum(raw, SEED_BYTES - 2);
	if (raw[SEED_BYTES - 2] != (crc & 0xff) || raw[SEED_BYTES - 1] != crc >> 8)
		rc = err_msg(e, -EINVAL, "the seed's checksum is wrong");
	else if ((raw[0] & 0xf8) != KIND_SEED || ((raw[0] & 7) << 5 | raw[1] >> 3) != KIND_USER)
		rc = err_msg(e, -EINVAL, "the seed is not a user's, which begins with SU");
	else
		rc = import_seed(k, raw + 2, e);
	explicit_bzero(raw, sizeof(raw));
	return rc;
}

/* The line that follows the one with @p title. @return NULL: there is none */
static const char *line_after(const char *text, const char *title)
{
	const char *at = strstr(text, title);

	at = at ? strchr(at, '\n') : NULL;
	return at ? at + strspn(at, " \t\r\n") : NULL;
}

static int parse(struct nkey *k, const char *text, struct err *e)
{
	const char *jwt = line_after(text, "-----BEGIN NATS USER JWT-----"), *seed;
	size_t n;

	memset(k, 0, sizeof(*k));
	seed = line_after(text, "-----BEGIN USER NKEY SEED-----");
	if (!seed && !jwt)
		seed = text + strspn(text, " \t\r\n");
	if (!seed)
		return err_msg(e, -EINVAL, "there is no seed in it");
	if (read_seed(k, seed, e) < 0)
		return e->code;
	if (!jwt)
		return 0;
	n = strspn(jwt, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");
	if (!n || !strchr("\r\n", jwt[n])) {
		nkey_done(k);
		return err_msg(e, -EINVAL, "its JWT is none");
	}
	k->jwt = mem_alloc(n + 1);
	memcpy(k->jwt, jwt, n);
	return 0;
}

int nkey_read(struct nkey *ret, const char *path, struct err *e)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	char *text;
	struct stat st;
	size_t n;
	int rc;

	if (!f)
		return err_set(e, -errno, "open credentials '%s'", path);
	if (fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode))
		return err_msg(e, -EINVAL, "credentials '%s': no regular file", path);
	if (st.st_mode & 077) {
		err_msg(e, -EPERM, "credentials '%s': others may read or write it", path);
		return err_hint(e, "chmod 600 '%.200s'", path);
	}
	text = mem_alloc(FILE_MAX + 1);
	n = fread(text, 1, FILE_MAX, f);
	rc = strlen(text) == n && n < FILE_MAX ? parse(ret, text, e) : err_msg(e, -EINVAL, "it is no text, or too long");
	explicit_bzero(text, n);
	free(text);
	return rc < 0 ? err_ctx(e, "credentials '%s'", path) : 0;
}

void nkey_done(struct nkey *k)
{
	gnutls_privkey_deinit(k->key);
	free(k->jwt);
}

/* Without padding, and with letters that fit into addresses. */
static void encode64(const uint8_t *p, size_t n, char *ret)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0, value = 0;

	for (size_t i = 0; i < n; i++) {
		value = value << 8 | p[i];
		for (bits += 8; bits >= 6; bits -= 6)
			*ret++ = digits[value >> (bits - 6) & 63];
	}
	if (bits)
		*ret++ = digits[value << (6 - bits) & 63];
	*ret = '\0';
}

int nkey_sign(const struct nkey *k, const char *nonce, char ret[NKEY_SIGNATURE_BYTES], struct err *e)
{
	gnutls_datum_t text = {(unsigned char *)nonce, (unsigned)strlen(nonce)}, signature = {0};
	int rc = gnutls_privkey_sign_data2(k->key, GNUTLS_SIGN_EDDSA_ED25519, 0, &text, &signature);

	if (rc < 0)
		return err_msg(e, -EIO, "sign: %s", gnutls_strerror(rc));
	if (signature.size == 64)
		encode64(signature.data, signature.size, ret);
	else
		rc = err_msg(e, -EIO, "sign: a signature of %u bytes", signature.size);
	gnutls_free(signature.data);
	return rc < 0 ? rc : 0;
}
