#pragma once

#include <stdbool.h>

#include "err.h"
#include "graph.h"

/*
 * Which host a graph is of, so that several can lie side by side in one.
 */

/** A host by all that tells it from others. Texts are of the graph; NULL: not known. */
struct host_identity {
	const char *host_id; /**< as --host-id said */
	const char *hostname;
	const char *machine_id; /**< of the installation: copies of a machine share it */
	const char *boot_id;    /**< of this run of its kernel: containers share it */
};

/** Whether @p s can be the name of a host in a merged graph: it becomes part of ids. */
bool is_host_name(const char *s);

/** The host that wrote the graph: the one in "local"; all NULL when the graph does not tell. */
struct host_identity host_identity_of(const struct graph *g);

/**
 * Whether two graphs are of one host: the same name if both were given one, else the same
 * installation and boot. Without any of that they are not.
 */
bool host_is_same(const struct host_identity *a, const struct host_identity *b);

/** Copy what is known of the observation itself: status, losses, costs, window. */
void hosts_copy_about(struct graph *into, const struct graph *from);

/** Add all of @p from to @p into as the host @p name, with status, losses and costs, and widen the
 * window. */
void hosts_add(struct graph *into, const struct graph *from, const char *name);
