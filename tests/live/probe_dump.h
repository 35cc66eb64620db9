#pragma once

#include <stdbool.h>

#include "err.h"
#include "probe.h"

void dump_health(const struct probe_health *h);
void dump_ready(void);
/**
 * Wait for a second.
 *
 * @param left seconds that are left, or less than 0: until standard input ends
 * @return whether there is more to wait for after this one
 */
bool dump_wait(double left);
int dump_other(const char *what, double seconds, const struct probe_options *o, struct err *e);
int dump_ipc(double seconds, const struct probe_options *o, struct err *e);
