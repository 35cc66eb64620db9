/* When hooks cost more than they may, and for how long to look then. */
#include "governor.h"

/*
 * Bursts that end sooner are watched in full, and so are those whose cost above the bound makes less than half a
 * second at twice the bound: what is bounded is what a burst costs, not how long it takes.
 */
#define BURST_NS	1000000000ull
#define BURST_EXCESS_NS 0.5e9
/* How long it has to be cheap before all is watched again, and what cheap is: a part of the bound. */
#define CALM_NS	   5000000000ull
#define CALM_SHARE 0.5
/* What calls of which nothing is counted may take of the bound. */
#define UNCOUNTED_SHARE 0.1
/* What looks may take of the bound, and their least and greatest share of the time. */
#define LOOK_SHARE 0.05
#define LOOK_LEAST 0.02
#define LOOK_MOST  0.1
#define GAP_MOST_NS 4000000000ull

void governor_init(struct governor *g, double max_pct)
{
	*g = (struct governor){.max_pct = max_pct, .random = 1};
}

double governor_excess(const struct governor *g, const struct governor_load *l)
{
	double uncounted = l->uncounted_pct / UNCOUNTED_SHARE;

	return g->max_pct ? (uncounted > l->pct ? uncounted : l->pct) / g->max_pct : 0;
}

enum governor_change governor_step(struct governor *g, const struct governor_load *l)
{
	double excess = governor_excess(g, l);
	bool changes = g->in_turns ? excess < CALM_SHARE : excess > 1;

	if (!g->max_pct || !changes) {
		g->since_ns = 0;
		g->excess_ns = 0;
		return GOVERNOR_STAYS;
	}
	g->since_ns += l->length_ns;
	g->excess_ns += (excess - 1) * (double)l->length_ns;
	if (g->in_turns ? g->since_ns < CALM_NS : g->since_ns < BURST_NS && g->excess_ns < BURST_EXCESS_NS)
		return GOVERNOR_STAYS;
	g->since_ns = 0;
	g->excess_ns = 0;
	g->in_turns = !g->in_turns;
	return g->in_turns ? GOVERNOR_TURNS_BEGIN : GOVERNOR_TURNS_END;
}

uint64_t governor_look_ns(double excess)
{
	double share = excess > 0 ? LOOK_SHARE / excess : LOOK_MOST;

	share = share < LOOK_LEAST ? LOOK_LEAST : share > LOOK_MOST ? LOOK_MOST : share;
	return (uint64_t)(share * (double)GOVERNOR_TURN_NS);
}

uint64_t governor_turn_ns(struct governor *g)
{
	/* Numerical Recipes' generator: three quarters to five quarters of a turn. */
	g->random = g->random * 1664525u + 1013904223u;
	return GOVERNOR_TURN_NS * 3 / 4 + (GOVERNOR_TURN_NS / 2) * (g->random >> 16) / 65536;
}

uint64_t governor_gap_ns(struct governor *g, double excess, uint64_t look_ns)
{
	uint64_t turn = governor_turn_ns(g), usual = governor_look_ns(excess);
	uint64_t gap = turn > usual ? turn - usual : 0;
	double due = (double)look_ns * ((double)GOVERNOR_TURN_NS / (double)usual - 1);

	if (due > (double)GAP_MOST_NS)
		return GAP_MOST_NS;
	return (uint64_t)due > gap ? (uint64_t)due : gap;
}
