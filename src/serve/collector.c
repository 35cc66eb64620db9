/* The observing thread: ticks at their time, and what others asked for in between. */
#include "collector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "log.h"
#include "mem.h"

struct collector {
	struct collector_options o;
	struct board *board;
	struct live *live;
	pthread_t thread;
	bool started;
	int (*enter)(void *ctx, struct err *e);
	void *enter_ctx;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool quit, running, triggered, entered;
	bool ticking; /* one is under way */
	int enter_rc;
	struct err enter_err;
	uint64_t floor_ns; /* since 1970: windows begin no earlier */
	char save_path[4096], saved_path[4096];
	uint64_t save_since_ns;
	int saved; /* 1, 0 or -errno */
	struct err saved_err;
	struct collector_state state;
};

int collector_open(struct collector **ret, struct board *board, const struct collector_options *o,
		   struct err *e)
{
	struct collector *c = mem_alloc(sizeof(*c));
	pthread_condattr_t attr;
	int rc;

	c->o = *o;
	c->board = board;
	rc = o->make ? 0 : live_open(&c->live, &o->live, e);
	if (rc < 0) {
		free(c);
		return rc;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	c->running = true;
	*ret = c;
	return 0;
}

/* Or do what is due sooner, without the lock. */
static void wait_until_due(struct collector *c, uint64_t due_ns)
{
	/* Of a fleet, whose graphs others observe, nothing is due in between. */
	uint64_t next = c->live ? live_due_ns(c->live) : UINT64_MAX;
	struct timespec at;

	if (next <= clock_mono_ns()) {
		pthread_mutex_unlock(&c->lock);
		live_due(c->live);
		pthread_mutex_lock(&c->lock);
		return;
	}
	next = next < due_ns ? next : due_ns;
	at = (struct timespec){.tv_sec = (time_t)(next / NS_PER_SEC), .tv_nsec = (long)(next % NS_PER_SEC)};
	pthread_cond_timedwait(&c->wake, &c->lock, &at);
}

/* @return whether a snapshot is due: its time has come, or somebody asks; false: the end */
static bool wait_for_work(struct collector *c, uint64_t due_ns)
{
	bool go;

	pthread_mutex_lock(&c->lock);
	while (!c->quit && !c->triggered && (!c->running || clock_mono_ns() < due_ns)) {
		if (c->running)
			wait_until_due(c, due_ns);
		else
			pthread_cond_wait(&c->wake, &c->lock);
	}
	c->triggered = false;
	go = c->ticking = !c->quit;
	pthread_mutex_unlock(&c->lock);
	return go;
}

/* What others observed. */
static void publish_made(struct collector *c)
{
	struct snapshot *s = snapshot_new();
	struct err e;

	if (c->o.make(c->o.make_ctx, &s->g, &e) < 0) {
		log_debug(SERVE, "%s", e.msg);
	} else {
		s->start_ns = s->g.meta.start_ns;
		s->end_ns = s->start_ns + s->g.meta.window_ns;
		snapshot_seal(s);
		board_put(c->board, s);
	}
	snapshot_unref(s);
}

static void publish(struct collector *c, uint64_t floor_ns)
{
	struct history *h = live_history(c->live);
	size_t n = history_intervals(h);
	const struct history_interval *newest = n ? history_interval(h, n - 1) : NULL;
	struct snapshot *s;
	uint64_t since;
	struct err e;

	if (!newest)
		return;
	since = newest->end_ns > c->o.window_ns ? newest->end_ns - c->o.window_ns : 0;
	s = snapshot_new();
	history_window_amounts(h, since > floor_ns ? since : floor_ns, &s->g, &s->time, &s->amounts);
	live_describe(c->live, &s->g);
	s->end_ns = newest->end_ns;
	s->start_ns = s->g.meta.start_ns ?: newest->start_ns;
	snapshot_derive(s);
	if (live_waits(c->live, &s->g, &s->time, &e) < 0)
		graph_add_status(&s->g, "sched.segments", "off", NULL, e.msg);
	snapshot_seal(s);
	board_put(c->board, s);
	snapshot_unref(s);
}

static void save(struct collector *c)
{
	char path[sizeof(c->save_path)];
	uint64_t since;
	struct err e;
	int rc;

	if (!c->live)
		return;
	pthread_mutex_lock(&c->lock);
	memcpy(path, c->save_path, sizeof(path));
	since = c->save_since_ns > c->floor_ns ? c->save_since_ns : c->floor_ns;
	pthread_mutex_unlock(&c->lock);
	if (!path[0])
		return;
	err_clear(&e);
	rc = live_save(c->live, since, path, false, "serve", &e);
	pthread_mutex_lock(&c->lock);
	c->save_path[0] = '\0';
	memcpy(c->saved_path, path, sizeof(path));
	c->saved = rc < 0 ? rc : 1;
	c->saved_err = e;
	pthread_mutex_unlock(&c->lock);
	if (c->o.news)
		c->o.news(c->o.ctx);
}

static void tick(struct collector *c, uint64_t due_ns)
{
	uint64_t began = clock_mono_ns(), floor_ns, took;
	size_t bytes = 0, known = 0;

	if (c->live)
		live_tick(c->live);
	pthread_mutex_lock(&c->lock);
	floor_ns = c->floor_ns;
	pthread_mutex_unlock(&c->lock);
	if (c->live)
		publish(c, floor_ns);
	else
		publish_made(c);
	if (c->live)
		bytes = history_bytes(live_history(c->live), &known);
	took = clock_mono_ns() - began;
	pthread_mutex_lock(&c->lock);
	c->state.ticks++;
	c->ticking = false;
	c->state.tick_ns = took;
	c->state.busy_ns += took;
	if (took > c->state.longest_ns)
		c->state.longest_ns = took;
	if (began > due_ns + c->o.interval_ns / 10)
		c->state.late_ticks++;
	c->state.intervals = c->live ? history_intervals(live_history(c->live)) : 0;
	c->state.intervals_bytes = bytes;
	c->state.known_bytes = known;
	c->state.last_ns = clock_real_ns();
	pthread_mutex_unlock(&c->lock);
	if (c->o.news)
		c->o.news(c->o.ctx);
}

/* After a pause what happened meanwhile is taken and not shown. */
static bool resumed(struct collector *c, bool *was_running)
{
	bool now;

	pthread_mutex_lock(&c->lock);
	now = c->running && !*was_running;
	if (now)
		c->ticking = false;
	*was_running = c->running;
	pthread_mutex_unlock(&c->lock);
	return now;
}

static void *observe(void *ctx)
{
	struct collector *c = ctx;
	/* The first one soon, so that there is something to see. */
	uint64_t due = clock_mono_ns() + (c->o.interval_ns < NS_PER_SEC ? c->o.interval_ns : NS_PER_SEC);
	bool was_running = true;
	int rc;

	prctl(PR_SET_NAME, "witty-collect");
	rc = c->enter ? c->enter(c->enter_ctx, &c->enter_err) : 0;

	pthread_mutex_lock(&c->lock);
	c->enter_rc = rc;
	c->entered = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (rc < 0)
		return NULL;
	while (wait_for_work(c, due)) {
		uint64_t now = clock_mono_ns();

		if (resumed(c, &was_running)) {
			if (c->live)
				live_tick(c->live);
			collector_clear(c);
			due = clock_mono_ns() + c->o.interval_ns;
			continue;
		}
		tick(c, due < now ? due : now);
		save(c);
		due += c->o.interval_ns;
		/* An interval that took too long is not made up for. */
		now = clock_mono_ns();
		if (due < now)
			due = now + c->o.interval_ns;
	}
	return NULL;
}

int collector_start(struct collector *c, int (*enter)(void *ctx, struct err *e), void *ctx, struct err *e)
{
	int rc;

	c->enter = enter;
	c->enter_ctx = ctx;
	rc = -pthread_create(&c->thread, NULL, observe, c);
	if (rc < 0)
		return err_set(e, rc, "start the collecting thread");
	c->started = true;
	pthread_mutex_lock(&c->lock);
	while (!c->entered)
		pthread_cond_wait(&c->wake, &c->lock);
	rc = c->enter_rc;
	pthread_mutex_unlock(&c->lock);
	if (rc < 0)
		*e = c->enter_err;
	return rc;
}

void collector_close(struct collector *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	live_close(c->live);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void collector_run(struct collector *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->running = on;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

uint64_t collector_trigger(struct collector *c)
{
	uint64_t passed;

	pthread_mutex_lock(&c->lock);
	/* One that is under way began before somebody asked. */
	passed = c->state.ticks + c->ticking;
	c->triggered = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	return passed;
}

void collector_clear(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	c->floor_ns = clock_real_ns();
	pthread_mutex_unlock(&c->lock);
}

bool collector_save(struct collector *c, const char *path, uint64_t since_ns)
{
	bool free_to_go;

	pthread_mutex_lock(&c->lock);
	/* And not before somebody was told of the last one. */
	free_to_go = !c->save_path[0] && !c->saved && strlen(path) < sizeof(c->save_path);
	if (free_to_go) {
		strcpy(c->save_path, path);
		c->save_since_ns = since_ns;
		c->triggered = true;
		pthread_cond_broadcast(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	return free_to_go;
}

int collector_saved(struct collector *c, char *path, size_t size, struct err *e)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = c->saved;
	c->saved = 0;
	if (rc)
		snprintf(path, size, "%s", c->saved_path);
	if (rc < 0)
		*e = c->saved_err;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void collector_get(struct collector *c, struct collector_state *ret)
{
	pthread_mutex_lock(&c->lock);
	*ret = c->state;
	ret->running = c->running;
	pthread_mutex_unlock(&c->lock);
}
