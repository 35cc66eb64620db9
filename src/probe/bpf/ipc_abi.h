#pragma once

#include "task_abi.h"

#define IPC_NAME_BYTES 48
#define IPC_CALLS      512 /* system call numbers that the table covers */
#define IPC_FDS	       253 /* descriptors of one message: SCM_MAX_FD */
#define IPC_SEMBUFS    512 /* operations of one semop(2); the kernel takes 500: SEMOPM */

/**
 * What is done with a system call that returned; 0: nothing. User space fills a table of them by
 * system call number: for 64-bit programs in the low byte, for 32-bit ones (other numbers) in the
 * high byte.
 */
enum ipc_call {
	IPC_CALL_NONE = 0,
	IPC_CALL_READ,	/**< the first argument is the descriptor, the result bytes; likewise: */
	IPC_CALL_WRITE,
	IPC_CALL_VMSPLICE,
	IPC_CALL_SPLICE,
	IPC_CALL_TEE,
	IPC_CALL_SENDFILE,
	IPC_CALL_COPY_RANGE,
	IPC_CALL_MQ_SEND,
	IPC_CALL_MQ_RECEIVE,
	IPC_CALL_MSGSND,
	IPC_CALL_MSGRCV,
	IPC_CALL_SEMOP,
	IPC_CALL_VM_READ,
	IPC_CALL_VM_WRITE,
	IPC_CALL_EVENTFD,
	IPC_CALL_IPC, /**< ipc(2) of 32-bit programs: one of the above by its first argument */
	IPC_CALL_AIO, /**< io_submit(2): only counted */
	IPC_CALL_SENDMSG,
	IPC_CALL_RECVMSG,
	IPC_CALL_SENDMMSG,
	IPC_CALL_RECVMMSG,
	IPC_CALL_PIDFD_GETFD,
	IPC_CALL_IOCTL, /**< counted also when it fails */
};

/** Arguments of tracepoint io_uring_complete. */
enum ipc_uring_form {
	/** none that this program knows, or without the request: before v5.18 */
	URING_UNKNOWN = 0,
	URING_RES,	   /**< ring, request, user data, result, …: since v5.18 (cd99a5c1a6cc) */
	URING_CQE,	   /**< ring, request, completion: since v6.14 (07754bfd9aee) */
};

/** What bytes go through. */
enum ipc_kind {
	IPC_OTHER = 0,	 /**< not counted: directories, character devices, /proc, … */
	IPC_PIPE,	 /**< anonymous; id: inode number */
	IPC_FIFO,	 /**< id: inode number, space: device of its file system */
	IPC_EVENTFD,	 /**< id: the counter's number, space: generation, see struct ipc_key */
	IPC_POSIX_QUEUE, /**< id: inode number, space: IPC namespace */
	IPC_SYSV_QUEUE,	 /**< id: identifier, space: IPC namespace */
	IPC_SYSV_SEM,	 /**< id: identifier, space: IPC namespace */
	IPC_FILE,	 /**< id: inode number, space: device of its file system; memfds too */
	IPC_BLOCK,	 /**< id: device number */
	IPC_SOCKET,	 /**< only what splice(2) takes out of it; id: inode number */
	IPC_MEMORY,	 /**< memory of a process, see struct ipc_key */
	IPC_DEVICE,	 /**< a character device, id: device number; terminals and /dev/null are not counted */
	IPC_KINDS,
};

enum ipc_dir {
	IPC_WRITE = 0,	   /**< the thread puts something in; semaphores: operations that add */
	/** the thread takes something out; semaphores: operations that subtract */
	IPC_READ = 1,
	IPC_ZERO_WAIT = 2, /**< semaphores: operations that wait for zero */
	IPC_DIRS,
};

enum ipc_flag {
	IPC_FOLDED = 1 << 0,	 /**< IPC_FILE: several files, because the map of files was full */
	IPC_TARGET_PID = 1 << 1, /**< IPC_MEMORY: id and space say a pid as the caller sees it */
};

