#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect.h"
#include "err.h"
#include "fleet/fleet.h"
#include "limit.h"

/** How a server is run. All texts are borrowed and live as long as serve() runs. */
struct serve_options {
	struct collect_options collect;
	const char *host; /**< numeric address to listen at */
	uint16_t port;	  /**< 0: any that is free */
	bool loopback;	  /**< only this host reaches that address */
	const char *token_file, *cert_file, *key_file; /**< NULL: none */
	bool insecure; /**< listen at other addresses than loopback without TLS or without a token */
	const char *const *hosts; /**< [nhosts] names under which browsers may reach it, too */
	size_t nhosts;
	uint64_t interval_ns, window_ns; /**< between snapshots; what one shows */
	uint64_t keep_ns;		 /**< history */
	uint64_t keep_bytes;		 /**< of snapshots, and again of intervals in the flight recorder */
	uint32_t rate_hz;   /**< requests a second and client; 0: no limit */
	uint32_t clients;   /**< connections at once */
	uint32_t threads;   /**< that answer */
	uint32_t timeout_s; /**< to send a request, and without a sign of life */
	const char *state_dir;	/**< recordings and spools; NULL: none are written */
	const char *output_dir; /**< where subscribers may write files; NULL: nowhere */
	const char *const *targets; /**< [ntargets] addresses to which subscribers may send */
	size_t ntargets;
	const char *const *subscribe; /**< [nsubscribe] JSON of subscribers from the start */
	size_t nsubscribe;
	const char *ca_file;	/**< authorities for what is sent by TLS; NULL: the system's */
	const char *client_cert_file, *client_key_file; /**< shown where others ask for a certificate; NULL: none */
	const char *nats_token_file; /**< token for brokers; NULL: none */
	const char *nats_credentials_file; /**< as nkey_read() takes it; NULL: none */
	const char *broker_user_file; /**< a line USER:PASSWORD for brokers; NULL: none */
	const char *const *broker_settings; /**< [nbroker_settings] NAME=VALUE, Kafka's properties */
	size_t nbroker_settings;
	uint64_t publish_entities; /**< most that a published snapshot has; 0: all */
	const struct fleet_options *fleet; /**< serve what a fleet publishes, and observe nothing; NULL: this host */
	const struct limits *limits; /**< thresholds of analyses */
	const char *lock_file;	/**< NULL: none is taken */
	const char *port_file;	/**< the address is written there once it is open; NULL: nowhere */
	void (*ready)(uint16_t port); /**< called once it answers; may be NULL */
	bool keep_privileges;	/**< drop nothing: for debugging */
};

/** Serve until SIGTERM or SIGINT. @return 0 or -errno */
int serve(const struct serve_options *o, struct err *e);
