/* witty-profiler serve: observe all the time, and answer by HTTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fleet/broker.h"
#include "guard.h"
#include "hosts.h"
#include "instance.h"
#include "json.h"
#include "limits_file.h"
#include "mem.h"
#include "old_config.h"
#include "options.h"
#include "serve.h"
#include "stitch.h"
#include "vec.h"

#define MS_NS	  1000000ull
#define SECOND_NS 1000000000ull

struct serve_args {
	const struct verb *verb; /* serve or fleet */
	const struct verb_option *options;
	struct serve_options o;
	struct fleet_options fleet;
	const char *publish;
	uint64_t publish_ns;
	char store[4096]; /* that was not named */
	struct option_pids pids;
	struct option_texts refuse, hosts, targets, subscribe, settings;
	VEC(char *) made; /* JSON of --otlp, and texts of a configuration */
	char host[64], lock[4096];
	bool no_lock;
	const char *limits_path, *preset;
	struct limits limits;
};

static int set_address(struct serve_args *a, const char *s, size_t n)
{
	struct in6_addr in6;
	struct in_addr in;

	if (n >= sizeof(a->host))
		return usage_error(a->verb, "'%s' is no address", s);
	memcpy(a->host, s, n);
	a->host[n] = '\0';
	if (!strcmp(a->host, "localhost"))
		strcpy(a->host, "127.0.0.1");
	if (inet_pton(AF_INET, a->host, &in) != 1 && inet_pton(AF_INET6, a->host, &in6) != 1)
		return usage_error(a->verb, "'%s' is no address of IPv4 or IPv6", a->host);
	return 0;
}

static int set_host(void *value, const char *s)
{
	return set_address(value, s, strlen(s));
}

static int set_port(void *value, const char *s)
{
	struct serve_args *a = value;
	uint64_t v;

	if (parse_number(s, &v) || v > UINT16_MAX)
		return usage_error(a->verb, "'%s' is no port", s);
	a->o.port = (uint16_t)v;
	return 0;
}

/* "127.0.0.1:18090", "[::1]:18090", "127.0.0.1", ":18090" */
static int set_listen(void *value, const char *s)
{
	const char *end = *s == '[' ? strchr(s, ']') : NULL, *colon;
	struct serve_args *a = value;
	int rc = 0;

	if (*s == '[' && (!end || (end[1] && end[1] != ':')))
		return usage_error(a->verb, "'%s' is no ADDRESS:PORT", s);
	colon = end ? (end[1] ? end + 1 : NULL) : strchr(s, ':');
	if (end)
		rc = set_address(a, s + 1, (size_t)(end - s - 1));
	else if (colon != s)
		rc = set_address(a, s, colon ? (size_t)(colon - s) : strlen(s));
	return rc ?: colon ? set_port(a, colon + 1) : 0;
}

static int add_otlp(void *value, const char *url)
{
	struct serve_args *a = value;
	struct strbuf b = {0};

	strbuf_add(&b, "{\"subscriber_type\":\"OtlpMetricsSubscriber\",\"name\":\"otlp\",\"url\":");
	json_quote(&b, url, strlen(url), 0);
	strbuf_add(&b, "}");
	vec_push(&a->made, b.s);
	vec_push(&a->subscribe, b.s);
	return 0;
}

static int check_broker(const struct serve_args *a, const char *address)
{
	if (broker_is_address(address))
		return 0;
	if (!strncasecmp(address, "kafka://", 8))
		return usage_error(a->verb, "'%s': this program was built without Kafka (meson setup -Dkafka=enabled)", address);
	return usage_error(a->verb, "'%s' is no address of a broker (nats://HOST:4222/STREAM)", address);
}

static int set_publish(void *value, const char *address)
{
	struct serve_args *a = value;

	a->publish = address;
	return check_broker(a, address);
}

static int set_from(void *value, const char *address)
{
	struct serve_args *a = value;

	a->fleet.broker.address = address;
	return check_broker(a, address);
}

static int set_group(void *value, const char *name)
{
	struct serve_args *a = value;
	size_t n = strlen(name);

	if (!n || n > 64 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != n)
		return usage_error(a->verb, "'%s' is no name of a group: letters, digits, '-' and '_'", name);
	a->fleet.broker.group = name;
	return 0;
}

