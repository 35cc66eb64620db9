#pragma once

#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * The ground-truth workload: cases, the processes ("roles") that play them, and the flows between
 * these. All of it lies in one shared mapping, so that each process counts what its own calls
 * returned and the first process writes it down. Processes tell each other how far they are by
 * semaphores in that mapping, never by a socket or a pipe: there is no traffic but the counted one.
 */

enum {
	MAX_CASES = 96,
	MAX_ROLES = 24,
	MAX_FLOWS = 48,
	MAX_ADDRS = 6,
	MAX_STEPS = 12,
	NAME_BYTES = 16, /* TASK_COMM_LEN */
	BUF_BYTES = 1 << 20,
};

enum kind { KIND_TCP, KIND_UDP, KIND_UNIX };

/** What travels from one process to another in one case; counted by both ends. */
struct flow {
	int src; /**< role index */
	int dst; /**< role index, or -1: nobody listens at @ref external */
	enum kind kind;
	bool blind_receive; /**< the receiver splices: kernels have no hook there */
	char external[64];  /**< "ADDR:PORT" when dst is -1 */
	_Atomic uint64_t bytes_sent;
	_Atomic uint64_t messages_sent;
	_Atomic uint64_t bytes_received;
	_Atomic uint64_t messages_received;
};

struct role {
	char name[NAME_BYTES];
	_Atomic pid_t pid; /**< 0 until the process runs */
	bool held;	   /**< waits at the gate, and stays until all of its case are done */
};

union any_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/** An address that one role publishes and others wait for. */
struct addr_slot {
	sem_t known;
	union any_addr addr;
	socklen_t len;
};

struct tcase {
	int index; /**< into the case table, valid after an exec as well */
	bool selected;
	int nroles;
	int nflows;
	struct role roles[MAX_ROLES];
	struct flow flows[MAX_FLOWS];
	struct addr_slot addrs[MAX_ADDRS];
	sem_t ready;
	sem_t start;
	sem_t done;
	sem_t release;
	sem_t step[MAX_STEPS]; /**< what they mean is the case's own affair */
	pid_t runner;
	int plan; /**< which variant, for cases that share their code */
	char skipped[128]; /**< reason; empty when the case ran */
};

struct shared {
	uint32_t scale;
	char recording[256]; /**< that is being made of this, empty: none */
	char dir[64]; /**< for bound paths and files */
	pid_t main_pid;
	_Atomic bool failed;
	sem_t ready;
	sem_t go;
	struct tcase cases[MAX_CASES];
};

enum transport {
	OVER_TCP4,
	OVER_TCP6,
	OVER_TCP_MAPPED, /* the client's AF_INET6 socket talks to an IPv4 server */
	OVER_TCP_ANY,	 /* the server listens at 0.0.0.0 */
	OVER_UNIX,	 /* stream, bound to a path */
	OVER_UNIX_ABS,	 /* stream, abstract name */
	OVER_SEQPACKET,
	OVER_UDP4,
	OVER_UDP6,
	OVER_UDP_MAPPED,
	OVER_UNIX_DGRAM, /* abstract name */
	OVER_UNIX_DGRAM_PATH,
};

/** One end of a two-process case, once the two sockets are connected and the gate is open. */
typedef void (*body_fn)(struct tcase *c, int fd);

struct case_def {
	const char *name;			  /**< at most 11 characters: NAME.rol is a comm */
	void (*run)(struct tcase *c);		  /**< set up roles and flows, then case_play() */
	enum transport transport;		  /**< the rest is for run == pair_run */
	body_fn client;
	body_fn server;
	bool blind_up; /**< the server receives with splice() */
};

extern const struct case_def cases[];
extern const int ncases;
extern struct shared *shared;
extern int shared_fd;
extern char buf[BUF_BYTES];

typedef void (*role_fn)(struct tcase *c, int role);

/* truth_cases.c: what every such program does with its cases */

/** One ground-truth program. */
struct workload {
	const char *usage;
	void (*init)(void);	  /**< before the first process is made; may be NULL */
	void (*print)(FILE *out); /**< the truth, as JSON */
	bool scales;		  /**< knows --scale */
};

/** The program: options, all chosen cases, and what they did. @return its exit status */
int workload_main(const struct workload *w, int argc, char **argv);
/** Memory that processes share, also those that are executed again. */
int shared_memory(size_t size);
void *shared_map(int fd, size_t size);
/** The case of a process that was executed again, by what it was told: its number, and shared_fd. */
struct tcase *case_after_exec(const char *index, int fd);

/* truth_role.c: processes, gates, counting */

