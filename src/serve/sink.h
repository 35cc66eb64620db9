#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "net.h"
#include "snapshot.h"
#include "spool.h"

/*
 * Subscribers: each has a thread that renders the newest snapshot when it is due and hands it on. What cannot
 * be handed on is kept on disk (or the newest one in memory) and tried again, later and later. The
 * collection never waits for any of them.
 */

struct server;
struct sink;
struct publisher;

#define SINKS_MAX	16
#define SINK_NAME_BYTES 65

struct sink_settings {
	const struct sink_kind *kind;
	char name[SINK_NAME_BYTES];
	uint64_t interval_ns;
	char *path;	 /**< of files, below the folder for output */
	bool append;
	char *url_text;	 /**< as it was given */
	struct url url;
	char *extra;	 /**< HTTP: members to add to the document, `"a":1,"b":2`; NULL: none */
	char *subject;	 /**< NATS */
	struct publisher *publisher; /**< of a fleet; made by check(), owned */
};

/** What the operator allows, whatever subscribers ask for. */
struct sink_limits {
	const char *output_dir; /**< NULL: no files are written */
	const struct url *targets; /**< [ntargets] where subscribers may send to */
	size_t ntargets;
	struct login login;	/**< for all of them */
	const char *state_dir;	/**< for spools; NULL: none */
	const char *const *broker_settings; /**< [nbroker_settings] NAME=VALUE, Kafka's properties */
	size_t nbroker_settings;
	bool trusted; /**< the operator asks, who may name any target */
};

/** A kind of subscriber: one file, one entry in the table of sinks.c. */
struct sink_kind {
	const char *name; /**< as openEuler's tool names it, where it has it */
	const char *doc;
	bool takes_path, takes_url, takes_subject;
	const char *schemes; /**< of its address, `|` between */
	bool takes_broker;   /**< its address is a broker's, see broker.h */
	bool remote;	     /**< what cannot be delivered is spooled */
	/** May it be, by the limits? Also prepares what needs the folder. @return 0, -EACCES or -EINVAL */
	int (*check)(struct sink_settings *s, const struct sink_limits *l, struct err *e);
	/** What is delivered of a snapshot. NULL: nothing is made of it. */
	void (*render)(const struct sink_settings *s, struct server *srv, struct snapshot *snap, struct strbuf *b);
	/** Hand on. @return 0; -EBADMSG: never again; other -errno: try later */
	int (*deliver)(const struct sink_settings *s, const struct sink_limits *l, const struct strbuf *b,
		       struct err *e);
};

extern const struct sink_kind sink_console, sink_memory, sink_file_text, sink_file_json, sink_http, sink_otlp,
	sink_nats, sink_fleet;

/** What became of one subscriber. */
struct sink_counts {
	char name[SINK_NAME_BYTES];
	const char *type;
	uint64_t interval_ns;
	uint64_t delivered, failed, dropped;
	uint64_t spool_bytes;
	char failure[200]; /**< of the last attempt; "": it went well */
};

struct sinks;

struct sinks *sinks_new(struct server *s, const struct sink_limits *l);
/** Ends all; what is not delivered stays in the spools. NULL is fine. */
void sinks_free(struct sinks *k);

/**
 * Add a subscriber, or replace the one with its name.
 *
 * @param json   an object, as POST /subscriber takes it
 * @param trust  it comes from the operator: its address is allowed by that
 * @return 0; -EINVAL: it is wrong; -EACCES: it is not allowed; -EMFILE: there are too many
 */
int sinks_add(struct sinks *k, const char *json, size_t n, bool trust, char ret_name[SINK_NAME_BYTES],
	      struct err *e);
/** @return 0 or -ENOENT */
int sinks_remove(struct sinks *k, const char *name);
/** @param ret [SINKS_MAX] @return their number */
size_t sinks_get(struct sinks *k, struct sink_counts *ret);
/** There is a new snapshot. */
void sinks_news(struct sinks *k);

/** All kinds, ends with NULL. */
extern const struct sink_kind *const sink_kinds[];
