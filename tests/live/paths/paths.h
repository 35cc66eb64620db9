#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "truth.h"

/*
 * The ground truth of every path that is not a socket: pipes, queues, counters, files, memory
 * copies, passed descriptors. Processes, gates and sockets are those of tests/live/workload; what
 * is added is a ledger of each case: which objects there are, as the kernel identifies them, and
 * what each thread's calls on them returned.
 */

enum {
	MAX_OBJECTS = 48,
	MAX_ACCESSES = 160,
	MAX_MOVES = 48,
};

enum object_kind {
	OBJECT_PIPE,
	OBJECT_FIFO,
	OBJECT_EVENTFD,
	OBJECT_POSIX_QUEUE,
	OBJECT_SYSV_QUEUE,
	OBJECT_SYSV_SEM,
	OBJECT_FILE,
	OBJECT_SOCKET, /**< only as something that is passed: its traffic is in the flows */
};

/** An object as the kernel tells it from others, whatever its names and descriptors. */
struct object {
	enum object_kind kind;
	uint64_t dev;  /**< FIFO and file: st_dev */
	uint64_t id;   /**< inode number; eventfd: its id; System V: identifier */
	uint64_t ns;   /**< queues and semaphores: inode number of the IPC namespace */
	unsigned phase; /**< empty in between: who was there before gave nothing to who came after */
	char path[96];	/**< one of its names, or empty */
};

enum dir {
	DIR_READ,  /**< semaphore: operations that take */
	DIR_WRITE, /**< semaphore: operations that give */
	DIR_ZERO,  /**< semaphore: operations that wait for zero */
};

/** What one thread did to one object. */
struct access {
	pid_t pid, tid; /**< in the host's pid namespace */
	int object;
	enum dir dir;
	_Atomic uint64_t bytes;
	_Atomic uint64_t calls; /**< that moved something */
};

/** What went from one process to another directly: copied memory, or descriptors. */
struct move {
	pid_t from, to;
	int object; /**< the passed one; -1: memory */
	uint64_t bytes;
	uint64_t count; /**< calls that copied, or descriptors that arrived */
};

struct ledger {
	sem_t lock;
	int nobjects, naccesses, nmoves;
	struct object objects[MAX_OBJECTS];
	struct access accesses[MAX_ACCESSES];
	struct move moves[MAX_MOVES];
};

/** A case and the row of the table that it counts for. */
struct path_case {
	const char *mechanism;
	/** What the recording may miss if it says so: word in a status row, or NULL. */
	const char *blind;
};

extern const struct path_case path_cases[];
extern struct ledger *ledgers; /**< [ncases], shared by all processes */
extern int ledger_fd;

/* paths_ledger.c */

/** Process of the caller in the pid namespace of the mounted /proc. */
pid_t host_pid(void);
/** For a role that lives in another pid namespace: the id that others know it by. */
void host_enter(struct tcase *c, int role);
/** Index of the object behind a descriptor; the same one for all of its names. */
int object_of(struct tcase *c, int fd);
/** The same object, now that all that went in before was taken out. */
int object_emptied(struct tcase *c, int object);
int object_sysv(struct tcase *c, enum object_kind kind, int id);
/** Note a call that returned @p bytes, 0 counts: a message may be empty. */
void did(struct tcase *c, int object, enum dir dir, uint64_t bytes);
/** The same for a process that was killed within its one call, which nobody can ask any more. */
void did_before_death(struct tcase *c, pid_t pid, int object, enum dir dir, uint64_t bytes);
/** Note a copy of memory from one role to another, or a descriptor that arrived. */
void moved(struct tcase *c, pid_t from, pid_t to, int object, uint64_t bytes);
/** One write() that must move all @p n bytes, at most BUF_BYTES. */
void put(struct tcase *c, int object, int fd, size_t n);
/** Messages 0 to @p n - 1 of message_len() bytes each, a write() each. */
void put_messages(struct tcase *c, int object, int fd, unsigned n);
/** Read exactly @p n bytes, at most @p chunk (up to BUF_BYTES) with a call. */
void take(struct tcase *c, int object, int fd, size_t n, size_t chunk);
/** Die unless a call failed with @p code: it must not be counted. */
void must_fail(ssize_t returned, int code, const char *what);

