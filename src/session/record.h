#pragma once

#include "collect.h"
#include "err.h"

struct record_options {
	struct collect_options collect;
	const char *output;
	bool force;
	uint64_t duration_ns; /**< 0: until the command ends or a signal comes */
	uint64_t interval_ns;
	char *const *command; /**< NULL-terminated, run while recording; NULL: none */
	const char *options;  /**< text for the recording */
	/** Called each interval with the time so far; may be NULL. */
	void (*progress)(void *ctx, uint64_t elapsed_ns, size_t processes);
	void *progress_ctx;
};

/**
 * Record this host into a file. SIGINT and SIGTERM end it early and keep it; a failure after the start
 * keeps what was recorded.
 *
 * @param ret_status exit status of the command, -1: none, or it still ran and was ended
 * @return 0 or -errno
 */
int record(const struct record_options *o, int *ret_status, struct err *e);
