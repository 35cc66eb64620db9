/* A server from start to end: opens everything, drops what it need not be able to do, and waits. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "analyzer.h"
#include "answers.h"
#include "cleanup.h"
#include "clock.h"
#include "fleet/nkey.h"
#include "flight.h"
#include "http.h"
#include "instance.h"
#include "mem.h"
#include "privilege.h"
#include "server.h"
#include "sink.h"

#define PING_NS (15 * NS_PER_SEC)
#define TRIM_NS (30 * NS_PER_SEC)

struct running {
	struct server s;
	int signals, lock;
	uint16_t port;
	uint64_t told;	   /* number of the last snapshot that clients were told of */
	uint64_t ping_ns;  /* monotonic: of the last event */
	uint64_t trim_ns;  /* monotonic: memory was last given back */
	VEC(struct url) targets;
	char nats_token[256], broker_user[256];
	struct login login; /* of what goes out; borrows from these two */
};

static void on_news(void *ctx)
{
	struct server *s = ctx;
	uint64_t one = 1;

	/* A counter that is full has been read by nobody: it is readable anyway. */
	if (write(s->news_fd, &one, sizeof(one)) < 0)
		return;
}

static int open_signals(struct err *e)
{
	sigset_t wanted;
	int fd;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	fd = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "signalfd") : fd;
}

static int take_lock(struct running *r, struct err *e)
{
	const struct serve_options *o = r->s.o;
	char about[300], started[CLOCK_UTC_BYTES];

	if (!o->lock_file)
		return 0;
	clock_format_utc(r->s.started_ns, started);
	snprintf(about, sizeof(about),
		 "{\"pid\":%d,\"started_at\":\"%s\",\"mode\":\"serve\",\"host\":\"%.100s\",\"port\":%u}", getpid(),
		 started, o->host, r->port);
	r->lock = instance_lock(o->lock_file, about, e);
	return r->lock < 0 ? r->lock : 0;
}

static int write_port(struct running *r, struct err *e)
{
	const struct serve_options *o = r->s.o;
	int fd, n;

	if (!o->port_file)
		return 0;
	fd = open(o->port_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	n = fd < 0 ? -1 : dprintf(fd, strchr(o->host, ':') ? "[%s]:%u\n" : "%s:%u\n", o->host, r->port);
	if (n < 0)
		err_set(e, -errno, "write '%s'", o->port_file);
	if (fd >= 0)
		close(fd);
	return n < 0 ? e->code : 0;
}

static int read_secret(const char *path, char *ret, size_t size, struct err *e)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");

	if (!f || !fgets(ret, (int)size, f))
		return err_set(e, f ? -EINVAL : -errno, "read '%s'", path);
	ret[strcspn(ret, "\r\n")] = '\0';
	return 0;
}

static int read_user(struct running *r, const char *path, struct err *e)
{
	int rc = read_secret(path, r->broker_user, sizeof(r->broker_user), e);
	char *colon = rc ? NULL : strchr(r->broker_user, ':');

	if (!rc && !colon)
		return err_msg(e, -EINVAL, "'%s': a line USER:PASSWORD is needed", path);
	if (!colon)
		return rc;
	*colon = '\0';
	r->login.user = r->broker_user;
	r->login.password = colon + 1;
	return 0;
}

/* What others want to know of who comes. What is read again later is looked at now, so that it is told at once. */
static int read_login(struct running *r, struct err *e)
{
	const struct serve_options *o = r->s.o;
	struct nkey k;
	int rc = 0;

	r->login = (struct login){.ca_file = o->ca_file, .cert_file = o->client_cert_file, .key_file = o->client_key_file,
				  .credentials_file = o->nats_credentials_file};
	if (o->nats_token_file) {
		rc = read_secret(o->nats_token_file, r->nats_token, sizeof(r->nats_token), e);
		r->login.token = r->nats_token;
	}
	if (!rc && o->broker_user_file)
		rc = read_user(r, o->broker_user_file, e);
	if (!rc && (o->ca_file || o->client_cert_file))
		rc = login_check(&r->login, e);
	if (!rc && o->nats_credentials_file) {
		rc = nkey_read(&k, o->nats_credentials_file, e);
		if (!rc)
			nkey_done(&k);
	}
	return rc;
}

