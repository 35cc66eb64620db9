/* Growing text: see strbuf.h. */
#include "strbuf.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

void strbuf_done(struct strbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}

void strbuf_clear(struct strbuf *b)
{
	b->n = 0;
	if (b->s)
		b->s[0] = '\0';
}

void strbuf_reserve(struct strbuf *b, size_t more)
{
	size_t want = b->n + more + 1, cap = b->cap ? b->cap : 64;

	if (want <= b->cap)
		return;
	while (cap < want)
		cap *= 2;
	b->s = mem_realloc(b->s, cap);
	b->cap = cap;
	b->s[b->n] = '\0';
}

void strbuf_addn(struct strbuf *b, const void *p, size_t n)
{
	strbuf_reserve(b, n);
	if (n)
		memcpy(b->s + b->n, p, n);
	b->n += n;
	b->s[b->n] = '\0';
}

void strbuf_add(struct strbuf *b, const char *s)
{
	strbuf_addn(b, s, strlen(s));
}

void strbuf_addc(struct strbuf *b, char c)
{
	strbuf_addn(b, &c, 1);
}

void strbuf_pad(struct strbuf *b, char c, size_t n)
{
	strbuf_reserve(b, n);
	memset(b->s + b->n, c, n);
	b->n += n;
	b->s[b->n] = '\0';
}

void strbuf_add_u64(struct strbuf *b, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	strbuf_addn(b, digits + i, sizeof(digits) - i);
}

void strbuf_add_i64(struct strbuf *b, int64_t v)
{
	if (v < 0)
		strbuf_addc(b, '-');
	strbuf_add_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void strbuf_add_f64(struct strbuf *b, double v)
{
	char text[32];
	/* 15 digits always survive, but a subnormal has fewer of its own: 5e-324 needs one. */
	int prec = fabs(v) < DBL_MIN ? 1 : 15;

	if (!isfinite(v)) {
		strbuf_add(b, "null");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*g", prec, v);
	while (prec++ < 17 && strtod(text, NULL) != v);
	strbuf_add(b, text);
	/* "3" and "-0" would read back as integers. */
	if (!strpbrk(text, ".eE"))
		strbuf_add(b, ".0");
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	strbuf_reserve(b, 64);
	n = vsnprintf(b->s + b->n, b->cap - b->n, fmt, ap);
	if (n > 0 && (size_t)n >= b->cap - b->n) {
		strbuf_reserve(b, (size_t)n);
		n = vsnprintf(b->s + b->n, b->cap - b->n, fmt, again);
	}
	if (n > 0)
		b->n += (size_t)n;
	va_end(again);
	va_end(ap);
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->s ? b->s : "";
}
