/* A fleet: fetching, storing, acknowledging; and one graph of all hosts. */
#include "fleet/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "fleet/fleet_store.h"
#include "hosts.h"
#include "json.h"
#include "log.h"
#include "mem.h"
#include "parallel.h"
#include "stitch.h"

#define BATCH	     128
#define WAIT_NS	     (NS_PER_SEC / 2)
#define BACKOFF_FIRST_NS (NS_PER_SEC / 4)
#define BACKOFF_MOST_NS	 (10 * NS_PER_SEC)
#define FORGET_EVERY_NS	 (60 * NS_PER_SEC)
#define THREADS_MOST 4
#define COMING_MOST  32 /* hosts whose graphs are in memory beside the one of all */

struct fleet {
	struct fleet_options o;
	struct fleet_store *store;  /* of the thread that fetches */
	struct fleet_store *reader; /* of fleet_graph() */
	struct fleet_store *lister; /* of fleet_list(), under its lock */
	pthread_mutex_t list_lock;
	struct broker *broker;
	pthread_t thread;
	bool started;
	uint64_t backoff_ns, forget_ns; /* of the thread; monotonic */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool quit;
	struct fleet_counts counts;
};

int fleet_open(struct fleet **ret, const struct fleet_options *o, struct err *e)
{
	struct fleet *f = mem_alloc(sizeof(*f));
	pthread_condattr_t attr;
	int rc;

	f->o = *o;
	f->counts.pending = UINT64_MAX;
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->list_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->wake, &attr);
	pthread_condattr_destroy(&attr);
	rc = fleet_store_open(&f->store, o->store, e);
	rc = rc ?: fleet_store_open(&f->reader, o->store, e);
	rc = rc ?: fleet_store_open(&f->lister, o->store, e);
	rc = rc ?: broker_open(&f->broker, &o->broker, e);
	if (rc < 0) {
		fleet_close(f);
		return rc;
	}
	*ret = f;
	return 0;
}

/* @return false: the end */
static bool rest(struct fleet *f, uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns;
	struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SEC), .tv_nsec = (long)(until % NS_PER_SEC)};
	bool go;

	pthread_mutex_lock(&f->lock);
	while (!f->quit && clock_mono_ns() < until)
		pthread_cond_timedwait(&f->wake, &f->lock, &at);
	go = !f->quit;
	pthread_mutex_unlock(&f->lock);
	return go;
}

/* All of a batch in one transaction. What cannot be read will never be: it is counted, and gone. */
static int store(struct fleet *f, const struct deliveries *d, struct fleet_counts *now, struct err *e)
{
	uint64_t at = clock_real_ns();
	int rc = fleet_store_begin(f->store, e);

	for (size_t i = 0; rc >= 0 && i < d->v.n; i++) {
		struct fleet_message m;

		if (fleet_message_read(&m, d->v.v[i].data, d->v.v[i].n, e) < 0) {
			log_debug(SERVE, "fleet: %s", e->msg);
			now->refused++;
			continue;
		}
		rc = fleet_store_put(f->store, &m, at, e);
		now->taken += rc > 0;
		now->duplicates += rc == 0;
	}
	if (rc < 0) {
		fleet_store_rollback(f->store);
		return rc;
	}
	return fleet_store_commit(f->store, e);
}

static void note(struct fleet *f, const struct fleet_counts *now, const struct deliveries *d, int rc, const struct err *e)
{
	uint64_t at = clock_real_ns(), stored = d->v.n ? d->v.v[d->v.n - 1].stored_ns : 0;

	pthread_mutex_lock(&f->lock);
	f->counts.fetched += d->v.n;
	f->counts.taken += now->taken;
	f->counts.duplicates += now->duplicates;
	f->counts.refused += now->refused;
	f->counts.failures += rc < 0;
	f->counts.connected = rc >= 0;
	if (rc >= 0)
		f->counts.pending = d->pending;
	if (stored && rc >= 0)
		f->counts.lag_ns = at > stored ? at - stored : 0;
	snprintf(f->counts.failure, sizeof(f->counts.failure), "%.190s", rc < 0 ? e->msg : "");
	pthread_mutex_unlock(&f->lock);
	if (rc < 0)
		log_debug(SERVE, "fleet: %s", e->msg);
}

/* After a failure the broker begins where the group's acknowledgements end. */
static int open_again(struct fleet *f, struct err *e)
{
	broker_close(f->broker);
	f->broker = NULL;
	return broker_open(&f->broker, &f->o.broker, e);
}

