#pragma once

#include "accel_worker.h"
#include "collect.h"
#include "dev_holders.h"

/** Accelerators: one worker for each vendor, and who has their files open. Of collect_device.c. */
struct devices {
	VEC(struct accel_worker *) workers;
	struct sysroot root;
	struct dev_holders holders;
	uint64_t holders_ns; /* when they were looked for */
	VEC(struct link_total {
		char pci[20];
		double rx;
		double tx;
	}) totals; /* of the links of a device, at the last look */
	VEC(struct known_device {
		enum dev_family family;
		int32_t minor;
		enum accel_kind kind;
		uint32_t index;
		uint32_t chip;
		char pci[20];
	}) known; /* whole devices that a driver told of, by their files */
	uint64_t unresolved; /* processes that drivers name and that are not found */
};

/** Start the workers; before anything is open that their processes must not keep. Never NULL. */
struct devices *devices_new(void);
void devices_free(struct devices *d);
void collect_devices(struct collect *c, struct graph *g, bool last);
void collect_devices_describe(const struct collect *c, struct graph *g);

/** Node of the accelerator whose file that is; NODE_NONE: no driver has told of one so far. */
uint32_t devices_node(const struct devices *d, struct graph *g, enum dev_family family, uint32_t minor);

/**
 * Which process a driver means.
 *
 * @param holders  those that have the device open
 * @param pid      as the driver says: of the host's namespace, or of a container's
 * @param ret_confidence 1: it has the device open under that pid; less: see access.confidence
 * @return its number in @p p, or IDMAP_NONE
 */
uint32_t device_process(const struct procs *p, const struct dev_holders *holders, enum dev_family family,
			int32_t minor, uint32_t pid, double *ret_confidence);
