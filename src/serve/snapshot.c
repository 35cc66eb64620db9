/* Snapshots: counted references to what does not change, and the texts made of it. */
#include "snapshot.h"

#include <string.h>

#include "derive_flows.h"
#include "mem.h"
#include "numa_score.h"

#define PACKED_ABOVE (1u << 20) /* bytes of a text of the analysis: a fleet's topology has a hundred MiB, a tenth of that packed */

struct snapshot *snapshot_new(void)
{
	struct snapshot *s = mem_alloc(sizeof(*s));

	atomic_init(&s->refs, 1);
	atomic_init(&s->analysed, false);
	pthread_mutex_init(&s->lock, NULL);
	for (int i = 0; i < RENDER_COUNT; i++)
		pthread_mutex_init(&s->texts[i].lock, NULL);
	graph_init(&s->g);
	return s;
}

void snapshot_derive(struct snapshot *s)
{
	derive_flows(&s->g);
	derive_numa(&s->g);
	if (s->g.nodes.n) {
		graph_node_id(&s->g, 0);
		graph_out(&s->g, 0);
	}
}

static size_t timeline_bytes(const struct timeline *t)
{
	return t->intervals.cap * sizeof(*t->intervals.v) + t->spans.cap * sizeof(*t->spans.v) +
	       t->slices.cap * sizeof(*t->slices.v);
}

void snapshot_seal(struct snapshot *s)
{
	s->entities = s->g.nodes.n;
	s->edges = s->g.edges.n;
	/* The arena, and what the indexes have for each item. */
	atomic_store(&s->bytes, s->g.arena.used_bytes + s->g.nodes.n * 48 + s->g.edges.n * 32 +
				    timeline_bytes(&s->time) + s->amounts.v.cap * sizeof(struct interval_amount));
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void snapshot_unref(struct snapshot *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (int i = 0; i < RENDER_COUNT; i++) {
		strbuf_done(&s->texts[i].plain);
		for (int e = 0; e < ENCODING_COUNT; e++)
			strbuf_done(&s->texts[i].packed[e]);
		pthread_mutex_destroy(&s->texts[i].lock);
	}
	timeline_done(&s->time);
	vec_done(&s->amounts.v);
	graph_done(&s->g);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* It is kept for minutes: without what it was given in advance. */
static void fit(struct strbuf *b)
{
	if (b->s && b->cap > b->n + 1) {
		b->s = mem_realloc(b->s, b->n + 1);
		b->cap = b->n + 1;
	}
}

const struct strbuf *snapshot_text(struct snapshot *s, enum rendering what,
				   void (*make)(void *ctx, struct snapshot *s, struct strbuf *b),
				   void *ctx, enum encoding want, enum encoding *ret_encoding)
{
	struct rendered *r = &s->texts[what];
	struct strbuf *packed = &r->packed[want];

	pthread_mutex_lock(&r->lock);
	if (!r->made && make) {
		make(ctx, s, &r->plain);
		r->made = true;
		fit(&r->plain);
		atomic_fetch_add(&s->bytes, r->plain.cap);
	}
	if (r->made && !r->plain.s && want != ENCODING_ZSTD) {
		encoding_unpack_zstd(&r->packed[ENCODING_ZSTD], &r->plain);
		fit(&r->plain);
		atomic_fetch_add(&s->bytes, r->plain.cap);
	}
	if (r->made && !(r->tried & 1u << want)) {
		r->tried |= 1u << want;
		if (encoding_pack(want, &r->plain, packed)) {
			fit(packed);
			atomic_fetch_add(&s->bytes, packed->cap);
		}
	}
	pthread_mutex_unlock(&r->lock);
	*ret_encoding = packed->n ? want : ENCODING_PLAIN;
	return !r->made ? NULL : packed->n ? packed : &r->plain;
}

/* Of an analysis the packed text has to stay. */
static bool take_plain(struct snapshot *s, struct rendered *r, struct strbuf *ret)
{
	if (!r->plain.s || !r->packed[ENCODING_ZSTD].n)
		return false;
	*ret = r->plain;
	memset(&r->plain, 0, sizeof(r->plain));
	atomic_fetch_sub(&s->bytes, ret->cap);
	return true;
}

bool snapshot_take_texts(struct snapshot *s, struct snapshot_texts *ret)
{
	bool some = false;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < RENDER_COUNT; i++) {
		struct rendered *r = &s->texts[i];

		if (!r->made)
			continue;
		if (i >= RENDER_TOPOLOGY && i <= RENDER_FINDINGS) {
			some |= take_plain(s, r, &ret->v[i][0]);
			continue;
		}
		some = true;
		ret->v[i][0] = r->plain;
		memcpy(ret->v[i] + 1, r->packed, sizeof(r->packed));
		memset(&r->plain, 0, sizeof(r->plain));
		memset(r->packed, 0, sizeof(r->packed));
		r->tried = 0;
		r->made = false;
		for (int k = 0; k <= ENCODING_COUNT; k++)
			atomic_fetch_sub(&s->bytes, ret->v[i][k].cap);
	}
	return some;
}

void snapshot_texts_done(struct snapshot_texts *t)
{
	for (int i = 0; i < RENDER_COUNT; i++)
		for (int k = 0; k <= ENCODING_COUNT; k++)
			strbuf_done(&t->v[i][k]);
}

void snapshot_keep_text(struct snapshot *s, enum rendering what, struct strbuf *b)
{
	struct rendered *r = &s->texts[what];
	struct strbuf *kept = &r->plain;

	pthread_mutex_lock(&r->lock);
	strbuf_done(&r->plain);
	if (b->n > PACKED_ABOVE && encoding_pack(ENCODING_ZSTD, b, &r->packed[ENCODING_ZSTD])) {
		kept = &r->packed[ENCODING_ZSTD];
		r->tried |= 1u << ENCODING_ZSTD;
		strbuf_done(b);
	} else {
		r->plain = *b;
	}
	fit(kept);
	r->made = true;
	atomic_fetch_add(&s->bytes, kept->cap);
	pthread_mutex_unlock(&r->lock);
	memset(b, 0, sizeof(*b));
}
