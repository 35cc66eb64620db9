/* Names of roles, shapes, patterns and the like, as reports print them. */
#include "topology.h"

const char *role_name(enum role r)
{
	static const char *const names[] = {
	    "unknown",          "launcher",    "API server",        "engine", "worker rank",
	    "parameter server", "data loader", "object store",      "client", "database",
	    "web server",       "build tool",  "container runtime", "shell",  "server",
	    "monitoring tool",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == ROLE_COUNT, "a role without a name");

	return names[r];
}

const char *shape_name(enum shape s)
{
	static const char *const names[] = {
	    "unknown", "no communication",    "pair",       "ring",      "chain", "tree",
	    "star",    "servers and workers", "all-to-all", "hierarchy", "grid",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == SHAPE_COUNT, "a shape without a name");

	return names[s];
}

const char *parallelism_name(enum parallelism p)
{
	static const char *const names[] = {
	    "unknown",
	    "tensor parallel",
	    "pipeline parallel",
	    "data parallel",
	    "expert parallel",
	    "context parallel",
	    "parameter server",
	    "ring all-reduce",
	    "tree all-reduce",
	    "hierarchical all-reduce",
	    "all-to-all",
	    "master/worker star",
	    "prefill/decode split",
	    "independent replicas",
	    "tensor x data parallel grid",
	    "pair exchange",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == PAR_COUNT, "a pattern without a name");

	return names[p];
}

const char *actor_kind_name(enum actor_kind k)
{
	static const char *const names[] = {"process", "outside", "storage", "device"};

	return names[k];
}

const char *thread_role_name(enum thread_role r)
{
	static const char *const names[] = {"staging", "collective proxy", "device runtime"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == THREAD_ROLE_COUNT,
		       "a role without a name");

	return names[r];
}
