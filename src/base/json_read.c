/*
 * Pull parser for JSON: see json.h.
 *
 * Input is read into a window whose end is marked by a 0 byte, which no token of JSON contains, so
 * that scans need no bounds check: they stop there and ask for more. A token that lies within the
 * window is returned in place; one that crosses its end, or has escapes, is collected in `spill`.
 */
#include "json.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_scan.h"
#include "mem.h"
#include "utf8.h"
#include "vec.h"

#define WINDOW_BYTES	 (256U << 10)
#define WINDOW_BYTES_MIN 16U

enum state {
	AT_START,
	AT_VALUE,
	AT_FIRST_ITEM, /* behind '[' */
	AT_FIRST_KEY,  /* behind '{' */
	AT_COLON,
	AT_NEXT, /* behind a value */
};

struct json_reader {
	unsigned char *pos, *end; /* not yet consumed; *end is 0 */
	unsigned char *held_at;	  /* where a 0 was put behind a number, over `held` */
	unsigned char held;
	unsigned char closer; /* '}' or ']' of the innermost level, 0 outside */
	uint8_t state;	      /* enum state */
	bool at_eof;
	int read_rc; /* -errno of the failed read */
	int token;
	const char *text;
	size_t text_n;
	VEC(unsigned char) closers; /* of the levels around it */
	struct strbuf spill;
	unsigned char *window;
	size_t window_bytes;
	uint64_t base_offset, base_line; /* of the window's first byte */
	int fd;				 /* -1: from memory */
	const char *mem;
	size_t mem_n;
	char *name;
	struct json_limits limits;
	struct err err;
};

static struct json_reader *reader_new(const char *name, const struct json_limits *l, size_t window)
{
	struct json_reader *r = mem_alloc(sizeof(*r));

	r->limits = l ? *l : JSON_LIMITS_DEFAULT;
	r->window_bytes = window;
	r->window = mem_alloc(window + 1 + JSON_SCAN_PAD);
	r->pos = r->end = r->window;
	r->base_line = 1;
	r->text = "";
	r->name = mem_strdup(name);
	return r;
}

static size_t window_wanted(const struct json_limits *l)
{
	size_t n = l && l->window_bytes ? l->window_bytes : WINDOW_BYTES;

	return n < WINDOW_BYTES_MIN ? WINDOW_BYTES_MIN : n;
}

struct json_reader *json_reader_new_fd(int fd, const char *name, const struct json_limits *l)
{
	struct json_reader *r = reader_new(name, l, window_wanted(l));

	assert(fd >= 0);
	r->fd = fd;
	return r;
}

struct json_reader *json_reader_new_mem(const char *s, size_t n, const char *name,
					const struct json_limits *l)
{
	size_t window = window_wanted(l);
	struct json_reader *r;

	if (window > n)
		window = n < WINDOW_BYTES_MIN ? WINDOW_BYTES_MIN : n;
	r = reader_new(name, l, window);
	r->fd = -1;
	r->mem = s;
	r->mem_n = n;
	return r;
}

void json_reader_free(struct json_reader *r)
{
	if (!r)
		return;
	vec_done(&r->closers);
	strbuf_done(&r->spill);
	free(r->window);
	free(r->name);
	free(r);
}

uint64_t json_line(const struct json_reader *r)
{
	return r->base_line + json_count_lines(r->window, (size_t)(r->pos - r->window));
}

uint64_t json_offset(const struct json_reader *r)
{
	return r->base_offset + (uint64_t)(r->pos - r->window);
}

/* Remember the failure at @p p; json_next() hands it out. */
__attribute__((format(printf, 3, 4), cold)) static int fail(struct json_reader *r, unsigned char *p,
							   const char *reason, ...)
{
	char text[256];
	va_list ap;

	r->pos = p;
	va_start(ap, reason);
	vsnprintf(text, sizeof(text), reason, ap);
	va_end(ap);
	return err_msg(&r->err, -EBADMSG, "%s:%llu: %s", r->name, (unsigned long long)json_line(r),
		       text);
}

__attribute__((cold)) static int fail_end(struct json_reader *r, const char *inside)
{
	r->pos = r->end;
	if (r->read_rc)
		return err_set(&r->err, r->read_rc, "read '%s'", r->name);
	return fail(r, r->end, "the input ends in the middle of %s", inside);
}

