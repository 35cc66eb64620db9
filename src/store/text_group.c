/* Maps with the same keys in compact text: keys and units once, then only values. */
#include "text_group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text_value.h"

#define DERIVE_ROWS    4  /* with fewer, sums agree by chance */
#define DERIVE_MEMBERS 64 /* triples of them are tried */
#define KEY_BYTES      128

void text_group_done(struct text_group *g)
{
	vec_for(&g->members, m)
	{
		free(m->name);
		free(m->suffix);
		free(m->constant);
	}
	vec_done(&g->members);
}

/* Visit the members of a flat map. @return false when it is none */
static bool each_member(const char *json,
			bool (*member)(void *ctx, size_t i, const char *key, int token,
				       const char *text),
			void *ctx)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "", NULL);
	bool good = false;
	struct err e;
	char key[KEY_BYTES];
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
			if (token < JSON_STRING ||
			    !member(ctx, i++, key, token, json_text(r, &n)) ||
			    strlen(json_text(r, NULL)) != n)
				break;
		}
		good = token == JSON_OBJECT_END;
	}
	json_reader_free(r);
	return good;
}

/* A number that is written in one way only. @return false when it is another text */
static bool get_whole(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (!n || n > 18 || (*s == '0' && n > 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = v;
	return true;
}

static void add_member(struct text_group_plan *p, const char *key, int token, const char *text)
{
	const char *blank = strchr(text, ' ');
	struct text_member *m = vec_add(&p->group.members);

	m->name = mem_strdup(key);
	m->suffix = token == JSON_STRING ? mem_strdup(blank ? blank : "") : NULL;
	vec_push(&p->first, mem_strdup(text));
	vec_push(&p->same, true);
	vec_push(&p->numeric, true);
}

/* Rules need names that are different, and a header names without marks of its own. */
static bool can_name(const struct text_group_plan *p, const char *key)
{
	vec_for(&p->group.members, m)
		if (!strcmp(m->name, key))
			return false;
	return *key && !strpbrk(key, "$=,{}[] \"\\");
}

static bool ends_in(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && !strcmp(text + n - m, suffix);
}

static bool see_member(void *ctx, size_t i, const char *key, int token, const char *text)
{
	struct text_group_plan *p = ctx;
	struct text_member *m;
	uint64_t v = 0;

	if (token == JSON_NULL || token == JSON_TRUE || token == JSON_FALSE ||
	    i >= TEXT_GROUP_MEMBERS)
		return false;
	if (!p->rows) {
		if (!can_name(p, key))
			return false;
		add_member(p, key, token, text);
	}
	if (i >= p->group.members.n)
		return false;
	m = &p->group.members.v[i];
	if (strcmp(m->name, key) || !m->suffix != (token != JSON_STRING))
		return false;
	if (m->suffix && (!ends_in(text, m->suffix) || strpbrk(m->suffix, "#$=,{}[]\"\\"))) {
		m->suffix[0] = '\0';
		p->numeric.v[i] = false;
	}
	p->same.v[i] &= !strcmp(text, p->first.v[i]);
	p->numeric.v[i] &= get_whole(text, strlen(text) - (m->suffix ? strlen(m->suffix) : 0), &v);
	vec_push(&p->numbers, v);
	return true;
}

void text_group_see(struct text_group_plan *p, const char *json)
{
	size_t before = p->numbers.n;

	if (p->failed)
		return;
	p->failed =
	    !each_member(json, see_member, p) || p->numbers.n - before != p->group.members.n;
	p->rows++;
}

/* Member @p k is @p a op @p b in all rows. */
static bool holds(const struct text_group_plan *p, size_t k, size_t a, char op, size_t b)
{
	size_t width = p->group.members.n;

	for (size_t i = 0; i < p->rows; i++) {
		const uint64_t *row = &p->numbers.v[i * width];
		uint64_t want = op == '=' ? row[a] : op == '+' ? row[a] + row[b] : row[a] - row[b];

		if (row[k] != want || (op == '-' && row[a] < row[b]))
			return false;
	}
	return true;
}

static bool can_serve(const struct text_group_plan *p, size_t i)
{
	const struct text_member *m = &p->group.members.v[i];

	return p->numeric.v[i] && !m->constant && !m->op && !strpbrk(m->name, "+-");
}

/* A rule costs its place in the header, and saves the value in each row. */
static bool is_worth(const struct text_group_plan *p, size_t k, size_t header)
{
	size_t saved = 0;

	for (size_t i = 0; i < p->rows && saved <= header; i++) {
		uint64_t v = p->numbers.v[i * p->group.members.n + k];

		for (saved += 2; v > 9; v /= 10)
			saved++;
	}
	return saved > header;
}

static bool try_rule(struct text_group_plan *p, size_t k, size_t a, char op, size_t b)
{
	struct text_member *m = p->group.members.v;

	if (!holds(p, k, a, op, b) ||
	    !is_worth(p, k, strlen(m[a].name) + 3 + (op == '=' ? 0 : strlen(m[b].name))))
		return false;
	m[k].op = op;
	m[k].a = (uint32_t)a;
	m[k].b = (uint32_t)b;
	return true;
}

static bool find_rule(struct text_group_plan *p, size_t k, char op)
{
	size_t n = p->group.members.n;

	for (size_t a = 0; a < n; a++) {
		if (a == k || !can_serve(p, a))
			continue;
		if (op == '=' && try_rule(p, k, a, op, a))
			return true;
		for (size_t b = op == '+' ? a : 0; b < n && op != '='; b++)
			if (b != k && b != a && can_serve(p, b) && try_rule(p, k, a, op, b))
				return true;
	}
	return false;
}

/* The plainest first: copies, then sums. */
static void find_rules(struct text_group_plan *p)
{
	size_t n = p->group.members.n;
	bool serves[DERIVE_MEMBERS] = {false};

	if (p->rows < DERIVE_ROWS || n > DERIVE_MEMBERS)
		return;
	for (const char *op = "=+-"; *op; op++)
		for (size_t k = 0; k < n && p->group.nheld > 2; k++) {
			const struct text_member *m = &p->group.members.v[k];

			if (serves[k] || !can_serve(p, k) || !find_rule(p, k, *op))
				continue;
			serves[m->a] = serves[m->b] = true;
			p->group.nheld--;
		}
}

static void find_constants(struct text_group_plan *p)
{
	for (size_t i = 0; i < p->group.members.n && p->rows > 1 && p->group.nheld > 2; i++) {
		struct text_member *m = &p->group.members.v[i];
		size_t n = strlen(p->first.v[i]) - (m->suffix ? strlen(m->suffix) : 0);

		if (!p->same.v[i] || !text_is_plain(p->first.v[i], n))
			continue;
		m->constant = mem_strdup(p->first.v[i]);
		m->constant[n] = '\0';
		p->group.nheld--;
	}
}

bool text_group_finish(struct text_group_plan *p, struct text_group *ret)
{
	bool good = !p->failed && p->group.members.n >= 3;

	p->group.nheld = p->group.members.n;
	if (good) {
		find_constants(p);
		find_rules(p);
		*ret = p->group;
		memset(&p->group, 0, sizeof(p->group));
	}
	text_group_done(&p->group);
	vec_for(&p->first, s) free(*s);
	vec_done(&p->first);
	vec_done(&p->same);
	vec_done(&p->numeric);
	vec_done(&p->numbers);
	return good;
}

static bool same_unit(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

void text_group_write(const struct text_group *g, struct strbuf *b)
{
	const char *unit = NULL;

	vec_for(&g->members, m)
	{
		strbuf_addc(b, m == g->members.v ? '{' : ',');
		strbuf_add(b, m->name);
		if (!same_unit(unit, m->suffix))
			strbuf_addf(b, "$%s", m->suffix ? m->suffix : "#");
		unit = m->suffix;
		if (m->constant)
			strbuf_addf(b, "=%s", m->constant);
		if (m->op)
			strbuf_addf(b, "==%s", g->members.v[m->a].name);
		if (m->op && m->op != '=')
			strbuf_addf(b, "%c%s", m->op, g->members.v[m->b].name);
	}
	strbuf_addc(b, '}');
}

static char *copy(const char *s, size_t n)
{
	char *c = mem_alloc(n + 1);

	memcpy(c, s, n);
	return c;
}

/* One member of a header; rules are kept as text in `constant` until all names are known. */
static void read_member(struct text_member *m, const char *s, size_t n, const char **unit)
{
	size_t name = 0, end;

	while (name < n && s[name] != '$' && s[name] != '=')
		name++;
	m->name = copy(s, name);
	end = name;
	if (name < n && s[name] == '$') {
		const char *equals = memchr(s + name, '=', n - name);

		end = equals ? (size_t)(equals - s) : n;
		m->suffix = end == name + 2 && s[name + 1] == '#'
				? NULL
				: copy(s + name + 1, end - name - 1);
	} else if (*unit) {
		m->suffix = mem_strdup(*unit);
	}
	*unit = m->suffix;
	if (end < n)
		m->constant = copy(s + end + 1, n - end - 1);
}

static bool find_held(const struct text_group *g, const char *name, size_t n, uint32_t *ret)
{
	for (size_t i = 0; i < g->members.n; i++) {
		const struct text_member *m = &g->members.v[i];

		if (strlen(m->name) == n && !memcmp(m->name, name, n)) {
			*ret = (uint32_t)i;
			return !m->op && !m->constant;
		}
	}
	return false;
}

static bool read_rules(struct text_group *g)
{
	vec_for(&g->members, m) m->op = m->constant && *m->constant == '=' ? '=' : 0;
	vec_for(&g->members, m)
	{
		const char *rule;
		size_t n;

		if (!m->op) {
			g->nheld += !m->constant;
			continue;
		}
		rule = m->constant + 1;
		n = strcspn(rule, "+-");
		m->op = rule[n] ? rule[n] : '=';
		if (!find_held(g, rule, n, &m->a) ||
		    (rule[n] && !find_held(g, rule + n + 1, strlen(rule + n + 1), &m->b)))
			return false;
		free(m->constant);
		m->constant = NULL;
	}
	return true;
}

bool text_group_read(struct text_group *ret, const char *s, size_t n)
{
	const char *at = s + 1, *end = s + n - 1, *unit = NULL;

	if (n < 3 || *s != '{' || *end != '}' || memchr(s, '"', n))
		return false;
	while (at < end && ret->members.n < TEXT_GROUP_MEMBERS) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t len = (size_t)((comma ? comma : end) - at);

		if (!len)
			return false;
		read_member(vec_add(&ret->members), at, len, &unit);
		at += len + 1;
	}
	return at >= end && read_rules(ret);
}

struct packing {
	const struct text_group *g;
	struct strbuf *b;
	bool some;
};

static bool pack_member(void *ctx, size_t i, const char *key, int token, const char *text)
{
	struct packing *p = ctx;
	const struct text_member *m = &p->g->members.v[i];
	size_t n = strlen(text) - (m->suffix ? strlen(m->suffix) : 0);

	(void)key;
	(void)token;
	if (m->constant || m->op)
		return true;
	if (p->some)
		strbuf_addc(p->b, ',');
	p->some = true;
	if (!m->suffix || text_is_plain(text, n))
		strbuf_addn(p->b, text, n);
	else
		json_quote(p->b, text, n, 0);
	return true;
}

void text_group_pack(const struct text_group *g, const char *json, struct strbuf *b)
{
	struct packing p = {g, b, false};

	each_member(json, pack_member, &p);
}

struct piece {
	const char *s;
	size_t n;
};

/* The values that a row holds, each at its member. */
static bool split(const struct text_group *g, const char *s, size_t n, struct piece *pieces)
{
	const char *at = s, *end = s + n;

	for (size_t i = 0; i < g->members.n; i++) {
		const struct text_member *m = &g->members.v[i];
		const char *start = at;

		if (m->constant)
			pieces[i] = (struct piece){m->constant, strlen(m->constant)};
		if (m->constant || m->op)
			continue;
		if (at > end)
			return false;
		if (at < end && *at == '"')
			for (at++; at < end && *at != '"'; at++)
				at += *at == '\\';
		while (at < end && *at != ',')
			at++;
		if (at > end)
			return false;
		pieces[i] = (struct piece){start, (size_t)(at - start)};
		at++;
	}
	return at == end + 1;
}

static bool add_value(struct strbuf *out, const struct text_member *m, const char *s, size_t n)
{
	struct strbuf text = {0};
	bool good = true;

	if (m->suffix) {
		good = text_get_str(&text, s, n);
		strbuf_add(&text, m->suffix);
		json_quote(out, text.s, text.n, 0);
	} else {
		strbuf_addn(out, s, n);
	}
	strbuf_done(&text);
	return good;
}

static bool add_derived(const struct text_member *m, const struct piece *pieces, struct strbuf *out)
{
	const struct piece *a = &pieces[m->a], *b = &pieces[m->op == '=' ? m->a : m->b];
	struct strbuf text = {0};
	uint64_t x, y;
	bool good;

	if (!get_whole(a->s, a->n, &x) || !get_whole(b->s, b->n, &y) || (m->op == '-' && x < y))
		return false;
	strbuf_add_u64(&text, m->op == '=' ? x : m->op == '+' ? x + y : x - y);
	good = add_value(out, m, text.s, text.n);
	strbuf_done(&text);
	return good;
}

bool text_group_unpack(const struct text_group *g, const char *s, size_t n, struct strbuf *out)
{
	struct piece pieces[TEXT_GROUP_MEMBERS];
	bool good = split(g, s, n, pieces);

	strbuf_clear(out);
	for (size_t i = 0; good && i < g->members.n; i++) {
		const struct text_member *m = &g->members.v[i];

		strbuf_addc(out, i ? ',' : '{');
		json_quote(out, m->name, strlen(m->name), 0);
		strbuf_addc(out, ':');
		good = m->op ? add_derived(m, pieces, out)
			     : add_value(out, m, pieces[i].s, pieces[i].n);
	}
	strbuf_addc(out, '}');
	return good && text_is_json(out->s, out->n);
}
