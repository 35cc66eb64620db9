#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accel.h"
#include "sysroot.h"

/* Graphics and compute devices as the kernel's own interfaces show them, whoever made them. */

/** Devices with a render node or an accel node, except NVIDIA's, which have a source of their own. */
void drm_devices_read(const struct sysroot *root, struct accel_report *r);

/** AMD's links between devices: /sys/class/kfd. Ends are found by their PCI addresses. */
void kfd_links_read(const struct sysroot *root, struct accel_report *r);

/** One open file's client of a device: Documentation/gpu/drm-usage-stats.rst. */
struct drm_client {
	uint64_t id;
	char pci[20];		/**< "": not told */
	uint64_t engine_ns;	/**< time on all engines, since it was opened */
	uint64_t memory_bytes;	/**< resident in the device */
	bool has_engine, has_memory;
};

/** @return false: it is no fdinfo of a graphics device */
bool drm_fdinfo_parse(const char *text, struct drm_client *ret);
