/* Waits that are told of when they end, as parts of the intervals in which they were. */
#include "amounts.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *share(struct wait_spread *w, uint32_t interval)
{
	return &w->ns[(size_t)w->cause * w->length_ns.n + interval];
}

/* As much as fits into interval w->at. */
static void put(struct wait_spread *w)
{
	uint64_t most = w->length_ns.v[w->at], ns = w->rest_ns < most ? w->rest_ns : most;

	*share(w, w->at) += ns;
	w->rest_ns -= ns;
}

/* Down to interval @p end, which is left out. Nobody waits before the window: what is left then stays where it was told. */
static void flush(struct wait_spread *w, uint32_t end)
{
	while (w->rest_ns && w->at > end) {
		w->at--;
		put(w);
	}
	if (!end && w->rest_ns) {
		*share(w, w->told) += w->rest_ns;
		w->rest_ns = 0;
	}
}

void wait_spread_begin(struct wait_spread *w)
{
	w->ns = mem_alloc((w->length_ns.n * CAUSE_COUNT + 1) * sizeof(*w->ns));
	w->rest_ns = 0;
}

void wait_spread_next(struct wait_spread *w, enum wait_cause cause)
{
	flush(w, 0);
	w->cause = cause;
}

void wait_spread_add(struct wait_spread *w, uint32_t interval, uint64_t ns)
{
	if (interval >= w->length_ns.n)
		return;
	if (w->rest_ns)
		flush(w, interval + 1);
	/* What is left of later ones was before this. */
	w->told = w->at = interval;
	w->rest_ns += ns;
	put(w);
}

void wait_spread_end(struct wait_spread *w, struct graph *g, struct interval_amounts *ret)
{
	flush(w, 0);
	for (uint32_t i = 0; i < w->length_ns.n; i++)
		for (unsigned c = 0; c < CAUSE_COUNT; c++) {
			uint64_t ns = w->ns[c * w->length_ns.n + i];

			if (!ns)
				continue;
			vec_push(&ret->v, ((struct interval_amount){.node = NODE_NONE,
								    .interval = i,
								    .what = AMOUNT_WAITED,
								    .kind = graph_str(g, wait_cause_name(c)),
								    .n = ns}));
		}
	free(w->ns);
	vec_done(&w->length_ns);
}
