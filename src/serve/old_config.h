#pragma once

#include "err.h"

/*
 * Configuration files: JSON whose members are our long options ("listen": "127.0.0.1:18090"), or the file of
 * openEuler's witty-profiler, whose keys are taken over where they mean something here, and answered with
 * what does so now where they do not.
 */

struct config_sink {
	/** An option by its long name. @return 0; -ENOENT: there is none; -EINVAL: the value is wrong */
	int (*set)(void *ctx, const char *option, const char *value);
	/** Something that the user should know: one line. */
	void (*note)(void *ctx, const char *text);
	void *ctx;
};

/** @return 0 or -errno; an unknown key is an error that names it */
int config_read(const char *path, const struct config_sink *to, struct err *e);

/** A flag of the older program. @return what to use now; NULL: it is none of those */
const char *old_flag_now(const char *flag);
