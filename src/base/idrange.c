/* Sets of ids in the form of the kernel's lists: see idrange.h. */
#include "idrange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

void idrange_done(struct idrange *r)
{
	free(r->bits);
	memset(r, 0, sizeof(*r));
}

void idrange_add(struct idrange *r, uint32_t id)
{
	size_t want = id / 64 + 1;

	assert(id <= IDRANGE_MAX);
	if (r->words < want) {
		want = want < 2 * r->words ? 2 * r->words : want;
		r->bits = mem_realloc(r->bits, want * sizeof(*r->bits));
		memset(r->bits + r->words, 0, (want - r->words) * sizeof(*r->bits));
		r->words = want;
	}
	r->bits[id / 64] |= 1ULL << id % 64;
}

bool idrange_has(const struct idrange *r, uint32_t id)
{
	return id / 64 < r->words && (r->bits[id / 64] >> id % 64 & 1);
}

size_t idrange_count(const struct idrange *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->words; i++)
		n += (size_t)__builtin_popcountll(r->bits[i]);
	return n;
}

bool idrange_equal(const struct idrange *a, const struct idrange *b)
{
	size_t n = a->words > b->words ? a->words : b->words;

	for (size_t i = 0; i < n; i++)
		if ((i < a->words ? a->bits[i] : 0) != (i < b->words ? b->bits[i] : 0))
			return false;
	return true;
}

int64_t idrange_next(const struct idrange *r, int64_t from)
{
	for (size_t i = (size_t)from / 64; i < r->words; i++) {
		uint64_t word = r->bits[i];

		if (i == (size_t)from / 64)
			word &= ~0ULL << from % 64;
		if (word)
			return (int64_t)i * 64 + __builtin_ctzll(word);
	}
	return -1;
}

static int id_parse(const char **s, uint32_t *ret)
{
	uint32_t v = 0;

	if (**s < '0' || **s > '9')
		return -EINVAL;
	for (; **s >= '0' && **s <= '9'; (*s)++) {
		v = v * 10 + (uint32_t)(**s - '0');
		if (v > IDRANGE_MAX)
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

/* "3" or "0-3" */
static int part_parse(const char **s, struct idrange *r)
{
	uint32_t first, last;
	int rc = id_parse(s, &first);

	last = first;
	if (!rc && **s == '-') {
		(*s)++;
		rc = id_parse(s, &last);
	}
	if (rc < 0)
		return rc;
	if (last < first)
		return -EINVAL;
	for (uint32_t id = first; id <= last; id++)
		idrange_add(r, id);
	return 0;
}

static bool is_end(const char *s)
{
	return !s[strspn(s, " \t\r\n")];
}

int idrange_parse(const char *s, struct idrange *ret, struct err *e)
{
	const char *at = s;
	int rc;

	if (is_end(s))
		return 0;
	do {
		rc = part_parse(&at, ret);
	} while (!rc && *at == ',' && at++);
	if (!rc && !is_end(at))
		rc = -EINVAL;
	if (!rc)
		return 0;
	idrange_done(ret);
	if (rc == -ERANGE)
		return err_msg(e, rc, "'%s': an id is above %u", s, IDRANGE_MAX);
	return err_msg(e, rc, "'%s' is no list of ids such as 0-3,8", s);
}

void idrange_format(const struct idrange *r, struct strbuf *out)
{
	bool any = false;

	for (int64_t id = idrange_next(r, 0), last; id >= 0; id = idrange_next(r, last + 1)) {
		for (last = id; idrange_has(r, (uint32_t)last + 1); last++)
			;
		if (any)
			strbuf_addc(out, ',');
		any = true;
		strbuf_add_u64(out, (uint64_t)id);
		if (last == id)
			continue;
		strbuf_addc(out, '-');
		strbuf_add_u64(out, (uint64_t)last);
	}
}