/* Something else than @p expected stands at @p p. */
__attribute__((cold)) static int fail_expected(struct json_reader *r, unsigned char *p,
					       const char *expected)
{
	if (p == r->end)
		return fail_end(r, r->closer == '}' ? "an object" : "an array");
	return fail(r, p, "expected %s", expected);
}

__attribute__((cold)) static int fail_long(struct json_reader *r, unsigned char *p,
					   const char *what)
{
	return fail(r, p, "%s longer than %zu bytes", what, r->limits.string_bytes);
}

static ssize_t read_some(struct json_reader *r, unsigned char *to, size_t room)
{
	size_t n = r->mem_n < room ? r->mem_n : room;
	ssize_t got;

	if (r->fd < 0) {
		if (n)
			memcpy(to, r->mem, n);
		r->mem += n;
		r->mem_n -= n;
		return (ssize_t)n;
	}
	do
		got = read(r->fd, to, room);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/*
 * Replace the window, which is consumed, by the next part of the input.
 *
 * @return false at the end of the input or when reading fails (read_rc); the window then stays
 */
__attribute__((noinline)) static bool refill(struct json_reader *r)
{
	size_t used = (size_t)(r->end - r->window);
	uint64_t lines = json_count_lines(r->window, used);
	ssize_t got = 0;

	r->pos = r->end;
	if (!r->at_eof)
		got = read_some(r, r->window, r->window_bytes);
	if (got <= 0) {
		r->read_rc = got < 0 ? (int)got : r->read_rc;
		r->at_eof = true;
		return false;
	}
	r->base_line += lines;
	r->base_offset += used;
	r->pos = r->window;
	r->end = r->window + got;
	*r->end = 0;
	return true;
}

/* First byte from @p p on that is no white space; at the end of the input the 0 at r->end. */
static inline unsigned char *skip_white(struct json_reader *r, unsigned char *p)
{
	if (*p > ' ')
		return p;
	if (*p == ' ' && p[1] > ' ')
		return p + 1;
	for (;;) {
		p = json_white_end(p);
		if (p < r->end || !refill(r))
			return p;
		p = r->pos;
	}
}

/* Consume one byte. @return it, or -1 at the end of the input */
static int next_byte(struct json_reader *r)
{
	if (r->pos == r->end && !refill(r))
		return -1;
	return *r->pos++;
}

static inline int literal(struct json_reader *r, unsigned char *p, const char *word, int token)
{
	r->pos = p;
	for (const char *c = word; *c; c++) {
		int got = next_byte(r);

		if (got < 0)
			return fail_end(r, "a literal");
		if (got != *c)
			return fail(r, r->pos - 1, "expected a value (is '%s' meant?)", word);
	}
	r->text = "";
	r->text_n = 0;
	r->state = AT_NEXT;
	return token;
}

/* Four hexadecimal digits. @return their value, or < 0 after fail() */
static int hex4(struct json_reader *r)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		int c = next_byte(r), low = c | 0x20;

		if (c < 0)
			return fail_end(r, "a string");
		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (low - 'a' + 10);
		else
			return fail(r, r->pos - 1, "expected four hexadecimal digits after '\\u'");
	}
	return v;
}

/* Behind "\u": one code point, of one or two escapes, goes to the spill. */
static int unicode_escape(struct json_reader *r)
{
	int c = hex4(r), second;
	char utf8[4];

	if (c < 0)
		return c;
	if (c >= 0xdc00 && c <= 0xdfff)
		return fail(r, r->pos, "the low surrogate \\u%04x follows no high surrogate", c);
	if (c >= 0xd800 && c <= 0xdbff) {
		if (next_byte(r) != '\\' || next_byte(r) != 'u')
			return r->at_eof && r->pos == r->end ?
				       fail_end(r, "a string") :
				       fail(r, r->pos - 1,
					    "no low surrogate follows the high surrogate \\u%04x", c);
		second = hex4(r);
		if (second < 0)
			return second;
		if (second < 0xdc00 || second > 0xdfff)
			return fail(r, r->pos,
				    "no low surrogate follows the high surrogate \\u%04x", c);
		c = 0x10000 + ((c - 0xd800) << 10) + (second - 0xdc00);
	}
	strbuf_addn(&r->spill, utf8, (size_t)utf8_encode((uint32_t)c, utf8));
	return 1;
}

/* Behind a backslash. */
static int escape(struct json_reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = next_byte(r);
	const char *at;

	if (c < 0)
		return fail_end(r, "a string");
	if (c == 'u')
		return unicode_escape(r);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return fail(r, r->pos - 1, "unknown escape after '\\' in a string");
	strbuf_addc(&r->spill, to[at - from]);
	return 1;
}

