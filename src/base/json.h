#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/*
 * Streaming JSON (RFC 8259): a pull reader and a writer, both in bounded memory.
 *
 * The reader is strict: no comments, no trailing commas, no leading zeros, no lone surrogates, no
 * invalid UTF-8, no control characters in strings, nothing but white space after the document.
 * Two liberties, both granted by the RFC: a byte order mark (EF BB BF) at the start is skipped,
 * because editors on other systems put one there; a key may occur twice in an object, and the
 * caller sees both.
 */

enum json_token {
	JSON_EOF, /**< the document is complete, and so is the input */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY, /**< the tokens of the member's value follow */
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

/** What a hostile document may cost. */
struct json_limits {
	uint32_t depth;	     /**< open objects and arrays */
	size_t string_bytes; /**< of one string, key or number, and of what json_copy() appends */
	size_t window_bytes; /**< read at once, >= 16; 0: 256 KiB. Small ones are for tests. */
};

/* clang-format off */
#define JSON_LIMITS_DEFAULT ((struct json_limits){.depth = 64, .string_bytes = 16U << 20})
/* clang-format on */

struct json_reader;

/**
 * Read a document from @p fd, which is borrowed, or from the @p n bytes at @p s, also borrowed.
 *
 * @param name of the input, for messages; copied
 * @param l    NULL: JSON_LIMITS_DEFAULT
 */
struct json_reader *json_reader_new_fd(int fd, const char *name, const struct json_limits *l);
struct json_reader *json_reader_new_mem(const char *s, size_t n, const char *name,
					const struct json_limits *l);
void json_reader_free(struct json_reader *r);

/** For CLEANUP(): `CLEANUP(cleanup_json_reader) struct json_reader *r = json_reader_new_fd(…);` */
static inline void cleanup_json_reader(struct json_reader **r)
{
	json_reader_free(*r);
}

/**
 * The next token.
 *
 * @return enum json_token; -EBADMSG: not valid JSON, or a limit was met ("FILE:LINE: reason");
 *         -errno when reading fails. After an error every call returns the same one.
 */
int json_next(struct json_reader *r, struct err *e);

/** What the last json_next() returned, also within json_skip() and json_copy(). */
int json_token(const struct json_reader *r);

/**
 * Text of the last token: a KEY or STRING decoded, a NUMBER as written, "" for all others.
 * NUL-terminated, but a string may hold U+0000, so that only @p ret_n (may be NULL) is its length.
 * Valid until the next call that moves the reader.
 */
const char *json_text(const struct json_reader *r, size_t *ret_n);

/** The last token is a KEY or STRING that equals @p s. */
bool json_is(const struct json_reader *r, const char *s);

/**
 * Value of the last token, a number.
 *
 * @return 0; -EINVAL: no number, or (integers) one with a fraction: 2.0 and 1e3 have none;
 *         -ERANGE: too large for the type. A number too small for a double is 0.
 */
int json_get_i64(const struct json_reader *r, int64_t *ret);
int json_get_u64(const struct json_reader *r, uint64_t *ret);
int json_get_f64(const struct json_reader *r, double *ret);

/**
 * Skip the rest of the value whose first token was just returned; its grammar is checked.
 * With JSON_KEY, the value of that member is skipped. The next token is what follows.
 *
 * @return 0, or as json_next()
 */
int json_skip(struct json_reader *r, int token, struct err *e);

/** As json_skip(), and append the value to @p out as compact JSON, numbers as written. */
int json_copy(struct json_reader *r, int token, struct strbuf *out, struct err *e);

/**
 * A guess at the object whose JSON_OBJECT was just returned, for callers that look for repetitions:
 * its text behind the '{', up to and with the '}' that ends it were there no braces in its strings.
 * The same object in the same text yields the same guess. Valid until the next json_next().
 *
 * @return NULL when that has more than @p max bytes or is not yet read to its end
 */
const char *json_peek_object(const struct json_reader *r, size_t max, size_t *ret_n);

/**
 * Pass over the object whose JSON_OBJECT was just returned, as if its JSON_OBJECT_END were the last
 * token, without looking at it.
 *
 * @param n bytes behind its '{'. The caller knows that they are valid and end the object: this
 *          reader has read the same ones at the same json_depth() before.
 */
void json_pass_object(struct json_reader *r, size_t n);

/** Open objects and arrays. */
size_t json_depth(const struct json_reader *r);

/** Where the reader stands: line from 1, byte from 0. */
uint64_t json_line(const struct json_reader *r);
uint64_t json_offset(const struct json_reader *r);

/**
 * Fail at the current place, for callers that find the content wrong: "FILE:LINE: reason".
 *
 * @return -EBADMSG, which json_next() returns from then on
 */
__attribute__((format(printf, 3, 4))) int json_refuse(struct json_reader *r, struct err *e,
						       const char *reason, ...);

/** Levels of nesting that a writer allows. */
#define JSON_WRITER_DEPTH 128

enum json_writer_flags {
	JSON_INDENT = 1, /**< two spaces a level, as Python's json.dumps(indent=2) */
	JSON_ASCII = 2,	 /**< non-ASCII as \uXXXX, as Python's ensure_ascii */
};

/**
 * Writes one JSON value. Calls in an order that is no JSON are bugs (assert). Errors of the sink
 * are kept until json_writer_finish(), so that the calls need no check.
 */
struct json_writer {
	int (*write)(void *ctx, const void *p, size_t n); /**< all of it: 0 or -errno */
	void *ctx;
	struct strbuf *out; /**< the caller's, or `own` in front of a sink */
	struct strbuf own;
	unsigned flags;
	int rc;
	bool after_key, done;
	uint32_t depth;
	struct {
		bool is_object, has_items;
	} level[JSON_WRITER_DEPTH];
};

/** @param write called with 64 KiB or more at once, and from json_writer_finish() */
void json_writer_init(struct json_writer *w, int (*write)(void *ctx, const void *p, size_t n),
		      void *ctx, unsigned flags);
/** Append to @p out, which the caller owns. */
void json_writer_init_strbuf(struct json_writer *w, struct strbuf *out, unsigned flags);

/** A sink for json_writer_init(): @p ctx is an `int *` file descriptor. */
int json_write_to_fd(void *ctx, const void *p, size_t n);

/**
 * Write out what is left and release the writer, whatever was written before.
 *
 * @return 0, or the sink's error: "write JSON: …"
 */
int json_writer_finish(struct json_writer *w, struct err *e);

/** Release without writing what is left; for paths that have failed elsewhere. */
void json_writer_drop(struct json_writer *w);

void json_write_object(struct json_writer *w);
void json_write_object_end(struct json_writer *w);
void json_write_array(struct json_writer *w);
void json_write_array_end(struct json_writer *w);
void json_write_key(struct json_writer *w, const char *key);
void json_write_keyn(struct json_writer *w, const char *key, size_t n);
/** A member that is text, as json_write_str(), or a number. */
void json_key_str(struct json_writer *w, const char *key, const char *s);
void json_key_u64(struct json_writer *w, const char *key, uint64_t v);
/** Text; NULL is written as null. Each byte of invalid UTF-8 becomes U+FFFD. */
void json_write_str(struct json_writer *w, const char *s);
void json_write_strn(struct json_writer *w, const char *s, size_t n);
void json_write_i64(struct json_writer *w, int64_t v);
void json_write_u64(struct json_writer *w, uint64_t v);
/** The shortest text that reads back as the same double; null when it is not finite. */
void json_write_f64(struct json_writer *w, double v);
void json_write_bool(struct json_writer *w, bool v);
void json_write_null(struct json_writer *w);
/** A value that is JSON already, as from json_copy(); written unchanged. */
void json_write_raw(struct json_writer *w, const char *json, size_t n);

/** Append @p n bytes of text with quotes and escapes. @param flags JSON_ASCII or 0 */
void json_quote(struct strbuf *out, const char *s, size_t n, unsigned flags);
