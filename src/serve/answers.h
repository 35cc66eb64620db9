#pragma once

#include "route.h"
#include "server.h"

/* The routes by their files; each list is an item of the table. */
extern const struct route route_root, route_help, route_graph, route_compressed, route_status, route_start,
	route_stop, route_trigger, route_clear;
extern const struct route route_summary, route_openapi, route_metrics, route_events, route_snapshots;
extern const struct route route_entities, route_entity, route_edges, route_neighbours, route_flows, route_paths,
	route_shared, route_waits, route_wakes, route_numa;
extern const struct route route_topology, route_waitfor, route_page_data, route_hotspots, route_bottlenecks, route_findings, route_between, route_diff;
extern const struct route route_fleet;
extern const struct route route_recordings, route_recording, route_record;

/* Which snapshot is asked for. */
#define P_SNAPSHOT                                                                                           \
	{                                                                                                    \
		"snapshot", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "number of a snapshot (default: the newest)" \
	}
#define P_AT                                                                                                 \
	{                                                                                                    \
		"at", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "the newest snapshot of that time, ns since 1970" \
	}
/** The snapshot that the parameters ask for, held, and the reply's tag; NULL: there is none, and the reply says so. */
struct snapshot *asked_snapshot(struct server *s, const struct request *r, struct reply *a);

extern const struct route route_subscriber, route_unsubscribe, route_subscribers;

/** The older graph JSON of a snapshot, without its envelope, appended. */
void graph_content(struct snapshot *snap, struct strbuf *b);
/** The older text of it, kept with the snapshot. */
const struct strbuf *describe_text(struct snapshot *snap);

/** The older envelope's "env": address, name and id of this host, as a JSON object; the caller frees it. */
char *envelope_env(void);
/** The HTML page of the newest snapshot, or why there is none. */
void answer_page(struct server *s, const struct request *r, struct reply *a);
/** The tag of what comes from a snapshot. */
void reply_etag(struct reply *a, const struct server *s, const struct snapshot *snap);
