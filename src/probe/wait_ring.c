/* Reads the newest single waits, which every CPU keeps in a ring of its own. */
#include "wait_ring.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "cleanup.h"
#include "mem.h"

/* Those of one CPU; before v5.6, which knows no batches of arrays, one by one. */
static int read_ring(int fd, uint32_t cpu, uint32_t per_cpu, uint32_t *keys, struct wait_segment *ret)
{
	uint32_t first = cpu * per_cpu, before = first - 1, next, n = per_cpu;

	if (!bpf_map_lookup_batch(fd, first ? &before : NULL, &next, keys, ret, &n, NULL) || errno == ENOENT)
		return n == per_cpu ? 0 : -ENOENT;
	for (uint32_t i = 0; i < per_cpu; i++)
		if (bpf_map_lookup_elem(fd, &(uint32_t){first + i}, &ret[i]))
			return -errno;
	return 0;
}

int wait_ring_read(const struct ladder *l, uint32_t ncpu, uint32_t per_cpu,
		   int (*cb)(void *ctx, const struct wait_segment *s), void *ctx, uint64_t *ret_from_ns, struct err *e)
{
	CLEANUP_FREE uint32_t *keys = mem_alloc(per_cpu * sizeof(*keys));
	CLEANUP_FREE struct wait_segment *v = mem_alloc(per_cpu * sizeof(*v));
	int fd = ladder_map_fd(l, "wait_segments"), rc = 0;

	*ret_from_ns = 0;
	for (uint32_t cpu = 0; !rc && cpu < ncpu; cpu++) {
		uint64_t oldest = UINT64_MAX;
		uint32_t i = 0;

		rc = read_ring(fd, cpu, per_cpu, keys, v);
		if (rc < 0)
			return err_set(e, rc, "map 'wait_segments'");
		for (; !rc && i < per_cpu && v[i].in_ns; i++) {
			oldest = v[i].in_ns < oldest ? v[i].in_ns : oldest;
			rc = cb(ctx, &v[i]);
		}
		/* Older ones were overwritten. */
		if (i == per_cpu && oldest > *ret_from_ns)
			*ret_from_ns = oldest;
	}
	return rc;
}
