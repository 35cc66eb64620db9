#pragma once

#include "collect.h"
#include "exchange.h"
#include "sock_probe.h"

/*
 * Keeps what watching TCP costs within its part of the bound: messages are watched in short looks, if need be, and what
 * goes by in between is told by the kernel's own counters of each connection. Apart from the turns that system calls are
 * watched in (ipc_turns.c): a look costs nothing here but what it sees.
 */

struct sock_turns;

struct sock_turns *sock_turns_new(const struct collect *c);
void sock_turns_free(struct sock_turns *t);

/** The observation begins. */
int sock_turns_begin(struct collect *c, struct err *e);

/** As collect_due_ns(). */
uint64_t sock_turns_due_ns(const struct collect *c);
/** Do what is due; nothing, if it is too early. */
int sock_turns_do(struct collect *c, struct err *e);

/** Take over a sample with SOCK_SEEN or SOCK_TOTAL of the reading that goes on. */
void sock_turns_add(struct sock_turns *t, const struct sock_sample *s);

/** The reading is over: @p cb gets what threads moved, as sock_spread_settle() has it. */
int sock_turns_settle(struct collect *c, int (*cb)(void *ctx, const struct sock_sample *s), void *ctx, struct err *e);

/** What nobody is known to have moved. */
void sock_turns_unknown(struct sock_turns *t, uint64_t bytes);

/**
 * Another probe has seen splice(2) take something out of a TCP socket, which is in the connection's total.
 *
 * @return whether it is told of by that, and not to be told of again
 */
bool sock_turns_splice(struct sock_turns *t, const struct sock_facts *s, uint64_t bytes);

void sock_turns_describe(const struct collect *c, struct graph *g);
