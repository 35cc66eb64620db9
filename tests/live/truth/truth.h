#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The ground-truth workload: processes that send known traffic and count it by the return values of
 * their own calls. All counters live on one board, a shared mapping that every process has; the
 * processes wait for each other by futexes on it, so that the only sockets and bytes that exist are
 * those that a case is about.
 */

enum {
	MAX_PROCS = 320,
	MAX_FLOWS = 640,
	MAX_CASES = 96,
	MAX_ROLES = 26, /**< of one case, those started by other roles included */
	MAX_SLOTS = 160,
	TEXT_BYTES = 112,
	TO_OUTSIDE = 0xffff, /**< "role" of an endpoint that no process owns */
};

enum kind { KIND_TCP, KIND_UDP, KIND_UNIX };

/** What a kernel cannot tell, or tells per packet instead of per call. */
enum flow_flag {
	FLOW_BLIND_RECEIVE = 1, /**< receives pass no socket receive hook or name no sender */
	FLOW_LOOSE_SENT = 2,	/**< one call is several messages to the kernel, or the reverse */
	FLOW_LOOSE_RECEIVED = 4,
};

struct proc_row {
	int32_t pid; /**< 0: never started */
	uint32_t case_no;
	char name[16]; /**< the comm */
	char role[24];
};

struct flow {
	uint32_t case_no;
	uint32_t from, to; /**< roles of the case; @to may be TO_OUTSIDE */
	uint32_t kind;
	uint32_t flags;
	char external[64]; /**< "addr:port" when @to is TO_OUTSIDE */
	uint64_t bytes_sent, messages_sent, bytes_received, messages_received; /**< atomic */
};

struct case_board {
	uint32_t ready, go, done, release;
	uint32_t first_proc; /**< row of role 0 */
	uint32_t skipped;    /**< a role found that the case cannot run here */
	char skip_reason[TEXT_BYTES];
	uint32_t slot[MAX_SLOTS];
	char text[4][TEXT_BYTES];
};

struct board {
	uint32_t lock; /**< guards @nflows and the identity of flows */
	uint32_t nprocs, nflows;
	uint32_t scale;
	char dir[64]; /**< for Unix sockets that have a path */
	struct proc_row procs[MAX_PROCS];
	struct flow flows[MAX_FLOWS];
	struct case_board cases[MAX_CASES];
};

struct act;

struct role {
	const char *name; /**< also the comm: unique over all cases, at most 15 characters */
	void (*fn)(struct act *a); /**< NULL: started by another role with act_fork() */
};

struct kase {
	const char *name;
	const char *doc;
	const struct role *roles;
	unsigned nroles;
	const void *param;
	bool needs_root;
	unsigned nshort; /**< roles beyond @nroles, named "NAME-NN", for act_fork() */
};

/** One process in one case. */
struct act {
	struct board *b;
	const struct kase *k;
	unsigned case_no;
	unsigned role;
	int board_fd; /**< for a program started by exec */
};

extern const struct kase cases_stream[], cases_dgram[], cases_misc[], cases_proc[], cases_zero[],
	cases_netns[];
extern const unsigned ncases_stream, ncases_dgram, ncases_misc, ncases_proc, ncases_zero,
	ncases_netns;

/** Report "case, role: WHAT: strerror(errno)" and end the process with status 1. */
_Noreturn void act_die(struct act *a, const char *what);

/** Set-up is done: arrive, and wait until the case may make its traffic. */
void act_ready(struct act *a);

/** End this process's case: the case cannot run on this host, as @why says. Before act_ready(). */
_Noreturn void act_skip(struct act *a, const char *why);

/** Give the other roles a number, not 0. */
void act_post(struct act *a, unsigned slot, uint32_t value);

/** Wait until a number is posted. @return it */
uint32_t act_wait(struct act *a, unsigned slot);

/** Count one up in @slot and wake those who wait for it. */
void act_step(struct act *a, unsigned slot);

/** Wait until @slot has counted up to @n at least. */
void act_wait_steps(struct act *a, unsigned slot, uint32_t n);

/** Start a role in a child of this process. The child ends when @fn returns. @return its pid */
int act_fork(struct act *a, unsigned role, void (*fn)(struct act *a));

/** Wait for a child of act_fork() to end well. */
void act_reap(struct act *a, int pid);

/** The pid of another role, once it runs. */
int act_pid(struct act *a, unsigned role);

/** The flow from role to role, made at its first use. */
struct flow *act_flow(struct act *a, unsigned from, unsigned to, enum kind kind);

/** As act_flow(), to an endpoint without owner. */
struct flow *act_flow_outside(struct act *a, unsigned from, enum kind kind, const char *external);

void flow_flag(struct flow *f, enum flow_flag flag);
void flow_sent(struct flow *f, uint64_t bytes);
void flow_received(struct flow *f, uint64_t bytes);

/** Set the comm of this process to that of its role. */
void act_set_name(struct act *a);

/** Wait until the main program lets all go. */
void act_hold(struct act *a);
