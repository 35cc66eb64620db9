/* Splits what TCP connections carried over the threads that were seen to use them. */
#include "sock_spread.h"

#include <stdlib.h>
#include <string.h>

/* Of connections that are idle for some time; with the keys about 2 MB. */
#define SHARES_KEPT 20000

struct settling {
	struct sock_spread *s;
	bool held;
	int (*cb)(void *ctx, const struct sock_sample *s);
	void *ctx;
};

void sock_spread_add(struct sock_spread *s, const struct sock_sample *sample)
{
	if (sample->what == SOCK_TOTAL)
		vec_push(&s->totals, *sample);
	else
		vec_push(&s->seen, *sample);
}

static int by_side(const struct sock_sample *x, const struct sock_sample *y)
{
	if (x->v.sock.sk_id != y->v.sock.sk_id)
		return x->v.sock.sk_id < y->v.sock.sk_id ? -1 : 1;
	return (x->dir > y->dir) - (x->dir < y->dir);
}

static int by_thread(const void *a, const void *b)
{
	const struct sock_sample *x = a, *y = b;
	int rc = by_side(x, y);

	if (rc)
		return rc;
	if (x->v.task.tid != y->v.task.tid)
		return x->v.task.tid < y->v.task.tid ? -1 : 1;
	if (x->v.task.start_ns != y->v.task.start_ns)
		return x->v.task.start_ns < y->v.task.start_ns ? -1 : 1;
	return (x->v.last_ns > y->v.last_ns) - (x->v.last_ns < y->v.last_ns);
}

static size_t side_end(const struct sock_sample *v, size_t n, size_t from)
{
	size_t to = from;

	while (to < n && !by_side(&v[to], &v[from]))
		to++;
	return to;
}

static struct sock_looked *looked_of(struct sock_spread *s, int which, uint64_t sk_id, uint32_t dir)
{
	uint32_t i = idmap_get(&s->by_side[which], sk_id, dir);

	return i == IDMAP_NONE ? NULL : &s->looked[which].v[i];
}

static struct sock_looked *keep(struct sock_spread *s, int which, uint64_t sk_id, uint32_t dir)
{
	struct sock_looked *l = vec_add(&s->looked[which]);

	*l = (struct sock_looked){sk_id, dir, s->shares[which].n, 0};
	idmap_put(&s->by_side[which], sk_id, dir, (uint32_t)s->looked[which].n - 1);
	return l;
}

static void keep_seen(struct sock_spread *s, int now, const struct sock_sample *v, size_t n)
{
	struct sock_looked *l = keep(s, now, v->v.sock.sk_id, v->dir);

	for (size_t i = 0; i < n; i++) {
		struct sock_share share = {v[i].v.task, v[i].v.bytes, v[i].v.msgs, ""};

		memcpy(share.comm, v[i].v.comm, sizeof(share.comm));
		vec_push(&s->shares[now], share);
	}
	l->n = n;
}

/* The newest look of each: of this reading, or else the one before. */
static void keep_looks(struct sock_spread *s)
{
	int before = s->now, now = !before;

	vec_clear(&s->looked[now]);
	vec_clear(&s->shares[now]);
	idmap_clear(&s->by_side[now]);
	for (size_t from = 0, to; from < s->seen.n; from = to) {
		to = side_end(s->seen.v, s->seen.n, from);
		keep_seen(s, now, s->seen.v + from, to - from);
	}
	vec_for(&s->looked[before], it) {
		struct sock_looked *l;

		if (looked_of(s, now, it->sk_id, it->dir) || s->shares[now].n + it->n > SHARES_KEPT)
			continue;
		l = keep(s, now, it->sk_id, it->dir);
		l->n = it->n;
		for (size_t i = 0; i < it->n; i++)
			vec_push(&s->shares[now], s->shares[before].v[it->from + i]);
	}
	s->now = now;
}

static uint64_t part_of(uint64_t all, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((unsigned __int128)all * part / whole) : 0;
}

static int tell(const struct settling *x, struct sock_sample *s)
{
	s->what = SOCK_MOVED;
	return s->v.bytes || s->v.msgs ? x->cb(x->ctx, s) : 0;
}

