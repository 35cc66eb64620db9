/* Data through things that processes share: who put it in, who took it out. */
#include "channels.h"

#include <stdlib.h>
#include <string.h>

/* A thing that still holds data, and that nobody used for so long, is not waited for any longer. */
#define UNREAD_KEPT_NS (300 * 1000000000ull)

struct channel {
	enum flow_kind kind;
	uint64_t id1, id2;
	struct shares sent, received; /* since it was empty */
	uint64_t last_ns;	      /* last use before */
};

struct channels {
	VEC(struct channel) v;
	struct idmap by_id[FLOW_KINDS];
};

struct channels *channels_new(void)
{
	return mem_alloc(sizeof(struct channels));
}

static void channel_done(struct channel *h)
{
	vec_done(&h->sent.list);
	vec_done(&h->received.list);
}

void channels_free(struct channels *c)
{
	if (!c)
		return;
	vec_for(&c->v, h)
		channel_done(h);
	vec_done(&c->v);
	for (int i = 0; i < FLOW_KINDS; i++)
		idmap_done(&c->by_id[i]);
	free(c);
}

static struct channel *channel_of(struct channels *c, enum flow_kind kind, uint64_t id1,
				  uint64_t id2)
{
	uint32_t i = idmap_get(&c->by_id[kind], id1, id2);
	struct channel *h;

	if (i != IDMAP_NONE)
		return &c->v.v[i];
	h = vec_add(&c->v);
	h->kind = kind;
	h->id1 = id1;
	h->id2 = id2;
	idmap_put(&c->by_id[kind], id1, id2, (uint32_t)c->v.n - 1);
	return h;
}

void channels_add(struct channels *c, enum flow_kind kind, uint64_t id1, uint64_t id2,
		  uint32_t proc, bool received, const struct moved *m)
{
	struct channel *h = channel_of(c, kind, id1, id2);

	shares_add(received ? &h->received : &h->sent, proc, m);
}

void channels_add_direct(struct channels *c, enum flow_kind kind, uint32_t from, uint32_t to,
			 const struct moved *m)
{
	struct channel *h = channel_of(c, kind, from, to);

	shares_add(&h->sent, from, m);
	shares_add(&h->received, to, m);
}

static uint64_t last_use(const struct channel *h)
{
	uint64_t sent = shares_last_ns(&h->sent), received = shares_last_ns(&h->received);
	uint64_t last = sent > received ? sent : received;

	return last > h->last_ns ? last : h->last_ns;
}

static void contribute(const struct channel *h, struct exchange *x, bool for_good)
{
	struct crossing c = {.kind = h->kind, .sent = &h->sent, .received = &h->received,
			     .holder = PROC_NONE};

	exchange_add(x, &c, for_good);
}

/*
 * It is empty: what comes later is not of those that were here, and they did not get it. A counter
 * is never told from an empty one.
 */
static bool is_drained(const struct channel *h)
{
	uint64_t sent = shares_bytes(&h->sent);

	return sent && sent == shares_bytes(&h->received) && h->kind != FLOW_EVENTFD;
}

void channels_contribute(struct channels *c, struct exchange *x)
{
	vec_for(&c->v, h) {
		contribute(h, x, false);
		if (!is_drained(h))
			continue;
		contribute(h, x, true);
		h->last_ns = last_use(h);
		vec_clear(&h->sent.list);
		vec_clear(&h->received.list);
	}
}

static bool is_over(const struct channel *h, uint64_t before_ns)
{
	uint64_t last = last_use(h);

	if (last >= before_ns)
		return false;
	return shares_bytes(&h->sent) == shares_bytes(&h->received) ||
	       last + UNREAD_KEPT_NS < before_ns;
}

static void mark(const struct shares *s, uint64_t *used)
{
	vec_for(&s->list, it)
		procs_set_bit(used, it->proc);
}

void channels_sweep(struct channels *c, struct exchange *x, uint64_t before_ns, uint64_t *used)
{
	size_t kept = 0;

	for (int i = 0; i < FLOW_KINDS; i++)
		idmap_clear(&c->by_id[i]);
	vec_for(&c->v, h) {
		if (is_over(h, before_ns)) {
			contribute(h, x, true);
			channel_done(h);
			continue;
		}
		mark(&h->sent, used);
		mark(&h->received, used);
		idmap_put(&c->by_id[h->kind], h->id1, h->id2, (uint32_t)kept);
		c->v.v[kept++] = *h;
	}
	c->v.n = kept;
}

size_t channels_size(const struct channels *c)
{
	return c->v.n;
}
