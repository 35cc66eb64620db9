#pragma once

#include <sqlite3.h>

#include "recording.h"

/* Private to the reading of recordings: what its files share. */

sqlite3 *stored_db(const struct stored *s);

/** Index of entity @p num in the graph of stored_load(), or NODE_NONE. */
uint32_t stored_node(const struct stored *s, int64_t num);

/** SQLite's last error, as stored_load() tells it. */
int stored_fail(const struct stored *s, struct err *e);
