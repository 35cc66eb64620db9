#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "err.h"
#include "strbuf.h"

/** A file of /proc or /sys is never larger; what is, is no such file. */
#define SYSROOT_FILE_BYTES (1U << 20)

/**
 * The tree under which /proc and /sys are read: the host's, or a captured one. Names are given from
 * the root with or without a leading slash. Below a captured root no name leads out of it: neither
 * ".." nor a symbolic link, absolute or not.
 */
struct sysroot {
	int fd;
	bool live; /**< "/": also system calls tell about this host */
};

/** @param path "/" or a folder */
int sysroot_open(const char *path, struct sysroot *ret, struct err *e);
void sysroot_close(struct sysroot *r);

/**
 * Append a whole file to @p out, at most SYSROOT_FILE_BYTES.
 *
 * @return bytes added, or -errno; -EFBIG: it is larger. @p out is unchanged after an error.
 */
__attribute__((format(printf, 3, 4))) ssize_t sysroot_read(const struct sysroot *r, struct strbuf *out,
							   const char *fmt, ...);

/** Append what a symbolic link holds, which is not followed. @return bytes added, or -errno */
__attribute__((format(printf, 3, 4))) ssize_t sysroot_readlink(const struct sysroot *r,
							       struct strbuf *out, const char *fmt, ...);

/** @return 0 and an open folder, for closedir(), or -errno */
__attribute__((format(printf, 3, 4))) int sysroot_opendir(const struct sysroot *r, DIR **ret,
							  const char *fmt, ...);

/** @return whether the file is there (following links) */
__attribute__((format(printf, 2, 3))) bool sysroot_has(const struct sysroot *r, const char *fmt, ...);
