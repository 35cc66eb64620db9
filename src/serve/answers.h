#pragma once

#include "route.h"
#include "server.h"

/* The routes by their files; each list is an item of the table. */
extern const struct route route_root, route_help, route_graph, route_compressed, route_status, route_start,
	route_stop, route_trigger, route_clear;
extern const struct route route_summary, route_openapi, route_metrics;

/** The older envelope's "env": address, name and id of this host, as a JSON object; the caller frees it. */
char *envelope_env(void);
/** The tag of what comes from a snapshot. */
void reply_etag(struct reply *a, const struct server *s, const struct snapshot *snap);
