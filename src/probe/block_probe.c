/* Reads what disks did and for whom, interval by interval. */
#include "block_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "block.skel.h"
#include "ladder.h"
#include "mem.h"

/* Disks times operations; processes that use disks in one interval. */
#define DISKS_MOST 1024
#define IOS_MOST   8192

static const struct hook_def hooks[] = {
	{"complete", "how long requests of disks take", true,
	 {{"tp_btf", {"complete_btf"}}, {"raw_tp", {"complete_raw"}}}},
	{"queue", "which process uses which disk", false, {{"tp_btf", {"queue_btf"}}, {"raw_tp", {"queue_raw"}}}},
};

struct block_probe {
	struct ladder ladder;
	struct swap_map disks, ios;
};

struct disk_delivery {
	int (*cb)(void *ctx, const struct block_key *k, const struct block_value *v);
	void *ctx;
};

struct io_delivery {
	int (*cb)(void *ctx, const struct block_io_key *k, const struct block_io_value *v);
	void *ctx;
};

static int on_disk(void *ctx, const void *key, const void *value)
{
	const struct disk_delivery *d = ctx;

	return d->cb(d->ctx, key, value);
}

static int on_io(void *ctx, const void *key, const void *value)
{
	const struct io_delivery *d = ctx;

	return d->cb(d->ctx, key, value);
}

int block_probe_disks(struct block_probe *p,
		      int (*cb)(void *ctx, const struct block_key *k, const struct block_value *v), void *ctx,
		      struct err *e)
{
	struct disk_delivery d = {cb, ctx};

	return swap_map_drain(&p->disks, on_disk, &d, e);
}

int block_probe_ios(struct block_probe *p,
		    int (*cb)(void *ctx, const struct block_io_key *k, const struct block_io_value *v), void *ctx,
		    struct err *e)
{
	struct io_delivery d = {cb, ctx};

	return swap_map_drain(&p->ios, on_io, &d, e);
}

uint64_t block_bucket_us(uint32_t bucket)
{
	uint32_t e = bucket / 4;
	uint64_t us = (4 + bucket % 4) * (1ull << e) / 4;

	/* Below a microsecond there is one bucket for all. */
	return bucket ? us : 0;
}

/* Where the bio stands among the tracepoint's arguments, of which the first is its own. */
static unsigned bio_argument(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	unsigned ret = 0;
	int id;

	if (!btf)
		return 0;
	id = btf__find_by_name_kind(btf, "btf_trace_block_bio_queue", BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	if (t && btf_is_func_proto(t) && btf_vlen(t) == 3)
		ret = 1;
	btf__free(btf);
	return ret;
}

static void size_map(struct bpf_object *obj, const char *name, uint32_t n)
{
	struct bpf_map *m = bpf_object__find_map_by_name(obj, name);

	bpf_map__set_max_entries(m, n);
}

static int prepare(void *ctx, struct bpf_object *obj, const struct ladder *l, struct err *e)
{
	struct bpf_map *rodata = bpf_object__find_map_by_name(obj, "block.rodata");
	struct block__rodata *r = (void *)bpf_map__initial_value(rodata, &(size_t){0});

	*(unsigned *)(uintptr_t)&r->bio_argument = bio_argument();
	size_map(obj, "disks_0", DISKS_MOST);
	size_map(obj, "disks_1", DISKS_MOST);
	size_map(obj, "ios_0", IOS_MOST);
	size_map(obj, "ios_1", IOS_MOST);
	return 0;
}

int block_probe_open(struct block_probe **ret, const struct probe_options *o, struct err *e)
{
	struct block_probe *p = mem_alloc(sizeof(*p));
	const void *elf;
	size_t size;
	int rc;

	elf = block__elf_bytes(&size);
	ladder_init(&p->ladder, "block", hooks, sizeof(hooks) / sizeof(*hooks), o);
	rc = ladder_load(&p->ladder, elf, size, prepare, p, e);
	rc = rc ?: swap_map_init(&p->disks, &p->ladder, "disks", "disks_0", "disks_1", e);
	rc = rc ?: swap_map_init(&p->ios, &p->ladder, "ios", "ios_0", "ios_1", e);
	if (rc) {
		block_probe_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void block_probe_close(struct block_probe *p)
{
	if (!p)
		return;
	swap_map_done(&p->disks);
	swap_map_done(&p->ios);
	ladder_done(&p->ladder);
	free(p);
}

void block_probe_health(struct block_probe *p, struct probe_health *ret)
{
	ladder_health(&p->ladder, ret);
}
