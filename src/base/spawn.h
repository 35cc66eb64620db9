#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "strbuf.h"

/** How a program ended. */
struct spawn_result {
	int exit_code;	/**< -1 when a signal ended it */
	int signal;	/**< 0 when it exited */
	bool timed_out; /**< killed at the deadline */
	bool truncated; /**< wrote more than was wanted; the rest was dropped */
};

/**
 * Run a program that may hang, and collect what it writes to standard output. Its standard input is
 * empty and its standard error dropped. It runs in a process group of its own, which is killed at the
 * deadline, and also when the program ends and leaves children behind.
 *
 * @param argv       [0] is looked up in PATH; NULL-terminated
 * @param timeout_ms > 0
 * @param max_bytes  of output to keep
 * @return 0: it ran, see @p ret, whatever its exit code was; -errno: it did not start (-ENOENT …)
 */
int spawn_run(const char *const argv[], uint32_t timeout_ms, size_t max_bytes, struct strbuf *out,
	      struct spawn_result *ret, struct err *e);
