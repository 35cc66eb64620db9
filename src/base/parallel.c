/* Several threads for one loop: see parallel.h. */
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>

struct loop {
	void (*f)(void *ctx, unsigned thread, size_t i);
	void *ctx;
	size_t n;
	atomic_size_t next;
};

struct hand {
	struct loop *loop;
	unsigned number;
	pthread_t thread;
};

static void *work(void *ctx)
{
	struct hand *h = ctx;
	struct loop *l = h->loop;

	for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n;)
		l->f(l->ctx, h->number, i);
	return NULL;
}

void parallel_for(unsigned threads, size_t n, void (*f)(void *ctx, unsigned thread, size_t i), void *ctx)
{
	struct loop l = {.f = f, .ctx = ctx, .n = n};
	struct hand hands[PARALLEL_MOST];
	unsigned started = 1;

	atomic_init(&l.next, 0);
	hands[0] = (struct hand){.loop = &l};
	for (; started < threads && started < PARALLEL_MOST && started < n; started++) {
		hands[started] = (struct hand){.loop = &l, .number = started};
		if (pthread_create(&hands[started].thread, NULL, work, &hands[started]))
			break;
	}
	work(&hands[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(hands[i].thread, NULL);
}
