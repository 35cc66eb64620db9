#pragma once

#include "analysis.h"
#include "snapshot.h"

/**
 * A copy of a snapshot with its analyses. They take long on a large host: meanwhile whoever asks
 * for the snapshot itself waits for the copy and no longer. It must not be moved.
 */
struct studied {
	struct graph g;
	struct timeline time;
	struct interval_amounts amounts; /**< kinds are in g */
	struct analysis all;
};

/** @param s is held by the caller as long as @p k; @param m is used during the call, NULL: none */
void studied_init(struct studied *k, struct snapshot *s, const struct limits *l, const struct analysis_means *m);
void studied_done(struct studied *k);
