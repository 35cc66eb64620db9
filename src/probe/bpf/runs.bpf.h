#pragma once

#include "kernel_types.bpf.h"

/* By CPU: runs of what is watched in turns, whatever became of them. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} runs SEC(".maps");

static __always_inline void run_count(void)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&runs, &zero);

	if (n)
		(*n)++;
}