/* A sequence of UTF-8 that the end of the window may split. */
static int non_ascii(struct json_reader *r)
{
	unsigned char seq[4];
	int n = 0, rc = -1;

	while (rc < 0) {
		int c = next_byte(r);

		if (c < 0)
			return fail_end(r, "a string");
		seq[n++] = (unsigned char)c;
		rc = utf8_seq(seq, (size_t)n);
	}
	if (!rc)
		return fail(r, r->pos - 1, "invalid UTF-8 in a string");
	strbuf_addn(&r->spill, seq, (size_t)n);
	return 1;
}

/* The byte that ended a run of plain text. @return 1: the string goes on, 0: it ends, or < 0 */
static int special(struct json_reader *r)
{
	unsigned char c = *r->pos;

	if (r->pos == r->end)
		return refill(r) ? 1 : fail_end(r, "a string");
	if (c >= 0x80)
		return non_ascii(r);
	if (c != '"' && c != '\\')
		return fail(r, r->pos, "control character 0x%02x in a string, write it as \\u%04x", c,
			    c);
	r->pos++;
	return c == '"' ? 0 : escape(r);
}

/* The rest of a string whose part up to @p p, from @p from, is plain. */
__attribute__((noinline)) static int string_slow(struct json_reader *r, unsigned char *from,
						 unsigned char *p, int token)
{
	int rc;

	strbuf_clear(&r->spill);
	for (;;) {
		strbuf_addn(&r->spill, from, (size_t)(p - from));
		r->pos = p;
		rc = special(r);
		if (rc < 0)
			return rc;
		if (r->spill.n > r->limits.string_bytes)
			return fail_long(r, r->pos, "string");
		if (!rc)
			break;
		from = r->pos;
		p = json_plain_end(from);
	}
	r->text = strbuf_str(&r->spill);
	r->text_n = r->spill.n;
	r->state = token == JSON_KEY ? AT_COLON : AT_NEXT;
	return token;
}

/* Behind the opening quote. */
static inline int string(struct json_reader *r, unsigned char *from, int token)
{
	unsigned char *p = json_plain_end(from);

	while (*p != '"') {
		int n = *p < 0x80 ? 0 : utf8_seq(p, (size_t)(r->end - p));

		if (n <= 0)
			return string_slow(r, from, p, token);
		p = json_plain_end(p + n);
	}
	r->text = (const char *)from;
	r->text_n = (size_t)(p - from);
	if (r->text_n > r->limits.string_bytes)
		return fail_long(r, p, "string");
	*p = 0;
	r->pos = p + 1;
	r->state = token == JSON_KEY ? AT_COLON : AT_NEXT;
	return token;
}

static inline bool is_digit(unsigned char c)
{
	return (unsigned)c - '0' < 10;
}

static inline bool is_number_byte(unsigned char c)
{
	return is_digit(c) || c == '.' || c == '-' || c == '+' || (c | 0x20) == 'e';
}

/* Behind the number at @p p, or NULL when it is none. A byte that is no digit must follow. */
static inline unsigned char *number_end(unsigned char *p)
{
	p += *p == '-';
	if (!is_digit(*p))
		return NULL;
	if (*p++ != '0')
		while (is_digit(*p))
			p++;
	if (*p == '.') {
		if (!is_digit(*++p))
			return NULL;
		while (is_digit(*p))
			p++;
	}
	if ((*p | 0x20) == 'e') {
		p++;
		p += *p == '-' || *p == '+';
		if (!is_digit(*p))
			return NULL;
		while (is_digit(*p))
			p++;
	}
	return p;
}

static int number_done(struct json_reader *r, const char *text, size_t n)
{
	r->text = text;
	r->text_n = n;
	if (n > r->limits.string_bytes)
		return fail_long(r, r->pos, "number");
	r->state = AT_NEXT;
	return JSON_NUMBER;
}

/* A number that is wrong or reaches the end of the window. */
__attribute__((noinline)) static int number_slow(struct json_reader *r, unsigned char *p)
{
	unsigned char *from = p;

	strbuf_clear(&r->spill);
	for (;;) {
		while (is_number_byte(*p))
			p++;
		strbuf_addn(&r->spill, from, (size_t)(p - from));
		if (r->spill.n > r->limits.string_bytes)
			return fail_long(r, p, "number");
		if (p < r->end || !refill(r))
			break;
		p = from = r->pos;
	}
	if (r->read_rc)
		return fail_end(r, "a number");
	if (number_end((unsigned char *)r->spill.s) != (unsigned char *)r->spill.s + r->spill.n)
		return fail(r, p, "'%.40s' is no number", r->spill.s);
	r->pos = p;
	return number_done(r, r->spill.s, r->spill.n);
}

