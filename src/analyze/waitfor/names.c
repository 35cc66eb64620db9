/* What states, patterns and hangs are called. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "strbuf.h"
#include "waitfor/parts.h"

static const char *const state_texts[STATE_COUNT] = {
	[STATE_RUN] = "on a CPU",
	[STATE_RUNQ] = "ready, without a CPU",
	[STATE_SLEEP] = "asleep until a time",
	[STATE_DISK] = "waiting for a disk",
	[STATE_NETWORK] = "waiting for the network",
	[STATE_DEVICE] = "waiting for a device",
	[STATE_FAULT] = "waiting for memory",
	[STATE_STOPPED] = "stopped",
	[STATE_OUTSIDE] = "waiting for a terminal or a signal",
	[STATE_CYCLE] = "waiting in a circle",
	[STATE_BLOCKED] = "blocked on what is not known",
};

static const char *const state_names[STATE_COUNT] = {
	[STATE_RUN] = "run",	     [STATE_RUNQ] = "runq",	  [STATE_SLEEP] = "sleep",
	[STATE_DISK] = "disk",	     [STATE_NETWORK] = "network", [STATE_DEVICE] = "device",
	[STATE_FAULT] = "page_fault", [STATE_STOPPED] = "stopped", [STATE_OUTSIDE] = "outside",
	[STATE_CYCLE] = "cycle",     [STATE_BLOCKED] = "blocked",
};

static const char *const patterns[PATTERN_COUNT] = {
	[PATTERN_CONVOY] = "lock_convoy",
	[PATTERN_HANDOVER] = "hand_over",
	[PATTERN_SLOW_PRODUCER] = "slow_producer",
	[PATTERN_BACK_PRESSURE] = "back_pressure",
	[PATTERN_BARRIER] = "barrier",
	[PATTERN_HERD] = "thundering_herd",
	[PATTERN_INVERSION] = "priority_inversion",
	[PATTERN_POLLER] = "poller",
};

static const char *const hangs[HANG_COUNT] = {
	[HANG_STOPPED] = "stopped",
	[HANG_LOST_WAKEUP] = "lost_wakeup",
	[HANG_CYCLE] = "deadlock",
	[HANG_ODD_ONE] = "odd_one",
};

const char *wait_state_text(enum wait_state s)
{
	return s < STATE_COUNT ? state_texts[s] : "?";
}

const char *wait_state_name(enum wait_state s)
{
	return s < STATE_COUNT ? state_names[s] : "?";
}

const char *wait_pattern_name(enum wait_pattern_kind k)
{
	return k < PATTERN_COUNT ? patterns[k] : "?";
}

const char *hang_name(enum hang_kind k)
{
	return k < HANG_COUNT ? hangs[k] : "?";
}

const char *wf_text(struct waitfor *w, const char *fmt, ...)
{
	char *text = NULL;
	const char *copy;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return "";
	copy = arena_strdup(&w->arena, text);
	free(text);
	return copy;
}

const char *wf_str(const struct node *n, unsigned field)
{
	const struct field *f = &n->type->fields[field];

	return n->measured & 1ull << field && f->type == T_STR ? field_get(f, n->data).str : NULL;
}

const char *wf_thread_text(struct waitfor *w, struct graph *g, uint32_t node)
{
	const struct node *n;
	const char *name = NULL;

	if (node == NODE_NONE)
		return "?";
	n = g->nodes.v[node];
	if (n->type == &thread_type)
		name = wf_str(n, thread_f_name);
	if (!name)
		return graph_node_id(g, node);
	return wf_text(w, "%s[%llu]", name, (unsigned long long)GET(thread, n, tid));
}

enum wait_cause wf_edge_cause(const struct edge *d)
{
	if (d->type == &waits_for_type)
		return HAS(waits_for, d, cause) ? wait_cause_find(GET(waits_for, d, cause)) : CAUSE_OTHER;
	return HAS(wakes, d, cause) ? wait_cause_find(GET(wakes, d, cause)) : CAUSE_OTHER;
}

uint64_t wf_time(uint64_t ns)
{
	return ns < WF_TIME_MOST ? ns : WF_TIME_MOST;
}

uint64_t wf_edge_ns(const struct edge *d)
{
	if (d->type == &waits_for_type)
		return HAS(waits_for, d, waited_ns) ? wf_time(GET(waits_for, d, waited_ns)) : 0;
	return HAS(wakes, d, waited_ns) ? wf_time(GET(wakes, d, waited_ns)) : 0;
}

enum wait_ender wf_edge_ender(const struct graph *g, const struct edge *d)
{
	const struct node *n = g->nodes.v[d->source];

	if (n->type == &thread_type)
		return ENDER_THREAD;
	return n->type == &wait_object_type && HAS(wait_object, n, kind)
		       ? wait_ender_find(GET(wait_object, n, kind))
		       : ENDER_UNKNOWN;
}
