/* The subscribers: who there is, and a thread for each that hands on what is due. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include "clock.h"
#include "log.h"
#include "mem.h"
#include "server.h"
#include "sink.h"
#include "sink_settings.h"
#include "vec.h"

#define BACKOFF_FIRST_NS NS_PER_SEC
#define BACKOFF_MOST_NS	 (60 * NS_PER_SEC)
#define SPOOL_BYTES	 (64ull << 20)

const struct sink_kind *const sink_kinds[] = {&sink_console, &sink_memory, &sink_file_text, &sink_file_json,
					      &sink_http,    &sink_otlp,   &sink_nats,	    &sink_fleet, NULL};

struct sink {
	struct sinks *all;
	struct sink_settings o;
	struct sink_limits limits; /* its own copy: the operator's address may be added */
	struct url target;
	struct spool *spool;
	struct strbuf waiting; /* without a spool: the newest that was not delivered */
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool quit;
	uint64_t newest; /* number of the newest snapshot */
	struct sink_counts counts;
	/* Of the thread alone. */
	uint64_t seen, due_ns, retry_ns, backoff_ns;
};

struct sinks {
	struct server *s;
	struct sink_limits limits;
	pthread_mutex_t lock;
	VEC(struct sink *) v;
};

struct sinks *sinks_new(struct server *s, const struct sink_limits *l)
{
	struct sinks *k = mem_alloc(sizeof(*k));

	k->s = s;
	k->limits = *l;
	pthread_mutex_init(&k->lock, NULL);
	return k;
}

static bool has_waiting(const struct sink *s)
{
	return s->spool ? spool_bytes(s->spool) > 0 : s->waiting.n > 0;
}

/* Until there is something to do. @return false: the end */
static bool wait_for_work(struct sink *s)
{
	bool go;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		uint64_t now = clock_mono_ns(), at = UINT64_MAX;
		struct timespec t;

		if (s->quit)
			break;
		if (s->newest > s->seen)
			at = s->due_ns;
		if (has_waiting(s) && s->retry_ns < at)
			at = s->retry_ns;
		if (at <= now)
			break;
		if (at == UINT64_MAX) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		t = (struct timespec){.tv_sec = (time_t)(at / NS_PER_SEC), .tv_nsec = (long)(at % NS_PER_SEC)};
		pthread_cond_timedwait(&s->wake, &s->lock, &t);
	}
	go = !s->quit;
	pthread_mutex_unlock(&s->lock);
	return go;
}

/* Later and later, and not all at the same time. */
static void back_off(struct sink *s)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	s->backoff_ns = s->backoff_ns ? s->backoff_ns * 2 : BACKOFF_FIRST_NS;
	if (s->backoff_ns > BACKOFF_MOST_NS)
		s->backoff_ns = BACKOFF_MOST_NS;
	s->retry_ns = clock_mono_ns() + s->backoff_ns / 4 * 3 + s->backoff_ns / 4 * (random >> 16) / 32768;
}

static void keep_for_later(struct sink *s, struct strbuf *b)
{
	struct err e;

	if (s->spool) {
		uint64_t lost = spool_lost(s->spool);

		spool_put(s->spool, b, &e);
		pthread_mutex_lock(&s->lock);
		s->counts.dropped += spool_lost(s->spool) - lost;
		pthread_mutex_unlock(&s->lock);
		return;
	}
	if (s->waiting.n) {
		pthread_mutex_lock(&s->lock);
		s->counts.dropped++;
		pthread_mutex_unlock(&s->lock);
	}
	strbuf_clear(&s->waiting);
	strbuf_addn(&s->waiting, strbuf_str(b), b->n);
}

/* @return 0: it is gone, to wherever; else it has to be tried again */
static int hand_on(struct sink *s, const struct strbuf *b)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = s->o.kind->deliver ? s->o.kind->deliver(&s->o, &s->limits, b, &e) : 0;
	pthread_mutex_lock(&s->lock);
	snprintf(s->counts.failure, sizeof(s->counts.failure), "%.190s", rc < 0 ? e.msg : "");
	s->counts.delivered += rc >= 0;
	s->counts.failed += rc < 0;
	s->counts.dropped += rc == -EBADMSG;
	pthread_mutex_unlock(&s->lock);
	if (rc < 0)
		log_debug(SERVE, "subscriber %s: %s", s->o.name, e.msg);
	if (rc >= 0 || rc == -EBADMSG) {
		s->backoff_ns = 0;
		return 0;
	}
	back_off(s);
	return rc;
}

static void drain(struct sink *s)
{
	struct strbuf b = {0};
	struct err e;

	if (!s->spool) {
		if (s->waiting.n && !hand_on(s, &s->waiting))
			strbuf_clear(&s->waiting);
		return;
	}
	while (spool_peek(s->spool, &b, &e) > 0 && !hand_on(s, &b)) {
		bool quit;

		spool_drop(s->spool);
		pthread_mutex_lock(&s->lock);
		quit = s->quit;
		pthread_mutex_unlock(&s->lock);
		if (quit)
			break;
	}
	strbuf_done(&b);
}

static void take_newest(struct sink *s)
{
	struct snapshot *snap = board_newest(s->all->s->board);
	struct strbuf b = {0};

	if (!snap)
		return;
	s->seen = snap->seq;
	s->due_ns = clock_mono_ns() + s->o.interval_ns;
	if (s->o.kind->render)
		s->o.kind->render(&s->o, s->all->s, snap, &b);
	snapshot_unref(snap);
	/* In order: behind those that wait. */
	if (has_waiting(s) || hand_on(s, &b))
		keep_for_later(s, &b);
	strbuf_done(&b);
}

