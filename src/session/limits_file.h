#pragma once

#include "limit.h"

/**
 * The limits that a user asked for: a preset, then a file on top of it.
 *
 * @param preset "default", "hpc" or "server"; NULL: the defaults
 * @param path   of a file as limits_read() reads it, at most 64 KiB; NULL: none
 * @return 0 or -errno with one line that says what is wrong where; @p l is then not to be used
 */
int limits_load(struct limits *l, const char *preset, const char *path, struct err *e);
