#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "board.h"
#include "collector.h"
#include "events.h"
#include "guard.h"
#include "serve.h"

/* Private to the layer: what the parts of a running server share. All of it lives as long as the server. */

struct analyzer;
struct fleet;
struct flight;
struct http;
struct sinks;

struct server {
	const struct serve_options *o;
	struct board *board;
	struct collector *collector;
	struct guard *guard;
	struct events *events;
	struct http *http;
	struct analyzer *analyzer;
	struct sinks *sinks;
	struct fleet *fleet;   /**< whose graphs the collector makes; NULL: this host is observed */
	struct flight *flight; /**< NULL: no recordings are written */
	char *env;	      /**< JSON object of the older envelope */
	uint64_t started_ns;  /**< since 1970 */
	uint64_t instance;    /**< other after each start: part of ETags */
	int news_fd;	      /**< eventfd: something to tell to clients */
};
