#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "err.h"

/** Bit of a capability, CAP_… of linux/capability.h. */
#define CAP_BIT(cap) (1ull << (cap))

#ifndef CAP_PERFMON /* Linux 5.8 */
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif
#ifndef CAP_CHECKPOINT_RESTORE /* Linux 5.9 */
#define CAP_CHECKPOINT_RESTORE 40
#endif

/**
 * What observing takes once the probes are loaded: to read maps and attach what is loaded, to count events,
 * to read what /proc tells of others, their files by name, and the files that they map.
 */
#define PRIVILEGES_OBSERVE                                                                                   \
	(CAP_BIT(CAP_BPF) | CAP_BIT(CAP_PERFMON) | CAP_BIT(CAP_SYS_PTRACE) | CAP_BIT(CAP_DAC_READ_SEARCH) |     \
	 CAP_BIT(CAP_CHECKPOINT_RESTORE))

/**
 * Give up, for this thread and those that it starts, all capabilities but these, for good: also none can be
 * had by running a program. Capabilities that the thread does not have are not an error.
 *
 * @param keep bits of CAP_BIT(); 0: none
 */
int privilege_keep(uint64_t keep, struct err *e);

enum privilege_calls {
	PRIVILEGE_OBSERVE, /**< may do what observing takes: BPF, perf events, children, helper programs */
	PRIVILEGE_ANSWER,  /**< files that are named, sockets and threads: no programs, no processes, no BPF */
};

/**
 * Have the kernel refuse (EPERM) system calls that this thread, and those that it starts, has no use for:
 * loading code into the kernel, mounts, namespaces, other processes' memory, keys, clocks …
 */
int privilege_refuse_calls(enum privilege_calls may, struct err *e);
