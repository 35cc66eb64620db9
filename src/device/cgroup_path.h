#pragma once

#include <stdbool.h>

/* Which container a control group is of, by its path alone. */

#define CGROUP_ID_BYTES 128

struct cgroup_name {
	const char *runtime; /**< "docker", "containerd", "crio", "podman", "isulad", "lxc", "nspawn", "unknown"; static */
	char id[CGROUP_ID_BYTES];     /**< whole, as the path has it */
	char pod[CGROUP_ID_BYTES];    /**< unique id of the Kubernetes pod, or podman's pod; "": none */
	const char *qos; /**< of a Kubernetes pod: "guaranteed", "burstable", "besteffort"; NULL: no such pod */
};

/**
 * Parse a path of /proc/PID/cgroup, of version 1 or 2, of a runtime that names its groups itself or by
 * systemd, also as seen from within a control group namespace ("/../…"). In nested containers the innermost
 * counts. A runtime's own monitors are in no container.
 *
 * @return false: it is of no container as far as the path tells
 */
bool cgroup_parse(const char *path, struct cgroup_name *ret);
