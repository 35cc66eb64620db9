/* Names of the host as plain text of one line. */
#include "clean.h"

#include <stdbool.h>
#include <string.h>

#include "utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

struct range {
	uint32_t first, last;
};

/* Sorted. Controls, separators of lines, marks of direction, invisible ones, tags, private use, non-characters. */
static const struct range odd[] = {
	{0x00, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	    {0x61c, 0x61c},
	{0x180e, 0x180e},   {0x200b, 0x200f},	{0x2028, 0x202e},   {0x2060, 0x206f},
	{0xd800, 0xf8ff},   {0xfdd0, 0xfdef},	{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xfff0, 0xfffb},   {0xfffe, 0xffff},	{0x1fffe, 0x1ffff}, {0xe0000, 0x10ffff},
};

int clean_is_plain(uint32_t c)
{
	size_t low = 0, high = sizeof(odd) / sizeof(odd[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (odd[middle].last < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low == sizeof(odd) / sizeof(odd[0]) || c < odd[low].first;
}

#define ALL_BLANKS SIZE_MAX

static bool is_blank(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xa0 || c == 0x2028 || c == 0x2029;
}

/* @param start where the text begins, for whom runs of blanks are one and none stands at the beginning */
static size_t add_one(struct strbuf *b, const unsigned char *p, size_t n, size_t start)
{
	int len = utf8_seq(p, n);
	uint32_t c;

	if (len <= 0) {
		strbuf_add(b, REPLACEMENT);
		return 1;
	}
	c = utf8_decode(p, len);
	if (is_blank(c)) {
		if (start == ALL_BLANKS || (b->n > start && b->s[b->n - 1] != ' '))
			strbuf_addc(b, ' ');
	} else if (clean_is_plain(c)) {
		strbuf_addn(b, p, (size_t)len);
	} else {
		strbuf_add(b, REPLACEMENT);
	}
	return (size_t)len;
}

void clean_add(struct strbuf *b, const char *s, size_t most)
{
	size_t n = s ? strlen(s) : 0, at = 0, start = b->n, before = b->n, points = 0;

	while (at < n && points < most) {
		before = b->n;
		at += add_one(b, (const unsigned char *)s + at, n - at, start);
		points += b->n > before;
	}
	if (at < n) {
		b->n = before;
		strbuf_add(b, ELLIPSIS);
	} else if (b->n > start && b->s[b->n - 1] == ' ') {
		b->s[--b->n] = '\0';
	}
}

void clean_line(struct strbuf *b, const char *s)
{
	size_t n = strlen(s);

	for (size_t at = 0; at < n;)
		at += add_one(b, (const unsigned char *)s + at, n - at, ALL_BLANKS);
}
