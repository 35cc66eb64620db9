#pragma once

#include "guard.h"
#include "route.h"
#include "serve.h"

/* The listening socket, the threads that answer, and the limits of connections. */
struct http;
struct server;

/** What happened so far. */
struct http_counts {
	uint64_t requests[6]; /**< by hundreds of the status; [0]: no answer was sent */
	uint64_t refused[REFUSE_COUNT];
	uint64_t timed_out; /**< connections that were closed because a request took too long to come */
	uint64_t too_large;
	size_t connections; /**< open now */
	uint64_t busy_ns;   /**< time spent on making answers */
};

/** Open the socket; nobody is answered yet. @param ret_port the one that it has */
int http_open(struct http **ret, struct server *s, uint16_t *ret_port, struct err *e);
/** Start the threads, which take over what privileges this thread has. */
int http_start(struct http *h, struct err *e);
/** No new connections. */
void http_quiesce(struct http *h);
/** Once no stream waits any more: end all. NULL is fine. */
void http_close(struct http *h);

/** Close connections that have been sending a request for too long. Call it each second. */
void http_sweep(struct http *h);
void http_get(struct http *h, struct http_counts *ret);
