#pragma once

#include "collect.h"

struct nics;

/** Never NULL. */
struct nics *nics_new(void);
void nics_free(struct nics *n);
/** Network interfaces of all network namespaces with processes. */
void collect_nics(struct collect *c, struct graph *g);
