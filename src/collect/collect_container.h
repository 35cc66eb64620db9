#pragma once

#include "collect.h"

struct containers;

/** Never NULL. */
struct containers *containers_new(void);
void containers_free(struct containers *c);
/** Containers and pods of the processes; after collect_procs_details(). */
void collect_containers(struct collect *c, struct graph *g);