static void *run(void *ctx)
{
	struct sink *s = ctx;

	prctl(PR_SET_NAME, "witty-sink");
	while (wait_for_work(s)) {
		uint64_t now = clock_mono_ns();
		bool is_newer;

		if (has_waiting(s) && s->retry_ns <= now)
			drain(s);
		pthread_mutex_lock(&s->lock);
		is_newer = s->newest > s->seen;
		pthread_mutex_unlock(&s->lock);
		if (is_newer && s->due_ns <= now)
			take_newest(s);
		pthread_mutex_lock(&s->lock);
		s->counts.spool_bytes = s->spool ? spool_bytes(s->spool) : s->waiting.n;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static void sink_free(struct sink *s)
{
	spool_close(s->spool);
	strbuf_done(&s->waiting);
	sink_settings_done(&s->o);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void sink_end(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	sink_free(s);
}

void sinks_free(struct sinks *k)
{
	if (!k)
		return;
	vec_for(&k->v, s)
		sink_end(*s);
	vec_done(&k->v);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static struct sink *sink_new(struct sinks *k, const struct sink_settings *o, bool trust)
{
	struct sink *s = mem_alloc(sizeof(*s));
	pthread_condattr_t attr;

	s->all = k;
	s->o = *o;
	s->limits = k->limits;
	s->limits.trusted = trust;
	if (trust && o->url_text && !o->kind->takes_broker) {
		s->target = o->url;
		s->limits.targets = &s->target;
		s->limits.ntargets = 1;
	}
	snprintf(s->counts.name, sizeof(s->counts.name), "%s", o->name);
	s->counts.type = o->kind->name;
	s->counts.interval_ns = o->interval_ns;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

static int sink_start(struct sink *s, struct err *e)
{
	char folder[SINK_NAME_BYTES + 8];
	int rc = s->o.kind->check ? s->o.kind->check(&s->o, &s->limits, e) : 0;

	snprintf(folder, sizeof(folder), "spool-%s", s->o.name);
	if (!rc && s->o.kind->remote && s->limits.state_dir)
		rc = spool_open(&s->spool, s->limits.state_dir, folder, SPOOL_BYTES, e);
	if (!rc) {
		rc = -pthread_create(&s->thread, NULL, run, s);
		if (rc)
			err_set(e, rc, "start a thread for subscriber '%s'", s->o.name);
	}
	if (rc)
		sink_free(s);
	return rc;
}

/* Under the lock. @return it, taken out, or NULL */
static struct sink *take(struct sinks *k, const char *name)
{
	for (size_t i = 0; i < k->v.n; i++) {
		struct sink *s = k->v.v[i];

		if (strcmp(s->o.name, name))
			continue;
		memmove(&k->v.v[i], &k->v.v[i + 1], (--k->v.n - i) * sizeof(*k->v.v));
		return s;
	}
	return NULL;
}

int sinks_add(struct sinks *k, const char *json, size_t n, bool trust, char ret_name[SINK_NAME_BYTES],
	      struct err *e)
{
	struct sink_settings o = {0};
	struct sink *s, *old = NULL;
	int rc = sink_settings_read(&o, json, n, e);

	if (rc < 0) {
		sink_settings_done(&o);
		return rc;
	}
	snprintf(ret_name, SINK_NAME_BYTES, "%s", o.name);
	pthread_mutex_lock(&k->lock);
	old = take(k, o.name);
	if (k->v.n >= SINKS_MAX)
		rc = err_msg(e, -EMFILE, "there are %d subscribers already", SINKS_MAX);
	pthread_mutex_unlock(&k->lock);
	/* The old one ends first: both would use the same spool. */
	if (old)
		sink_end(old);
	if (rc < 0) {
		sink_settings_done(&o);
		return rc;
	}
	s = sink_new(k, &o, trust);
	rc = sink_start(s, e);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&k->lock);
	vec_push(&k->v, s);
	pthread_mutex_unlock(&k->lock);
	sinks_news(k);
	return 0;
}

int sinks_remove(struct sinks *k, const char *name)
{
	struct sink *s;

	pthread_mutex_lock(&k->lock);
	s = take(k, name);
	pthread_mutex_unlock(&k->lock);
	if (!s)
		return -ENOENT;
	sink_end(s);
	return 0;
}

size_t sinks_get(struct sinks *k, struct sink_counts *ret)
{
	size_t n = 0;

	pthread_mutex_lock(&k->lock);
	vec_for(&k->v, s) {
		pthread_mutex_lock(&(*s)->lock);
		ret[n++] = (*s)->counts;
		pthread_mutex_unlock(&(*s)->lock);
	}
	pthread_mutex_unlock(&k->lock);
	return n;
}

void sinks_news(struct sinks *k)
{
	struct snapshot *snap = board_newest(k->s->board);

	if (!snap)
		return;
	pthread_mutex_lock(&k->lock);
	vec_for(&k->v, s) {
		pthread_mutex_lock(&(*s)->lock);
		(*s)->newest = snap->seq;
		pthread_cond_signal(&(*s)->wake);
		pthread_mutex_unlock(&(*s)->lock);
	}
	pthread_mutex_unlock(&k->lock);
	snapshot_unref(snap);
}
