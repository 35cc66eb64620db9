#pragma once

#include <stddef.h>

#include "err.h"
#include "wait_row.h"

/**
 * Store the newest waits, one by one, into the recording at @p path, which is closed.
 *
 * The table `wait_segment` has a row for each, by time: out_ns, wake_ns, in_ns (since 1970), waiter and
 * waker (numbers of thread entities), waker_kind, cause, object (printed id).
 *
 * @param from_ns since when they are all that ended, on the clock of the rows: `segments_from_ns` of meta
 * @param offset_ns what to add to the times of the rows to get the time since 1970
 * @return 0 or -errno
 */
int segments_write(const char *path, const struct wait_row *rows, size_t n, uint64_t from_ns,
		   uint64_t offset_ns, struct err *e);
