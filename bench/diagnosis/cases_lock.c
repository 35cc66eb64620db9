/* Locks, conditions and barriers of threads of one process. */
#include <pthread.h>
#include <stdlib.h>

#include "diag.h"

/* A lock that one thread keeps for long, again and again, while others need it for a moment. */
struct locked {
	const struct diag *d;
	pthread_mutex_t lock;
	bool asleep; /* the holder does not even work */
};

static void hold(void *arg)
{
	struct locked *l = arg;
	uint64_t random = l->d->seed;

	for (;;) {
		unsigned us = about_us(&random, l->d->healthy ? l->d->size / 100 : l->d->size);

		pthread_mutex_lock(&l->lock);
		if (l->asleep)
			rest_us(us);
		else
			work_us(us);
		pthread_mutex_unlock(&l->lock);
		rest_us(l->d->healthy ? l->d->size : 200);
	}
}

static void want(void *arg)
{
	struct locked *l = arg;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		work_us(20);
		pthread_mutex_unlock(&l->lock);
		rest_us(l->d->healthy ? l->d->size / 2 : 500);
	}
}

static void lock_start(const struct diag *d, bool asleep, int protocol)
{
	struct locked *l = calloc(1, sizeof(*l));
	pthread_mutexattr_t a;

	*l = (struct locked){.d = d, .asleep = asleep};
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, protocol);
	if (pthread_mutex_init(&l->lock, &a))
		die("pthread_mutex_init");
	start_thread("holder", "keeper", hold, l);
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("waiter", "user", want, l);
}

static void convoy(const struct diag *d)
{
	lock_start(d, false, PTHREAD_PRIO_NONE);
}

static void convoy_pi(const struct diag *d)
{
	lock_start(d, false, PTHREAD_PRIO_INHERIT);
}

static void lock_asleep(const struct diag *d)
{
	lock_start(d, true, PTHREAD_PRIO_NONE);
}

/* Ranks that meet at a barrier after each step. */
struct steps {
	const struct diag *d;
	pthread_barrier_t meet;
	unsigned n;
	bool rotating;
};

struct rank {
	struct steps *s;
	unsigned number;
};

static void step(void *arg)
{
	struct rank *r = arg;
	const struct diag *d = r->s->d;
	uint64_t random = d->seed;

	for (unsigned i = 0;; i++) {
		/* All of them get the same numbers, so that they agree on who is slow. */
		unsigned turn = random_below(&random, r->s->n);
		unsigned slow = r->s->rotating ? turn : 1;

		work_us(!d->healthy && r->number == slow ? d->size : d->size / 10);
		pthread_barrier_wait(&r->s->meet);
		/* As for a device. */
		rest_us(d->healthy ? d->size : d->size / 10);
	}
}

static void barrier_start(const struct diag *d, bool rotating)
{
	struct steps *s = calloc(1, sizeof(*s));

	*s = (struct steps){.d = d, .n = d->threads, .rotating = rotating};
	if (pthread_barrier_init(&s->meet, NULL, s->n))
		die("pthread_barrier_init");
	for (unsigned i = 0; i < s->n; i++) {
		struct rank *r = calloc(1, sizeof(*r));

		*r = (struct rank){s, i};
		start_thread(!rotating && i == 1 ? "slow" : "rank", "rank", step, r);
	}
}

static void barrier_fixed(const struct diag *d)
{
	barrier_start(d, false);
}

static void barrier_rotating(const struct diag *d)
{
	barrier_start(d, true);
}

/* One item at a time wakes everybody who waits for one. */
struct herd {
	const struct diag *d;
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned items;
};

static void herd_take(void *arg)
{
	struct herd *h = arg;

	for (;;) {
		pthread_mutex_lock(&h->lock);
		while (!h->items)
			pthread_cond_wait(&h->more, &h->lock);
		h->items--;
		pthread_mutex_unlock(&h->lock);
		work_us(20);
	}
}

static void herd_give(void *arg)
{
	struct herd *h = arg;

	for (;;) {
		rest_us(h->d->size);
		pthread_mutex_lock(&h->lock);
		h->items++;
		if (h->d->healthy)
			pthread_cond_signal(&h->more);
		else
			pthread_cond_broadcast(&h->more);
		pthread_mutex_unlock(&h->lock);
	}
}