static void forget(struct fleet *f)
{
	uint64_t now = clock_real_ns();
	struct err e;

	if (clock_mono_ns() < f->forget_ns)
		return;
	f->forget_ns = clock_mono_ns() + FORGET_EVERY_NS;
	if (fleet_store_begin(f->store, &e) < 0)
		return;
	if (fleet_store_forget(f->store, now > f->o.forget_ns ? now - f->o.forget_ns : 0, &e) < 0)
		fleet_store_rollback(f->store);
	else
		fleet_store_commit(f->store, &e);
}

static void *run(void *ctx)
{
	struct fleet *f = ctx;
	struct deliveries d = {0};
	struct err e;

	prctl(PR_SET_NAME, "witty-fleet");
	do {
		struct fleet_counts now = {0};
		int rc = f->broker ? 0 : open_again(f, &e);

		rc = rc ?: broker_fetch(f->broker, BATCH, WAIT_NS, &d, &e);
		if (!rc && d.v.n) {
			rc = store(f, &d, &now, &e);
			/* It is durable from here on: what is not acknowledged comes again, and is known. */
			if (rc >= 0)
				rc = broker_ack(f->broker, &d, &e);
		}
		note(f, &now, &d, rc, &e);
		if (rc >= 0) {
			f->backoff_ns = 0;
			forget(f);
			continue;
		}
		f->backoff_ns = !f->backoff_ns			      ? BACKOFF_FIRST_NS
				: f->backoff_ns * 2 < BACKOFF_MOST_NS ? f->backoff_ns * 2
								      : BACKOFF_MOST_NS;
		broker_close(f->broker);
		f->broker = NULL;
	} while (rest(f, f->backoff_ns));
	deliveries_done(&d);
	return NULL;
}

int fleet_start(struct fleet *f, struct err *e)
{
	int rc = -pthread_create(&f->thread, NULL, run, f);

	if (rc < 0)
		return err_set(e, rc, "start the thread that fetches");
	f->started = true;
	return 0;
}

void fleet_close(struct fleet *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_broadcast(&f->wake);
	pthread_mutex_unlock(&f->lock);
	if (f->started)
		pthread_join(f->thread, NULL);
	broker_close(f->broker);
	fleet_store_close(f->store);
	fleet_store_close(f->reader);
	fleet_store_close(f->lister);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->list_lock);
	free(f);
}

unsigned fleet_threads(void)
{
	cpu_set_t cpus;
	unsigned n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned)CPU_COUNT(&cpus);

	return n < THREADS_MOST ? n : THREADS_MOST;
}

/* A host whose turn has come: read by whichever thread is free, added in order. */
struct coming {
	char name[FLEET_HOST_BYTES + 12];
	char *payload;
	size_t n;
	uint64_t missing;
	bool stale;
	struct graph g;
	int rc; /* of reading it */
	struct err e;
};

/* All hosts side by side, before their connections are joined. */
struct gathering {
	struct graph all;
	uint64_t since_ns;
	uint64_t hosts, stale;
	char last[FLEET_HOST_BYTES]; /* name of the host before */
	struct coming coming[COMING_MOST];
	size_t n;
	unsigned threads;
};

/* An agent tells of its own host, and of no other. */
static bool tells_of_itself(const struct graph *g)
{
	vec_for(&g->nodes, n)
		if (strcmp((*n)->ns, "local"))
			return false;
	return true;
}

static void add_trouble(struct graph *g, const char *host, const char *reason)
{
	char source[FLEET_HOST_BYTES + 16];

	snprintf(source, sizeof(source), "%s: snapshot", host);
	graph_add_status(g, graph_str(g, source), "off", NULL, graph_str(g, reason));
}

static void read_one(void *ctx, unsigned thread, size_t i)
{
	struct coming *c = &((struct gathering *)ctx)->coming[i];

	(void)thread;
	if (c->stale)
		return;
	graph_init(&c->g);
	c->rc = fleet_unpack(c->payload, c->n, &c->g, NULL, &c->e);
	if (!c->rc && !tells_of_itself(&c->g))
		c->rc = err_msg(&c->e, -EBADMSG, "it tells of other hosts");
}

