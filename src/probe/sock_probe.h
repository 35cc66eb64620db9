#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "probe.h"
#include "sock_abi.h"

/* Bytes and messages that sockets really moved, by thread, socket, direction and peer. */

/**
 * Moved in one interval. When `sock.flags` has SOCK_PEER_UNKNOWN, the peer is not known: it is not
 * 0.0.0.0. `sock.remote` and `sock.peer_id` are those of the messages where these name one
 * (sendto(2)), else those of the connection.
 */
struct sock_sample {
	enum sock_dir dir;
	/** SOCK_SEEN and SOCK_TOTAL only once TCP was watched in turns: sock_probe_turns() */
	enum sock_what what;
	/** of v.bytes, what went by unwatched: who moved it is taken to be as it was seen; never from the probe */
	uint64_t estimated_bytes;
	struct sock_value v;
};

/** What did not fit in the flow table, by enum sock_proto and direction: totals stay exact. */
struct sock_rest {
	uint64_t bytes, msgs;
};

struct sock_probe;

int sock_probe_open(struct sock_probe **ret, const struct probe_options *o, struct err *e);
void sock_probe_close(struct sock_probe *p);

/**
 * Report what moved since the last reading: exact differences, each transfer in exactly one
 * reading. A thread, a socket, a direction and a peer make one sample.
 *
 * @param cb return 0 to go on; anything else ends the reading (the rest of it is lost) and is
 * returned
 * @return 0, -errno, or what @p cb returned
 */
int sock_probe_read(struct sock_probe *p, int (*cb)(void *ctx, const struct sock_sample *s),
		    void *ctx, struct err *e);

/** Whether what goes by unwatched can be told: the next ones may be used. */
bool sock_probe_can_turn(const struct sock_probe *p);

/** Learn how much the connections that there are have carried so far; once, when the observation begins. */
int sock_probe_meet(struct sock_probe *p, struct err *e);

/**
 * A period begins in which TCP is watched in turns (sock_probe_hold()), or it ends: after the last reading that is to
 * hold what went by unwatched, and that was begun while nothing was held. From the first such period on a connection's
 * bytes come as SOCK_TOTAL, exact, as far as calls under way have come; what was seen of them comes as SOCK_SEEN.
 */
int sock_probe_turns(struct sock_probe *p, bool on, struct err *e);

/** In a period: while held, messages of TCP are not watched. Other sockets always are. */
void sock_probe_hold(struct sock_probe *p, bool hold);

/** CPUs that there may be. */
uint32_t sock_probe_cpus(void);

/** Messages of TCP that were watched, since open. @param ret [sock_probe_cpus()], of each CPU */
void sock_probe_runs(const struct sock_probe *p, uint64_t *ret);

/** TCP connections opened, listening or ended since the last call. @return as sock_probe_read() */
int sock_probe_events(struct sock_probe *p, int (*cb)(void *ctx, const struct sock_event *ev),
		      void *ctx, struct err *e);

/** For epoll: readable when events should be fetched before the next tick. -1: there are none. */
int sock_probe_fd(const struct sock_probe *p);

/** Since open. @param ret [SOCK_PROTO_N][2], second index enum sock_dir */
void sock_probe_rest(struct sock_probe *p, struct sock_rest ret[SOCK_PROTO_N][2]);

/** Whether what splice(2) takes out of sockets is counted as received. */
bool sock_probe_sees_splice(const struct sock_probe *p);

void sock_probe_health(struct sock_probe *p, struct probe_health *ret);
