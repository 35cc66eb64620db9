#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "placement.h"
#include "vec.h"

/* The parts of an address space that may hold pages, by class. */

struct region {
	uint64_t start, end;
	enum page_class class;
	uint32_t dev; /**< PAGES_SHARED: what is mapped, MAJOR << 20 | MINOR */
	uint64_t ino; /**< likewise, its inode; 0: not told */
};

struct regions {
	VEC(struct region) v;
	uint64_t bytes[PAGE_CLASSES]; /**< size of all regions of a class */
};

/**
 * Read the mappings of a process.
 *
 * @return 0, or -errno
 */
int regions_read(const char *proc, uint32_t pid, struct regions *ret);
void regions_done(struct regions *r);

/** Class of a mapping, by its path in maps or numa_maps ("" for none). */
enum page_class region_class(const char *path, bool shared, bool writable);

/** Resident bytes by class, from the status file, which needs no lock. @return 0, or -errno */
int resident_read(const char *proc, uint32_t pid, uint64_t ret[PAGE_CLASSES]);
