#pragma once

#include <stddef.h>

#include "sysroot.h"

/* What a machine's PMUs outside of the ordinary counters allow, by its /sys and the kernel's configuration. */

/** Whether it counts traffic of memory and links. @return as cap.probe */
int pmu_counts_uncore(const struct sysroot *r, char *why, size_t size);

/**
 * Whether it samples accesses to memory by threads. Arm's SPE does so only where the kernel tells the CPU who runs;
 * a kernel that shows its configuration nowhere is taken to do so.
 *
 * @return as cap.probe
 */
int pmu_samples_memory(const struct sysroot *r, char *why, size_t size);
