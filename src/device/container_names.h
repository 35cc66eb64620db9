#pragma once

#include <stdint.h>

#include "sysroot.h"

/* What the runtimes' own state files tell of a container: names, image, pod. */

struct container_facts {
	char name[256], image[512];			/**< "": not told */
	char pod_id[128], pod_name[256], pod_namespace[256]; /**< likewise */
	bool sandbox; /**< it only holds a pod's namespaces */
};

/**
 * Look for the state of a container in the folders of the runtimes.
 *
 * @param runtime as in struct cgroup_name; "unknown": all are tried
 * @param pod its pod's unique id, for the folders that name pods; "": none
 */
void container_facts_read(const struct sysroot *root, const char *runtime, const char *id, const char *pod,
			  struct container_facts *ret);

/**
 * The container whose state of runc or crun names a control group.
 *
 * @param cgroup path as in /proc/PID/cgroup
 * @return whether there is one; its id is in @p ret_id then
 */
bool container_by_state(const struct sysroot *root, const char *cgroup, char *ret_id, size_t size);
