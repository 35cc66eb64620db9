#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * Length of the UTF-8 sequence at @p p, which has @p n bytes, @p n > 0.
 * Overlong forms, surrogates and values above U+10FFFF are invalid (RFC 3629).
 *
 * @return 1 to 4; 0: invalid; -1: valid so far, but cut off after @p n bytes
 */
static inline int utf8_seq(const unsigned char *p, size_t n)
{
	unsigned char low = 0x80, high = 0xbf;
	int len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	/* Only the second byte has a range of its own. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	for (int i = 1; i < len; i++, low = 0x80, high = 0xbf) {
		if ((size_t)i >= n)
			return -1;
		if (p[i] < low || p[i] > high)
			return 0;
	}
	return len;
}

/** Code point of the valid sequence of @p len bytes at @p p. */
static inline uint32_t utf8_decode(const unsigned char *p, int len)
{
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7fU >> len);

	for (int i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/**
 * Write code point @p c, a Unicode scalar value, as UTF-8.
 *
 * @return its length, 1 to 4
 */
static inline int utf8_encode(uint32_t c, char out[4])
{
	int len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (int i = len - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(len == 1 ? c : c | (0xf00U >> len & 0xff));
	return len;
}
