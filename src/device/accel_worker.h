#pragma once

#include "accel.h"
#include "err.h"

/*
 * A source of accelerators in a process of its own: a driver that hangs, or a library that crashes, takes
 * only that one along. One thread uses it.
 */

struct accel_worker;

/**
 * Start it and ask at once. To be done before resources are opened that must not outlive this process.
 *
 * @param deadline_ns an answer that takes longer is given up, and its process with it
 */
struct accel_worker *accel_worker_new(const struct accel_source *s, uint64_t deadline_ns);
/** Also while it hangs: then its process ends when the driver lets it. NULL: nothing. */
void accel_worker_free(struct accel_worker *w);

/** Ask for a new answer, unless one is under way or the source is not there. */
void accel_worker_ask(struct accel_worker *w);

/**
 * Take the newest answer.
 *
 * @param wait_ns how long to wait for one that is under way
 * @return the answer, borrowed until the next call; NULL: none came since the last call
 */
const struct accel_report *accel_worker_take(struct accel_worker *w, uint64_t wait_ns);

/** How it stands: the last answer's head, or that it hangs or crashed. */
const struct accel_head *accel_worker_head(const struct accel_worker *w);
const struct accel_source *accel_worker_source(const struct accel_worker *w);
