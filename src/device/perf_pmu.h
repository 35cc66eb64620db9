#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "idrange.h"
#include "sysroot.h"
#include "vec.h"

/* Performance monitoring units and their events, as /sys/bus/event_source/devices tells them. */

struct pmu_event {
	char *name;
	char *terms;  /**< "event=0x3c,umask=0x1" */
	double scale; /**< of its .scale file; 0: none */
	char *unit;   /**< of its .unit file; NULL: none */
};

/** Where a term's bits go: "config:0-7,32-35". */
struct pmu_format {
	char *name;
	unsigned word;	      /**< 0: config, 1: config1, 2: config2 */
	struct idrange bits; /**< below 64, lowest first */
};

struct pmu {
	char *name;
	uint32_t type;	      /**< of struct perf_event_attr */
	bool is_core;	      /**< counts what a CPU does; others count for a part of the machine */
	struct idrange cpus; /**< core: that it is of, empty: all; others: where to read it */
	VEC(struct pmu_event) events;
	VEC(struct pmu_format) formats;
};

struct pmus {
	VEC(struct pmu) v; /**< by name */
};

/** @return how many there are, 0 too, or -errno */
int pmus_read(const struct sysroot *r, struct pmus *ret);
void pmus_done(struct pmus *p);

const struct pmu_event *pmu_event(const struct pmu *p, const char *name);

/**
 * Put terms into config, config1 and config2 by the PMU's formats. A term without a value is 1.
 *
 * @return 0; -EINVAL: no such term; -ERANGE: the value has more bits than the format
 */
int pmu_encode(const struct pmu *p, const char *terms, uint64_t ret_config[3], struct err *e);

/** What is counted for each CPU. */
enum core_event {
	CORE_CYCLES,
	CORE_INSTRUCTIONS,
	CORE_LLC_REFERENCES, /**< of the last level that the PMU can count, as are its misses */
	CORE_LLC_MISSES,
	CORE_L1I_MISSES,
	CORE_EVENTS,
};

const char *core_event_name(enum core_event e);

/**
 * How a PMU of CPUs counts an event: by the name that its driver gives, else as the kernel's generic one.
 *
 * @param ret_type,ret_config for struct perf_event_attr
 * @return 0, or -ENOENT: it cannot
 */
int core_event_of(const struct pmu *p, enum core_event e, uint32_t *ret_type, uint64_t ret_config[3]);
