#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "accel.h"

/* A vendor's library as a struct of function pointers, made from a list FN(MUST|MAY, name, arguments). */

enum need { MUST, MAY };

struct dl_function {
	const char *name;
	enum need need;
	size_t offset; /**< of its pointer in the struct */
};

/**
 * Load @p library and fill the pointers at @p table. It stays loaded until the process ends.
 *
 * @param n functions
 * @return false: it is not there, or not of a version that is known; the report says why
 */
bool dl_table_load(void *table, const char *const *libraries, const struct dl_function *functions, size_t n,
		   struct accel_report *r);
