#pragma once

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "graph.h"
#include "strbuf.h"

/*
 * What an agent publishes: a line of JSON that says who, which and when, then the payload, compressed with zstd. The
 * payload is a line with the findings, as /api/v1/findings has them or `null`, and the graph as compact text.
 */

#define FLEET_HOST_BYTES  80
#define FLEET_ID_BYTES	  64
#define FLEET_PARTS_MAX	  64
#define FLEET_PLAIN_MAX	  (256u << 20) /* bytes of a payload */

struct fleet_message {
	char host[FLEET_HOST_BYTES]; /**< as --host-id says, else the host name */
	char boot[FLEET_ID_BYTES];   /**< of its kernel; "" when it is not known */
	char run[FLEET_ID_BYTES];    /**< of the agent: another one after each start */
	uint64_t seq;		     /**< 1, 2, … within the run: a gap is a loss */
	uint64_t start_ns, end_ns;   /**< of what is observed, since 1970 */
	uint64_t interval_ns;	     /**< until the next one is to be expected */
	uint32_t part, parts;	     /**< 1 of 1, unless a broker takes no message that large */
	const char *payload;	     /**< [n] borrowed, this part of it */
	size_t n;
};

/** Append the message. */
void fleet_message_write(const struct fleet_message *m, struct strbuf *b);
/** @return 0, or -EBADMSG: it is none; the payload points into @p data */
int fleet_message_read(struct fleet_message *ret, const char *data, size_t n, struct err *e);
/** Unique for each message and part: "HOST/RUN/SEQ", "HOST/RUN/SEQ.PART". */
void fleet_message_id(const struct fleet_message *m, char *ret, size_t size);

/** Compress findings and graph. @param findings JSON, or NULL */
void fleet_pack(struct graph *g, const char *findings, struct strbuf *ret);
/**
 * And back.
 *
 * @param g            initialized and empty
 * @param ret_findings NULL: not wanted
 * @return 0, or -EBADMSG
 */
int fleet_unpack(const char *payload, size_t n, struct graph *g, struct strbuf *ret_findings, struct err *e);