/* What other hosts reach must know who asks, and must not be read on the way. */
static int check_exposure(struct serve_args *a)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};
	bool v4 = inet_pton(AF_INET, a->host, &in.sin_addr) == 1;

	if (!v4)
		inet_pton(AF_INET6, a->host, &in6.sin6_addr);
	a->o.loopback = is_loopback(v4 ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6);
	if (!a->o.cert_file != !a->o.key_file)
		return usage_error(a->verb, "--cert and --key belong together");
	if (!a->o.client_cert_file != !a->o.client_key_file)
		return usage_error(a->verb, "--client-cert and --client-key belong together");
	if (a->o.loopback || a->o.insecure)
		return 0;
	if (!a->o.token_file)
		return usage_error(a->verb, "other hosts reach %s: --token-file is needed, or --insecure to let "
						"everybody in", a->host);
	if (!a->o.cert_file)
		return usage_error(a->verb, "other hosts reach %s: --cert and --key are needed, or --insecure to "
						"send tokens in the clear", a->host);
	return 0;
}

static void say_ready(uint16_t port)
{
	fprintf(stderr, "listening at port %u\n", port);
}

/* Texts of a configuration live as long as the program. */
static int set_by_name(void *ctx, const char *name, const char *value)
{
	struct serve_args *a = ctx;
	char *copy = mem_strdup(value);
	int rc;

	vec_push(&a->made, copy);
	rc = strcmp(name, "config") ? set_option(a->verb, a->options, name, copy) : -ENOENT;
	return rc > 0 ? -EINVAL : rc;
}

static void note(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "note: %s\n", text);
}

static int read_config(void *value, const char *path)
{
	struct config_sink to = {.set = set_by_name, .note = note, .ctx = value};
	struct err e;

	return config_read(path, &to, &e) < 0 ? fail(&e) : 0;
}

/* The publisher is a subscriber as any other, but for its address. */
static void add_publisher(struct serve_args *a)
{
	struct strbuf b = {0};

	if (!a->publish)
		return;
	strbuf_add(&b, "{\"subscriber_type\":\"FleetPublisher\",\"name\":\"fleet\",\"url\":");
	json_quote(&b, a->publish, strlen(a->publish), 0);
	strbuf_addf(&b, ",\"expected_update_interval\":");
	strbuf_add_f64(&b, (double)a->publish_ns / 1e9);
	strbuf_add(&b, "}");
	vec_push(&a->made, b.s);
	vec_push(&a->subscribe, b.s);
}

/* A fleet needs a broker and a store; what only this host's observation needs it has not. */
static int complete_fleet(struct serve_args *a)
{
	if (!a->fleet.broker.address)
		return usage_error(a->verb, "--from is needed: the address of a broker");
	if (!a->fleet.store && !a->o.state_dir)
		return usage_error(a->verb, "--store or --state-dir is needed: where is it to keep what it fetched?");
	if (!a->fleet.store && (size_t)snprintf(a->store, sizeof(a->store), "%s/fleet.db", a->o.state_dir) >= sizeof(a->store))
		return usage_error(a->verb, "the name of the store is too long");
	a->fleet.store = a->fleet.store ?: a->store;
	a->o.fleet = &a->fleet;
	a->o.window_ns = a->o.interval_ns;
	return 0;
}

