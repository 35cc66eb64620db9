#pragma once

/* Per-CPU counters of what an object handed over and what it lost; user space sums them. */

#include "health_abi.h"
#include "kernel_types.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HEALTH_N);
	__type(key, u32);
	__type(value, u64);
} health SEC(".maps");

static __always_inline void health_count(enum health_counter which)
{
	u32 key = which;
	u64 *n = bpf_map_lookup_elem(&health, &key);

	if (n)
		(*n)++;
}
