/* The table of routes, in the order in which they are listed. */
#include "answers.h"

static const struct route *const table[] = {
	&route_root, &route_help, &route_graph, &route_compressed, &route_status, &route_start,
	&route_stop, &route_trigger, &route_clear,
	&route_openapi, &route_metrics, &route_summary,
	NULL,
};

const struct route *const *routes_all(void)
{
	return table;
}
