#pragma once

/* Shared by the BPF programs and user space: fixed-width members, append only. */

#include <linux/types.h>

#define TASK_COMM_BYTES 16

/**
 * A thread of the host. Ids are of the initial pid namespace; (tid, start_ns) is never reused.
 * Start times are task_struct.start_boottime: ns of CLOCK_BOOTTIME, the value that field 22 of
 * /proc/PID/stat rounds down to clock ticks.
 */
struct task_ident {
	__u32 tid;
	__u32 tgid;		/**< the process: thread id of its first thread */
	__u64 start_ns;		/**< start of this thread */
	__u64 leader_start_ns;	/**< start of the process (its first thread) */
};

_Static_assert(sizeof(struct task_ident) == 24, "ABI");
