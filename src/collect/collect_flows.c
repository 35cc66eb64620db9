/*
 * What the sockets, pipes and queues of an interval mean between processes; forgets what is over.
 */
#include <stdlib.h>

#include "channels.h"
#include "clock.h"
#include "collect.h"
#include "flows.h"

/* What was quiet for so long may be forgotten, when nothing is under way in it. */
#define QUIET_NS (10 * 1000000000ull)

/* A socket counts as closed after two looks at all that did not find it. */
#define SWEEPS 2

static size_t kept_in_mind(const struct collect *c)
{
	return flows_size(c->flows) + channels_size(c->channels) + c->procs.v.n - c->procs.free.n;
}

static void sweep(struct collect *c)
{
	uint64_t now = clock_boot_ns();
	uint64_t before = now > QUIET_NS ? now - QUIET_NS : 0;
	uint64_t *used = mem_alloc(procs_bits(&c->procs) * sizeof(*used));

	flows_sweep(c->flows, c->exchange, before, used);
	channels_sweep(c->channels, c->exchange, before, used);
	collect_ipc_mark(c, used);
	exchange_sweep(c->exchange, used);
	procs_sweep(&c->procs, used, before);
	free(used);
}

void collect_flows(struct collect *c, struct graph *g)
{
	exchange_begin(c->exchange);
	flows_contribute(c->flows, c->exchange);
	channels_contribute(c->channels, c->exchange);
	exchange_emit(c->exchange, g, realtime_offset_ns());
	if (c->sweeping) {
		sweep(c);
		if (!--c->sweeping)
			c->sweep_above = kept_in_mind(c) / 4 * 5 + SWEEP_ABOVE;
	} else if (kept_in_mind(c) > c->sweep_above) {
		c->sweeping = SWEEPS;
	}
}