static int make_fleet(void *ctx, struct graph *ret, struct err *e)
{
	return fleet_graph(ctx, ret, e);
}

static int open_fleet(struct running *r, struct err *e)
{
	struct fleet_options o = *r->s.o->fleet;

	o.broker.login = r->login;
	o.broker.settings = r->s.o->broker_settings;
	o.broker.nsettings = r->s.o->nbroker_settings;
	return fleet_open(&r->s.fleet, &o, e);
}

static int open_sinks(struct running *r, struct err *e)
{
	const struct serve_options *o = r->s.o;
	struct sink_limits limits = {.output_dir = o->output_dir, .state_dir = o->state_dir, .login = r->login};
	char name[SINK_NAME_BYTES];
	int rc = 0;

	for (size_t i = 0; !rc && i < o->ntargets; i++)
		rc = url_parse(o->targets[i], vec_add(&r->targets), e);
	limits.targets = r->targets.v;
	limits.ntargets = r->targets.n;
	limits.broker_settings = o->broker_settings;
	limits.nbroker_settings = o->nbroker_settings;
	r->s.sinks = sinks_new(&r->s, &limits);
	for (size_t i = 0; !rc && i < o->nsubscribe; i++) {
		rc = sinks_add(r->s.sinks, o->subscribe[i], strlen(o->subscribe[i]), true, name, e);
		if (rc < 0)
			err_ctx(e, "subscriber %zu", i + 1);
	}
	return rc;
}

static int open_all(struct running *r, struct err *e)
{
	const struct serve_options *o = r->s.o;
	struct guard_options guard = {.token_file = o->token_file, .hosts = o->hosts, .nhosts = o->nhosts,
				      .rate_hz = o->rate_hz, .loopback = o->loopback};
	struct board_limits limits = {.keep_ns = o->keep_ns, .keep_bytes = o->keep_bytes,
				      .spacing_ns = o->window_ns};
	struct collector_options collector = {
		.live = {.collect = o->collect, .keep_ns = o->keep_ns, .keep_bytes = o->keep_bytes},
		.interval_ns = o->interval_ns, .window_ns = o->window_ns, .news = on_news, .ctx = &r->s};
	int rc;

	r->s.news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (r->s.news_fd < 0)
		return err_set(e, -errno, "eventfd");
	r->s.env = envelope_env();
	r->s.events = events_new();
	r->s.board = board_new(&limits);
	rc = guard_open(&r->s.guard, &guard, e);
	rc = rc ?: http_open(&r->s.http, &r->s, &r->port, e);
	rc = rc ?: take_lock(r, e);
	rc = rc ?: read_login(r, e);
	if (!rc && o->fleet) {
		rc = open_fleet(r, e);
		collector.make = make_fleet;
		collector.make_ctx = r->s.fleet;
	}
	/* Last, since it costs most, and so that nothing is observed for a server that cannot run. */
	rc = rc ?: collector_open(&r->s.collector, r->s.board, &collector, e);
	if (!rc && o->state_dir && !o->fleet)
		rc = flight_open(&r->s.flight, o->state_dir, r->s.collector, e);
	return rc;
}

static void tell(struct running *r)
{
	struct snapshot *snap = board_newest(r->s.board);
	struct strbuf b = {0};
	uint64_t now = clock_mono_ns();

	if (snap && snap->seq > r->told) {
		strbuf_addf(&b, "{\"snapshot\":%" PRIu64 ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
				",\"entities\":%zu,\"edges\":%zu}", snap->seq, snap->start_ns, snap->end_ns,
			    snap->entities, snap->edges);
		events_put(r->s.events, "snapshot", b.s);
		r->told = snap->seq;
		r->ping_ns = now;
	} else if (now > r->ping_ns + PING_NS) {
		events_ping(r->s.events);
		r->ping_ns = now;
	}
	strbuf_done(&b);
	snapshot_unref(snap);
}

