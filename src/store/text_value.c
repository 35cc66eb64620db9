/* Values of compact text, both ways. */
#include "text_value.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '.' || c == '/' || c == ':' || c == '-' || c == '(' || c == ')' ||
	       c == '@' || c == '%';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_literal(const char *s, size_t n)
{
	struct json_reader *r;
	struct err e;
	bool literal = false;

	/* Only a digit, a minus or the first letter of true, false, null begins one. */
	if (!n || !strchr("-0123456789tfn", s[0]))
		return false;
	r = json_reader_new_mem(s, n, "", NULL);
	literal = json_next(r, &e) > JSON_STRING && json_next(r, &e) == JSON_EOF;
	json_reader_free(r);
	return literal;
}

bool text_is_plain(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_plain(s[i]))
			return false;
	return n > 0;
}

void text_add_str(struct strbuf *b, const char *s)
{
	size_t n = strlen(s);
	bool bare = n && s[0] != '-' && s[0] != '"' && s[0] != '\'';

	for (size_t i = 0; bare && i < n; i++)
		bare = is_plain(s[i]) || (s[i] == ',' || s[i] == '+' || s[i] == '*');
	if (bare)
		strbuf_addn(b, s, n);
	else
		json_quote(b, s, n, 0);
}

/* JSON without the quotes that a reader does not need. */
static void add_loose(struct strbuf *b, const char *json)
{
	for (const char *s = json; *s;) {
		const char *end = s + 1;
		bool key;

		if (*s != '"') {
			/* 1.0 as "1.": still no integer. */
			bool dot_zero = s[0] == '.' && s[1] == '0' && strchr(",]}", s[2]);

			/* A value of the graph is compact; a blank would end it here. */
			if (!is_blank(*s))
				strbuf_addc(b, *s);
			s += dot_zero ? 2 : 1;
			continue;
		}
		while (*end != '"')
			end += *end == '\\' ? 2 : 1;
		key = end[1] == ':';
		if (text_is_plain(s + 1, (size_t)(end - s - 1)) && end[-1] != '.' &&
		    !memchr(s + 1, ':', (size_t)(end - s - 1)) &&
		    (key || !is_literal(s + 1, (size_t)(end - s - 1))))
			strbuf_addn(b, s + 1, (size_t)(end - s - 1));
		else
			strbuf_addn(b, s, (size_t)(end + 1 - s));
		s = end + 1;
	}
}

/* A map goes without its braces: its first colon says what it is. */
static void add_json(struct strbuf *b, const char *json)
{
	size_t start = b->n;

	add_loose(b, json);
	/* Alone, a minus stands for no value. */
	if (b->s[start] == '-' && !b->s[start + 1]) {
		strbuf_addc(b, '"');
		b->s[start] = '"';
		b->s[start + 1] = '-';
		strbuf_addc(b, '"');
	}
	if (b->s[start] != '{' || b->s[start + 1] == '}')
		return;
	memmove(b->s + start, b->s + start + 1, b->n - start - 1);
	b->n -= 2;
	b->s[b->n] = '\0';
}

void text_add_field(struct strbuf *b, const struct field *f, const uint64_t *data)
{
	struct value v = field_get(f, data);

	switch (f->type) {
	case T_BOOL:
		strbuf_addc(b, v.b ? '1' : '0');
		break;
	case T_F64:
		strbuf_add_f64(b, v.f64);
		break;
	case T_STR:
		text_add_str(b, v.str);
		break;
	case T_JSON:
		add_json(b, v.str);
		break;
	case T_REF:
		strbuf_add_u64(b, (uint64_t)v.ref + 1);
		break;
	case T_U64:
		strbuf_add_u64(b, v.u64);
		break;
	case T_I64:
		strbuf_add_i64(b, v.i64);
		break;
	}
}

bool text_next(const char **at, const char *end, const char **ret, size_t *ret_n)
{
	const char *s = *at, *start;
	int depth = 0;

	while (s < end && *s == ' ')
		s++;
	start = s;
	for (; s < end && (depth > 0 || *s != ' '); s++) {
		if (*s == '"') {
			for (s++; s < end && *s != '"'; s++)
				s += *s == '\\';
			if (s >= end)
				break;
		}
		depth += *s == '{' || *s == '[';
		depth -= *s == '}' || *s == ']';
	}
	*at = s < end ? s : end;
	*ret = start;
	*ret_n = (size_t)(*at - start);
	return *at > start;
}

bool text_get_count(const char **at, const char *end, uint64_t *ret)
{
	const char *s = *at;
	uint64_t v = 0;

	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		if (v > UINT64_MAX / 10 - 1)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	if (s == *at)
		return false;
	*at = s;
	*ret = v;
	return true;
}

bool text_get_str(struct strbuf *out, const char *s, size_t n)
{
	struct json_reader *r;
	struct err e;
	bool good;
	size_t len;

	strbuf_clear(out);
	if (!n || s[0] != '"') {
		strbuf_addn(out, s, n);
		return true;
	}
	r = json_reader_new_mem(s, n, "", NULL);
	good = json_next(r, &e) == JSON_STRING;
	if (good) {
		const char *text = json_text(r, &len);

		strbuf_addn(out, text, len);
		good = strlen(text) == len && json_next(r, &e) == JSON_EOF;
	}
	json_reader_free(r);
	return good;
}

bool text_is_json(const char *s, size_t n)
{
	struct json_reader *r = json_reader_new_mem(s, n, "", NULL);
	struct err e;
	int token = json_next(r, &e);
	bool good = token >= 0 && json_skip(r, token, &e) == 0 && json_next(r, &e) == JSON_EOF;

	json_reader_free(r);
	return good;
}

/* Whether the first member of a map stands there, without the brace. */
static bool is_bare_map(const char *s, size_t n)
{
	size_t i = 0;

	if (n && *s == '"') {
		for (i = 1; i < n && s[i] != '"'; i++)
			i += s[i] == '\\';
		i++;
	} else {
		while (i < n && is_plain(s[i]) && s[i] != ':')
			i++;
	}
	return i && i < n && s[i] == ':';
}

bool text_get_json(struct strbuf *out, const char *s, size_t n)
{
	bool bare_map = is_bare_map(s, n);

	strbuf_clear(out);
	if (bare_map)
		strbuf_addc(out, '{');
	for (size_t i = 0; i < n;) {
		size_t len = 0;

		if (s[i] == '"') {
			for (len = 1; i + len < n && s[i + len] != '"'; len++)
				len += s[i + len] == '\\';
			len = i + len < n ? len + 1 : n - i;
			strbuf_addn(out, s + i, len);
			i += len;
			continue;
		}
		while (i + len < n && is_plain(s[i + len]) && s[i + len] != ':')
			len++;
		if (!len && is_blank(s[i]))
			i++;
		else if (!len)
			strbuf_addc(out, s[i++]);
		else if (s[i + len - 1] == '.' && is_literal(s + i, len - 1))
			strbuf_addn(out, s + i, len), strbuf_addc(out, '0');
		else if (is_literal(s + i, len) && !(i + len < n && s[i + len] == ':'))
			strbuf_addn(out, s + i, len);
		else
			json_quote(out, s + i, len, 0);
		i += len;
	}
	if (bare_map)
		strbuf_addc(out, '}');
	return text_is_json(strbuf_str(out), out->n);
}
