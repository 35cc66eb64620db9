#pragma once

#include <stddef.h>
#include <stdint.h>

/** Growing text. `s` is always NUL-terminated once something was added; NULL before. */
struct strbuf {
	char *s;
	size_t n, cap;
};

void strbuf_done(struct strbuf *b);
void strbuf_clear(struct strbuf *b);
void strbuf_reserve(struct strbuf *b, size_t more);
void strbuf_addn(struct strbuf *b, const void *p, size_t n);
void strbuf_add(struct strbuf *b, const char *s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_pad(struct strbuf *b, char c, size_t n);
void strbuf_add_u64(struct strbuf *b, uint64_t v);
void strbuf_add_i64(struct strbuf *b, int64_t v);
/** Shortest text that reads back as the same double; "null" when it is not finite. */
void strbuf_add_f64(struct strbuf *b, double v);
__attribute__((format(printf, 2, 3))) void strbuf_addf(struct strbuf *b, const char *fmt, ...);
/** The text, "" when empty. Borrowed. */
const char *strbuf_str(const struct strbuf *b);