/* clang-format off */
#define OPTIONS_OF_BOTH(a) \
	{"listen", 'l', OPTION_SET, a, .set = set_listen}, \
	{"interval", 'i', OPTION_TIME, &(a)->o.interval_ns, .least = 100 * MS_NS}, \
	{"token-file", 0, OPTION_TEXT, &(a)->o.token_file}, \
	{"cert", 0, OPTION_TEXT, &(a)->o.cert_file}, \
	{"key", 0, OPTION_TEXT, &(a)->o.key_file}, \
	{"insecure", 0, OPTION_FLAG, &(a)->o.insecure}, \
	{"allow-host", 0, OPTION_TEXTS, &(a)->hosts}, \
	{"keep", 0, OPTION_TIME, &(a)->o.keep_ns, .least = SECOND_NS}, \
	{"keep-bytes", 0, OPTION_SIZE, &(a)->o.keep_bytes}, \
	{"rate", 0, OPTION_COUNT, &(a)->o.rate_hz, .most = 1000000}, \
	{"clients", 0, OPTION_COUNT, &(a)->o.clients, .least = 4, .most = 16384}, \
	{"threads", 0, OPTION_COUNT, &(a)->o.threads, .least = 1, .most = 64}, \
	{"timeout", 0, OPTION_COUNT, &(a)->o.timeout_s, .least = 1, .most = 3600}, \
	{"state-dir", 0, OPTION_TEXT, &(a)->o.state_dir}, \
	{"port-file", 0, OPTION_TEXT, &(a)->o.port_file}, \
	{"output-dir", 0, OPTION_TEXT, &(a)->o.output_dir}, \
	{"allow-target", 0, OPTION_TEXTS, &(a)->targets}, \
	{"subscribe", 0, OPTION_TEXTS, &(a)->subscribe}, \
	{"ca-file", 0, OPTION_TEXT, &(a)->o.ca_file}, \
	{"client-cert", 0, OPTION_TEXT, &(a)->o.client_cert_file}, \
	{"client-key", 0, OPTION_TEXT, &(a)->o.client_key_file}, \
	{"nats-token-file", 0, OPTION_TEXT, &(a)->o.nats_token_file}, \
	{"nats-credentials", 0, OPTION_TEXT, &(a)->o.nats_credentials_file}, \
	{"broker-user-file", 0, OPTION_TEXT, &(a)->o.broker_user_file}, \
	{"broker-setting", 0, OPTION_TEXTS, &(a)->settings}, \
	{"limits", 0, OPTION_TEXT, &(a)->limits_path}, \
	{"preset", 0, OPTION_TEXT, &(a)->preset}, \
	{"keep-privileges", 0, OPTION_FLAG, &(a)->o.keep_privileges}
/* clang-format on */

/* Frees what was read, whether or not it was run. */
static int run_with(struct serve_args *a, int argc, char **argv)
{
	bool fleet = a->verb == &verb_fleet;
	struct err e;
	int first, rc;

	instance_default(a->lock, sizeof(a->lock));
	a->o.lock_file = fleet ? NULL : a->lock;
	rc = parse_options(a->verb, a->options, argc, argv, &first);
	if (a->no_lock)
		a->o.lock_file = NULL;
	if (!rc && first < argc)
		rc = usage_error(a->verb, "too much: '%s'", argv[first]);
	rc = rc ?: check_exposure(a);
	if (!rc && fleet)
		rc = complete_fleet(a);
	if (!rc) {
		add_publisher(a);
		a->o.broker_settings = a->settings.v;
		a->o.nbroker_settings = a->settings.n;
		a->o.host = a->host;
		a->o.hosts = a->hosts.v;
		a->o.nhosts = a->hosts.n;
		a->o.targets = a->targets.v;
		a->o.ntargets = a->targets.n;
		a->o.subscribe = a->subscribe.v;
		a->o.nsubscribe = a->subscribe.n;
		a->o.collect.pids = a->pids.v;
		a->o.collect.npids = a->pids.n;
		a->o.collect.probe.refuse = a->refuse.v;
		a->o.collect.probe.nrefuse = a->refuse.n;
		a->o.limits = &a->limits;
		rc = limits_load(&a->limits, a->preset, a->limits_path, &e);
		rc = rc < 0 || serve(&a->o, &e) < 0 ? fail(&e) : EXIT_DONE;
	}
	vec_done(&a->pids);
	vec_done(&a->refuse);
	vec_done(&a->hosts);
	vec_done(&a->targets);
	vec_done(&a->subscribe);
	vec_done(&a->settings);
	vec_for(&a->made, text)
		free(*text);
	vec_done(&a->made);
	return rc;
}

static struct serve_args defaults(const struct verb *verb)
{
	return (struct serve_args){.verb = verb,
				   .publish_ns = 10 * SECOND_NS,
				   .fleet = {.stale_ns = 60 * SECOND_NS, .forget_ns = 86400 * SECOND_NS, .clock_ns = STITCH_CLOCK_NS,
					     .broker = {.group = "fleet", .ack_wait_ns = 30 * SECOND_NS, .replicas = 1,
							.keep_ns = 3600 * SECOND_NS, .keep_bytes = 4ull << 30}},
				   .o = {.port = 18090, .interval_ns = 5 * SECOND_NS, .window_ns = 30 * SECOND_NS,
					 .keep_ns = 900 * SECOND_NS, .keep_bytes = 256u << 20, .rate_hz = 5000,
					 .publish_entities = 500, .clients = 512, .threads = 4, .timeout_s = 10, .ready = say_ready},
				   .host = "127.0.0.1"};
}

