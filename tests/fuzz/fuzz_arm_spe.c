/* Fuzz target of SPE: records of a CPU, and a ring and buffer that a kernel could not leave. */
#include <stdlib.h>
#include <string.h>

#include "arm_spe_ring.h"
#include "fuzz.h"

#define RING 256

static void on_record(void *ctx, const struct spe_record *r)
{
	*(uint64_t *)ctx += r->has != 0;
}

static void on_access(void *ctx, const struct mem_access *a)
{
	if (a->answer > MEM_REMOTE)
		abort();
}

/* The first bytes are positions, the rest the ring and then the buffer. */
static void read_ring(const uint8_t *data, size_t size)
{
	struct perf_event_mmap_page page = {0};
	struct spe_stats stats = {0};
	uint8_t rings[2 * RING] = {0}, copy[RING];
	struct spe_ring ring = {.m = &page,
				.data = rings,
				.data_size = RING,
				.aux = rings + RING,
				.aux_size = RING,
				.codes = SPE_CODES_NEOVERSE};

	if (size < 4)
		return;
	page.data_tail = data[0];
	page.data_head = page.data_tail + data[1];
	page.aux_tail = data[2];
	page.aux_head = page.aux_tail + data[3];
	memcpy(rings, data + 4, size - 4 < sizeof(rings) ? size - 4 : sizeof(rings));
	spe_ring_read(&ring, copy, on_access, NULL, &stats);
	if (page.data_tail > page.data_head || page.aux_tail > page.aux_head)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spe_counts counts = {0};
	uint64_t seen = 0;

	spe_decode(data, size, size ? data[0] : 0, on_record, &seen, &counts);
	if (seen != counts.records || counts.records > size || counts.bad_packets > size ||
	    counts.cut > 1)
		abort();
	read_ring(data, size);
	return 0;
}
