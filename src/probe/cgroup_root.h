#pragma once

/** Private to the layer. Root of cgroup v2 wherever it is mounted. @return fd, or -errno */
int cgroup_root_open(void);