static void herd(const struct diag *d)
{
	struct herd *h = calloc(1, sizeof(*h));

	h->d = d;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	for (unsigned i = 0; i < d->threads; i++)
		start_thread("waiter", "taker", herd_take, h);
	start_thread("giver", NULL, herd_give, h);
}

/* Two threads that hand a token to each other, until the signal of one comes before the other waits for it. */
struct token {
	const struct diag *d;
	pthread_mutex_t lock;
	pthread_cond_t moved[2];
	unsigned turn;
};

struct player {
	struct token *t;
	unsigned me;
};

static void play(void *arg)
{
	struct player *p = arg;
	struct token *t = p->t;

	for (;;) {
		pthread_mutex_lock(&t->lock);
		while (t->turn != p->me)
			pthread_cond_wait(&t->moved[p->me], &t->lock);
		pthread_mutex_unlock(&t->lock);
		work_us(t->d->size / 10);
		rest_us(t->d->size);
		if (!t->d->healthy && !p->me && is_over(t->d)) {
			/* Nobody changed `turn`: the other one will look, and wait again. */
			pthread_cond_signal(&t->moved[1]);
			pthread_mutex_lock(&t->lock);
			pthread_cond_wait(&t->moved[0], &t->lock);
			pthread_mutex_unlock(&t->lock);
		}
		pthread_mutex_lock(&t->lock);
		t->turn = !p->me;
		pthread_cond_signal(&t->moved[!p->me]);
		pthread_mutex_unlock(&t->lock);
	}
}

static void lost_wakeup(const struct diag *d)
{
	struct token *t = calloc(1, sizeof(*t));

	t->d = d;
	pthread_mutex_init(&t->lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct player *p = calloc(1, sizeof(*p));

		pthread_cond_init(&t->moved[i], NULL);
		*p = (struct player){t, i};
		start_thread(i ? "victim" : "culprit", "player", play, p);
	}
}

/* Two locks, taken in different orders after a while. */
struct two_locks {
	const struct diag *d;
	pthread_mutex_t lock[2];
	bool holds[2];
};

struct taker {
	struct two_locks *l;
	unsigned me;
};

static void take_both(void *arg)
{
	struct taker *t = arg;
	struct two_locks *l = t->l;
	uint64_t random = l->d->seed + t->me;

	for (;;) {
		bool wrong = !l->d->healthy && is_over(l->d);
		unsigned first = wrong ? t->me : 0;

		pthread_mutex_lock(&l->lock[first]);
		/* Both have their first one: no luck is needed for the end. */
		__atomic_store_n(&l->holds[t->me], wrong, __ATOMIC_RELEASE);
		while (wrong && !__atomic_load_n(&l->holds[!t->me], __ATOMIC_ACQUIRE))
			rest_us(1000);
		pthread_mutex_lock(&l->lock[!first]);
		work_us(l->d->size / 20);
		pthread_mutex_unlock(&l->lock[!first]);
		pthread_mutex_unlock(&l->lock[first]);
		rest_us(about_us(&random, l->d->size));
	}
}

static void deadlock(const struct diag *d)
{
	struct two_locks *l = calloc(1, sizeof(*l));

	l->d = d;
	for (unsigned i = 0; i < 2; i++)
		pthread_mutex_init(&l->lock[i], NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct taker *t = calloc(1, sizeof(*t));

		*t = (struct taker){l, i};
		start_thread("taker", NULL, take_both, t);
	}
}

const struct diag_case lock_cases[] = {
	{"convoy", "a lock that a thread keeps while it computes", convoy},
	{"convoy-pi", "the same, with a lock whose word names its owner", convoy_pi},
	{"lock-asleep", "a lock that a thread keeps while it sleeps", lock_asleep},
	{"barrier", "one rank comes late to each barrier", barrier_fixed},
	{"barrier-rotating", "another rank each time", barrier_rotating},
	{"herd", "each item wakes everybody", herd},
	{"lost-wakeup", "a signal that came too early, after a while", lost_wakeup},
	{"deadlock", "two locks in two orders, after a while", deadlock},
	{0},
};
