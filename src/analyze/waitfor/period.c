/* How often something repeats, by autocorrelation. */
#include "waitfor/period.h"

#include <stdlib.h>

#include "mem.h"

#define BINS_MOST  4096u
#define BIN_LEAST  1000000u /* ns */
#define PEAK_LEAST 0.2
#define PERIODS_LEAST 4

/* Correlation of a series of mean 0 with itself, [lags]; its square sum is not 0. */
static void correlate(const double *v, size_t n, size_t lags, double *ret)
{
	double zero = 0;

	for (size_t i = 0; i < n; i++)
		zero += v[i] * v[i];
	for (size_t k = 0; k < lags; k++) {
		double sum = 0;

		for (size_t i = 0; i + k < n; i++)
			sum += v[i] * v[i + k];
		/* Fewer pairs at longer lags: as if there were as many. */
		ret[k] = sum / zero * (double)n / (double)(n - k);
	}
}

/* The first peak that is nearly as high as the highest one behind the peak at 0. */
static size_t find_peak(const double *r, size_t lags)
{
	double best = PEAK_LEAST;
	size_t from = 1;

	while (from + 1 < lags && r[from + 1] < r[from])
		from++;
	for (size_t k = from; k + 1 < lags; k++)
		if (r[k] > best)
			best = r[k];
	for (size_t k = from; k + 1 < lags; k++)
		if (r[k] >= PEAK_LEAST && r[k] >= 0.8 * best && r[k] >= r[k - 1] && r[k] >= r[k + 1])
			return k;
	return 0;
}

uint64_t period_find(const uint64_t *at, size_t n, uint64_t from, uint64_t to, double *ret_pct)
{
	uint64_t bin = (to - from) / BINS_MOST + 1;
	size_t bins, lags, peak;
	double *v, *r, mean, square = 0, shift = 0;

	*ret_pct = 0;
	if (bin < BIN_LEAST)
		bin = BIN_LEAST;
	bins = (size_t)((to - from) / bin);
	lags = bins / PERIODS_LEAST + 2;
	if (n < 8 || bins < 16)
		return 0;
	v = mem_alloc(bins * sizeof(*v));
	r = mem_alloc((lags + 1) * sizeof(*r));
	for (size_t i = 0; i < n; i++)
		if (at[i] >= from && (at[i] - from) / bin < bins)
			v[(at[i] - from) / bin] += 1;
	mean = (double)n / (double)bins;
	for (size_t i = 0; i < bins; i++) {
		v[i] -= mean;
		square += v[i] * v[i];
	}
	peak = 0;
	if (square > 0) {
		correlate(v, bins, lags, r);
		peak = find_peak(r, lags);
	}
	if (peak) {
		/* The top of the parabola through the peak and its neighbours. */
		double bend = r[peak - 1] - 2 * r[peak] + r[peak + 1];

		if (bend < 0)
			shift = (r[peak - 1] - r[peak + 1]) / (2 * bend);
		*ret_pct = r[peak] < 1 ? r[peak] * 100 : 100;
	}
	free(v);
	free(r);
	return peak ? (uint64_t)(((double)peak + shift) * (double)bin) : 0;
}
