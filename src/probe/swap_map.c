/* Reads a keyed map of differences without losing an update: two maps, swapped at each reading. */
#include "ladder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "mem.h"

#define BATCH 1024u

int swap_map_init(struct swap_map *m, const struct ladder *l, const char *outer, const char *inner0,
		  const char *inner1, struct err *e)
{
	struct bpf_map *map = bpf_object__find_map_by_name(l->obj, inner0);

	memset(m, 0, sizeof(*m));
	m->outer = ladder_map_fd(l, outer);
	m->inner[0] = ladder_map_fd(l, inner0);
	m->inner[1] = ladder_map_fd(l, inner1);
	if (!map || m->outer < 0 || m->inner[0] < 0 || m->inner[1] < 0)
		return err_set(e, -ENOENT, "map '%s'", outer);
	m->key_size = bpf_map__key_size(map);
	m->value_size = bpf_map__value_size(map);
	m->max_entries = bpf_map__max_entries(map);
	m->keys = mem_alloc(BATCH * m->key_size);
	m->values = mem_alloc(BATCH * m->value_size);
	m->next = mem_alloc(m->key_size > 8 ? m->key_size : 8);
	return 0;
}

void swap_map_done(struct swap_map *m)
{
	free(m->keys);
	free(m->values);
	free(m->next);
	memset(m, 0, sizeof(*m));
}

static int deliver(const struct swap_map *m, uint32_t n,
		   int (*cb)(void *ctx, const void *key, const void *value), void *ctx)
{
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = cb(ctx, (char *)m->keys + i * m->key_size,
			(char *)m->values + i * m->value_size);
	return rc;
}

/* Kernels before v5.6 (05799638bd48) have no batches. */
static int drain_singly(struct swap_map *m, int fd,
			int (*cb)(void *ctx, const void *key, const void *value), void *ctx)
{
	int rc = 0;

	while (!bpf_map_get_next_key(fd, NULL, m->keys)) {
		if (!bpf_map_lookup_elem(fd, m->keys, m->values) && !rc)
			rc = cb(ctx, m->keys, m->values);
		bpf_map_delete_elem(fd, m->keys);
	}
	return rc;
}

static int drain(struct swap_map *m, int fd,
		 int (*cb)(void *ctx, const void *key, const void *value), void *ctx)
{
	uint32_t n, want = BATCH, room = BATCH;
	void *in = NULL;
	int rc = 0, got;

	do {
		n = want;
		got = bpf_map_lookup_and_delete_batch(fd, in, m->next, m->keys, m->values, &n,
						      NULL);
		if (got && errno == ENOSPC && want < m->max_entries) {
			/*
			 * One bucket holds more than fits: it is handed over whole or not at all.
			 */
			want = room = room * 2;
			m->keys = mem_realloc(m->keys, room * m->key_size);
			m->values = mem_realloc(m->values, room * m->value_size);
			got = 0;
			continue;
		}
		if (got && errno != ENOENT)
			return rc ?: drain_singly(m, fd, cb, ctx);
		if (!rc)
			rc = deliver(m, n, cb, ctx);
		in = m->next;
	} while (!got);
	return rc;
}

int swap_map_drain(struct swap_map *m, int (*cb)(void *ctx, const void *key, const void *value),
		   void *ctx, struct err *e)
{
	int old = m->current, other = !old;
	uint32_t zero = 0;

	if (bpf_map_update_elem(m->outer, &zero, &m->inner[other], BPF_ANY))
		return err_set(e, -errno, "swap map");
	m->current = other;
	return drain(m, m->inner[old], cb, ctx);
}
