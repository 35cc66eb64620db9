/* Reading what the programs of an object hand over: ring buffers and iterators. */
#include "ladder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cleanup.h"
#include "mem.h"

#define ROOM (1u << 16)

int ladder_ring(const struct ladder *l, const char *map, ring_buffer_sample_fn cb, void *ctx,
		struct ring_buffer **ret, struct err *e)
{
	*ret = ring_buffer__new(ladder_map_fd(l, map), cb, ctx, NULL);
	return *ret ? 0 : err_set(e, -errno, "ring buffer of probe '%s'", l->probe);
}

/* Hand over the whole records in buf. @return bytes used */
static size_t records(const struct ladder_records *r, const char *buf, size_t have, int *rc)
{
	size_t used = 0;

	while (!*rc && have - used >= r->bytes) {
		uint32_t size = (uint32_t)r->bytes;

		if (r->sized)
			memcpy(&size, buf + used, sizeof(size));
		if (size < r->bytes) {
			*rc = -EBADMSG;
			break;
		}
		if (have - used < size)
			break;
		*rc = r->cb(r->ctx, buf + used);
		used += size;
	}
	return used;
}

int ladder_iterate(const struct ladder *l, const char *hook, const struct ladder_records *r,
		   struct err *e)
{
	const struct bpf_link *link = ladder_link(l, hook);
	size_t have = 0, used;
	ssize_t n;
	int rc = 0;

	if (!link)
		return err_msg(e, -ENOTSUP, "no iterator over %s on this kernel", hook);
	CLEANUP_FREE char *buf = mem_alloc(ROOM);
	CLEANUP_CLOSE int fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return err_set(e, -errno, "iterator '%s' of probe '%s'", hook, l->probe);
	while (!rc) {
		/* A read may end anywhere. */
		n = read(fd, buf + have, ROOM - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_set(e, -errno, "iterator '%s' of probe '%s'", hook, l->probe);
		if (!n)
			break;
		have += (size_t)n;
		used = records(r, buf, have, &rc);
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	return rc;
}