/**
 * Who moved something through what.
 *
 * IPC_MEMORY: space is the process (thread group) whose memory it is, id the start of that process;
 * with IPC_TARGET_PID id is its pid in the pid namespace `space` (inode number). IPC_READ: the
 * thread read that memory. IPC_EVENTFD: numbers are used again; the generation tells apart those
 * that were made while calls were watched, 0: earlier.
 */
struct ipc_key {
	__u64 start_ns;
	__u64 id;
	__u32 tid;
	__u32 space;
	__u8 kind;  /**< enum ipc_kind */
	__u8 dir;   /**< enum ipc_dir */
	__u8 flags; /**< enum ipc_flag */
	__u8 pad;
	__u32 pad2;
};

/** Moved during one interval. Times are CLOCK_BOOTTIME. */
struct ipc_value {
	__u64 bytes; /**< IPC_SYSV_SEM: 0; IPC_DEVICE: calls that failed */
	__u64 calls; /**< that moved something, messages of 0 bytes too; IPC_SYSV_SEM: operations; IPC_DEVICE: ioctl */
	__u64 first_ns, last_ns;
	__u64 extra; /**< pipes: buffers of one page; files: size; sockets: cookie, 0: none yet */
	struct task_ident task;
	__s32 fd;   /**< descriptor of the call that made this entry, -1: none */
	__u32 tick; /**< of the kernel's timer, when last_ns was set: it may be less by one tick */
	char comm[TASK_COMM_BYTES];
	char name[IPC_NAME_BYTES]; /**< last component of the path, name of a queue; may be cut */
};

/** How a descriptor went from one process to another. */
enum ipc_pass {
	IPC_PASS_SENT = 0, /**< `task` sent it over a Unix socket (SCM_RIGHTS) */
	IPC_PASS_RECEIVED, /**< `task` received it */
	IPC_PASS_TAKEN,	   /**< `task` took it from `owner` with pidfd_getfd(2) */
};

/** One descriptor that was passed. Both ends of one passing have the same file. */
struct ipc_passed {
	__u64 time_ns; /**< CLOCK_BOOTTIME, when the system call returned */
	struct task_ident task;
	struct task_ident owner; /**< IPC_PASS_TAKEN only */
	__u64 file;	/**< the kernel's address of the open file: good while it is open */
	__u64 sock_ino; /**< inode number of the socket that it went through, 0: none */
	__u64 ino;
	__u64 id;    /**< as in struct ipc_key when kind is not IPC_OTHER */
	__u32 space;
	__u32 dev;   /**< of the file system: major << 20 | minor */
	__u32 magic; /**< of the file system, linux/magic.h */
	__s32 fd;    /**< of `task` */
	__u16 mode;  /**< S_IF… and permissions */
	__u8 kind;   /**< enum ipc_kind, IPC_OTHER for what no bytes are counted of */
	__u8 how;    /**< enum ipc_pass */
	__u32 pad;
	char comm[TASK_COMM_BYTES];
	char name[IPC_NAME_BYTES]; /**< last component, "[eventpoll]", "memfd:NAME"; may be cut */
};

/**
 * What a thread read and wrote since the last reading, by the kernel's account, while calls were watched
 * in turns. By enum ipc_dir.
 */
struct ipc_unwatched {
	struct task_ident task;
	__u64 unwatched[2]; /**< bytes of calls that nobody watched */
	__u64 seen[2];	    /**< bytes of those that were watched, sockets, terminals and the like included */
	char comm[TASK_COMM_BYTES];
};

_Static_assert(sizeof(struct ipc_unwatched) == 24 + 32 + TASK_COMM_BYTES, "ABI");
_Static_assert(sizeof(struct ipc_passed) == 8 + 48 + 32 + 24 + 16 + IPC_NAME_BYTES, "ABI");
_Static_assert(sizeof(struct ipc_key) == 32, "ABI");
_Static_assert(sizeof(struct ipc_value) == 40 + 24 + 8 + 16 + IPC_NAME_BYTES, "ABI");
