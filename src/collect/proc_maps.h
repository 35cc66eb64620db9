#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc_abi.h"

/* Mappings of a process by /proc, for where there is no iterator, and facts that need a path. */

/** One line of /proc/PID/maps. */
struct maps_line {
	uint64_t start, end, offset; /**< addresses, and where in the file it begins, in bytes */
	uint64_t ino;
	uint32_t dev; /**< major << 20 | minor */
	bool read, write, shared;
	const char *path; /**< in the line, newlines restored; "" without one */
	size_t path_bytes;
};

/**
 * Take a line apart, which is changed.
 *
 * @param line NUL-terminated, with or without its newline
 * @return false: it is no such line; @p ret is undefined
 */
bool maps_line_parse(char *line, struct maps_line *ret);

/** What the record of a mapping says where /proc does not tell. */
#define MAP_UNKNOWN UINT64_MAX

/**
 * Shared mappings of one process, as proc_probe_maps() gives them; `cached_pages` is MAP_UNKNOWN,
 * and `size_bytes` and `blocks` are too where the file may not be looked at.
 *
 * @return 0, -errno when the process cannot be read, or what @p cb returned unless 0
 */
int proc_maps_list(uint32_t pid, uint64_t start_ns, int (*cb)(void *ctx, const struct proc_map *m),
		   void *ctx);

/**
 * Path behind a mapping, as the process sees it; " (deleted)" is taken off when the kernel put it there.
 *
 * @param internal the file system is one that the kernel keeps for itself: all its names are deleted
 * @return length, or -errno; @p buf is NUL-terminated
 */
int proc_maps_path(const struct proc_map *m, bool internal, char *buf, size_t size);

/**
 * Device and inode as /proc/PID/maps shows them. The kernel maps the file that lies below an overlay,
 * and since v6.8 /proc shows the overlay's: what else is known of addresses is told by these.
 * Unless they are known to differ, they stay those of @p m.
 */
void proc_maps_shown(const struct proc_map *m, uint32_t *ret_dev, uint64_t *ret_ino);

/**
 * Room of the file system behind a mapping; 0 bytes: without a limit.
 *
 * @return 0, or -errno
 */
int proc_maps_space(const struct proc_map *m, uint64_t *ret_bytes, uint64_t *ret_used_bytes);

/**
 * Bytes of the address range [@p start, @p end) that the process has page-table entries for. Its memory
 * map is locked for that long, so @p end should not be far away.
 *
 * @return 0, or -errno
 */
int proc_maps_resident(uint32_t pid, uint64_t start, uint64_t end, uint64_t *ret_bytes);
