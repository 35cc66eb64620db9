/* Ends of relations in compact text, as runs of entity numbers. */
#include "text_ends.h"

#include <errno.h>
#include <string.h>

#include "text_value.h"

#define RUNS_MAX 32 /* in a line, for the eyes; a reader takes no more either */

static uint32_t end_of(const struct text_ends *e, bool target)
{
	return target ? e->target : e->source;
}

static size_t same_run(const struct text_ends *v, size_t n, bool target)
{
	size_t i = 1;

	while (i < n && end_of(&v[i], target) == end_of(v, target))
		i++;
	return i;
}

static size_t rising_run(const struct text_ends *v, size_t n, bool target)
{
	size_t i = 1;

	while (i < n && end_of(&v[i], target) == end_of(&v[i - 1], target) + 1)
		i++;
	return i;
}

enum text_ends_course text_ends_course(const struct text_ends *v, size_t n, bool target)
{
	if (same_run(v, n, target) == n)
		return ENDS_SAME;
	return rising_run(v, n, target) == n ? ENDS_UP : ENDS_FREE;
}

/* "3,10..12". @return how many of the @p n ends that covers */
static size_t write_runs(const struct text_ends *v, size_t n, bool target, struct strbuf *b)
{
	size_t done = 0;

	for (int runs = 0; done < n && runs < RUNS_MAX; runs++) {
		size_t len = rising_run(v + done, n - done, target);

		if (runs)
			strbuf_addc(b, ',');
		strbuf_add_u64(b, (uint64_t)end_of(&v[done], target) + 1);
		if (len > 1) {
			strbuf_add(b, "..");
			strbuf_add_u64(b, (uint64_t)end_of(&v[done + len - 1], target) + 1);
		}
		done += len;
	}
	return done;
}

static size_t write_line(const struct text_ends *v, size_t n, struct strbuf *b)
{
	size_t from_one = same_run(v, n, false), to_one = same_run(v, n, true);
	size_t up = rising_run(v, n, false), up_too = rising_run(v, n, true);
	size_t done;

	up = up < up_too ? up : up_too;
	if (up > from_one && up > to_one) {
		write_runs(v, up, false, b);
		strbuf_addc(b, ' ');
		done = write_runs(v, up, true, b);
	} else if (from_one >= to_one) {
		write_runs(v, 1, false, b);
		strbuf_addc(b, ' ');
		done = write_runs(v, from_one, true, b);
	} else {
		done = write_runs(v, to_one, false, b);
		strbuf_addc(b, ' ');
		write_runs(v, 1, true, b);
	}
	strbuf_addc(b, '\n');
	return done;
}

void text_ends_write(const struct text_ends *v, size_t n, struct strbuf *b)
{
	for (size_t i = 0; i < n;)
		i += write_line(v + i, n - i, b);
}

struct run {
	uint64_t first, last;
};

struct runs {
	struct run v[RUNS_MAX];
	size_t n;
	uint64_t count;
};

static bool read_number(const char **s, const char *end, uint64_t *ret)
{
	return text_get_count(s, end, ret) && *ret > 0 && *ret <= UINT32_MAX;
}

static bool read_runs(const char *s, size_t n, struct runs *ret)
{
	const char *end = s + n;

	*ret = (struct runs){0};
	while (ret->n < RUNS_MAX) {
		struct run *r = &ret->v[ret->n++];

		if (!read_number(&s, end, &r->first))
			return false;
		r->last = r->first;
		if (end - s > 2 && s[0] == '.' && s[1] == '.') {
			s += 2;
			if (!read_number(&s, end, &r->last) || r->last < r->first)
				return false;
		}
		ret->count += r->last - r->first + 1;
		if (s == end)
			return true;
		if (*s++ != ',')
			return false;
	}
	return false;
}

/* Step to the next number. A single one stays. */
static void step(const struct runs *r, size_t *run, uint64_t *at)
{
	if (r->count == 1)
		return;
	if (++*at <= r->v[*run].last)
		return;
	if (++*run < r->n)
		*at = r->v[*run].first;
}

int text_ends_read(const char *s, const char *end,
		   int (*visit)(void *ctx, uint64_t source, uint64_t target), void *ctx)
{
	struct runs from, to;
	uint64_t n, source, target;
	size_t i = 0, k = 0, len;
	const char *text;
	int rc = 0;

	if (!text_next(&s, end, &text, &len) || !read_runs(text, len, &from) ||
	    !text_next(&s, end, &text, &len) || !read_runs(text, len, &to) ||
	    text_next(&s, end, &text, &len))
		return -EBADMSG;
	if (from.count != 1 && to.count != 1 && from.count != to.count)
		return -EBADMSG;
	source = from.v[0].first;
	target = to.v[0].first;
	for (n = from.count > to.count ? from.count : to.count; n && !rc; n--) {
		rc = visit(ctx, source, target);
		step(&from, &i, &source);
		step(&to, &k, &target);
	}
	return rc;
}
