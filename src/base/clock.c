/* Clocks, dates and durations: see clock.h. */
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return now(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
	return now(CLOCK_BOOTTIME);
}

uint64_t clock_real_ns(void)
{
	return now(CLOCK_REALTIME);
}

/* The first clock is read before and after the second: the pair closest in time has least error. */
static int64_t offset(clockid_t from, clockid_t to)
{
	uint64_t best = UINT64_MAX;
	int64_t ret = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t before = now(from), other = now(to), span = now(from) - before;

		if (span >= best)
			continue;
		best = span;
		ret = (int64_t)(other - (before + span / 2));
	}
	return ret;
}

int64_t clock_boot_to_real_ns(void)
{
	return offset(CLOCK_BOOTTIME, CLOCK_REALTIME);
}

int64_t clock_mono_to_boot_ns(void)
{
	return offset(CLOCK_MONOTONIC, CLOCK_BOOTTIME);
}

void clock_format_utc(uint64_t real_ns, char out[CLOCK_UTC_BYTES])
{
	time_t sec = (time_t)(real_ns / NS_PER_SEC);
	struct tm tm;

	gmtime_r(&sec, &tm);
	snprintf(out, CLOCK_UTC_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)tm.tm_year + 1900, (unsigned)tm.tm_mon + 1, (unsigned)tm.tm_mday,
		 (unsigned)tm.tm_hour, (unsigned)tm.tm_min, (unsigned)tm.tm_sec,
		 (unsigned)(real_ns % NS_PER_SEC / NS_PER_MS));
}

/* Largest first; of two names for one size the first is written. */
static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{"h", 3600 * NS_PER_SEC}, {"m", 60 * NS_PER_SEC}, {"min", 60 * NS_PER_SEC},
	{"s", NS_PER_SEC},	  {"ms", NS_PER_MS},	  {"us", 1000},
	{"ns", 1},
};

#define UNITS (sizeof(units) / sizeof(units[0]))

static const struct unit *unit_find(const char *s, size_t n)
{
	for (size_t i = 0; i < UNITS; i++)
		if (strlen(units[i].name) == n && !memcmp(units[i].name, s, n))
			return &units[i];
	return NULL;
}

/* "12.5" units: digits behind the point that are below a nanosecond are refused. */
struct amount {
	uint64_t whole, fraction, fraction_of;
};

static int amount_parse(const char **s, struct amount *ret)
{
	struct amount a = {.fraction_of = 1};
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(a.whole, 10, &a.whole) ||
		    __builtin_add_overflow(a.whole, (uint64_t)(*p - '0'), &a.whole))
			return -ERANGE;
	if (*p == '.' && (p[1] < '0' || p[1] > '9'))
		return -EINVAL;
	for (p += *p == '.'; *p >= '0' && *p <= '9'; p++) {
		if (a.fraction_of >= 1000000000000000000ULL)
			return -EINVAL;
		a.fraction_of *= 10;
		a.fraction = a.fraction * 10 + (uint64_t)(*p - '0');
	}
	*s = p;
	*ret = a;
	return 0;
}

static int amount_add(const struct amount *a, uint64_t unit_ns, uint64_t *sum)
{
	unsigned __int128 part = (unsigned __int128)a->fraction * unit_ns;
	uint64_t ns;

	if (part % a->fraction_of)
		return -EINVAL;
	if (__builtin_mul_overflow(a->whole, unit_ns, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)(part / a->fraction_of), &ns) ||
	    __builtin_add_overflow(*sum, ns, sum) || *sum > INT64_MAX)
		return -ERANGE;
	return 0;
}

static int parse(const char *s, uint64_t *ret_ns)
{
	uint64_t sum = 0, last_ns = UINT64_MAX;

	do {
		const struct unit *u;
		struct amount a;
		int rc = amount_parse(&s, &a);
		size_t n = strcspn(s, "0123456789");

		if (rc < 0)
			return rc;
		u = unit_find(s, n);
		if (!u || u->ns >= last_ns)
			return -EINVAL;
		rc = amount_add(&a, u->ns, &sum);
		if (rc < 0)
			return rc;
		last_ns = u->ns;
		s += n;
	} while (*s);
	*ret_ns = sum;
	return 0;
}

int duration_parse(const char *s, uint64_t *ret_ns, struct err *e)
{
	int rc = parse(s, ret_ns);

	if (!rc)
		return 0;
	err_msg(e, rc, "'%s' is %s", s, rc == -ERANGE ? "too long a duration" : "no duration");
	return err_hint(e, "write it as 10s, 500ms or 1m30s");
}

void duration_format(struct strbuf *out, uint64_t ns)
{
	size_t before = out->n;

	for (size_t i = 0; i < UNITS; i++) {
		if (ns < units[i].ns)
			continue;
		strbuf_add_u64(out, ns / units[i].ns);
		strbuf_add(out, units[i].name);
		ns %= units[i].ns;
	}
	if (out->n == before)
		strbuf_add(out, "0s");
}