static inline int number(struct json_reader *r, unsigned char *p)
{
	unsigned char *q = number_end(p);

	if (!q || q >= r->end || is_number_byte(*q))
		return number_slow(r, p);
	r->held = *q;
	r->held_at = q;
	*q = 0;
	r->pos = q;
	return number_done(r, (const char *)p, (size_t)(q - p));
}

static inline int level_open(struct json_reader *r, unsigned char *p)
{
	bool is_object = *p == '{';

	if (r->closers.n >= r->limits.depth)
		return fail(r, p, "nested deeper than %u levels", r->limits.depth);
	vec_push(&r->closers, r->closer);
	r->closer = is_object ? '}' : ']';
	r->state = is_object ? AT_FIRST_KEY : AT_FIRST_ITEM;
	r->pos = p + 1;
	r->text = "";
	r->text_n = 0;
	return is_object ? JSON_OBJECT : JSON_ARRAY;
}

static inline int level_close(struct json_reader *r, unsigned char *p)
{
	int token = r->closer == '}' ? JSON_OBJECT_END : JSON_ARRAY_END;

	r->closer = r->closers.v[--r->closers.n];
	r->state = AT_NEXT;
	r->pos = p + 1;
	r->text = "";
	r->text_n = 0;
	return token;
}

static inline int value(struct json_reader *r, unsigned char *p)
{
	switch (*p) {
	case '"':
		return string(r, p + 1, JSON_STRING);
	case '{':
	case '[':
		return level_open(r, p);
	case 't':
		return literal(r, p, "true", JSON_TRUE);
	case 'f':
		return literal(r, p, "false", JSON_FALSE);
	case 'n':
		return literal(r, p, "null", JSON_NULL);
	default:
		if (*p == '-' || is_digit(*p))
			return number(r, p);
		return fail_expected(r, p, "a value");
	}
}

static inline int key(struct json_reader *r, unsigned char *p, const char *expected)
{
	if (*p != '"')
		return fail_expected(r, p, expected);
	return string(r, p + 1, JSON_KEY);
}

static int start(struct json_reader *r)
{
	unsigned char *p;

	/* A byte order mark has three bytes, and a pipe may bring them one by one. */
	while (!r->at_eof && r->end - r->window < 3) {
		ssize_t got = read_some(r, r->end, r->window_bytes - (size_t)(r->end - r->window));

		r->read_rc = got < 0 ? (int)got : 0;
		r->at_eof = got <= 0;
		r->end += got > 0 ? got : 0;
		*r->end = 0;
	}
	if (r->end - r->window >= 3 && !memcmp(r->window, "\xef\xbb\xbf", 3))
		r->pos += 3;
	p = skip_white(r, r->pos);
	if (p == r->end && !r->read_rc)
		return fail(r, p, "the input holds no JSON value");
	return value(r, p);
}

/* Behind the outermost value. */
static int finish(struct json_reader *r, unsigned char *p)
{
	if (p < r->end)
		return fail(r, p, "expected nothing after the document");
	if (r->read_rc)
		return fail_end(r, "the document");
	r->pos = p;
	r->text = "";
	r->text_n = 0;
	return JSON_EOF;
}

/* Behind a value. */
static inline int next_item(struct json_reader *r, unsigned char *p)
{
	if (*p == ',' && r->closer) {
		p = skip_white(r, p + 1);
		return r->closer == '}' ? key(r, p, "a member name in quotes after ','") :
					  value(r, p);
	}
	if (!r->closer)
		return finish(r, p);
	if (*p == r->closer)
		return level_close(r, p);
	return fail_expected(r, p,
			     r->closer == '}' ? "',' or '}' after a member" :
						"',' or ']' after an item");
}

