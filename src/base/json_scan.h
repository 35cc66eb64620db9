#pragma once

/*
 * The inner loops of the JSON reader and writer: 16 bytes at a time with SSE2, which every x86-64
 * has, and 8 bytes at a time elsewhere. Both forms are compiled where both can run, so that tests
 * compare them.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/** Bytes that a scan may read behind the byte that ends it. */
#define JSON_SCAN_PAD 16

/** A byte that ends a run of plain string text: quote, backslash, control or non-ASCII byte. */
static inline int json_is_special(unsigned char c)
{
	return c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
}

static inline int json_is_white(unsigned char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

#define JSON_ONES  0x0101010101010101ULL
#define JSON_HIGHS 0x8080808080808080ULL

static inline uint64_t json_load8(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* 0x80 in exactly the bytes of @p v that equal @p c. */
static inline uint64_t json_equal8(uint64_t v, unsigned char c)
{
	v ^= JSON_ONES * c;
	return ~(((v & ~JSON_HIGHS) + ~JSON_HIGHS) | v | ~JSON_HIGHS);
}

static inline uint64_t json_special8(uint64_t v)
{
	/* The borrow of "less than 0x20" can only mark bytes behind a true one: the first is right. */
	uint64_t control = (v - JSON_ONES * 0x20) & ~v;

	return ((control | v) & JSON_HIGHS) | json_equal8(v, '"') | json_equal8(v, '\\');
}

static inline uint64_t json_white8(uint64_t v)
{
	return json_equal8(v, ' ') | json_equal8(v, '\n') | json_equal8(v, '\r') |
	       json_equal8(v, '\t');
}

/** First special byte at or after @p p. One must come; JSON_SCAN_PAD bytes behind it are read. */
static inline unsigned char *json_plain_end_8(unsigned char *p)
{
	uint64_t m;

	while (!(m = json_special8(json_load8(p))))
		p += 8;
	return p + __builtin_ctzll(m) / 8;
}

/** First byte at or after @p p that is not white space, under the same conditions. */
static inline unsigned char *json_white_end_8(unsigned char *p)
{
	uint64_t m;

	while (!(m = json_white8(json_load8(p)) ^ JSON_HIGHS))
		p += 8;
	return p + __builtin_ctzll(m) / 8;
}

/**
 * Bytes up to and with the brace that closes an object whose opening one stands in front of @p p,
 * were there no braces in strings; 0 when it is not among the first @p n. JSON_SCAN_PAD bytes
 * behind them are read.
 */
static inline size_t json_braces_end_8(const unsigned char *p, size_t n)
{
	size_t depth = 1;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = json_load8(p + i), open = json_equal8(v, '{');

		for (uint64_t m = open | json_equal8(v, '}'); m; m &= m - 1) {
			size_t end = i + (unsigned)__builtin_ctzll(m) / 8 + 1;

			depth = open & m & -m ? depth + 1 : depth - 1;
			if (!depth)
				return end <= n ? end : 0;
		}
	}
	return 0;
}

#ifdef __SSE2__
static inline unsigned json_special16(__m128i v)
{
	/* Signed: bytes from 0x80 on are negative and so below 0x20 as well. */
	__m128i m = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));

	m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
	m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
	return (unsigned)_mm_movemask_epi8(m);
}

static inline unsigned json_black16(__m128i v)
{
	__m128i m = _mm_cmpeq_epi8(v, _mm_set1_epi8(' '));

	m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
	m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('\r')));
	m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('\t')));
	return (unsigned)_mm_movemask_epi8(m) ^ 0xffff;
}

static inline unsigned char *json_plain_end(unsigned char *p)
{
	unsigned m;

	while (!(m = json_special16(_mm_loadu_si128((const __m128i *)p))))
		p += 16;
	return p + __builtin_ctz(m);
}

static inline unsigned char *json_white_end(unsigned char *p)
{
	unsigned m;

	while (!(m = json_black16(_mm_loadu_si128((const __m128i *)p))))
		p += 16;
	return p + __builtin_ctz(m);
}

static inline unsigned json_equal16(__m128i v, char c)
{
	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(c)));
}

static inline size_t json_braces_end(const unsigned char *p, size_t n)
{
	size_t depth = 1;

	for (size_t i = 0; i < n; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(p + i));
		unsigned open = json_equal16(v, '{');

		for (unsigned m = open | json_equal16(v, '}'); m; m &= m - 1) {
			size_t end = i + (unsigned)__builtin_ctz(m) + 1;

			depth = open & m & -m ? depth + 1 : depth - 1;
			if (!depth)
				return end <= n ? end : 0;
		}
	}
	return 0;
}
#else
#define json_braces_end json_braces_end_8
#define json_plain_end json_plain_end_8
#define json_white_end json_white_end_8
#endif

/** Number of plain bytes at the start of @p p, which has @p n bytes; reads no byte behind them. */
static inline size_t json_plain_len(const unsigned char *p, size_t n)
{
	size_t i = 0;

#ifdef __SSE2__
	for (; n - i >= 16; i += 16) {
		unsigned m = json_special16(_mm_loadu_si128((const __m128i *)(p + i)));

		if (m)
			return i + (unsigned)__builtin_ctz(m);
	}
#endif
	for (; n - i >= 8; i += 8) {
		uint64_t m = json_special8(json_load8(p + i));

		if (m)
			return i + (unsigned)__builtin_ctzll(m) / 8;
	}
	while (i < n && !json_is_special(p[i]))
		i++;
	return i;
}

/** Number of line feeds in @p n bytes. */
static inline uint64_t json_count_lines(const unsigned char *p, size_t n)
{
	uint64_t lines = 0;
	size_t i = 0;

#ifdef __SSE2__
	while (n - i >= 16) {
		__m128i sum = _mm_setzero_si128();

		/* Each byte of the sum counts to 255 at most. */
		for (int k = 0; k < 255 && n - i >= 16; k++, i += 16) {
			__m128i v = _mm_loadu_si128((const __m128i *)(p + i));

			sum = _mm_sub_epi8(sum, _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
		}
		sum = _mm_sad_epu8(sum, _mm_setzero_si128());
		lines += (uint64_t)_mm_cvtsi128_si32(sum);
		lines += (uint64_t)_mm_cvtsi128_si32(_mm_srli_si128(sum, 8));
	}
#endif
	for (; i < n; i++)
		lines += p[i] == '\n';
	return lines;
}
