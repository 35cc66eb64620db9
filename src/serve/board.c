/* The board: snapshots for all readers, as many as age and size allow. */
#include "board.h"

#include <string.h>

#include "mem.h"
#include "vec.h"

struct board {
	struct board_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t news;
	VEC(struct snapshot *) v; /* oldest first */
	uint64_t seq, evicted;
	bool stopped;
};

struct board *board_new(const struct board_limits *l)
{
	struct board *b = mem_alloc(sizeof(*b));

	b->limits = *l;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->news, NULL);
	return b;
}

void board_free(struct board *b)
{
	if (!b)
		return;
	vec_for(&b->v, s)
		snapshot_unref(*s);
	vec_done(&b->v);
	pthread_cond_destroy(&b->news);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct snapshot *take(struct board *b, size_t i)
{
	struct snapshot *s = b->v.v[i];

	memmove(&b->v.v[i], &b->v.v[i + 1], (b->v.n - i - 1) * sizeof(*b->v.v));
	b->v.n--;
	return s;
}

static size_t bytes_of(const struct board *b)
{
	size_t sum = 0;

	for (size_t i = 0; i + 1 < b->v.n; i++)
		sum += b->v.v[i]->bytes;
	return sum;
}

/* The newest one whose analysis is there, SIZE_MAX: none. */
static size_t newest_analysed(const struct board *b)
{
	for (size_t i = b->v.n; i-- > 0;)
		if (atomic_load_explicit(&b->v.v[i]->analysed, memory_order_acquire))
			return i;
	return SIZE_MAX;
}

/*
 * One snapshot that need not be kept, or NULL. Freed by the caller, outside of the lock. The newest, and the newest that
 * was analysed, are what is asked for: they stay, however old and large.
 */
static struct snapshot *surplus(struct board *b)
{
	uint64_t newest = b->v.n ? b->v.v[b->v.n - 1]->end_ns : 0;
	size_t analysed = newest_analysed(b), first = analysed == 0;

	if (b->v.n < first + 2)
		return NULL;
	if (b->v.v[first]->end_ns + b->limits.keep_ns < newest)
		return take(b, first);
	for (size_t i = 1; i + 1 < b->v.n; i++)
		if (i != analysed && b->v.v[i]->end_ns + b->limits.spacing_ns < newest &&
		    b->v.v[i]->end_ns - b->v.v[i - 1]->end_ns < b->limits.spacing_ns / 10 * 9)
			return take(b, i);
	if (bytes_of(b) > b->limits.keep_bytes) {
		b->evicted++;
		return take(b, first);
	}
	return NULL;
}

/*
 * Texts of one snapshot that is seldom asked for by now: most of its memory, and they can be made again. Who holds none
 * can get one only by the lock, so that of what only the board holds nobody reads a text.
 */
static bool cool(struct board *b, struct snapshot_texts *ret)
{
	size_t analysed = newest_analysed(b);

	for (size_t i = 0; i + 1 < b->v.n; i++)
		if (i != analysed && atomic_load_explicit(&b->v.v[i]->refs, memory_order_acquire) == 1 &&
		    snapshot_take_texts(b->v.v[i], ret))
			return true;
	return false;
}

void board_put(struct board *b, struct snapshot *s)
{
	struct snapshot_texts texts;
	struct snapshot *old;
	bool some;

	pthread_mutex_lock(&b->lock);
	s->seq = ++b->seq;
	vec_push(&b->v, snapshot_ref(s));
	pthread_cond_broadcast(&b->news);
	pthread_mutex_unlock(&b->lock);
	do {
		pthread_mutex_lock(&b->lock);
		old = surplus(b);
		pthread_mutex_unlock(&b->lock);
		snapshot_unref(old);
	} while (old);
	do {
		pthread_mutex_lock(&b->lock);
		some = cool(b, &texts);
		pthread_mutex_unlock(&b->lock);
		if (some)
			snapshot_texts_done(&texts);
	} while (some);
}

struct snapshot *board_newest(struct board *b)
{
	struct snapshot *s;

	pthread_mutex_lock(&b->lock);
	s = b->v.n ? snapshot_ref(b->v.v[b->v.n - 1]) : NULL;
	pthread_mutex_unlock(&b->lock);
	return s;
}

struct snapshot *board_analysed(struct board *b)
{
	struct snapshot *s;
	size_t at;

	pthread_mutex_lock(&b->lock);
	at = newest_analysed(b);
	s = at == SIZE_MAX ? NULL : snapshot_ref(b->v.v[at]);
	pthread_mutex_unlock(&b->lock);
	return s;
}

struct snapshot *board_find(struct board *b, uint64_t seq)
{
	struct snapshot *s = NULL;

	pthread_mutex_lock(&b->lock);
	vec_for(&b->v, it)
		if ((*it)->seq == seq)
			s = snapshot_ref(*it);
	pthread_mutex_unlock(&b->lock);
	return s;
}

struct snapshot *board_at(struct board *b, uint64_t at_ns)
{
	struct snapshot *s = NULL;

	pthread_mutex_lock(&b->lock);
	for (size_t i = b->v.n; !s && i-- > 0;)
		if (!i || b->v.v[i]->end_ns <= at_ns)
			s = snapshot_ref(b->v.v[i]);
	pthread_mutex_unlock(&b->lock);
	return s;
}

struct snapshot *board_wait(struct board *b, uint64_t seq)
{
	struct snapshot *s = NULL;

	pthread_mutex_lock(&b->lock);
	while (!b->stopped && (!b->v.n || b->v.v[b->v.n - 1]->seq <= seq))
		pthread_cond_wait(&b->news, &b->lock);
	if (!b->stopped)
		s = snapshot_ref(b->v.v[b->v.n - 1]);
	pthread_mutex_unlock(&b->lock);
	return s;
}

void board_stop(struct board *b)
{
	pthread_mutex_lock(&b->lock);
	b->stopped = true;
	pthread_cond_broadcast(&b->news);
	pthread_mutex_unlock(&b->lock);
}

void board_each(struct board *b, void (*cb)(void *ctx, const struct snapshot *s), void *ctx)
{
	pthread_mutex_lock(&b->lock);
	vec_for(&b->v, s)
		cb(ctx, *s);
	pthread_mutex_unlock(&b->lock);
}

void board_clear(struct board *b)
{
	typeof(b->v) old;

	pthread_mutex_lock(&b->lock);
	old = b->v;
	memset(&b->v, 0, sizeof(b->v));
	pthread_mutex_unlock(&b->lock);
	vec_for(&old, s)
		snapshot_unref(*s);
	vec_done(&old);
}

void board_count(struct board *b, struct board_counts *ret)
{
	pthread_mutex_lock(&b->lock);
	ret->snapshots = b->v.n;
	ret->bytes = bytes_of(b) + (b->v.n ? b->v.v[b->v.n - 1]->bytes : 0);
	ret->published = b->seq;
	ret->evicted = b->evicted;
	pthread_mutex_unlock(&b->lock);
}
