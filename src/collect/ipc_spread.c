/* Splits what a thread moved unwatched over what it was seen to use. */
#include "ipc_spread.h"

#include <stdlib.h>
#include <string.h>

/* Of threads that do nothing for some time; with the key about 4 MB. */
#define ROWS_KEPT 20000

typedef void add_fn(void *ctx, const struct ipc_sample *s);

/* Whether the kernel's account of the thread holds it. */
static bool is_accounted(const struct ipc_sample *s)
{
	switch (s->key.kind) {
	case IPC_PIPE:
	case IPC_FIFO:
	case IPC_EVENTFD:
	case IPC_FILE:
	case IPC_BLOCK:
		return s->key.dir == IPC_WRITE || s->key.dir == IPC_READ;
	default:
		return false;
	}
}

static int by_thread(const void *a, const void *b)
{
	const struct ipc_key *x = &((const struct ipc_sample *)a)->key, *y = &((const struct ipc_sample *)b)->key;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

static struct ipc_looked *looked_of(struct ipc_spread *s, int which, uint32_t tid, uint64_t start_ns)
{
	uint32_t i = idmap_get(&s->by_thread[which], tid, start_ns);

	return i == IDMAP_NONE ? NULL : &s->looked[which].v[i];
}

static void keep(struct ipc_spread *s, int which, const struct ipc_unwatched *thread, const struct ipc_sample *rows,
		 size_t n)
{
	struct ipc_looked *l = vec_add(&s->looked[which]);

	l->thread = *thread;
	l->from = s->rows[which].n;
	l->n = n;
	idmap_put(&s->by_thread[which], thread->task.tid, thread->task.start_ns, (uint32_t)s->looked[which].n - 1);
	for (size_t i = 0; i < n; i++)
		vec_push(&s->rows[which], rows[i]);
}

/* The newest look of each thread: of this interval, or else the one before. */
static void keep_looks(struct ipc_spread *s, const struct ipc_sample *rows, size_t n)
{
	int before = s->now, now = !before;

	vec_clear(&s->looked[now]);
	vec_clear(&s->rows[now]);
	idmap_clear(&s->by_thread[now]);
	vec_for(&s->threads, t) {
		struct ipc_looked *old = looked_of(s, before, t->task.tid, t->task.start_ns);
		struct ipc_sample key = {.key = {.tid = t->task.tid, .start_ns = t->task.start_ns}};
		size_t from = 0, to = n;

		while (from < to) {
			size_t mid = from + (to - from) / 2;

			if (by_thread(&rows[mid], &key) < 0)
				from = mid + 1;
			else
				to = mid;
		}
		while (to < n && rows[to].key.tid == t->task.tid && rows[to].key.start_ns == t->task.start_ns)
			to++;
		/* A thread may be told of twice: when it ended, too. */
		if (looked_of(s, now, t->task.tid, t->task.start_ns))
			continue;
		if (to > from || t->seen[0] || t->seen[1])
			keep(s, now, t, rows + from, to - from);
		else if (old)
			keep(s, now, &old->thread, s->rows[before].v + old->from, old->n);
	}
	vec_for(&s->looked[before], it)
		if (!looked_of(s, now, it->thread.task.tid, it->thread.task.start_ns) &&
		    s->rows[now].n + it->n <= ROWS_KEPT && s->looked[now].n < ROWS_KEPT)
			keep(s, now, &it->thread, s->rows[before].v + it->from, it->n);
	s->now = now;
}

static uint64_t part_of(uint64_t all, uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)all * part / whole);
}

static void emit(const struct ipc_sample *row, uint64_t bytes, uint64_t calls, add_fn *add, void *ctx)
{
	struct ipc_sample e = *row;

	e.v.bytes = bytes;
	e.v.calls = calls;
	e.estimated = true;
	if (bytes || calls)
		add(ctx, &e);
}

/* What the rows do not hold of @whole was about sockets, terminals and the like. */
static void split(const struct ipc_sample *rows, size_t n, unsigned dir, uint64_t bytes, uint64_t whole, add_fn *add,
		  void *ctx)
{
	uint64_t sum = 0, given = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].key.dir == dir)
			sum += rows[i].v.bytes;
	whole = sum > whole ? sum : whole;
	sum = 0;
	for (size_t i = 0; whole && i < n; i++) {
		uint64_t mine;

		if (rows[i].key.dir != dir || !rows[i].v.bytes)
			continue;
		/* Rounded so that the parts sum up. */
		sum += rows[i].v.bytes;
		mine = part_of(bytes, sum, whole) - given;
		given += mine;
		emit(&rows[i], mine, part_of(mine, rows[i].v.calls, rows[i].v.bytes), add, ctx);
	}
}

static void spread_thread(struct ipc_spread *s, const struct ipc_unwatched *t, add_fn *add, void *ctx)
{
	const struct ipc_looked *l = looked_of(s, s->now, t->task.tid, t->task.start_ns);

	for (unsigned dir = 0; dir < 2; dir++) {
		if (!t->unwatched[dir])
			continue;
		if (!l)
			s->unassigned += t->unwatched[dir];
		else
			split(s->rows[s->now].v + l->from, l->n, dir, t->unwatched[dir], l->thread.seen[dir], add, ctx);
	}
}

void ipc_spread_add(struct ipc_spread *s, const struct ipc_sample *samples, size_t n, double unwatched_share,
		    add_fn *add, void *ctx)
{
	VEC(struct ipc_sample) rows = {0};

	for (size_t i = 0; i < n; i++) {
		const struct ipc_value *v = &samples[i].v;

		if (is_accounted(&samples[i]))
			vec_push(&rows, samples[i]);
		else
			emit(&samples[i], (uint64_t)((double)v->bytes * unwatched_share),
			     (uint64_t)((double)v->calls * unwatched_share), add, ctx);
	}
	if (rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), by_thread);
	keep_looks(s, rows.v, rows.n);
	vec_for(&s->threads, t)
		spread_thread(s, t, add, ctx);
	vec_clear(&s->threads);
	vec_done(&rows);
}

void ipc_spread_clear(struct ipc_spread *s)
{
	for (int i = 0; i < 2; i++) {
		vec_clear(&s->looked[i]);
		vec_clear(&s->rows[i]);
		idmap_clear(&s->by_thread[i]);
	}
	vec_clear(&s->threads);
}

void ipc_spread_done(struct ipc_spread *s)
{
	for (int i = 0; i < 2; i++) {
		vec_done(&s->looked[i]);
		vec_done(&s->rows[i]);
		idmap_done(&s->by_thread[i]);
	}
	vec_done(&s->threads);
}
