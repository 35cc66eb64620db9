#pragma once

#include "task_abi.h"
#include "wait_abi.h"

enum sched_flag {
	SCHED_KTHREAD = 1 << 0, /**< a kernel thread */
	SCHED_RUNNING = 1 << 1, /**< was on a CPU when it was read */
	SCHED_EXITED = 1 << 2,	/**< this is its last record: it has ended */
	SCHED_USAGE = 1 << 3,	/**< `usage` is known */
	SCHED_RANK = 1 << 4,	/**< `rank` is known */
	SCHED_IO = 1 << 5,	/**< and its bytes: the kernel accounts for I/O */
};

/** What the kernel itself counts of a thread, since the probe saw it first. */
struct sched_usage {
	__u64 user_ns, system_ns; /**< by clock tick on many kernels */
	__u64 minor_faults, major_faults;
	/** As /proc/PID/io tells them: rchar, wchar; read_bytes, write_bytes, cancelled_write_bytes. */
	__u64 called_read_bytes, called_write_bytes;
	__u64 storage_read_bytes, storage_write_bytes, cancelled_write_bytes;
};

/** How the scheduler treats a thread, as of the reading. */
struct sched_rank {
	__u32 policy; /**< SCHED_OTHER …: linux/sched.h */
	__s16 nice;   /**< -20 to 19 */
	__u16 rt_priority; /**< 1 to 99 for SCHED_FIFO and SCHED_RR, else 0 */
};

#define SCHED_RIVALS 4

/**
 * One that came onto the CPU in place of a thread that could have gone on. Only few are kept, those that do it
 * most; each is counted while it is kept, so that this is a lower bound.
 */
struct sched_rival {
	__u32 tid;
	__u32 times;
	__u32 credit; /**< others that come between take from it; at 0 it is replaced */
};

/**
 * What the programs hand over of one thread: totals since the probe was attached. One clock
 * (CLOCK_MONOTONIC) for all durations; time in interrupts belongs to the thread they interrupt.
 */
struct sched_totals {
	struct task_ident id;
	__u64 run_ns;	   /**< on a CPU, the open slice included */
	__u64 runq_ns;	   /**< runnable but not running, a delay that still goes on included */
	__u64 streak_ns;   /**< the part of run_ns spent on `cpu` since it came there last */
	__u64 voluntary;   /**< switched out because it blocked */
	__u64 involuntary; /**< switched out while it could have gone on */
	__u64 migrations;  /**< switched in on another CPU than the time before */
	__u64 wakeups;	   /**< blocked, woken and switched in again */
	__u32 cpu;	   /**< where it runs or ran last */
	__u32 flags;	   /**< SCHED_… */
	char comm[TASK_COMM_BYTES];
	__u64 since_ns;	   /**< CLOCK_MONOTONIC: seen from then on */
	/** from since_ns to this reading, or to its end: run + runq + blocked */
	__u64 observed_ns;
	__u64 blocked_ns;  /**< neither running nor runnable, a wait that still goes on included */
	__u64 lost_ns;	   /**< the part of finished waits that found no room in the map, */
	__u64 lost_waits;  /**< and how many those were */
	struct wait_on on; /**< what it waits for, or waited for last */
	__u64 open_ns;	   /**< how long it waits for that by now, 0: it does not wait */
	struct wait_sum sum; /**< finished waits of one kind that are not in the map yet */
	struct sched_usage usage;
	struct sched_rank rank;
	struct sched_rival rivals[SCHED_RIVALS];
	__u64 plain_waits; /**< finished short waits in no sum: it was not looked at what they were for */
	__u64 plain_ns;
};

/** One thread between its events, as the programs keep it; user space reads it where there is no iterator. */
struct sched_state {
	struct sched_totals t;
	__u64 on_since;	     /**< 0: not on a CPU */
	__u64 waiting_since; /**< 0: not runnable, or on a CPU; 1: woken, and the scheduler knows when */
	__u64 out_ns;	     /**< when it blocked, 0: did not */
	__u64 delay_ns;	     /**< in run queues by the scheduler's own account, when it blocked */
	__u64 changes;	     /**< odd while it is being changed */
	__u64 reported;	     /**< value of changes at the last reading */
	__u32 dead;
	__u32 early;  /**< woken while still on its CPU */
	__u32 unseen; /**< older than the probe, and what it has done since the start is not known yet */
	__u32 pad;
	struct waker by;	 /**< of the wake-up that is under way */
	struct sched_usage base; /**< when it was seen first, if has_base: with task storage only */
	__u64 has_base;
	__u64 epoch; /**< 2^20 ns, in which: */
	__u32 looks; /**< it was looked at what the thread waits for */
	__u32 plain; /**< not at what the wait that it is in is for */
};

#define SCHED_COUNTS 5 /**< events of a CPU that can be counted */

/** What a counter gained, and for how long it was wanted and was counting: fewer counters than events take turns. */
struct sched_count {
	__u64 raw, enabled_ns, running_ns;
};

/** Of a thread on a CPU: its key is struct sched_cpu_key. */
struct sched_counts {
	struct sched_count v[SCHED_COUNTS];
};

/** Key of the per-CPU share: run time of finished streaks. The value is __u64 ns. */
struct sched_cpu_key {
	__u64 start_ns;
	__u32 tid;
	__u32 cpu;
};

_Static_assert(sizeof(struct sched_totals) == 24 + 7 * 8 + 8 + 16 + 5 * 8 + 24 + 8 + 64 + 72 + 8 + 48 + 16, "ABI");
_Static_assert(sizeof(struct sched_state) == sizeof(struct sched_totals) + 6 * 8 + 16 + 16 + 72 + 8 + 16, "ABI");
_Static_assert(sizeof(struct sched_cpu_key) == 16, "ABI");
_Static_assert(sizeof(struct sched_counts) == SCHED_COUNTS * 24, "ABI");
