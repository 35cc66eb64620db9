#pragma once

/*
 * What hardware counters gain while a thread is on a CPU. User space opens them for each CPU and puts them
 * into `events`; at a switch, what they gained since the switch before belongs to the thread that leaves.
 */

#include "kernel_types.bpf.h"

#include "health.bpf.h"
#include "sched_abi.h"

/* Set before load: events of each CPU; 0: none, and the verifier removes all of this. */
const volatile __u32 count_events = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} events SEC(".maps"); /* [cpu * SCHED_COUNTS + event] */

/* As they were at the last switch of a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sched_counts);
} counts_before SEC(".maps");

/* For each thread and CPU; only programs on that CPU write there. */
struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sched_cpu_key);
	__type(value, struct sched_counts);
} counts_0 SEC(".maps"), counts_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct counts_map);
} counts SEC(".maps") = {
	.values = {&counts_0},
};

static const struct sched_counts no_counts = {};

static __always_inline struct sched_counts *counts_of(const struct sched_cpu_key *key)
{
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&counts, &zero);
	struct sched_counts *c;

	if (!map)
		return NULL;
	c = bpf_map_lookup_elem(map, key);
	if (c)
		return c;
	bpf_map_update_elem(map, key, &no_counts, BPF_NOEXIST);
	c = bpf_map_lookup_elem(map, key);
	if (!c)
		health_count(HEALTH_MAP_FULL);
	return c;
}

/*
 * The thread of @key has had its CPU until now. Idle threads, with tid 0, get nothing. A counter that was
 * not there at the last look, or not at all, adds nothing: neither counts nor the time that they are of.
 */
static __always_inline void counts_take(const struct sched_cpu_key *key, bool counting)
{
	u32 zero = 0;
	struct sched_counts *before = bpf_map_lookup_elem(&counts_before, &zero), *sum = NULL;

	if (!before)
		return;
	if (counting && key->tid)
		sum = counts_of(key);
	for (u32 i = 0; i < SCHED_COUNTS; i++) {
		struct bpf_perf_event_value v = {};
		struct sched_count *b = &before->v[i];

		if (i >= count_events ||
		    bpf_perf_event_read_value(&events, key->cpu * SCHED_COUNTS + i, &v, sizeof(v)))
			continue;
		if (sum && b->enabled_ns) {
			sum->v[i].raw += v.counter - b->raw;
			sum->v[i].enabled_ns += v.enabled - b->enabled_ns;
			sum->v[i].running_ns += v.running - b->running_ns;
		}
		b->raw = v.counter;
		b->enabled_ns = v.enabled;
		b->running_ns = v.running;
	}
}
