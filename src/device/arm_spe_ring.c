/* Takes SPE records out of a CPU's buffer: see arm_spe_ring.h. */
#include "arm_spe_ring.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

size_t ring_copy(uint8_t *out, const uint8_t *ring, size_t size, uint64_t from, uint64_t to)
{
	size_t n = to - from > size ? size : (size_t)(to - from), at = (size_t)(from & (size - 1));
	size_t first = size - at < n ? size - at : n;

	memcpy(out, ring + at, first);
	memcpy(out + first, ring, n - first);
	return n;
}

struct taker {
	enum spe_codes codes;
	void (*cb)(void *ctx, const struct mem_access *a);
	void *ctx;
	struct spe_stats *stats;
};

static void on_record(void *ctx, const struct spe_record *r)
{
	struct taker *t = ctx;
	struct mem_access a = {.tid = r->context, .cycles = spe_cycles_of(r)};

	t->stats->last_level |= (r->events & (SPE_LLC_ACCESS | SPE_LLC_REFILL)) != 0;
	if (r->op != SPE_LOAD && r->op != SPE_STORE)
		return;
	a.answer = spe_answer_of(r, t->codes, t->stats->last_level);
	if (r->has & SPE_HAS_CONTEXT)
		t->cb(t->ctx, &a);
	else
		t->stats->no_context += a.answer == MEM_LOCAL || a.answer == MEM_REMOTE;
}

/* The kernel leaves alone what has not been given back, so that only what goes round the end is
 * copied. */
static void take_part(struct spe_ring *r, uint64_t offset, uint64_t size, struct taker *t)
{
	size_t at = (size_t)(offset & (r->aux_size - 1));
	uint8_t *whole;

	if (size <= r->aux_size - at) {
		spe_decode(r->aux + at, (size_t)size, at, on_record, t, &t->stats->counts);
		return;
	}
	whole = mem_alloc((size_t)size);
	ring_copy(whole, r->aux, r->aux_size, offset, offset + size);
	spe_decode(whole, (size_t)size, at, on_record, t, &t->stats->counts);
	free(whole);
}

/* The kernel skips some bytes, which it makes padding, without a record. */
static uint64_t not_padding(const struct spe_ring *r, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		if (r->aux[i & (r->aux_size - 1)])
			return to - from;
	return 0;
}

/* A PERF_RECORD_AUX. @return false: what it tells of has not been published yet */
static bool take_aux(struct spe_ring *r, const uint8_t *body, uint64_t head, uint64_t *tail,
		     struct taker *t)
{
	uint64_t v[3]; /* offset, size, flags */
	struct spe_stats *s = t->stats;

	memcpy(v, body, sizeof(v));
	/* Positions only grow, and no more than the buffer is between them. */
	if (v[1] > r->aux_size || v[0] < *tail || v[0] - *tail > r->aux_size) {
		s->skipped += v[1] > r->aux_size ? r->aux_size : v[1];
		return true;
	}
	if (v[0] + v[1] > head)
		return false;
	s->truncated += (v[2] & PERF_AUX_FLAG_TRUNCATED) != 0;
	s->partial += (v[2] & PERF_AUX_FLAG_PARTIAL) != 0;
	s->collisions += (v[2] & PERF_AUX_FLAG_COLLISION) != 0;
	s->skipped += not_padding(r, *tail, v[0]);
	take_part(r, v[0], v[1], t);
	*tail = v[0] + v[1];
	return true;
}

void spe_ring_read(struct spe_ring *r, uint8_t *copy,
		   void (*cb)(void *ctx, const struct mem_access *a), void *ctx,
		   struct spe_stats *stats)
{
	struct taker t = {.codes = r->codes, .cb = cb, .ctx = ctx, .stats = stats};
	uint64_t head = __atomic_load_n(&r->m->data_head, __ATOMIC_ACQUIRE), from = r->m->data_tail,
		 lost;
	uint64_t aux_head = __atomic_load_n(&r->m->aux_head, __ATOMIC_ACQUIRE),
		 tail = r->m->aux_tail;
	size_t n = ring_copy(copy, r->data, r->data_size, from, head), at = 0;
	struct perf_event_header h;

	while (n - at >= sizeof(h)) {
		memcpy(&h, copy + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > n - at) {
			at = n; /* leads nowhere: what follows cannot be found either */
			break;
		}
		if (h.type == PERF_RECORD_AUX && h.size >= sizeof(h) + 24) {
			if (!take_aux(r, copy + at + sizeof(h), aux_head, &tail, &t))
				break;
		} else if (h.type == PERF_RECORD_LOST && h.size >= sizeof(h) + 16) {
			memcpy(&lost, copy + at + sizeof(h) + 8, sizeof(lost));
			stats->lost += lost;
		}
		at += h.size;
	}
	/* Everything was told of: what is left between the two is what a lost record would have
	 * told of. */
	if (at == n && aux_head > tail && aux_head - tail <= r->aux_size) {
		stats->skipped += not_padding(r, tail, aux_head);
		tail = aux_head;
	}
	__atomic_store_n(&r->m->aux_tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&r->m->data_tail, from + at, __ATOMIC_RELEASE);
}
