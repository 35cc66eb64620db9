#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc_abi.h"

/* What kind of memory a shared mapping shows. */

#define SHM_MAGIC_DMABUF 0x444d4142u /* linux/magic.h */

enum shm_kind {
	SHM_NONE, /**< nothing that could be shared: every mapping has memory of its own */
	SHM_POSIX,
	SHM_SYSV,
	SHM_MEMFD,
	SHM_ANONYMOUS,
	SHM_TMPFS,
	SHM_FILE,
	SHM_HUGETLB,
	SHM_DMABUF,
	SHM_DEVICE,
	SHM_OTHER,
};

const char *shm_kind_name(enum shm_kind k); /**< as in field "kind" of shared_memory */

/** Whether that kind is made to be shared, so that it counts also with one process that maps it. */
bool shm_kind_is_shareable(enum shm_kind k);

/**
 * File systems that the kernel mounts for itself, by their devices: only there are names its own.
 * Found by making files there; a kind that cannot be made has no device.
 */
struct shm_mounts {
	uint32_t shmem;
	uint32_t huge[24];
	uint32_t nhuge;
	uint32_t dev_shm; /**< /dev/shm of this mount namespace; 0: not a mount of its own */
};

void shm_mounts_find(struct shm_mounts *ret);
bool shm_is_internal(const struct shm_mounts *m, uint32_t dev);

/**
 * @param path as proc_maps_path() gives it; NULL: not known
 */
enum shm_kind shm_kind_of(const struct shm_mounts *mounts, const struct proc_map *m, const char *path);

/**
 * Type and source of the file system with device @p dev, by the mounts of process @p pid.
 *
 * @param fs_type,source [@p size] each; empty when not found
 */
void shm_find_mount(uint32_t pid, uint32_t dev, char *fs_type, char *source, size_t size);
