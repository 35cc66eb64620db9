/* Values of JSON numbers, exact or refused: see json_get_i64() in json.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "json.h"

/* More than the digits that fit into memory: an exponent beyond it changes nothing any more. */
#define EXPONENT_MAX (1LL << 40)

struct decimal {
	uint64_t magnitude;
	bool is_negative;
};

/* The exponent behind 'e', clamped. */
static int64_t exponent(const char *s)
{
	bool is_negative = *s == '-';
	int64_t v = 0;

	for (s += *s == '-' || *s == '+'; *s; s++)
		if (v < EXPONENT_MAX)
			v = v * 10 + (*s - '0');
	return is_negative ? -v : v;
}

/* Put @p digit behind the number. @return 0 or -ERANGE */
static int push_digit(uint64_t *v, unsigned digit)
{
	if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, digit, v))
		return -ERANGE;
	return 0;
}

/*
 * Digit by digit, with the zeros at the end held back: they count only when digits follow, so that
 * 1.000 is an integer and 100e-2 is one as well.
 */
static int to_decimal(const char *s, struct decimal *ret)
{
	struct decimal d = {.is_negative = *s == '-'};
	int64_t scale = 0, zeros = 0;
	bool fraction = false;

	for (s += d.is_negative; *s && (*s | 0x20) != 'e'; s++) {
		if (*s == '.') {
			fraction = true;
			continue;
		}
		scale -= fraction;
		if (*s == '0') {
			zeros++;
			continue;
		}
		for (; zeros && d.magnitude; zeros--)
			if (push_digit(&d.magnitude, 0))
				return -ERANGE;
		zeros = 0;
		if (push_digit(&d.magnitude, (unsigned)(*s - '0')))
			return -ERANGE;
	}
	*ret = d;
	if (!d.magnitude)
		return 0;
	scale += zeros + (*s ? exponent(s + 1) : 0);
	if (scale < 0)
		return -EINVAL;
	for (; scale; scale--)
		if (push_digit(&ret->magnitude, 0))
			return -ERANGE;
	return 0;
}

/* True when the last token is a number. */
static bool number_text(const struct json_reader *r, const char **ret)
{
	*ret = json_text(r, NULL);
	return json_token(r) == JSON_NUMBER;
}

static int get_decimal(const struct json_reader *r, struct decimal *ret)
{
	const char *s;

	return number_text(r, &s) ? to_decimal(s, ret) : -EINVAL;
}

int json_get_i64(const struct json_reader *r, int64_t *ret)
{
	struct decimal d;
	int rc = get_decimal(r, &d);

	if (rc < 0)
		return rc;
	if (d.magnitude > (uint64_t)INT64_MAX + d.is_negative)
		return -ERANGE;
	*ret = d.is_negative ? (int64_t)(0 - d.magnitude) : (int64_t)d.magnitude;
	return 0;
}

int json_get_u64(const struct json_reader *r, uint64_t *ret)
{
	struct decimal d;
	int rc = get_decimal(r, &d);

	if (rc < 0)
		return rc;
	if (d.is_negative && d.magnitude)
		return -ERANGE;
	*ret = d.magnitude;
	return 0;
}

int json_get_f64(const struct json_reader *r, double *ret)
{
	const char *s;
	double v;

	if (!number_text(r, &s))
		return -EINVAL;
	v = strtod(s, NULL);
	if (!isfinite(v))
		return -ERANGE;
	*ret = v;
	return 0;
}
