#pragma once

#include "finding.h"

/* Private to findings. */

/**
 * Where the graph has several hosts: what the rules find on each of them, and one verdict a rule for all. Rules that look
 * across hosts are left to the caller.
 *
 * @return false: it has one, and nothing was done
 */
bool findings_of_hosts(struct findings *f, const struct study *s);
