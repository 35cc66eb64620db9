/* Text as data of other formats. */
#include "escape.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "utf8.h"

void escape_xml(struct strbuf *b, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			strbuf_add(b, "&amp;");
			break;
		case '<':
			strbuf_add(b, "&lt;");
			break;
		case '>':
			strbuf_add(b, "&gt;");
			break;
		case '"':
			strbuf_add(b, "&quot;");
			break;
		case '\n':
			strbuf_add(b, "&#10;");
			break;
		default:
			strbuf_addc(b, *s);
		}
	}
}

void escape_dot(struct strbuf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '&') {
			strbuf_add(b, "&amp;");
			continue;
		}
		if (*s == '"' || *s == '\\')
			strbuf_addc(b, '\\');
		strbuf_addc(b, *s);
	}
}

/* What it writes in place of entities before it parses: a name must not have them. */
static int is_placeholder(uint32_t c)
{
	return c == 0xfb02 || c == 0xb0 || c == 0xb6 || c == 0xdf;
}

void escape_mermaid(struct strbuf *b, const char *s)
{
	size_t n = strlen(s);

	for (size_t at = 0; at < n;) {
		const unsigned char *p = (const unsigned char *)s + at;
		int len = utf8_seq(p, n - at);
		uint32_t c = len > 0 ? utf8_decode(p, len) : *p;

		len = len > 0 ? len : 1;
		if (isalnum((int)(c & 0x7f)) && c < 0x80)
			strbuf_addc(b, (char)c);
		else if (c < 0x80 ? strchr(" ._/()[],+-=", (int)c) == NULL : is_placeholder(c))
			strbuf_addf(b, "#%u;", c);
		else
			strbuf_addn(b, p, (size_t)len);
		at += (size_t)len;
	}
}
