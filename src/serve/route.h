#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"
#include "strbuf.h"

/*
 * The table of routes. Dispatch, parameter checks, roles, `/help` and the OpenAPI description all come
 * from it.
 */

struct server;
struct request;
struct reply;

/** What somebody may do. */
enum right { RIGHT_NONE, RIGHT_READ, RIGHT_CONTROL };

enum param_kind { PARAM_TEXT, PARAM_COUNT_OF, PARAM_CHOICE, PARAM_FLAG };

/** A parameter of the query. */
struct param {
	const char *name;
	enum param_kind kind;
	const char *choices; /**< of PARAM_CHOICE: "a|b|c" */
	uint64_t max;	     /**< of PARAM_COUNT_OF; of PARAM_TEXT its length in bytes */
	const char *doc;
};

#define ROUTE_PARAMS_MAX 10

struct route {
	const char *method;
	const char *path;    /**< "/api/v1/entities/{id}": one `{…}`, at the end, takes all that is left */
	const char *summary; /**< one line */
	enum right right;
	bool old;	    /**< of openEuler's interface: parameters that it does not know are passed over */
	const char *mime;   /**< of the answer */
	const char *schema; /**< JSON Schema of it; NULL: text, or any JSON */
	struct param params[ROUTE_PARAMS_MAX]; /**< ends with a NULL name */
	bool takes_body;
	/** Answer. Runs in a thread of the server; must not wait for the collection. */
	void (*answer)(struct server *s, const struct request *r, struct reply *a);
};

/** All routes, ends with a NULL method. */
const struct route *const *routes_all(void);

/** An argument that the table's checks have passed. */
struct argument {
	const char *name, *value;
	uint64_t number; /**< of PARAM_COUNT_OF and PARAM_FLAG */
};

struct request {
	const struct route *route;
	const char *rest; /**< what stands for `{…}`, decoded; NULL: no such part */
	struct argument args[ROUTE_PARAMS_MAX];
	size_t nargs;
	enum right right;
	bool wants_html;
	enum encoding wants;
	const char *if_none_match; /**< NULL: not sent */
	const char *last_event_id; /**< likewise */
	const char *body;
	size_t body_n;
	bool passed; /**< asked again: the collection did something since the reply with @p tick */
	uint64_t tick;
};

/** @return the value, or NULL when it was not given */
const char *request_arg(const struct request *r, const char *name);
/** @return the number, or @p absent */
uint64_t request_count(const struct request *r, const char *name, uint64_t absent);

/** What a route answers. Zeroed is 200 with an empty body. */
struct reply {
	unsigned status; /**< 0: 200 */
	const char *mime; /**< NULL: the route's */
	struct strbuf body; /**< owned; or: */
	const struct strbuf *borrowed; /**< lives as long as @p holds */
	struct snapshot *holds;	       /**< a reference that goes over to the reply */
	enum encoding encoding;        /**< of the body */
	bool stream;	 /**< of events: body is not used */
	bool wait_tick;	 /**< answer again once the collection has passed @p tick */
	uint64_t tick;
	int file_fd;	 /**< with @p file_bytes: the body is that file; closed with the reply */
	uint64_t file_bytes;
	bool has_file;
	char etag[64];	 /**< without quotes; "": none */
	char file_name[128]; /**< for Content-Disposition; "": none */
	unsigned retry_after_s; /**< 0: not said */
};

/** {"detail": "…"} with that status. */
__attribute__((format(printf, 3, 4))) void reply_error(struct reply *a, unsigned status, const char *fmt,
						       ...);
/** Answer with a text that the snapshot keeps; the reference @p s goes over. */
void reply_text(struct reply *a, const struct request *r, struct snapshot *s, enum rendering what,
		void (*make)(void *ctx, struct snapshot *s, struct strbuf *b), void *ctx);

/** @return the route, with `{…}` in @p ret_rest (undecoded, borrowed from @p path); NULL: none.
 *  @param ret_known set when the path exists with another method */
const struct route *route_find(const char *method, const char *path, const char **ret_rest, bool *ret_known);
/** The methods that a path has, as for Allow: "GET, POST". */
void route_allow(const char *path, struct strbuf *b);

/**
 * Check a query against the route's table.
 *
 * @param next returns the parameters one by one (value may be NULL), false at the end
 * @return 0, or -EINVAL with the reply set
 */
int route_arguments(const struct route *r, bool (*next)(void *ctx, const char **name, const char **value),
		    void *ctx, struct request *ret, struct reply *a);

/** As GET /help. */
void routes_help(struct strbuf *b);
/** OpenAPI 3.1, of the whole table. */
void routes_openapi(struct strbuf *b);
