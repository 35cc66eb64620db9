#pragma once

#include <stdint.h>

#include "accel.h"
#include "sysroot.h"

/* Who has files of accelerators open, and what the kernel's graphics layer tells of each of them. */

enum dev_family {
	DEV_NVIDIA,	/**< /dev/nvidia0 … */
	DEV_NVIDIA_ALL, /**< /dev/nvidiactl, /dev/nvidia-uvm */
	DEV_ASCEND,	/**< /dev/davinci0 … */
	DEV_ASCEND_ALL, /**< /dev/davinci_manager */
	DEV_RENDER,	/**< /dev/dri/renderD128 …, or card0 … of the same device */
	DEV_KFD,	/**< /dev/kfd: AMD */
	DEV_ACCEL,	/**< /dev/accel/accel0 … */
	DEV_RDMA,	/**< /dev/infiniband/uverbs0 … */
	DEV_NONE,
};

/** One process and one device file. */
struct dev_holder {
	uint32_t pid;
	enum dev_family family;
	uint32_t minor;	 /**< the number in the name; of a card, that of its renderD file */
	uint32_t opened; /**< open files of it */
	uint32_t example_fd;
};

struct dev_holders {
	VEC(struct dev_holder) v; /**< ascending by pid */
	VEC(struct dev_number {
		uint32_t rdev;	 /**< major << 20 | minor */
		char path[40];
	}) numbers;		  /**< of the files found; of a captured root there are none */
	uint64_t unreadable;	  /**< processes whose files could not be listed */
};

/** Which device a path is of. @param ret_minor the number in its name */
enum dev_family dev_family(const char *path, uint32_t *ret_minor);

/** Likewise; a card is told by the number of its renderD file, where it has one. */
enum dev_family dev_file_family(const struct sysroot *root, const char *path, uint32_t *ret_minor);

/** Name of a device of which somebody has the file open; NULL: not seen. */
const char *dev_holders_path(const struct dev_holders *h, uint32_t rdev);

/**
 * Look at all processes.
 *
 * @param pids [n] only these; NULL: all
 */
void dev_holders_read(const struct sysroot *root, const uint32_t *pids, size_t n, struct dev_holders *ret);
void dev_holders_done(struct dev_holders *h);