static inline int token_next(struct json_reader *r)
{
	unsigned char *p;

	if (r->held_at) {
		*r->held_at = r->held;
		r->held_at = NULL;
	}
	if (r->state == AT_START)
		return start(r);
	p = skip_white(r, r->pos);
	switch (r->state) {
	case AT_COLON:
		if (*p != ':')
			return fail_expected(r, p, "':' after a member name");
		return value(r, skip_white(r, p + 1));
	case AT_NEXT:
		return next_item(r, p);
	case AT_FIRST_ITEM:
		return *p == ']' ? level_close(r, p) : value(r, p);
	case AT_FIRST_KEY:
		return *p == '}' ? level_close(r, p) : key(r, p, "a member name in quotes or '}'");
	default:
		return value(r, p);
	}
}

int json_next(struct json_reader *r, struct err *e)
{
	if (!r->err.code)
		r->token = token_next(r);
	if (r->err.code) {
		*e = r->err;
		r->token = r->err.code;
		r->text = "";
		r->text_n = 0;
	}
	return r->token;
}

int json_token(const struct json_reader *r)
{
	return r->token;
}

const char *json_text(const struct json_reader *r, size_t *ret_n)
{
	if (ret_n)
		*ret_n = r->text_n;
	return r->text;
}

bool json_is(const struct json_reader *r, const char *s)
{
	/* Most comparisons end at the first byte. */
	return r->text[0] == s[0] && (r->token == JSON_KEY || r->token == JSON_STRING) &&
	       r->text_n == strlen(s) && !memcmp(r->text, s, r->text_n);
}

int json_refuse(struct json_reader *r, struct err *e, const char *reason, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, reason);
	vsnprintf(text, sizeof(text), reason, ap);
	va_end(ap);
	if (!r->err.code)
		fail(r, r->pos, "%s", text);
	*e = r->err;
	return e->code;
}

int json_skip(struct json_reader *r, int token, struct err *e)
{
	size_t depth = r->closers.n;

	if (token == JSON_KEY)
		token = json_next(r, e);
	if (token < 0)
		return token;
	if (token != JSON_OBJECT && token != JSON_ARRAY)
		return 0;
	depth = r->closers.n - 1;
	while (r->closers.n > depth)
		if (json_next(r, e) < 0)
			return e->code;
	return 0;
}

const char *json_peek_object(const struct json_reader *r, size_t max, size_t *ret_n)
{
	size_t n = (size_t)(r->end - r->pos);

	assert(r->token == JSON_OBJECT);
	*ret_n = json_braces_end(r->pos, n < max ? n : max);
	return *ret_n ? (const char *)r->pos : NULL;
}

void json_pass_object(struct json_reader *r, size_t n)
{
	assert(r->token == JSON_OBJECT && n && n <= (size_t)(r->end - r->pos));
	r->token = level_close(r, r->pos + n - 1);
}

size_t json_depth(const struct json_reader *r)
{
	return r->closers.n;
}

/* Append one token as JSON. @param comma an item of the same level stands in front */
static void copy_token(const struct json_reader *r, bool comma, struct strbuf *out)
{
	static const char *const fixed[] = {
		[JSON_OBJECT] = "{", [JSON_OBJECT_END] = "}", [JSON_ARRAY] = "[",
		[JSON_ARRAY_END] = "]", [JSON_TRUE] = "true", [JSON_FALSE] = "false",
		[JSON_NULL] = "null",
	};

	if (comma && r->token != JSON_OBJECT_END && r->token != JSON_ARRAY_END)
		strbuf_addc(out, ',');
	if (r->token == JSON_KEY || r->token == JSON_STRING)
		json_quote(out, r->text, r->text_n, 0);
	else if (r->token == JSON_NUMBER)
		strbuf_addn(out, r->text, r->text_n);
	else
		strbuf_add(out, fixed[r->token]);
	if (r->token == JSON_KEY)
		strbuf_addc(out, ':');
}

int json_copy(struct json_reader *r, int token, struct strbuf *out, struct err *e)
{
	size_t before = out->n, depth;
	bool comma = false;

	if (token == JSON_KEY)
		token = json_next(r, e);
	if (token < 0)
		return token;
	assert(token != JSON_EOF && token != JSON_OBJECT_END && token != JSON_ARRAY_END);
	depth = r->closers.n - (token == JSON_OBJECT || token == JSON_ARRAY);
	for (;;) {
		copy_token(r, comma, out);
		if (out->n - before > r->limits.string_bytes) {
			fail_long(r, r->pos, "value");
			*e = r->err;
			return e->code;
		}
		if (r->closers.n == depth)
			return 0;
		comma = token != JSON_OBJECT && token != JSON_ARRAY && token != JSON_KEY;
		token = json_next(r, e);
		if (token < 0)
			return token;
	}
}
