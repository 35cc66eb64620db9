#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "err.h"
#include "field.h"
#include "strbuf.h"

#define DB_APPLICATION_ID 0x57504442 /* "WPDB" */
#define DB_SCHEMA_VERSION 1

/** SQLite's last error as ours: "WHAT 'PATH': reason"; disk full and I/O errors keep their code. */
int db_fail(sqlite3 *db, struct err *e, const char *what, const char *path);

/** Run statements without results. @return 0 or -errno, without a message */
int db_run(sqlite3 *db, const char *sql);

/** Name of the table that holds the fields of @p t, and of its series. */
void db_table(struct strbuf *b, const struct type *t);
void db_series_table(struct strbuf *b, const struct type *t);
bool db_has_series(const struct type *t);
/** Whether recordings keep what each interval had of @p f: what it added, or its value then. */
bool db_in_series(const struct field *f);
