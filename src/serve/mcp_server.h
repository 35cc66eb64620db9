#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "json.h"
#include "mcp.h"
#include "mcp_answer.h"
#include "mcp_files.h"
#include "mcp_rpc.h"
#include "vec.h"

/* Private to the server: its state, and replies. */

/** Revision whose requests carry all that is needed to answer them. */
#define MCP_MODERN "2026-07-28"

/** Bytes of requests that wait; beyond, no more is read until some are answered. */
#define MCP_WAITING_MAX (4u << 20)

/** What a line held. */
struct mcp_line {
	VEC(struct mcp_message) messages;
	bool array;
	size_t bytes;
};

/** The recording that runs, and the request that asked for it. */
struct mcp_recording {
	pid_t pid;    /**< 0: none runs */
	int messages; /**< its standard error */
	struct strbuf said;
	char *path;
	char *id;    /**< of the request */
	char *token; /**< for progress, as JSON; NULL: not wanted */
	bool modern;
	uint64_t start_ns, duration_ns, told_s;
	enum mcp_carry carry;
};

struct mcp {
	const struct mcp_options *o;
	struct mcp_files files;
	int out;
	int failed;            /**< -errno of writing */
	const char *handshake; /**< revision that was agreed on; NULL: none was */
	VEC(struct mcp_line) queue;
	size_t waiting;       /**< bytes of the queue */
	struct strbuf part;   /**< of a line */
	bool too_long;        /**< the rest of this line is passed over */
	bool ended;           /**< the input has */
	struct strbuf *batch; /**< where replies are gathered; NULL: they are written at once */
	VEC(char *) subscriptions; /**< ids of requests that listen */
	struct mcp_recording recording;
	unsigned recordings; /**< made so far */
};

/** A result that is being written: members go to `w`. */
struct mcp_reply {
	struct mcp *s;
	struct strbuf line;
	struct json_writer w;
};

void mcp_reply_begin(struct mcp *s, struct mcp_reply *r, const char *id, bool modern);
/** The reply to a request that listened, now that nothing more will come. */
void mcp_reply_closed(struct mcp *s, const char *id);

/** Write a whole message and the end of its line, or put it with the others of a batch. */
void mcp_write_line(struct mcp *s, struct strbuf *line);
/** Name and version of this program, as an object. */
void mcp_write_server(struct json_writer *w);
/** How long a client may keep the result: a member of those that can be kept. */
void mcp_reply_keep(struct mcp_reply *r, bool modern, uint64_t ttl_ms, bool for_all);
void mcp_reply_end(struct mcp_reply *r);

/** @param id NULL: it could not be read. @param data JSON, NULL: none */
void mcp_reply_error(struct mcp *s, const char *id, int code, const char *message,
		     const char *data);

/** Write a notification. @param params JSON object */
void mcp_notify(struct mcp *s, const char *method, const char *params);

/** The reply to a call of a tool. */
void mcp_reply_answer(struct mcp *s, const char *id, bool modern, const struct mcp_answer *a);

/** Answer one message. */
void mcp_handle(struct mcp *s, const struct mcp_message *m);

/** Whether a request says itself which revision it is of. */
bool mcp_is_modern(const struct mcp_message *m);

/* mcp_resources.c */
void mcp_resources_list(struct mcp *s, const struct mcp_message *m, bool modern);
void mcp_resources_templates(struct mcp *s, const struct mcp_message *m, bool modern);
void mcp_resources_read(struct mcp *s, const struct mcp_message *m, bool modern);
void mcp_prompts_list(struct mcp *s, const struct mcp_message *m, bool modern);
void mcp_prompts_get(struct mcp *s, const struct mcp_message *m, bool modern);

struct mcp_call;

/* mcp_record.c */
/** Start a recording; the reply comes when it ends. @return 0 or -errno */
int mcp_record_start(struct mcp *s, const struct mcp_call *c, const struct mcp_message *m,
		     bool modern, struct err *e);
/** Look whether it said something or ended; reply. */
void mcp_record_poll(struct mcp *s);
/** End it and remove what it wrote, without a reply. */
void mcp_record_cancel(struct mcp *s);
