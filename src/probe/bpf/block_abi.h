#pragma once

/* Shared by the BPF programs and user space: fixed-width members, append only. */

#include "task_abi.h"

enum block_op { BLOCK_READ, BLOCK_WRITE, BLOCK_DISCARD, BLOCK_OTHER, BLOCK_OPS };

/* Four buckets for each power of two of microseconds. */
#define BLOCK_BUCKETS 128

struct block_key {
	__u32 dev; /**< the whole disk: major << 20 | minor */
	__u32 op;  /**< enum block_op */
};

/** Requests that a disk completed. */
struct block_value {
	__u64 requests, bytes;
	__u64 latency_ns; /**< from where the request was made, summed */
	__u64 device_ns;  /**< from where the driver got it, summed */
	__u64 longest_ns; /**< of latencies */
	__u64 errors;
	__u32 buckets[BLOCK_BUCKETS];
};

struct block_io_key {
	__u64 leader_start_ns;
	__u32 tgid;
	__u32 dev; /**< disk or partition: major << 20 | minor */
	__u32 op;
	__u32 pad;
};

/** What a process handed to a disk; write-back is handed over by the kernel's own threads. */
struct block_io_value {
	__u64 ios, bytes;
};

_Static_assert(sizeof(struct block_key) == 8, "ABI");
_Static_assert(sizeof(struct block_value) == 48 + 4 * BLOCK_BUCKETS, "ABI");
_Static_assert(sizeof(struct block_io_key) == 24, "ABI");
_Static_assert(sizeof(struct block_io_value) == 16, "ABI");
