#pragma once

/* Shared by the BPF programs and user space: fixed-width members, append only. */

#include <linux/types.h>

/** Why a thread is not runnable. */
enum wait_cause {
	WAIT_OTHER = 0,
	WAIT_FUTEX,
	WAIT_PIPE,
	WAIT_SOCKET,
	WAIT_QUEUE, /**< System V or POSIX message queue */
	WAIT_SEMAPHORE,
	WAIT_EVENTFD,
	WAIT_POLL, /**< several sources, or one that poll(2) was asked about */
	WAIT_SLEEP,
	WAIT_DISK,
	WAIT_FILE, /**< in a call on a file, but not for its disk */
	WAIT_FILE_LOCK,
	WAIT_PAGE_FAULT,
	WAIT_DEVICE,
	WAIT_CHILD,
	WAIT_SIGNAL, /**< also stopped or traced */
	WAIT_CAUSES
};

/** What the two numbers of a wait's object mean. */
enum wait_kind {
	WAIT_ON_NOTHING = 0,
	WAIT_ON_FUTEX,	    /**< a: address, b: process | WAIT_SHARED */
	WAIT_ON_PIPE,	    /**< a: inode, b: device of a FIFO, 0: anonymous */
	WAIT_ON_SOCKET,	    /**< a: inode, b: socket cookie, 0: none was asked for yet */
	WAIT_ON_MQUEUE,	    /**< a: inode, b: inode of the IPC namespace */
	WAIT_ON_SYSV_QUEUE, /**< a: msqid, b: inode of the IPC namespace */
	WAIT_ON_SYSV_SEM,   /**< a: semid, b: inode of the IPC namespace */
	WAIT_ON_EVENTFD,    /**< a: number of the counter */
	WAIT_ON_EPOLL,	    /**< a: process << 32 | descriptor */
	WAIT_ON_URING,	    /**< likewise */
	WAIT_ON_FILE,	    /**< a: inode, b: device, major << 20 | minor */
	WAIT_ON_CHAR,	    /**< a: device, major << 20 | minor */
	WAIT_ON_CHILD,	    /**< a: pid that was asked for, in the waiter's namespace, 0: any */
	WAIT_ON_LOST,	    /**< not an object: waits that found no room in the map */
	WAIT_ON_STOP,	    /**< stopped by a signal or a debugger: goes on when it is told to */
	WAIT_KINDS
};

#define WAIT_SHARED (1ull << 32)

/* linux/futex.h: FUTEX_WAITERS and FUTEX_OWNER_DIED, which do not come together with an owner that lives. */
#define WAIT_LOCK_OWNED 0xc0000000u
#define WAIT_OWNER_MAX	(4u << 20) /* PID_MAX_LIMIT */

/** A cause and an object. */
struct wait_on {
	__u64 a, b;
	__u16 cause; /**< enum wait_cause */
	__u16 kind;  /**< enum wait_kind */
	/**
	 * futex: value of the word that the waiter expected; no part of the identity. For a contended
	 * lock of the C library its owner is read too: WAIT_LOCK_OWNED and its thread id.
	 */
	__u32 word;
};

enum waker_class {
	WAKER_NONE = 0, /**< not known */
	WAKER_THREAD,
	WAKER_HARDIRQ, /**< an interrupt: a timer or a device */
	WAKER_SOFTIRQ, /**< deferred work of an interrupt: mostly the network */
};

/** Who ended a wait. */
struct waker {
	__u64 start_ns; /**< of the thread, 0: no thread */
	__u32 tid;
	__u32 class; /**< enum waker_class */
};

struct wait_times {
	__u64 count;
	__u64 ns;
	__u64 longest_ns;
};

/** Waits of one thread for one object that one waker ended. */
struct wait_sum {
	struct wait_on on;
	struct waker by;
	struct wait_times times;
};

/** Key of the map of sums that a thread has turned away from; the value is struct wait_value. */
struct wait_key {
	__u64 a, b;
	__u64 start_ns; /**< of the waiter */
	__u64 waker_start_ns;
	__u32 tid;
	__u32 waker_tid;
	__u16 cause, kind;
	__u32 waker_class;
};

struct wait_value {
	struct wait_times times;
	__u64 word;
};

/** How a system call is read; WAIT_CALL_SENDS may be added. Index of the table is its number. */
enum wait_call {
	CALL_OTHER = 0,
	CALL_FUTEX,
	CALL_FUTEX2,   /**< futex_wait(2): flags are the 4th argument */
	CALL_FUTEX_V,  /**< futex_waitv(2) */
	CALL_FD,       /**< blocks on what its descriptor is */
	CALL_SYNC,     /**< blocks on the disk below its descriptor */
	CALL_SYNC_ALL,
	CALL_LOCK,     /**< flock(2) */
	CALL_FCNTL,
	CALL_MSG,
	CALL_SEM,
	CALL_POLL,
	CALL_SELECT,
	CALL_EPOLL,
	CALL_URING,
	CALL_SLEEP,
	CALL_WAIT4,
	CALL_WAITID,
	CALL_SIGNAL,
	CALL_RESTART, /**< restart_syscall(2): goes on with what it was */
};

#define WAIT_CALL_SENDS 0x80 /**< may send on a socket, and so run the receiver's side itself */
#define WAIT_CALL_MASK	0x7f
#define WAIT_CALLS_MAX	512

/** One finished wait, for the order of events. Times are CLOCK_MONOTONIC. */
struct wait_segment {
	__u64 out_ns, wake_ns, in_ns; /**< blocked, woken, on a CPU again */
	__u64 a, b;
	__u64 start_ns, waker_start_ns;
	__u32 tid, waker_tid;
	__u16 cause, kind;
	__u32 waker_class;
};

#define WAIT_SEGMENT_NS 50000 /**< shorter waits are not kept one by one */

_Static_assert(sizeof(struct wait_on) == 24, "ABI");
_Static_assert(sizeof(struct wait_sum) == 24 + 16 + 24, "ABI");
_Static_assert(sizeof(struct wait_key) == 48, "ABI");
_Static_assert(sizeof(struct wait_value) == 32, "ABI");
_Static_assert(sizeof(struct wait_segment) == 72, "ABI");