static int run_serve(int argc, char **argv)
{
	struct serve_args a = defaults(&verb_serve);
	const struct verb_option options[] = {
		OPTIONS_OF_BOTH(&a),
		{"pid", 'p', OPTION_PIDS, &a.pids},
		{"window", 0, OPTION_TIME, &a.o.window_ns, .least = 100 * MS_NS},
		{"lock", 0, OPTION_TEXT, &a.o.lock_file},
		{"no-lock", 0, OPTION_FLAG, &a.no_lock},
		{"no-ebpf", 0, OPTION_FLAG, &a.o.collect.no_ebpf},
		{"refuse", 0, OPTION_TEXTS, &a.refuse},
		{"no-redact", 0, OPTION_FLAG, &a.o.collect.no_redact},
		{"otlp", 0, OPTION_SET, &a, .set = add_otlp},
		{"config", 0, OPTION_SET, &a, .set = read_config},
		{"host", 0, OPTION_SET, &a, .set = set_host},
		{"port", 0, OPTION_SET, &a, .set = set_port},
		{"publish", 0, OPTION_SET, &a, .set = set_publish},
		{"publish-interval", 0, OPTION_TIME, &a.publish_ns, .least = 100 * MS_NS},
		{"publish-entities", 0, OPTION_NUMBER, &a.o.publish_entities, .most = UINT32_MAX},
		{"host-id", 0, OPTION_HOST_NAME, &a.o.collect.host_id},
		{"netns", 0, OPTION_PID, &a.o.collect.netns_pid},
		{0}};

	a.options = options;
	return run_with(&a, argc, argv);
}

static int run_fleet(int argc, char **argv)
{
	struct serve_args a = defaults(&verb_fleet);
	struct fleet_options *f = &a.fleet;
	const struct verb_option options[] = {
		OPTIONS_OF_BOTH(&a),
		{"from", 0, OPTION_SET, &a, .set = set_from},
		{"store", 0, OPTION_TEXT, &f->store},
		{"group", 0, OPTION_SET, &a, .set = set_group},
		{"stale", 0, OPTION_TIME, &f->stale_ns, .least = SECOND_NS},
		{"forget", 0, OPTION_TIME, &f->forget_ns, .least = 60 * SECOND_NS},
		{"clock", 0, OPTION_TIME, &f->clock_ns},
		{"ack-wait", 0, OPTION_TIME, &f->broker.ack_wait_ns, .least = SECOND_NS},
		{"replicas", 0, OPTION_COUNT, &f->broker.replicas, .least = 1, .most = 5},
		{"log-time", 0, OPTION_TIME, &f->broker.keep_ns, .least = 60 * SECOND_NS},
		{"log-bytes", 0, OPTION_SIZE, &f->broker.keep_bytes},
		{0}};

	a.o.port = 18091;
	a.o.interval_ns = 10 * SECOND_NS;
	a.options = options;
	return run_with(&a, argc, argv);
}