static void add_one(struct gathering *k, struct coming *c)
{
	if (c->stale) {
		k->stale++;
		add_trouble(&k->all, c->name, "nothing was heard of it lately");
		return;
	}
	if (c->rc < 0) {
		add_trouble(&k->all, c->name, c->e.msg);
	} else {
		hosts_add(&k->all, &c->g, c->name);
		k->hosts++;
		if (c->missing) {
			snprintf(c->name + strlen(c->name), 9, ": fleet");
			graph_add_loss(&k->all, graph_str(&k->all, c->name), "messages_missing", c->missing);
		}
	}
	graph_done(&c->g);
	free(c->payload);
}

static void add_coming(struct gathering *k)
{
	parallel_for(k->threads, k->n, read_one, k);
	for (size_t i = 0; i < k->n; i++)
		add_one(k, &k->coming[i]);
	k->n = 0;
}

static int gather(void *ctx, const struct fleet_host *h, struct err *e)
{
	struct gathering *k = ctx;
	struct coming *c = &k->coming[k->n++];

	(void)e;
	memset(c, 0, sizeof(*c));
	/* Two of one name: the boot tells them apart. */
	snprintf(c->name, sizeof(c->name), strcmp(k->last, h->host) ? "%s" : "%s-%.8s", h->host, h->boot);
	snprintf(k->last, sizeof(k->last), "%s", h->host);
	c->stale = h->end_ns < k->since_ns;
	c->missing = h->missing;
	if (!c->stale) {
		c->n = h->n;
		c->payload = mem_alloc(h->n);
		if (h->n)
			memcpy(c->payload, h->payload, h->n);
	}
	if (k->n == COMING_MOST)
		add_coming(k);
	return 0;
}

int fleet_graph(struct fleet *f, struct graph *ret, struct err *e)
{
	uint64_t began = clock_mono_ns(), now = clock_real_ns();
	struct gathering *k = mem_alloc(sizeof(*k));
	struct stitched found;
	int rc;

	k->since_ns = now > f->o.stale_ns ? now - f->o.stale_ns : 0;
	k->threads = fleet_threads();
	graph_init(&k->all);
	rc = fleet_store_each(f->reader, now > f->o.forget_ns ? now - f->o.forget_ns : 0, true, gather, k, e);
	add_coming(k);
	if (!rc) {
		stitch(ret, &k->all, f->o.clock_ns, &found);
		hosts_copy_about(ret, &k->all);
		if (!ret->meta.window_ns)
			ret->meta.start_ns = now;
		pthread_mutex_lock(&f->lock);
		f->counts.world_ns = clock_mono_ns() - began;
		f->counts.hosts = k->hosts;
		f->counts.stale = k->stale;
		f->counts.joined = found.joined / 2;
		pthread_mutex_unlock(&f->lock);
	}
	graph_done(&k->all);
	free(k);
	return rc;
}

static int list_host(void *ctx, const struct fleet_host *h, struct err *e)
{
	struct json_writer *w = ctx;

	(void)e;
	json_write_object(w);
	json_key_str(w, "host", h->host);
	json_key_str(w, "boot", *h->boot ? h->boot : NULL);
	json_key_str(w, "run", h->run);
	json_key_u64(w, "seq", h->seq);
	json_key_u64(w, "start_ns", h->start_ns);
	json_key_u64(w, "end_ns", h->end_ns);
	json_key_u64(w, "interval_ns", h->interval_ns);
	json_key_u64(w, "received_ns", h->received_ns);
	json_key_u64(w, "taken", h->taken);
	json_key_u64(w, "missing", h->missing);
	json_key_u64(w, "duplicates", h->duplicates);
	json_key_u64(w, "runs", h->runs);
	json_key_u64(w, "last_hour", h->last_hour);
	json_key_u64(w, "bytes_last_hour", h->bytes_last_hour);
	json_write_object_end(w);
	return 0;
}

int fleet_list(struct fleet *f, struct strbuf *b, struct err *e)
{
	struct json_writer w;
	struct err ignored;
	int rc;

	json_writer_init_strbuf(&w, b, 0);
	json_write_array(&w);
	pthread_mutex_lock(&f->list_lock);
	rc = fleet_store_each(f->lister, 0, false, list_host, &w, e);
	pthread_mutex_unlock(&f->list_lock);
	json_write_array_end(&w);
	json_writer_finish(&w, &ignored);
	return rc;
}

void fleet_get(struct fleet *f, struct fleet_counts *ret)
{
	pthread_mutex_lock(&f->lock);
	*ret = f->counts;
	pthread_mutex_unlock(&f->lock);
}