/** Print "truth: case C, NAME: WHAT: strerror(errno)", make all of the program fail, exit. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void role_enter(struct tcase *c, int role);
int role_add(struct tcase *c, const char *suffix, bool held);
struct flow *flow_add(struct tcase *c, int src, int dst, enum kind kind);
struct flow *flow_between(struct tcase *c, int src, int dst, enum kind kind);
/** Fork the process that plays @p role; it ends when @p fn returns. */
pid_t role_start(struct tcase *c, int role, role_fn fn);
/** Open the gate, let the roles work, hold, reap. @p after_start (may be NULL): run in between. */
void case_play(struct tcase *c, void (*after_start)(struct tcase *c));
/** End the runner: this case cannot run here. */
void case_skip(struct tcase *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
/** Called by a held role when it is set up; returns when counted traffic may begin. */
void gate(struct tcase *c);
/** Called by a held role at its end; keeps the process and its sockets as long as asked for. */
void hold(struct tcase *c);
void reap(void);
/**
 * Wait until the recorder has looked at all that is there now: each interval is a transaction of its file, and the
 * second one from now is about an interval that began later. At once when nothing records.
 */
void await_look(void);
void sem_take(sem_t *s);
void step_post(struct tcase *c, int step);
void step_wait(struct tcase *c, int step);
void sleep_us(unsigned us);

static inline void flow_sent(struct flow *f, uint64_t bytes)
{
	atomic_fetch_add(&f->bytes_sent, bytes);
	atomic_fetch_add(&f->messages_sent, 1);
}

static inline void flow_received(struct flow *f, uint64_t bytes)
{
	atomic_fetch_add(&f->bytes_received, bytes);
	atomic_fetch_add(&f->messages_received, 1);
}

/** What was received before it was known from whom. */
static inline void flow_got(struct flow *f, const struct flow *all)
{
	atomic_fetch_add(&f->bytes_received, all->bytes_received);
	atomic_fetch_add(&f->messages_received, all->messages_received);
}

/** Messages of different lengths, 1 to 4000 bytes, the same in each process. */
static inline size_t message_len(unsigned i)
{
	return 1 + i * 613 % 4000;
}

size_t message_sum(unsigned n);

/* truth_sock.c: sockets */
enum kind transport_kind(enum transport t);
int transport_type(enum transport t);
/** Bind (and listen, if connection-based); publish the address in @p slot. */
int sock_bind(struct tcase *c, enum transport t, int slot);
/** A socket of the client's family; *ret_len bytes of *ret are the server's address for it. */
int sock_for(struct tcase *c, enum transport t, int slot, union any_addr *ret, socklen_t *ret_len);
int sock_connect(struct tcase *c, enum transport t, int slot);
int sock_accept(int listener);
/** One successful send; dies on an error. Returns what send() returned. */
size_t send_once(struct flow *f, int fd, const void *p, size_t n);
void send_all(struct flow *f, int fd, const void *p, size_t n);
void send_messages(struct flow *f, int fd, unsigned n);
/** One receive: bytes, or 0 at the end of the stream (not counted). */
size_t recv_once(struct flow *f, int fd, void *p, size_t n);
/** Receive exactly @p n bytes of a stream, at most @p chunk at a time. */
void recv_exactly(struct flow *f, int fd, size_t n, size_t chunk);
void recv_to_eof(struct flow *f, int fd, size_t chunk);
void pair_run(struct tcase *c);

enum { CLI, SRV };	/* roles of a pair */
enum { UP, DOWN };	/* flows of a pair: client to server, server to client */
enum { STEP_UP, STEP_DOWN, STEP_A, STEP_B, STEP_C, STEP_D };

/* truth_stream.c */
void plain_client(struct tcase *c, int fd);
void plain_server(struct tcase *c, int fd);
void partial_client(struct tcase *c, int fd);
void partial_server(struct tcase *c, int fd);
void iov_client(struct tcase *c, int fd);
void iov_server(struct tcase *c, int fd);
void peek_client(struct tcase *c, int fd);
void peek_server(struct tcase *c, int fd);
void half_client(struct tcase *c, int fd);
void half_server(struct tcase *c, int fd);
void reset_client(struct tcase *c, int fd);
void reset_server(struct tcase *c, int fd);
void closed_client(struct tcase *c, int fd);
void closed_server(struct tcase *c, int fd);
void threads_client(struct tcase *c, int fd);
void threads_server(struct tcase *c, int fd);
void nodata(struct tcase *c, int fd);

/* truth_zerocopy.c: sendfile and splice */
void sendfile_client(struct tcase *c, int fd);
void sendfile_server(struct tcase *c, int fd);
void splice_client(struct tcase *c, int fd);
void splice_server(struct tcase *c, int fd);
void blind_client(struct tcase *c, int fd);
void blind_server(struct tcase *c, int fd);

/* truth_uring.c */
void uring_run(struct tcase *c);
void uring_client(struct tcase *c, int fd);
void uring_server(struct tcase *c, int fd);
void sqpoll_run(struct tcase *c);
void sqpoll_client(struct tcase *c, int fd);
void sqpoll_server(struct tcase *c, int fd);

/* truth_dgram.c */
void dgram_client(struct tcase *c, int fd);
void dgram_server(struct tcase *c, int fd);
void mmsg_client(struct tcase *c, int fd);
void mmsg_server(struct tcase *c, int fd);
void trunc_client(struct tcase *c, int fd);
void trunc_server(struct tcase *c, int fd);
void sendto_udp4_run(struct tcase *c);
void sendto_udp6_run(struct tcase *c);
void sendto_mapped_run(struct tcase *c);
void sendto_path_run(struct tcase *c);
void sendto_abstract_run(struct tcase *c);
void nobody_run(struct tcase *c);

/* truth_many.c: many connections at once */
void many_run(struct tcase *c);

/* truth_proc.c: sockets and the processes that have them */
void sockpair_run(struct tcase *c);
void sockpair_dgram_run(struct tcase *c);
void pass_sender_run(struct tcase *c);
void pass_receiver_run(struct tcase *c);
void fork_share_run(struct tcase *c);
void prefork_run(struct tcase *c);
void reuseport_run(struct tcase *c);
void exec_run(struct tcase *c);
void short_tcp_run(struct tcase *c);
void short_udp_run(struct tcase *c);
void self_run(struct tcase *c);
void refused_run(struct tcase *c);
/** The second half of the exec case: what the program does after it was executed again. */
void exec_continue(struct tcase *c, int role, int fd);

/* truth_netns.c */
void same_ports_run(struct tcase *c);
void veth_run(struct tcase *c);
