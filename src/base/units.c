/* Values with units, scaled for reading: see units.h. */
#include "units.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

struct scale {
	uint64_t size; /* in the smallest unit */
	const char *name;
};

/* @p tenths of a unit: "12.3" */
static void add_tenths(struct strbuf *out, uint64_t tenths)
{
	strbuf_add_u64(out, tenths / 10);
	strbuf_addc(out, '.');
	strbuf_addc(out, (char)('0' + tenths % 10));
}

static uint64_t to_tenths(uint64_t v, uint64_t size)
{
	return (uint64_t)(((unsigned __int128)v * 10 + size / 2) / size);
}

/* In the largest unit of which there is at least one, after rounding: 1023.96 KiB is 1.0 MiB. */
static void add_scaled(struct strbuf *out, uint64_t v, const struct scale *scales, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && v >= scales[i + 1].size)
		i++;
	if (i && i + 1 < n &&
	    (unsigned __int128)to_tenths(v, scales[i].size) * scales[i].size >=
		    (unsigned __int128)scales[i + 1].size * 10)
		i++;
	if (i)
		add_tenths(out, to_tenths(v, scales[i].size));
	else
		strbuf_add_u64(out, v);
	strbuf_add(out, scales[i].name);
}

#define ADD_SCALED(out, v, scales) add_scaled(out, v, scales, sizeof(scales) / sizeof((scales)[0]))

void units_add_bytes(struct strbuf *out, uint64_t bytes)
{
	static const struct scale scales[] = {
		{1, " B"},	    {1ULL << 10, " KiB"}, {1ULL << 20, " MiB"}, {1ULL << 30, " GiB"},
		{1ULL << 40, " TiB"}, {1ULL << 50, " PiB"}, {1ULL << 60, " EiB"},
	};

	ADD_SCALED(out, bytes, scales);
}

void units_add_rate(struct strbuf *out, double bps)
{
	static const struct scale scales[] = {
		{1, " B/s"},	      {1ULL << 10, " KiB/s"}, {1ULL << 20, " MiB/s"},
		{1ULL << 30, " GiB/s"}, {1ULL << 40, " TiB/s"},
	};

	assert(isfinite(bps) && bps >= 0);
	ADD_SCALED(out, bps < 1e19 ? (uint64_t)(bps + 0.5) : UINT64_MAX, scales);
}

void units_add_count(struct strbuf *out, uint64_t n)
{
	static const struct scale scales[] = {
		{1, ""},
		{1000, " k"},
		{1000000, " M"},
		{1000000000, " G"},
		{1000000000000, " T"},
	};

	if (n < 10000)
		strbuf_add_u64(out, n);
	else
		ADD_SCALED(out, n, scales);
}

void units_add_ns(struct strbuf *out, uint64_t ns)
{
	static const struct scale scales[] = {
		{1, " ns"},		{1000, " us"},		   {1000000, " ms"},
		{1000000000, " s"},	{60 * 1000000000ULL, " min"}, {3600 * 1000000000ULL, " h"},
	};

	ADD_SCALED(out, ns, scales);
}

void units_add_pct(struct strbuf *out, double pct)
{
	long long tenths;

	assert(isfinite(pct));
	/* Beyond any percentage that means something, and within what a long long holds. */
	tenths = llround(fmin(fmax(pct, -1e15), 1e15) * 10);
	if (tenths < 0)
		strbuf_addc(out, '-');
	add_tenths(out, (uint64_t)(tenths < 0 ? -tenths : tenths));
	strbuf_add(out, " %");
}
