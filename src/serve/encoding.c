/* Content encodings: what a client takes, and packing for it. */
#include "encoding.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "mem.h"

#define LEAST      512  /* bytes; below that a packet is a packet */
#define GZIP_LEVEL 4    /* on the capture 2 % larger than level 6, in half of its time */
#define ZSTD_LEVEL 3    /* likewise, of 5 */
#define Q_ONE      1000 /* weights have three digits */

static const char *const names[ENCODING_COUNT] = {
    [ENCODING_PLAIN] = "identity", [ENCODING_GZIP] = "gzip", [ENCODING_ZSTD] = "zstd"};

const char *encoding_name(enum encoding e)
{
	return names[e];
}

static const char *skip_blank(const char *s)
{
	return s + strspn(s, " \t");
}

/* "0.25" as 250. What is no weight is 0: then better plain. */
static int weight(const char *s)
{
	int q, unit = Q_ONE;

	if (*s != '0' && *s != '1')
		return 0;
	q = (*s++ - '0') * Q_ONE;
	if (*s == '.')
		for (s++; unit > 1 && *s >= '0' && *s <= '9'; s++) {
			unit /= 10;
			q += (*s - '0') * unit;
		}
	return q > Q_ONE ? Q_ONE : q;
}

/* Of one item, up to its comma: the weight behind `;`, `q` and `=`. */
static int weight_of(const char *s, const char *end)
{
	const char *at = memchr(s, ';', (size_t)(end - s));

	for (; at; at = memchr(at, ';', (size_t)(end - at))) {
		at = skip_blank(at + 1);
		if (at >= end || (*at != 'q' && *at != 'Q'))
			continue;
		at = skip_blank(at + 1);
		if (at < end && *at == '=')
			return weight(skip_blank(at + 1));
	}
	return Q_ONE;
}

static bool is_named(const char *s, size_t n, const char *name)
{
	return n == strlen(name) && !strncasecmp(s, name, n);
}

enum encoding encoding_choose(const char *accept)
{
	int q[ENCODING_COUNT] = {[ENCODING_PLAIN] = -1, [ENCODING_GZIP] = -1, [ENCODING_ZSTD] = -1};
	int others = 0;
	enum encoding best = ENCODING_PLAIN;

	for (const char *s = accept; s && *s;) {
		const char *end = s + strcspn(s, ",");
		size_t n;

		s = skip_blank(s);
		n = strcspn(s, ",; \t");
		if (is_named(s, n, "*"))
			others = weight_of(s, end);
		for (int i = 0; i < ENCODING_COUNT; i++)
			if (is_named(s, n, names[i]) ||
			    (i == ENCODING_GZIP && is_named(s, n, "x-gzip")))
				q[i] = weight_of(s, end);
		s = *end ? end + 1 : end;
	}
	/* What is not named is as `*` says; plain is always taken, but is the last choice. */
	for (int i = ENCODING_GZIP; i < ENCODING_COUNT; i++)
		q[i] = q[i] < 0 ? others : q[i];
	q[ENCODING_PLAIN] = q[ENCODING_PLAIN] < 0 ? 0 : q[ENCODING_PLAIN];
	for (int i = ENCODING_GZIP; i < ENCODING_COUNT; i++)
		if (q[i] > 0 && q[i] >= q[best])
			best = i;
	return best;
}

static size_t pack_gzip(const struct strbuf *in, struct strbuf *out)
{
	z_stream z = {0};
	size_t most;
	int rc;

	/* 16: with a gzip header. */
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	most = deflateBound(&z, (uLong)in->n);
	strbuf_reserve(out, most);
	z.next_in = (Bytef *)in->s;
	z.avail_in = (uInt)in->n;
	z.next_out = (Bytef *)out->s;
	z.avail_out = (uInt)most;
	rc = deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return rc == Z_STREAM_END ? z.total_out : 0;
}

static size_t pack_zstd(const struct strbuf *in, struct strbuf *out)
{
	size_t most = ZSTD_compressBound(in->n), n;

	strbuf_reserve(out, most);
	n = ZSTD_compress(out->s, most, in->s, in->n, ZSTD_LEVEL);
	return ZSTD_isError(n) ? 0 : n;
}

bool encoding_pack(enum encoding e, const struct strbuf *in, struct strbuf *out)
{
	if (e == ENCODING_PLAIN || in->n < LEAST || in->n > UINT_MAX / 2)
		return false;
	out->n = e == ENCODING_GZIP ? pack_gzip(in, out) : pack_zstd(in, out);
	if (out->n && out->n < in->n)
		return true;
	strbuf_done(out);
	return false;
}

void encoding_unpack_zstd(const struct strbuf *in, struct strbuf *out)
{
	size_t n = (size_t)ZSTD_getFrameContentSize(in->s, in->n);

	strbuf_reserve(out, n);
	out->n = ZSTD_decompress(out->s, n, in->s, in->n);
	/* It is our own: the only reason to fail is memory. */
	if (ZSTD_isError(out->n))
		mem_exhausted(n);
	out->s[out->n] = '\0';
}
