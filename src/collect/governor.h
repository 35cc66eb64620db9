#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Bounds what the hooks cost to the observed. Pure: what was measured in, what to do out.
 *
 * Cheap enough, everything is watched. When the hooks take more of the busiest CPU than they may, for longer than
 * a burst lasts or by more than one may cost, system calls are watched in turns: short looks, and in between their
 * hook is taken away. When
 * watching everything would be cheap again, and stays so, it is. Calls that are watched for nothing, because they
 * are about sockets or the like, may take a tenth of that only.
 */

#define GOVERNOR_DEFAULT_PCT 10

/** Between two questions, and between the begins of two looks on average. */
#define GOVERNOR_CHECK_NS 200000000ull
#define GOVERNOR_TURN_NS  400000000ull

struct governor {
	double max_pct;	    /**< of a CPU; 0: no bound */
	bool in_turns;
	uint64_t since_ns;  /**< what would change it has lasted so long */
	double excess_ns;   /**< a burst: time above the bound, times how much above it, in parts of it */
	uint32_t random;
};

/** What happened since the last question. */
struct governor_load {
	double pct;	      /**< share of the busiest CPU that hooks take, or would take if all calls were watched */
	double uncounted_pct; /**< the part of it that calls took of which nothing was counted */
	uint64_t length_ns;   /**< for how long that was so */
};

enum governor_change { GOVERNOR_STAYS, GOVERNOR_TURNS_BEGIN, GOVERNOR_TURNS_END };

void governor_init(struct governor *g, double max_pct);

/** What hooks take, or would take, by what they may: above 1 it is too much. 0 without a bound. */
double governor_excess(const struct governor *g, const struct governor_load *l);

enum governor_change governor_step(struct governor *g, const struct governor_load *l);

/** Length of a look, by governor_excess(): looks take a small part of the bound. */
uint64_t governor_look_ns(double excess);

/** From the begin of a look to that of the next: not always the same, so that it keeps step with nothing. */
uint64_t governor_turn_ns(struct governor *g);

/** From the end of a look that has lasted @p look_ns to the next: one that ended too late is made up for. */
uint64_t governor_gap_ns(struct governor *g, double excess, uint64_t look_ns);