/* @rest: bytes beyond what was seen, or, with @whole, all there are: less than was seen */
static int tell_seen(const struct settling *x, const struct sock_sample *v, size_t n, uint64_t sum, uint64_t rest,
		     bool whole)
{
	uint64_t upto = 0, given = 0;

	for (size_t i = 0; i < n; i++) {
		struct sock_sample one = v[i];
		uint64_t mine;
		int rc;

		/* Rounded so that the parts sum up. */
		upto += v[i].v.bytes;
		mine = part_of(rest, upto, sum) - given;
		given += mine;
		if (whole) {
			one.v.bytes = mine;
		} else {
			one.v.bytes += mine;
			one.estimated_bytes = x->held ? mine : 0;
			one.v.msgs += x->held ? part_of(mine, v[i].v.msgs, v[i].v.bytes) : 0;
		}
		rc = tell(x, &one);
		if (rc)
			return rc;
	}
	return 0;
}

/* As an earlier look saw it. */
static int tell_kept(const struct settling *x, const struct sock_looked *l, const struct sock_sample *total, uint64_t rest)
{
	const struct sock_share *v = x->s->shares[x->s->now].v + l->from;
	uint64_t sum = 0, upto = 0, given = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += v[i].bytes;
	for (size_t i = 0; i < l->n; i++) {
		struct sock_sample one = *total;
		int rc;

		upto += v[i].bytes;
		one.v.bytes = part_of(rest, upto, sum) - given;
		given += one.v.bytes;
		one.v.msgs = x->held ? part_of(one.v.bytes, v[i].msgs, v[i].bytes) : 0;
		one.v.task = v[i].task;
		memcpy(one.v.comm, v[i].comm, sizeof(one.v.comm));
		one.estimated_bytes = x->held ? one.v.bytes : 0;
		rc = tell(x, &one);
		if (rc)
			return rc;
	}
	return 0;
}

/* No look ever saw it used: at least one message it was, unless one that is under way will be counted when it ends. */
static int tell_unseen(const struct settling *x, const struct sock_sample *total, uint64_t rest)
{
	struct sock_sample one = *total;

	one.v.bytes = rest;
	one.estimated_bytes = x->held ? rest : 0;
	one.v.msgs = x->held;
	return tell(x, &one);
}

/* @total: NULL: nothing that was not told before */
static int settle_side(const struct settling *x, const struct sock_sample *total, uint64_t bytes,
		       const struct sock_sample *seen, size_t n)
{
	const struct sock_looked *l;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += seen[i].v.bytes;
	if (sum)
		return tell_seen(x, seen, n, sum, sum >= bytes ? bytes : bytes - sum, sum >= bytes);
	if (!total)
		return 0;
	l = looked_of(x->s, x->s->now, total->v.sock.sk_id, total->dir);
	return l && l->n ? tell_kept(x, l, total, bytes) : tell_unseen(x, total, bytes);
}

static int settle_sides(const struct settling *x)
{
	const struct sock_sample *t = x->s->totals.v, *v = x->s->seen.v;
	size_t nt = x->s->totals.n, n = x->s->seen.n, i = 0, j = 0;
	int rc = 0;

	while (!rc && (i < nt || j < n)) {
		int order = i == nt ? 1 : j == n ? -1 : by_side(&t[i], &v[j]);
		size_t end_t = order <= 0 ? side_end(t, nt, i) : i, end = order >= 0 ? side_end(v, n, j) : j;
		uint64_t bytes = 0;

		for (size_t k = i; k < end_t; k++)
			bytes += t[k].v.bytes;
		/* The newest is the last: who closed it is known then. */
		rc = settle_side(x, end_t > i ? &t[end_t - 1] : NULL, bytes, v + j, end - j);
		i = end_t;
		j = end;
	}
	return rc;
}

int sock_spread_settle(struct sock_spread *s, bool held, int (*cb)(void *ctx, const struct sock_sample *s), void *ctx)
{
	struct settling x = {s, held, cb, ctx};
	int rc;

	if (s->seen.n)
		qsort(s->seen.v, s->seen.n, sizeof(*s->seen.v), by_thread);
	if (s->totals.n)
		qsort(s->totals.v, s->totals.n, sizeof(*s->totals.v), by_thread);
	keep_looks(s);
	rc = settle_sides(&x);
	vec_clear(&s->seen);
	vec_clear(&s->totals);
	return rc;
}

void sock_spread_done(struct sock_spread *s)
{
	vec_done(&s->seen);
	vec_done(&s->totals);
	for (int i = 0; i < 2; i++) {
		vec_done(&s->looked[i]);
		vec_done(&s->shares[i]);
		idmap_done(&s->by_side[i]);
	}
}