const struct verb verb_fleet = {
	.name = "fleet",
	.usage = "--from nats://HOST[,HOST]...[/STREAM] --store FILE [OPTION]...",
	.summary = "Serve many hosts as one: what their agents (serve --publish) tell a broker",
	.help = "      --from ADDRESS      broker: nats://HOST:4222,HOST2:4222/STREAM, tls://..., kafka://HOST:9092/TOPIC\n"
		"      --store FILE        what was fetched (default: fleet.db in --state-dir)\n"
		"      --group NAME        processes of one group share the work, and the store (default fleet)\n"
		"  -i, --interval TIME     between graphs of all hosts (default 10s)\n"
		"      --stale TIME        a host that was silent for longer is left out (default 60s)\n"
		"      --forget TIME       and after this it is forgotten (default 24h)\n"
		"      --clock TIME        the clocks of the hosts differ by less than this (default 2s)\n"
		"      --ack-wait TIME     what a process fetched and did not store comes again (default 30s)\n"
		"      --replicas N, --log-time TIME, --log-bytes N  of a stream that is not there yet\n"
		"                          (default 1, 1h, 4G)\n"
		"      --nats-token-file FILE, --broker-user-file FILE  a token; a line USER:PASSWORD\n"
		"      --nats-credentials FILE  JWT and seed (.creds), or a seed\n"
		"      --client-cert FILE --client-key FILE  shown to who asks for a certificate\n"
		"      --broker-setting NAME=VALUE  a property of librdkafka\n"
		"      --ca-file FILE      authorities for tls:// (default: the system's)\n"
		"  -l, --listen ADDR:PORT  where to answer (default 127.0.0.1:18091; port 0: any)\n"
		"      --token-file, --cert, --key, --insecure, --allow-host, --rate, --clients, --threads, --timeout,\n"
		"      --keep, --keep-bytes, --state-dir, --output-dir, --allow-target, --subscribe, --limits, --preset,\n"
		"      --port-file, --keep-privileges  as for serve\n"
		"It answers as serve does, for all hosts: /api/v1/fleet lists them. docs/fleet.md\n",
	.run = run_fleet,
};

const struct verb verb_serve = {
	.name = "serve",
	.usage = "[--listen ADDRESS:PORT] [OPTION]...",
	.summary = "Observe all the time and answer by HTTP: graphs, figures, events",
	.help = "  -l, --listen ADDR:PORT  where to answer (default 127.0.0.1:18090; port 0: any)\n"
		"      --token-file FILE   who may ask: lines `read TOKEN` or `control TOKEN`; mode 0600\n"
		"      --cert FILE --key FILE  TLS, both PEM\n"
		"      --insecure          let other hosts in without TLS, or without tokens\n"
		"      --allow-host NAME   browsers may reach it by this name, too\n"
		"  -i, --interval TIME     between snapshots (default 5s)\n"
		"      --window TIME       what a snapshot shows (default 30s)\n"
		"      --keep TIME         history and flight recorder (default 15m)\n"
		"      --keep-bytes N      memory of each of the two (default 256M)\n"
		"  -p, --pid PID           only this process, its descendants and their other ends\n"
		"      --rate N            requests a second and client (default 5000; 0: any)\n"
		"      --clients N         connections at once (default 512)\n"
		"      --threads N         that answer (default 4)\n"
		"      --timeout SECONDS   to send a request (default 10)\n"
		"      --state-dir DIR     recordings and spools (default: none are written)\n"
		"      --output-dir DIR    where subscribers may write files (default: nowhere)\n"
		"      --allow-target URL  where subscribers may send to; may be given several times\n"
		"      --subscribe JSON    a subscriber from the start, as POST /subscriber takes it\n"
		"      --limits FILE, --preset NAME  thresholds of analyses, as for bottlenecks\n"
		"      --otlp URL          send figures there by OTLP, such as http://127.0.0.1:4318/v1/metrics\n"
		"      --ca-file FILE      authorities for https (default: the system's)\n"
		"      --nats-token-file FILE, --broker-user-file FILE  token, or a line USER:PASSWORD, for brokers\n"
		"      --nats-credentials FILE  for NATS: JWT and seed (.creds), or a seed\n"
		"      --client-cert FILE --client-key FILE  shown to brokers and targets that ask for a certificate\n"
		"      --publish ADDRESS   tell a fleet: nats://HOST:4222,HOST2:4222/STREAM, kafka://HOST:9092/TOPIC\n"
		"      --publish-interval TIME  how often (default 10s)\n"
		"      --publish-entities N  what matters most of the host (default 500; 0: all)\n"
		"      --broker-setting NAME=VALUE  a property of librdkafka\n"
		"      --host-id NAME, --netns PID  as for record\n"
		"      --lock FILE         of the one server of this host (default in /run); --no-lock: none\n"
		"      --port-file FILE    write the address there once it is open\n"
		"      --keep-privileges   do not give up capabilities and system calls, for debugging\n"
		"      --no-ebpf, --refuse NAME, --no-redact  as for record\n"
		"      --config FILE       JSON whose members are these options; openEuler's file, too\n"
		"--host and --port are the older tool's words for --listen. SIGTERM and SIGINT end it.\n",
	.run = run_serve,
	.instead = old_flag_now,
};
