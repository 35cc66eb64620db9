#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "strbuf.h"

/*
 * Server-sent events: a ring of the newest, and any number of clients that each stand somewhere in it.
 * A client that is too slow misses events, and is told how many; nobody waits for it.
 */
struct events;
struct event_stream;

struct events *events_new(void);
/** All streams have ended before: see events_end(). */
void events_free(struct events *h);

/** Add an event; the clients are not woken, see events_wake(). @param data one line */
void events_put(struct events *h, const char *type, const char *data);
/** A comment that shows clients and what lies between that the connection lives. */
void events_ping(struct events *h);
/** Have the clients that wait go on; and requests that were put off by events_put_off(). */
void events_wake(struct events *h);
/** The clients are told the end of their streams; from now on none begins to wait. */
void events_end(struct events *h);

/**
 * A stream for one client.
 *
 * @param types   "snapshot", "finding", joined by commas; NULL: all
 * @param last_id as Last-Event-ID: events behind it that are still there come first; NULL: only new ones
 */
struct MHD_Response *events_response(struct events *h, struct MHD_Connection *c, const char *types,
				     const char *last_id);
/** Suspend a connection until events_wake(). @return false: the end has come, and it is not suspended */
bool events_put_off(struct events *h, struct MHD_Connection *c);

size_t events_clients(struct events *h);
uint64_t events_missed(struct events *h);
