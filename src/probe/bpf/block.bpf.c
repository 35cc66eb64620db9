// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Requests of disks: which process makes them, and how long they take. */
#include "kernel_types.bpf.h"

#include "block_abi.h"
#include "compat.bpf.h"
#include "health.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	u32 bd_dev;
};

struct request_queue___disk {
	struct gendisk *disk; /* since v5.15 (d152c682f03c) */
};

struct request___block {
	struct request_queue___disk *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 start_time_ns;
	u64 io_start_time_ns;
};

/* Before v5.17 (f3fa33acca9f). */
struct request___rq_disk {
	struct gendisk *rq_disk;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev; /* since v5.12 (309dca309fc3) */
	u32 bi_opf;
	struct bvec_iter bi_iter;
};

struct bio___disk {
	struct gendisk *bi_disk;
	u8 bi_partno;
};

#pragma clang attribute pop

struct disk_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct block_key);
	__type(value, struct block_value);
} disks_0 SEC(".maps"), disks_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct disk_map);
} disks SEC(".maps") = {
	.values = {&disks_0},
};

struct io_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct block_io_key);
	__type(value, struct block_io_value);
} ios_0 SEC(".maps"), ios_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct io_map);
} ios SEC(".maps") = {
	.values = {&ios_0},
};

/* A value does not fit on the stack: new entries are copied from here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct block_value);
} nothing SEC(".maps");

/* Of the tracepoint block_bio_queue: the bio is its first argument since v5.11 (e8a676d61c07). */
const volatile __u32 bio_argument = 0;

/* As the kernel's own counters have it, where odd operations (secure erase, zone append …) are writes. */
static __always_inline u32 op_of(u32 flags)
{
	u32 op = flags & 0xff; /* REQ_OP_MASK */

	if (op == 0)
		return BLOCK_READ;
	if (op == 3)
		return BLOCK_DISCARD;
	/* From 32 on: a driver's own, which are not counted. */
	return op & 1 && op < 32 ? BLOCK_WRITE : BLOCK_OTHER;
}

static __always_inline u32 disk_dev(const struct gendisk *d)
{
	return (u32)BPF_CORE_READ(d, major) << 20 | (u32)BPF_CORE_READ(d, first_minor);
}

static __always_inline u32 request_dev(const struct request___block *rq)
{
	const struct request___rq_disk *old = (const void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return disk_dev(BPF_CORE_READ(old, rq_disk));
	return disk_dev(BPF_CORE_READ(rq, q, disk));
}

static __always_inline u32 bio_dev(const struct bio *bio)
{
	const struct bio___disk *old = (const void *)bio;

	if (bpf_core_field_exists(bio->bi_bdev))
		return BPF_CORE_READ(bio, bi_bdev, bd_dev);
	return disk_dev(BPF_CORE_READ(old, bi_disk)) + BPF_CORE_READ(old, bi_partno);
}

/* 4 * log2 of the microseconds, and the two bits behind the first one. */
static __always_inline u32 bucket_of(u64 ns)
{
	u64 us = ns / 1000;
	u32 e = 0, rest;

	if (us >> 31)
		return BLOCK_BUCKETS - 1;
	rest = us;
	if (rest >> 16) { e += 16; rest >>= 16; }
	if (rest >> 8) { e += 8; rest >>= 8; }
	if (rest >> 4) { e += 4; rest >>= 4; }
	if (rest >> 2) { e += 2; rest >>= 2; }
	if (rest >> 1)
		e += 1;
	rest = e >= 2 ? us >> (e - 2) : us << (2 - e);
	return (e * 4 + (rest & 3)) & (BLOCK_BUCKETS - 1);
}

static __always_inline struct block_value *disk_value(const struct block_key *k)
{
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&disks, &zero);
	struct block_value *v, *empty;

	if (!map)
		return NULL;
	v = bpf_map_lookup_elem(map, k);
	if (v)
		return v;
	empty = bpf_map_lookup_elem(&nothing, &zero);
	if (empty)
		bpf_map_update_elem(map, k, empty, BPF_NOEXIST);
	v = bpf_map_lookup_elem(map, k);
	if (!v)
		health_count(HEALTH_MAP_FULL);
	return v;
}

static __always_inline int on_complete(const struct request___block *rq, int error, u32 bytes)
{
	struct block_key k = {.dev = request_dev(rq), .op = op_of(BPF_CORE_READ(rq, cmd_flags))};
	u64 now = bpf_ktime_get_ns(), made = BPF_CORE_READ(rq, start_time_ns);
	u64 issued = BPF_CORE_READ(rq, io_start_time_ns), took;
	struct block_value *v = disk_value(&k);

	if (!v)
		return 0;
	__sync_fetch_and_add(&v->bytes, bytes);
	/* A part of it: the rest follows. */
	if (bytes < BPF_CORE_READ(rq, __data_len))
		return 0;
	health_count(HEALTH_EMITTED);
	__sync_fetch_and_add(&v->requests, 1);
	if (error)
		__sync_fetch_and_add(&v->errors, 1);
	/* Both are 0 where statistics are off for the disk (queue/iostats). */
	if (!made || made > now)
		return 0;
	took = now - made;
	__sync_fetch_and_add(&v->latency_ns, took);
	if (issued && issued <= now)
		__sync_fetch_and_add(&v->device_ns, now - issued);
	if (took > v->longest_ns)
		v->longest_ns = took;
	__sync_fetch_and_add(&v->buckets[bucket_of(took)], 1);
	return 0;
}

static __always_inline int on_bio(const struct bio *bio)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct block_io_key k = {
		.leader_start_ns = BPF_CORE_READ(t, group_leader, start_boottime),
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.dev = bio_dev(bio),
		.op = op_of(BPF_CORE_READ(bio, bi_opf)),
	};
	struct block_io_value fresh = {.ios = 1, .bytes = BPF_CORE_READ(bio, bi_iter.bi_size)}, *v;
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&ios, &zero);

	if (!map)
		return 0;
	v = bpf_map_lookup_elem(map, &k);
	if (!v) {
		int rc = bpf_map_update_elem(map, &k, &fresh, BPF_NOEXIST);

		if (!rc)
			return 0;
		v = bpf_map_lookup_elem(map, &k);
		if (!v) {
			health_count(HEALTH_MAP_FULL);
			return 0;
		}
	}
	__sync_fetch_and_add(&v->ios, 1);
	__sync_fetch_and_add(&v->bytes, fresh.bytes);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int complete_btf(u64 *ctx)
{
	return on_complete((void *)ctx[0], ctx[1], ctx[2]);
}

SEC("raw_tp/block_rq_complete")
int complete_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_complete((void *)ctx->args[0], ctx->args[1], ctx->args[2]);
}

SEC("raw_tp/block_bio_queue")
int queue_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_bio((void *)(bio_argument ? ctx->args[1] : ctx->args[0]));
}

SEC("tp_btf/block_bio_queue")
int queue_btf(u64 *ctx)
{
	if (bio_argument)
		return on_bio((void *)ctx[1]);
	return on_bio((void *)ctx[0]);
}