/** A page that can be neither read nor written, the same for a process and its children. */
void *nowhere(void);

/** Add a held role for each of the names, start them, play the case. */
struct cast {
	const char *name;
	role_fn fn;
};
void play(struct tcase *c, const struct cast *cast, int n);
#define PLAY(c, ...)                                                                               \
	do {                                                                                       \
		static const struct cast cast_[] = {__VA_ARGS__};                                  \
		play(c, cast_, sizeof(cast_) / sizeof(cast_[0]));                                  \
	} while (0)

/** A path in the folder of the run, valid until the next call. */
const char *path_of(const char *name);
/** A regular file of the run with @p n bytes in it, open for reading and writing. */
int file_with(const char *name, size_t n);

/* paths_pipe.c */
void pipe_plain_run(struct tcase *c);
void pipe_iov_run(struct tcase *c);
void pipe_partial_run(struct tcase *c);
void pipe_broken_run(struct tcase *c);
void pipe_many_run(struct tcase *c);
void pipe_threads_run(struct tcase *c);
void pipe_packet_run(struct tcase *c);
void pipe_quiet_run(struct tcase *c);
void pipe_self_run(struct tcase *c);
void pipe_killed_run(struct tcase *c);
void pipe_compat_run(struct tcase *c);

/* paths_identity.c: one object under many names, and its short-lived users */
void pipe_dup_run(struct tcase *c);
void pipe_exec_run(struct tcase *c);
void pipe_brief_run(struct tcase *c);
void pipe_newborn_run(struct tcase *c);
void fifo_names_run(struct tcase *c);
void fifo_turns_run(struct tcase *c);
void pipe_handover_run(struct tcase *c);
/** The second half of the exec case: what the program does after it was executed again. */
void pipe_exec_continue(struct tcase *c, int role, int object, int fd);

/* paths_splice.c */
void splice_pipes_run(struct tcase *c);
void splice_file_run(struct tcase *c);
void splice_tcp_run(struct tcase *c);
void splice_unix_run(struct tcase *c);
void drain_tcp_run(struct tcase *c);
void drain_unix_run(struct tcase *c);
void tee_run(struct tcase *c);
void vmsplice_run(struct tcase *c);
void sendfile_tcp_run(struct tcase *c);
void sendfile_unix_run(struct tcase *c);
void sendfile_pipe_run(struct tcase *c);

/* paths_uring.c */
void uring_pipe_run(struct tcase *c);
void uring_new_run(struct tcase *c);
void uring_async_run(struct tcase *c);
void uring_poll_run(struct tcase *c);
void uring_splice_run(struct tcase *c);
void uring_file_run(struct tcase *c);
void uring_event_run(struct tcase *c);
void uring_defer_run(struct tcase *c);
void uring_skip_run(struct tcase *c);
void uring_signal_run(struct tcase *c);

/* paths_queue.c: eventfd, POSIX and System V queues, semaphores */
void event_threads_run(struct tcase *c);
void event_many_run(struct tcase *c);
void mq_run(struct tcase *c);
void mq_namespace_run(struct tcase *c);
void msg_run(struct tcase *c);
void msg_namespace_run(struct tcase *c);
void sem_run(struct tcase *c);
void sem_lots_run(struct tcase *c);

/* paths_memory.c */
void vm_read_run(struct tcase *c);
void vm_write_run(struct tcase *c);
void vm_namespace_run(struct tcase *c);

/* paths_pass.c */
void pass_kinds_run(struct tcase *c);
void pass_many_run(struct tcase *c);
void pass_cut_run(struct tcase *c);
void pass_pipe_run(struct tcase *c);
void pass_late_run(struct tcase *c);
void pass_peek_run(struct tcase *c);
void pass_lots_run(struct tcase *c);
void pass_ring_run(struct tcase *c);
void getfd_run(struct tcase *c);

/* paths_file.c */
void file_names_run(struct tcase *c);
void file_memory_run(struct tcase *c);
void file_copy_run(struct tcase *c);
void file_quiet_run(struct tcase *c);
void file_aio_run(struct tcase *c);
