/* The table of routes, in the order in which they are listed. */
#include "answers.h"

static const struct route *const table[] = {
	&route_root, &route_help, &route_graph, &route_compressed, &route_status, &route_start,
	&route_stop, &route_trigger, &route_clear, &route_subscriber, &route_unsubscribe, &route_subscribers,
	&route_openapi, &route_metrics, &route_summary, &route_snapshots, &route_events,
	&route_entities, &route_entity, &route_edges, &route_neighbours, &route_flows, &route_paths,
	&route_shared, &route_waits, &route_wakes, &route_numa,
	&route_topology, &route_hotspots, &route_waitfor, &route_bottlenecks, &route_findings, &route_between, &route_diff, &route_page_data,
	&route_fleet, &route_recordings, &route_recording, &route_record,
	NULL,
};

const struct route *const *routes_all(void)
{
	return table;
}