/* Until a signal says so. What the threads do shows up as news; the rest is looked at each second. */
static void wait_for_end(struct running *r)
{
	struct pollfd p[2] = {{.fd = r->signals, .events = POLLIN}, {.fd = r->s.news_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	uint64_t count;

	for (;;) {
		poll(p, 2, 1000);
		if (read(r->signals, &info, sizeof(info)) == sizeof(info))
			return;
		if (read(r->s.news_fd, &count, sizeof(count)) < 0)
			count = 0;
		if (r->s.flight)
			flight_news(r->s.flight);
		sinks_news(r->s.sinks);
		tell(r);
		events_wake(r->s.events);
		if (clock_mono_ns() > r->trim_ns + TRIM_NS) {
			malloc_trim(0);
			r->trim_ns = clock_mono_ns();
		}
		http_sweep(r->s.http);
	}
}

static void close_all(struct running *r)
{
	if (r->s.http)
		http_quiesce(r->s.http);
	if (r->s.events)
		events_end(r->s.events);
	if (r->s.board)
		board_stop(r->s.board);
	http_close(r->s.http);
	sinks_free(r->s.sinks);
	analyzer_stop(r->s.analyzer);
	if (r->s.flight)
		flight_news(r->s.flight);
	collector_close(r->s.collector);
	fleet_close(r->s.fleet);
	flight_close(r->s.flight);
	events_free(r->s.events);
	guard_free(r->s.guard);
	board_free(r->s.board);
	vec_done(&r->targets);
	explicit_bzero(r->nats_token, sizeof(r->nats_token));
	explicit_bzero(r->broker_user, sizeof(r->broker_user));
	free(r->s.env);
	if (r->s.news_fd >= 0)
		close(r->s.news_fd);
	if (r->lock >= 0)
		close(r->lock);
	if (r->signals >= 0)
		close(r->signals);
}

/* In the collecting thread: the probes are loaded, and what is left is reading them. */
static int observe_only(void *ctx, struct err *e)
{
	(void)ctx;
	return privilege_keep(PRIVILEGES_OBSERVE, e) < 0 ? e->code : privilege_refuse_calls(PRIVILEGE_OBSERVE, e);
}

/* In the first thread, for it and all that it starts from now on: those who answer may nothing special. */
static int answer_only(const struct serve_options *o, struct err *e)
{
	if (o->keep_privileges)
		return 0;
	return privilege_keep(0, e) < 0 ? e->code : privilege_refuse_calls(PRIVILEGE_ANSWER, e);
}

int serve(const struct serve_options *o, struct err *e)
{
	struct running r = {.s = {.o = o, .news_fd = -1}, .lock = -1};
	int rc;

	mem_give_back();
	r.s.started_ns = clock_real_ns();
	r.s.instance = r.s.started_ns;
	r.ping_ns = clock_mono_ns();
	r.signals = open_signals(e);
	rc = r.signals < 0 ? r.signals : open_all(&r, e);
	/* A fleet observes nothing: its threads may what those may that answer. */
	if (o->fleet)
		rc = rc ?: answer_only(o, e);
	rc = rc ?: collector_start(r.s.collector, o->keep_privileges || o->fleet ? NULL : observe_only, NULL, e);
	if (!o->fleet)
		rc = rc ?: answer_only(o, e);
	if (o->fleet)
		rc = rc ?: fleet_start(r.s.fleet, e);
	rc = rc ?: analyzer_start(&r.s.analyzer, &r.s, e);
	rc = rc ?: open_sinks(&r, e);
	rc = rc ?: http_start(r.s.http, e);
	rc = rc ?: write_port(&r, e);
	if (!rc) {
		if (o->ready)
			o->ready(r.port);
		wait_for_end(&r);
	}
	close_all(&r);
	return rc;
}
