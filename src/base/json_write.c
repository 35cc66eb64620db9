/* Streaming JSON writer: see json.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "json_scan.h"
#include "utf8.h"

#define FLUSH_BYTES (64U << 10)

void json_writer_init(struct json_writer *w, int (*write)(void *ctx, const void *p, size_t n),
		      void *ctx, unsigned flags)
{
	memset(w, 0, sizeof(*w));
	w->write = write;
	w->ctx = ctx;
	w->flags = flags;
	w->out = &w->own;
}

void json_writer_init_strbuf(struct json_writer *w, struct strbuf *out, unsigned flags)
{
	memset(w, 0, sizeof(*w));
	w->flags = flags;
	w->out = out;
}

int json_write_to_fd(void *ctx, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t rc = write(*(int *)ctx, at, n);

		if (rc < 0 && errno != EINTR)
			return -errno;
		if (rc > 0) {
			at += rc;
			n -= (size_t)rc;
		}
	}
	return 0;
}

static void flush(struct json_writer *w)
{
	if (!w->rc && w->own.n)
		w->rc = w->write(w->ctx, w->own.s, w->own.n);
	strbuf_clear(&w->own);
}

void json_writer_drop(struct json_writer *w)
{
	strbuf_done(&w->own);
	w->out = NULL;
}

int json_writer_finish(struct json_writer *w, struct err *e)
{
	assert(w->done && !w->depth);
	if (w->write)
		flush(w);
	json_writer_drop(w);
	return w->rc ? err_set(e, w->rc, "write JSON") : 0;
}

static void new_line(struct json_writer *w)
{
	strbuf_addc(w->out, '\n');
	strbuf_pad(w->out, ' ', (size_t)w->depth * 2);
}

/* What stands in front of an item of the innermost level. */
static void item(struct json_writer *w)
{
	bool *has_items = &w->level[w->depth - 1].has_items;

	if (*has_items)
		strbuf_addc(w->out, ',');
	*has_items = true;
	if (w->flags & JSON_INDENT)
		new_line(w);
}

/* What stands in front of a value. */
static void value(struct json_writer *w)
{
	assert(!w->done);
	if (w->write && w->own.n >= FLUSH_BYTES)
		flush(w);
	if (!w->depth) {
		w->done = true;
	} else if (w->level[w->depth - 1].is_object) {
		assert(w->after_key);
		w->after_key = false;
	} else {
		item(w);
	}
}

static void level_open(struct json_writer *w, bool is_object)
{
	value(w);
	assert(w->depth < JSON_WRITER_DEPTH);
	/* The outermost value is done when it is closed. */
	w->done = false;
	w->level[w->depth].is_object = is_object;
	w->level[w->depth].has_items = false;
	w->depth++;
	strbuf_addc(w->out, is_object ? '{' : '[');
}

static void level_close(struct json_writer *w, bool is_object)
{
	assert(w->depth && w->level[w->depth - 1].is_object == is_object && !w->after_key);
	w->depth--;
	if (w->level[w->depth].has_items && (w->flags & JSON_INDENT))
		new_line(w);
	strbuf_addc(w->out, is_object ? '}' : ']');
	w->done = !w->depth;
}

void json_write_object(struct json_writer *w)
{
	level_open(w, true);
}

void json_write_object_end(struct json_writer *w)
{
	level_close(w, true);
}

void json_write_array(struct json_writer *w)
{
	level_open(w, false);
}

void json_write_array_end(struct json_writer *w)
{
	level_close(w, false);
}

static void add_unicode(struct strbuf *out, unsigned unit)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = {'\\',
			'u',
			digits[unit >> 12 & 15],
			digits[unit >> 8 & 15],
			digits[unit >> 4 & 15],
			digits[unit & 15]};

	strbuf_addn(out, text, sizeof(text));
}

static void add_code_point(struct strbuf *out, const unsigned char *p, int len, unsigned flags)
{
	/* A byte that is no UTF-8 becomes the replacement character, so that readers go on. */
	uint32_t c = len > 0 ? utf8_decode(p, len) : 0xfffd;

	if (!(flags & JSON_ASCII)) {
		char utf8[4];

		strbuf_addn(out, utf8, (size_t)utf8_encode(c, utf8));
	} else if (c < 0x10000) {
		add_unicode(out, c);
	} else {
		add_unicode(out, 0xd800 + ((c - 0x10000) >> 10));
		add_unicode(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
	}
}

static void add_ascii(struct strbuf *out, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c ? strchr(from, c) : NULL;

	if (at) {
		strbuf_addc(out, '\\');
		strbuf_addc(out, to[at - from]);
	} else {
		add_unicode(out, c);
	}
}

/* Bytes that need no thought; Python's ensure_ascii escapes DEL as well. */
static size_t plain_len(const unsigned char *p, size_t n, unsigned flags)
{
	size_t plain = json_plain_len(p, n);
	const unsigned char *del = NULL;

	if ((flags & JSON_ASCII) && plain)
		del = memchr(p, 0x7f, plain);
	return del ? (size_t)(del - p) : plain;
}

void json_quote(struct strbuf *out, const char *s, size_t n, unsigned flags)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t plain;

	strbuf_reserve(out, n + 2);
	strbuf_addc(out, '"');
	for (;;) {
		plain = plain_len(p, n, flags);
		strbuf_addn(out, p, plain);
		p += plain;
		n -= plain;
		if (!n)
			break;
		if (*p < 0x80) {
			add_ascii(out, *p);
			plain = 1;
		} else {
			int len = utf8_seq(p, n);

			add_code_point(out, p, len, flags);
			plain = len > 0 ? (size_t)len : 1;
		}
		p += plain;
		n -= plain;
	}
	strbuf_addc(out, '"');
}

void json_write_keyn(struct json_writer *w, const char *key, size_t n)
{
	assert(w->depth && w->level[w->depth - 1].is_object && !w->after_key);
	item(w);
	json_quote(w->out, key, n, w->flags);
	strbuf_addn(w->out, ": ", w->flags & JSON_INDENT ? 2 : 1);
	w->after_key = true;
}

void json_write_key(struct json_writer *w, const char *key)
{
	json_write_keyn(w, key, strlen(key));
}

void json_write_strn(struct json_writer *w, const char *s, size_t n)
{
	value(w);
	json_quote(w->out, s, n, w->flags);
}

void json_write_str(struct json_writer *w, const char *s)
{
	if (s)
		json_write_strn(w, s, strlen(s));
	else
		json_write_null(w);
}

void json_write_i64(struct json_writer *w, int64_t v)
{
	value(w);
	strbuf_add_i64(w->out, v);
}

void json_write_u64(struct json_writer *w, uint64_t v)
{
	value(w);
	strbuf_add_u64(w->out, v);
}

void json_key_str(struct json_writer *w, const char *key, const char *s)
{
	json_write_key(w, key);
	json_write_str(w, s);
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t v)
{
	json_write_key(w, key);
	json_write_u64(w, v);
}

void json_write_f64(struct json_writer *w, double v)
{
	value(w);
	strbuf_add_f64(w->out, v);
}

void json_write_bool(struct json_writer *w, bool v)
{
	value(w);
	strbuf_add(w->out, v ? "true" : "false");
}

void json_write_null(struct json_writer *w)
{
	value(w);
	strbuf_add(w->out, "null");
}

void json_write_raw(struct json_writer *w, const char *json, size_t n)
{
	value(w);
	strbuf_addn(w->out, json, n);
}
