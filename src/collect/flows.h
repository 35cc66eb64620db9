#pragma once

#include "exchange.h"
#include "proc_probe.h"
#include "sock_probe.h"

/*
 * Sockets: what each end did is added up; the two ends are joined by the kernel's own peer (unix),
 * by the addresses within a network namespace (TCP, UDP), across namespaces where the address is
 * not a loopback one.
 */

struct flows;

struct flows *flows_new(void);
void flows_free(struct flows *f);

/** Add what a thread moved through a socket in one interval. */
void flows_add(struct flows *f, uint32_t proc, const struct sock_sample *s);

/** Add what a process took out of the socket with that inode number by splice(2). */
void flows_add_spliced(struct flows *f, uint32_t proc, uint64_t ino, const struct moved *m);

/** Learn of an open socket and one of its holders. */
void flows_add_holder(struct flows *f, uint32_t proc, const struct sock_facts *s);

bool flows_knows(const struct flows *f, const struct sock_facts *s);

/**
 * The socket with that inode number, if it is known; NULL: not. Valid until the next call that
 * adds.
 */
const struct sock_facts *flows_socket(const struct flows *f, uint64_t ino);

/** A process that holds the socket or has used it; PROC_NONE: none is known. */
uint32_t flows_holder(const struct flows *f, const struct sock_facts *s);

/** A connection whose other end is known by its address only, and that is no loopback one. */
bool flows_leaves(const struct flows *f, const struct sock_facts *s);

/** TCP segments that a socket has sent again since the last call about it; 0 for one never seen. */
uint32_t flows_retransmits(struct flows *f, const struct sock_facts *s, uint32_t total);

/** A socket sends to one that nobody is known to hold: a look at the open files may tell. */
bool flows_want_holders(const struct flows *f);

/** Add all to the round that has begun. */
void flows_contribute(struct flows *f, struct exchange *x);

/** A look at all open sockets begins: those that it does not name are closed. */
void flows_look(struct flows *f);

/**
 * Settle and forget connections that nothing moves through any more, and closed sockets; add the
 * processes of the others to @p used. To be called right after flows_contribute().
 *
 * @param before_ns CLOCK_BOOTTIME: what was used since is kept
 */
void flows_sweep(struct flows *f, struct exchange *x, uint64_t before_ns, uint64_t *used);

/** Connections and sockets that are kept in mind. */
size_t flows_size(const struct flows *f);
