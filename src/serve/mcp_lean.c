/* JSON made short and harmless for agents. */
#include "mcp_lean.h"

#include <math.h>
#include <string.h>

#include "utf8.h"

static const struct json_limits limits = {.depth = 64, .string_bytes = 64u << 20};

/* Control characters, and marks that change how the text around them is shown. */
static bool is_harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static void add_text(struct strbuf *out, const char *s, size_t n, size_t clip, bool lines)
{
	const unsigned char *p = (const unsigned char *)s;
	struct strbuf b = {0};

	for (size_t i = 0; i < n;) {
		int len = utf8_seq(p + i, n - i);
		uint32_t c = len > 0 ? utf8_decode(p + i, len) : 0;

		if (b.n + (size_t)(len > 0 ? len : 1) > clip) {
			strbuf_add(&b, "…");
			break;
		}
		if (len <= 0)
			strbuf_addc(&b, '?');
		else if (is_harmful(c))
			strbuf_addc(&b, c == '\n' && lines       ? '\n'
					: c == '\n' || c == '\t' ? ' '
								 : '?');
		else
			strbuf_addn(&b, s + i, (size_t)len);
		i += len > 0 ? (size_t)len : 1;
	}
	json_quote(out, strbuf_str(&b), b.n, 0);
	strbuf_done(&b);
}

void mcp_lean_text(struct strbuf *out, const char *s, size_t n, size_t clip)
{
	add_text(out, s, n, clip, false);
}

void mcp_lean_lines(struct strbuf *out, const char *s, size_t n, size_t clip)
{
	add_text(out, s, n, clip, true);
}

static void lean_number(struct json_reader *r, struct strbuf *out)
{
	uint64_t whole;
	int64_t negative;
	double v;

	if (!json_get_u64(r, &whole) || !json_get_i64(r, &negative))
		strbuf_add(out, json_text(r, NULL));
	else if (json_get_f64(r, &v) || !isfinite(v))
		strbuf_add(out, "0");
	else
		strbuf_addf(out, fabs(v) >= 1e6 && fabs(v) < 1e18 ? "%.0f" : "%.6g", v);
}

static int lean_list(struct json_reader *r, size_t clip, struct strbuf *out, struct err *e)
{
	bool some = false;
	int token, rc;

	strbuf_addc(out, '[');
	while ((token = json_next(r, e)) != JSON_ARRAY_END) {
		if (token < 0)
			return token;
		if (some)
			strbuf_addc(out, ',');
		some = true;
		rc = mcp_lean(r, token, clip, out, e);
		if (rc < 0)
			return rc;
	}
	strbuf_addc(out, ']');
	return 0;
}

static int lean_object(struct json_reader *r, size_t clip, struct strbuf *out, struct err *e)
{
	bool some = false;
	int token, rc;

	strbuf_addc(out, '{');
	while ((token = json_next(r, e)) == JSON_KEY) {
		size_t before = out->n, n;
		const char *key = json_text(r, &n);

		if (some)
			strbuf_addc(out, ',');
		mcp_lean_text(out, key, n, MCP_TEXT_MAX);
		strbuf_addc(out, ':');
		token = json_next(r, e);
		if (token == JSON_NULL) {
			out->n = before;
			out->s[before] = '\0';
			continue;
		}
		rc = token < 0 ? token : mcp_lean(r, token, clip, out, e);
		if (rc < 0)
			return rc;
		some = true;
	}
	strbuf_addc(out, '}');
	return token < 0 ? token : 0;
}

int mcp_lean(struct json_reader *r, int token, size_t clip, struct strbuf *out, struct err *e)
{
	const char *s;
	size_t n;

	switch (token) {
	case JSON_OBJECT:
		return lean_object(r, clip, out, e);
	case JSON_ARRAY:
		return lean_list(r, clip, out, e);
	case JSON_STRING:
		s = json_text(r, &n);
		mcp_lean_text(out, s, n, clip);
		return 0;
	case JSON_NUMBER:
		lean_number(r, out);
		return 0;
	default:
		return json_copy(r, token, out, e);
	}
}

/* Members of an object as long as there is room; the reader stands behind its '{'. */
static int cut_object(struct json_reader *r, size_t most, struct strbuf *out, struct err *e)
{
	static const char end[] = ",\"cut\":true}";
	struct strbuf member = {0};
	size_t start = out->n;
	int token, rc = 0;

	strbuf_addc(out, '{');
	while (!rc && (token = json_next(r, e)) == JSON_KEY) {
		size_t n;
		const char *key = json_text(r, &n);

		strbuf_clear(&member);
		if (out->n > start + 1)
			strbuf_addc(&member, ',');
		mcp_lean_text(&member, key, n, 40);
		strbuf_addc(&member, ':');
		token = json_next(r, e);
		rc = token < 0 ? token : mcp_lean(r, token, MCP_TEXT_MAX / 2, &member, e);
		if (!rc && token != JSON_NULL && out->n - start + member.n + sizeof(end) <= most)
			strbuf_addn(out, member.s, member.n);
	}
	/* Without a member before it, it needs no comma. */
	strbuf_add(out, out->n > start + 1 ? end : end + 1);
	strbuf_done(&member);
	return rc;
}

void mcp_lean_within(const char *json, size_t n, size_t most, struct strbuf *out)
{
	static const size_t clips[] = {MCP_TEXT_MAX, MCP_TEXT_MAX / 2};
	size_t start = out->n;
	struct json_reader *r;
	struct err e;
	int token;

	for (size_t i = 0; i < sizeof(clips) / sizeof(clips[0]); i++) {
		r = json_reader_new_mem(json, n, "answer", &limits);
		token = json_next(r, &e);
		if (token > 0 && !mcp_lean(r, token, clips[i], out, &e) && out->n - start <= most) {
			json_reader_free(r);
			return;
		}
		json_reader_free(r);
		out->n = start;
	}
	r = json_reader_new_mem(json, n, "answer", &limits);
	if (json_next(r, &e) != JSON_OBJECT || cut_object(r, most, out, &e) < 0) {
		out->n = start;
		strbuf_add(out, "{\"cut\":true}");
	}
	json_reader_free(r);
}
