/* Values of compact text, both ways. */
#include "text_value.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       c == '.' || c == '/' || c == ':' || c == '-' || c == '(' || c == ')' || c == '@' || c == '%';
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

static bool all_plain(const char *s, size_t n)
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

			strbuf_addc(b, *s);
			s += dot_zero ? 2 : 1;
			continue;
		}
		while (*end != '"')
			end += *end == '\\' ? 2 : 1;
		key = end[1] == ':';
		if (all_plain(s + 1, (size_t)(end - s - 1)) && end[-1] != '.' && !memchr(s + 1, ':', (size_t)(end - s - 1)) &&
		    (key || !is_literal(s + 1, (size_t)(end - s - 1))))
			strbuf_addn(b, s + 1, (size_t)(end - s - 1));
		else
			strbuf_addn(b, s, (size_t)(end + 1 - s));
		s = end + 1;
	}
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
		add_loose(b, v.str);
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

/* Visit the members of a flat map. @return false when it is none */
static bool each_member(const char *json,
			bool (*member)(void *ctx, size_t i, const char *key, int token, const char *text),
			void *ctx)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "", NULL);
	bool good = false;
	struct err e;
	char key[128];
	int token;

	if (json_next(r, &e) == JSON_OBJECT) {
		size_t i = 0;

		while ((token = json_next(r, &e)) == JSON_KEY) {
			size_t n;
			const char *k = json_text(r, &n);

			if (n >= sizeof(key) || strlen(k) != n)
				break;
			memcpy(key, k, n + 1);
			token = json_next(r, &e);
			if (token < JSON_STRING || !member(ctx, i++, key, token, json_text(r, NULL)))
				break;
		}
		good = token == JSON_OBJECT_END;
	}
	json_reader_free(r);
	return good;
}

static bool see_member(void *ctx, size_t i, const char *key, int token, const char *text)
{
	struct text_group_plan *p = ctx;
	const char *blank = strchr(text, ' ');
	const char *suffix = token != JSON_STRING ? NULL : blank ? blank : "";

	if (token == JSON_NULL || token == JSON_TRUE || token == JSON_FALSE || strpbrk(key, "$,{} \"\\"))
		return false;
	if (!p->seen) {
		vec_push(&p->names, mem_strdup(key));
		vec_push(&p->suffixes, suffix ? mem_strdup(suffix) : NULL);
		return !suffix || !strpbrk(suffix, "$,{}\"\\");
	}
	if (i >= p->names.n || strcmp(p->names.v[i], key) || !p->suffixes.v[i] != !suffix)
		return false;
	if (suffix && strcmp(p->suffixes.v[i], suffix))
		p->suffixes.v[i][0] = '\0';
	return true;
}

static bool count_member(void *ctx, size_t i, const char *key, int token, const char *text)
{
	(void)key;
	(void)token;
	(void)text;
	*(size_t *)ctx = i + 1;
	return true;
}

void text_group_see(struct text_group_plan *p, const char *json)
{
	size_t n = 0;

	if (p->failed)
		return;
	p->failed = !each_member(json, see_member, p) || !each_member(json, count_member, &n) ||
		    n != p->names.n;
	p->seen = true;
}

char *text_group_done(struct text_group_plan *p)
{
	struct strbuf b = {0};

	strbuf_addc(&b, '{');
	for (size_t i = 0; i < p->names.n; i++) {
		strbuf_addf(&b, "%s%s", i ? "," : "", p->names.v[i]);
		if (p->suffixes.v[i])
			strbuf_addf(&b, "$%s", p->suffixes.v[i]);
	}
	strbuf_addc(&b, '}');
	if (p->failed || p->names.n < 3)
		strbuf_done(&b);
	for (size_t i = 0; i < p->names.n; i++) {
		free(p->names.v[i]);
		free(p->suffixes.v[i]);
	}
	vec_done(&p->names);
	vec_done(&p->suffixes);
	return b.s;
}

struct grouping {
	struct strbuf *b;
	const char *at; /* in the header */
};

static bool add_member(void *ctx, size_t i, const char *key, int token, const char *text)
{
	struct grouping *g = ctx;
	size_t n = strlen(text), len = strcspn(g->at, ",}");
	const char *dollar = memchr(g->at, '$', len);

	(void)key;
	(void)token;
	if (i)
		strbuf_addc(g->b, ',');
	if (dollar) {
		n -= (size_t)(g->at + len - dollar - 1);
		if (all_plain(text, n))
			strbuf_addn(g->b, text, n);
		else
			json_quote(g->b, text, n, 0);
	} else {
		strbuf_addn(g->b, text, n);
	}
	g->at += len + 1;
	return true;
}

void text_add_group(struct strbuf *b, const char *group, const char *json)
{
	struct grouping g = {b, group + 1};

	strbuf_addc(b, '[');
	each_member(json, add_member, &g);
	strbuf_addc(b, ']');
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

static bool is_json(const char *s, size_t n)
{
	struct json_reader *r = json_reader_new_mem(s, n, "", NULL);
	struct err e;
	int token = json_next(r, &e);
	bool good = token >= 0 && json_skip(r, token, &e) == 0 && json_next(r, &e) == JSON_EOF;

	json_reader_free(r);
	return good;
}

bool text_get_json(struct strbuf *out, const char *s, size_t n)
{
	strbuf_clear(out);
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
		if (!len)
			strbuf_addc(out, s[i++]);
		else if (s[i + len - 1] == '.' && is_literal(s + i, len - 1))
			strbuf_addn(out, s + i, len), strbuf_addc(out, '0');
		else if (is_literal(s + i, len) && !(i + len < n && s[i + len] == ':'))
			strbuf_addn(out, s + i, len);
		else
			json_quote(out, s + i, len, 0);
		i += len;
	}
	return is_json(strbuf_str(out), out->n);
}

bool text_get_group(struct strbuf *out, const char *group, size_t ngroup, const char *s, size_t n)
{
	const char *g = group + 1, *gend = group + ngroup - 1, *at = s + 1, *end = s + n - 1;
	struct strbuf text = {0};
	bool good = n >= 2 && s[0] == '[' && end[0] == ']';

	strbuf_clear(out);
	strbuf_addc(out, '{');
	while (good && g < gend) {
		size_t len = strcspn(g, ",}"), vlen = 0;
		const char *dollar = memchr(g, '$', len);

		if (at < end && *at == '"') {
			for (vlen = 1; at + vlen < end && at[vlen] != '"'; vlen++)
				vlen += at[vlen] == '\\';
			vlen++;
		}
		while (at + vlen < end && at[vlen] != ',')
			vlen++;
		if (at + vlen > end)
			break;
		if (out->n > 1)
			strbuf_addc(out, ',');
		json_quote(out, g, dollar ? (size_t)(dollar - g) : len, 0);
		strbuf_addc(out, ':');
		if (dollar) {
			good = text_get_str(&text, at, vlen);
			strbuf_addn(&text, dollar + 1, (size_t)(g + len - dollar - 1));
			json_quote(out, strbuf_str(&text), text.n, 0);
		} else {
			strbuf_addn(out, at, vlen);
		}
		at += vlen + 1;
		g += len + 1;
	}
	strbuf_addc(out, '}');
	strbuf_done(&text);
	return good && g >= gend && is_json(out->s, out->n);
}
