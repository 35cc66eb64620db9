#pragma once

#include "sock_abi.h"
#include "task_abi.h"

#define PROC_CMDLINE_BYTES 1024
#define PROC_PATH_BYTES	   112

enum proc_event_kind {
	PROC_FORK = 1, /**< a thread or a process began; `task` is the new one */
	PROC_EXEC = 2, /**< a process runs another program; `comm` and `cmdline` are the new ones */
	PROC_EXIT = 3, /**< the last thread of a process ended */
};

struct proc_event {
	__u32 kind;	     /**< enum proc_event_kind */
	__u32 size;	     /**< bytes of this record; `cmdline` is cut to what there is */
	__u64 time_ns;	     /**< CLOCK_BOOTTIME */
	struct task_ident task;
	/** fork: who forked, as a thread; else its real parent process */
	struct task_ident parent;
	__s32 exit_code;     /**< exit: as in wait(2): status << 8 | signal */
	__u32 cmdline_bytes; /**< exec: length of `cmdline`, arguments are NUL-separated */
	__u32 flags;	     /**< PROC_… of enum proc_task_flag */
	__u32 uid;
	char comm[TASK_COMM_BYTES];
	char cmdline[PROC_CMDLINE_BYTES]; /**< exec only; no final NUL when it was cut */
};

enum proc_task_flag {
	PROC_KTHREAD = 1 << 0,
	PROC_CMDLINE_CUT = 1 << 1, /**< the command line is longer than what the record holds */
};

/** One thread as of the reading. */
struct proc_task {
	__u32 size; /**< bytes of this record */
	__u32 flags;
	struct task_ident task;
	__u64 utime_ns, stime_ns; /**< as the kernel accounts them: by tick on many kernels */
	__u64 cgroup_id;	  /**< inode number of its folder in cgroup v2, 0: none */
	__u64 rss_pages;	  /**< of the process; only in the record of its first thread */
	__u32 ppid;		  /**< thread group of the real parent, 0: none */
	__u32 uid;		  /**< real user id, initial user namespace */
	__u32 nr_threads;
	__u32 netns, pidns, mntns; /**< inode numbers as in /proc/PID/ns, 0: none (ended) */
	__u32 nspid;		   /**< its tid in its own pid namespace */
	__u32 nstgid;
	__s32 cpu;  /**< where it runs or ran last */
	char state; /**< R S D T t Z X I P, as in /proc/PID/stat */
	char pad[3];
	char comm[TASK_COMM_BYTES];
};

enum proc_file_kind {
	PROC_FILE_OTHER = 0,
	PROC_FILE_REGULAR,
	PROC_FILE_DIRECTORY,
	PROC_FILE_CHAR,
	PROC_FILE_BLOCK,
	PROC_FILE_FIFO, /**< pipe or named FIFO */
	PROC_FILE_SOCKET,
	PROC_FILE_EVENTFD,
	PROC_FILE_EPOLL,
	PROC_FILE_MEMFD,
	PROC_FILE_ANON, /**< another anonymous inode; `name` tells: "[io_uring]", "[timerfd]" … */
};

/** One open file of one process, as of the reading. */
struct proc_file {
	__u32 size; /**< bytes of this record: up to `name` unless it is a socket */
	__u8 kind;  /**< enum proc_file_kind */
	__u8 access; /**< bit 0: readable, bit 1: writable */
	__u16 pad;
	__u32 tgid;
	__u32 fd;
	__u64 leader_start_ns;
	__u64 ino;
	__u64 size_bytes; /**< regular files and memfds */
	__u64 pos;	  /**< file position */
	__u32 dev;	  /**< device of the file system: major << 20 | minor */
	__u32 rdev;	  /**< char and block devices: the same coding */
	__u32 flags;	  /**< O_… as in fcntl(F_GETFL) */
	__u32 name_bytes;
	char name[PROC_PATH_BYTES]; /**< last component; unix sockets: the bound path or name */
	struct sock_facts sock;	    /**< only when kind is PROC_FILE_SOCKET, else absent */
	struct sock_tcp tcp;
	__u32 rx_queue_bytes; /**< waiting to be received; for listeners: connections to accept */
	__u32 tx_queue_bytes; /**< written, not yet acknowledged (tcp) or taken (unix) */
};

enum proc_map_access {
	PROC_MAP_READ = 1 << 0,
	PROC_MAP_WRITE = 1 << 1,
};

/** One mapping of one process that is shared (MAP_SHARED) and has a file behind it. */
struct proc_map {
	__u32 size; /**< bytes of this record */
	__u32 tgid;
	__u64 leader_start_ns;
	__u64 start, end;    /**< addresses */
	__u64 offset_pages;  /**< where in the file it begins, in pages */
	__u64 ino;	     /**< System V segments: their id */
	__u64 size_bytes;    /**< of the file */
	__u64 blocks;	     /**< of 512 bytes that the file occupies */
	/** of the file that are in memory; 0 for huge pages of some kernels */
	__u64 cached_pages;
	__u32 dev;	     /**< device of the file system: major << 20 | minor */
	__u32 rdev;	     /**< char and block devices: the same coding */
	__u32 magic;	     /**< type of the file system, as in statfs(2) */
	__u32 links;	     /**< names that the file has left */
	__u32 ipcns;	     /**< System V segments: inode number of their IPC namespace; else 0 */
	__u16 mode;	     /**< as in stat(2) */
	__u8 access;	     /**< PROC_MAP_… */
	__u8 name_bytes;
	char name[PROC_PATH_BYTES]; /**< last component */
};

_Static_assert(sizeof(struct proc_event) == 16 + 48 + 16 + 16 + PROC_CMDLINE_BYTES, "ABI");
_Static_assert(sizeof(struct proc_task) == 8 + 24 + 32 + 36 + 4 + 16, "ABI");
_Static_assert(sizeof(struct proc_file) == 64 + PROC_PATH_BYTES + 88 + 48 + 8, "ABI");
_Static_assert(sizeof(struct proc_map) == 96 + PROC_PATH_BYTES, "ABI");
