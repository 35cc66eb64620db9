/* witty-profiler serve: observe all the time, and answer by HTTP. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
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
#include "serve.h"
#include "stitch.h"
#include "vec.h"
#include "verb.h"

struct serve_args {
	const struct verb *verb; /* serve or fleet */
	struct serve_options o;
	struct fleet_options fleet;
	const char *publish;
	uint64_t publish_ns;
	char store[4096];
	VEC(uint32_t) pids;
	VEC(const char *) refuse, hosts, targets, subscribe, settings;
	VEC(char *) made; /* JSON of --otlp */
	char host[64], lock[4096];
	const char *limits_path, *preset;
	struct limits limits;
};

enum {
	OPT_TOKEN = 256, OPT_CERT, OPT_KEY, OPT_INSECURE, OPT_ALLOW_HOST, OPT_WINDOW, OPT_KEEP, OPT_KEEP_BYTES,
	OPT_RATE, OPT_CLIENTS, OPT_THREADS, OPT_TIMEOUT, OPT_STATE, OPT_LOCK, OPT_NO_LOCK, OPT_PORT_FILE,
	OPT_NO_EBPF, OPT_REFUSE, OPT_NO_REDACT, OPT_HOST, OPT_PORT, OPT_OUTPUT, OPT_TARGET, OPT_SUBSCRIBE, OPT_OTLP, OPT_CA, OPT_LIMITS, OPT_PRESET, OPT_CONFIG,
	OPT_NATS_TOKEN, OPT_NATS_CREDENTIALS, OPT_CLIENT_CERT, OPT_CLIENT_KEY, OPT_KEEP_PRIVILEGES, OPT_BROKER_USER, OPT_BROKER_SETTING, OPT_PUBLISH, OPT_PUBLISH_INTERVAL, OPT_PUBLISH_ENTITIES, OPT_HOST_ID,
	OPT_NETNS, OPT_FROM, OPT_STORE, OPT_GROUP, OPT_STALE, OPT_FORGET, OPT_CLOCK, OPT_ACK_WAIT, OPT_REPLICAS, OPT_LOG_TIME, OPT_LOG_BYTES
};

/* clang-format off */
#define BOTH \
	{"listen", required_argument, NULL, 'l'}, \
	{"interval", required_argument, NULL, 'i'}, \
	{"token-file", required_argument, NULL, OPT_TOKEN}, \
	{"cert", required_argument, NULL, OPT_CERT}, \
	{"key", required_argument, NULL, OPT_KEY}, \
	{"insecure", no_argument, NULL, OPT_INSECURE}, \
	{"allow-host", required_argument, NULL, OPT_ALLOW_HOST}, \
	{"keep", required_argument, NULL, OPT_KEEP}, \
	{"keep-bytes", required_argument, NULL, OPT_KEEP_BYTES}, \
	{"rate", required_argument, NULL, OPT_RATE}, \
	{"clients", required_argument, NULL, OPT_CLIENTS}, \
	{"threads", required_argument, NULL, OPT_THREADS}, \
	{"timeout", required_argument, NULL, OPT_TIMEOUT}, \
	{"state-dir", required_argument, NULL, OPT_STATE}, \
	{"port-file", required_argument, NULL, OPT_PORT_FILE}, \
	{"output-dir", required_argument, NULL, OPT_OUTPUT}, \
	{"allow-target", required_argument, NULL, OPT_TARGET}, \
	{"subscribe", required_argument, NULL, OPT_SUBSCRIBE}, \
	{"ca-file", required_argument, NULL, OPT_CA}, \
	{"client-cert", required_argument, NULL, OPT_CLIENT_CERT}, \
	{"client-key", required_argument, NULL, OPT_CLIENT_KEY}, \
	{"nats-token-file", required_argument, NULL, OPT_NATS_TOKEN}, \
	{"nats-credentials", required_argument, NULL, OPT_NATS_CREDENTIALS}, \
	{"limits", required_argument, NULL, OPT_LIMITS}, \
	{"preset", required_argument, NULL, OPT_PRESET}, \
	{"keep-privileges", no_argument, NULL, OPT_KEEP_PRIVILEGES}, \
	{"broker-user-file", required_argument, NULL, OPT_BROKER_USER}, \
	{"broker-setting", required_argument, NULL, OPT_BROKER_SETTING}
/* clang-format on */

static const struct option options[] = {BOTH,
					{"pid", required_argument, NULL, 'p'},
					{"window", required_argument, NULL, OPT_WINDOW},
					{"lock", required_argument, NULL, OPT_LOCK},
					{"no-lock", no_argument, NULL, OPT_NO_LOCK},
					{"no-ebpf", no_argument, NULL, OPT_NO_EBPF},
					{"refuse", required_argument, NULL, OPT_REFUSE},
					{"no-redact", no_argument, NULL, OPT_NO_REDACT},
					{"otlp", required_argument, NULL, OPT_OTLP},
					{"config", required_argument, NULL, OPT_CONFIG},
					{"host", required_argument, NULL, OPT_HOST},
					{"port", required_argument, NULL, OPT_PORT},
					{"publish", required_argument, NULL, OPT_PUBLISH},
					{"publish-interval", required_argument, NULL, OPT_PUBLISH_INTERVAL},
					{"publish-entities", required_argument, NULL, OPT_PUBLISH_ENTITIES},
					{"host-id", required_argument, NULL, OPT_HOST_ID},
					{"netns", required_argument, NULL, OPT_NETNS},
					{0}};
static const struct option fleet_options[] = {BOTH,
					      {"from", required_argument, NULL, OPT_FROM},
					      {"store", required_argument, NULL, OPT_STORE},
					      {"group", required_argument, NULL, OPT_GROUP},
					      {"stale", required_argument, NULL, OPT_STALE},
					      {"forget", required_argument, NULL, OPT_FORGET},
					      {"clock", required_argument, NULL, OPT_CLOCK},
					      {"ack-wait", required_argument, NULL, OPT_ACK_WAIT},
					      {"replicas", required_argument, NULL, OPT_REPLICAS},
					      {"log-time", required_argument, NULL, OPT_LOG_TIME},
					      {"log-bytes", required_argument, NULL, OPT_LOG_BYTES},
					      {0}};

static int set_host(struct serve_args *a, const char *s, size_t n)
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

static int set_port(struct serve_args *a, const char *s)
{
	uint64_t v;

	if (parse_number(s, &v) || v > UINT16_MAX)
		return usage_error(a->verb, "'%s' is no port", s);
	a->o.port = (uint16_t)v;
	return 0;
}

/* "127.0.0.1:18090", "[::1]:18090", "127.0.0.1", ":18090" */
static int set_listen(struct serve_args *a, const char *s)
{
	const char *end = *s == '[' ? strchr(s, ']') : NULL, *colon;
	int rc = 0;

	if (*s == '[' && (!end || (end[1] && end[1] != ':')))
		return usage_error(a->verb, "'%s' is no ADDRESS:PORT", s);
	colon = end ? (end[1] ? end + 1 : NULL) : strchr(s, ':');
	if (end)
		rc = set_host(a, s + 1, (size_t)(end - s - 1));
	else if (colon != s)
		rc = set_host(a, s, colon ? (size_t)(colon - s) : strlen(s));
	return rc ?: colon ? set_port(a, colon + 1) : 0;
}

static int set_time(const struct serve_args *a, const char *text, uint64_t least_ns, uint64_t *ret)
{
	if (!parse_duration(text, ret) && *ret >= least_ns)
		return 0;
	return usage_error(a->verb, "'%s' is no time of at least %llums", text,
			   (unsigned long long)(least_ns / 1000000));
}

static int set_number(const struct serve_args *a, const char *text, uint64_t least, uint64_t most, uint32_t *ret)
{
	uint64_t v;

	if (parse_number(text, &v) || v < least || v > most)
		return usage_error(a->verb, "'%s' is no number from %llu to %llu", text,
				   (unsigned long long)least, (unsigned long long)most);
	*ret = (uint32_t)v;
	return 0;
}

static int set_bytes(const struct serve_args *a, const char *text, size_t *ret)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	unsigned shift = !strcmp(end, "K") ? 10 : !strcmp(end, "M") ? 20 : !strcmp(end, "G") ? 30 : 0;

	if (*text < '0' || *text > '9' || (*end && !shift) || v > SIZE_MAX >> 31)
		return usage_error(a->verb, "'%s' is no size (64M, 1G)", text);
	*ret = (size_t)v << shift;
	return 0;
}

static int add_otlp(struct serve_args *a, const char *url)
{
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

static int parse_option(struct serve_args *a, int opt)
{
	struct serve_options *o = &a->o;
	uint64_t v;

	switch (opt) {
	case 'l':
		return set_listen(a, optarg);
	case OPT_HOST:
		return set_host(a, optarg, strlen(optarg));
	case OPT_PORT:
		return set_port(a, optarg);
	case 'i':
		return set_time(a, optarg, 100000000, &o->interval_ns);
	case OPT_WINDOW:
		return set_time(a, optarg, 100000000, &o->window_ns);
	case OPT_KEEP:
		return set_time(a, optarg, 1000000000, &o->keep_ns);
	case OPT_KEEP_BYTES:
		return set_bytes(a, optarg, &o->keep_bytes);
	case 'p':
		if (parse_number(optarg, &v) || !v || v > UINT32_MAX)
			return usage_error(a->verb, "'%s' is no process id", optarg);
		vec_push(&a->pids, (uint32_t)v);
		return 0;
	case OPT_RATE:
		return set_number(a, optarg, 0, 1000000, &o->rate_hz);
	case OPT_CLIENTS:
		return set_number(a, optarg, 4, 16384, &o->clients);
	case OPT_THREADS:
		return set_number(a, optarg, 1, 64, &o->threads);
	case OPT_TIMEOUT:
		return set_number(a, optarg, 1, 3600, &o->timeout_s);
	case OPT_REFUSE:
		vec_push(&a->refuse, optarg);
		return 0;
	case OPT_ALLOW_HOST:
		vec_push(&a->hosts, optarg);
		return 0;
	case OPT_TOKEN:
		o->token_file = optarg;
		return 0;
	case OPT_CERT:
		o->cert_file = optarg;
		return 0;
	case OPT_KEY:
		o->key_file = optarg;
		return 0;
	case OPT_INSECURE:
		o->insecure = true;
		return 0;
	case OPT_STATE:
		o->state_dir = optarg;
		return 0;
	case OPT_LOCK:
		o->lock_file = optarg;
		return 0;
	case OPT_NO_LOCK:
		o->lock_file = NULL;
		return 0;
	case OPT_PORT_FILE:
		o->port_file = optarg;
		return 0;
	case OPT_LIMITS:
		a->limits_path = optarg;
		return 0;
	case OPT_PRESET:
		a->preset = optarg;
		return 0;
	case OPT_OUTPUT:
		o->output_dir = optarg;
		return 0;
	case OPT_TARGET:
		vec_push(&a->targets, optarg);
		return 0;
	case OPT_SUBSCRIBE:
		vec_push(&a->subscribe, optarg);
		return 0;
	case OPT_OTLP:
		return add_otlp(a, optarg);
	case OPT_CA:
		o->ca_file = optarg;
		return 0;
	case OPT_NATS_TOKEN:
		o->nats_token_file = optarg;
		return 0;
	case OPT_NATS_CREDENTIALS:
		o->nats_credentials_file = optarg;
		return 0;
	case OPT_CLIENT_CERT:
		o->client_cert_file = optarg;
		return 0;
	case OPT_CLIENT_KEY:
		o->client_key_file = optarg;
		return 0;
	case OPT_BROKER_USER:
		o->broker_user_file = optarg;
		return 0;
	case OPT_BROKER_SETTING:
		vec_push(&a->settings, optarg);
		return 0;
	case OPT_PUBLISH:
		if (check_broker(a, optarg))
			return EXIT_USAGE;
		a->publish = optarg;
		return 0;
	case OPT_PUBLISH_INTERVAL:
		return set_time(a, optarg, 100000000, &a->publish_ns);
	case OPT_PUBLISH_ENTITIES:
		if (parse_number(optarg, &v) || v > UINT32_MAX)
			return usage_error(a->verb, "'%s' is no number of entities", optarg);
		o->publish_entities = v;
		return 0;
	case OPT_HOST_ID:
		if (!is_host_name(optarg))
			return usage_error(a->verb, "'%s' is no name of a host: letters, digits, . _ - : only", optarg);
		o->collect.host_id = optarg;
		return 0;
	case OPT_NETNS:
		if (parse_number(optarg, &v) || !v || v > UINT32_MAX)
			return usage_error(a->verb, "'%s' is no process id", optarg);
		o->collect.netns_pid = (uint32_t)v;
		return 0;
	case OPT_KEEP_PRIVILEGES:
		o->keep_privileges = true;
		return 0;
	case OPT_NO_EBPF:
		o->collect.no_ebpf = true;
		return 0;
	case OPT_NO_REDACT:
		o->collect.no_redact = true;
		return 0;
	}
	return usage_error(a->verb, "wrong option");
}

static int set_group(struct serve_args *a, const char *name)
{
	size_t n = strlen(name);

	if (!n || n > 64 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != n)
		return usage_error(a->verb, "'%s' is no name of a group: letters, digits, '-' and '_'", name);
	a->fleet.broker.group = name;
	return 0;
}

static int parse_fleet_option(struct serve_args *a, int opt)
{
	struct fleet_options *f = &a->fleet;
	size_t bytes = 0;
	int rc;

	switch (opt) {
	case OPT_FROM:
		if (check_broker(a, optarg))
			return EXIT_USAGE;
		f->broker.address = optarg;
		return 0;
	case OPT_STORE:
		if (strlen(optarg) >= sizeof(a->store))
			return usage_error(a->verb, "the name of the store is too long");
		strcpy(a->store, optarg);
		return 0;
	case OPT_GROUP:
		return set_group(a, optarg);
	case OPT_STALE:
		return set_time(a, optarg, 1000000000, &f->stale_ns);
	case OPT_FORGET:
		return set_time(a, optarg, 60000000000, &f->forget_ns);
	case OPT_CLOCK:
		return set_time(a, optarg, 0, &f->clock_ns);
	case OPT_ACK_WAIT:
		return set_time(a, optarg, 1000000000, &f->broker.ack_wait_ns);
	case OPT_REPLICAS:
		return set_number(a, optarg, 1, 5, &f->broker.replicas);
	case OPT_LOG_TIME:
		return set_time(a, optarg, 60000000000, &f->broker.keep_ns);
	case OPT_LOG_BYTES:
		rc = set_bytes(a, optarg, &bytes);
		f->broker.keep_bytes = bytes;
		return rc;
	}
	return parse_option(a, opt);
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
	char *copy;

	for (const struct option *o = options; o->name; o++) {
		if (strcmp(o->name, name) || o->val == OPT_CONFIG)
			continue;
		copy = mem_strdup(value);
		vec_push(&a->made, copy);
		optarg = copy;
		return parse_option(a, o->val) ? -EINVAL : 0;
	}
	return -ENOENT;
}

static void note(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "note: %s\n", text);
}

static int read_config(struct serve_args *a, const char *path)
{
	struct config_sink to = {.set = set_by_name, .note = note, .ctx = a};
	struct err e;

	return config_read(path, &to, &e) < 0 ? fail(&e) : 0;
}

/* Words of the older program are answered, not just refused. */
static int wrong_option(const struct serve_args *a, char *const *argv, int at)
{
	const char *now = a->o.fleet ? NULL : old_flag_now(argv[at]);

	if (!now)
		return usage_error(a->verb, "wrong option '%s'", argv[at]);
	fprintf(stderr, "error: serve: '%s' is the older program's; now: %s\n", argv[at], now);
	return EXIT_USAGE;
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
	if (!a->store[0] && !a->o.state_dir)
		return usage_error(a->verb, "--store or --state-dir is needed: where is it to keep what it fetched?");
	if (!a->store[0] && (size_t)snprintf(a->store, sizeof(a->store), "%s/fleet.db", a->o.state_dir) >= sizeof(a->store))
		return usage_error(a->verb, "the name of the store is too long");
	a->fleet.store = a->store;
	a->o.fleet = &a->fleet;
	a->o.window_ns = a->o.interval_ns;
	return 0;
}

static int run_either(const struct verb *verb, int argc, char **argv)
{
	bool fleet = verb == &verb_fleet;
	struct serve_args a = {.verb = verb,
			       .publish_ns = 10000000000,
			       .fleet = {.stale_ns = 60000000000, .forget_ns = 86400000000000, .clock_ns = STITCH_CLOCK_NS,
					 .broker = {.group = "fleet", .ack_wait_ns = 30000000000, .replicas = 1,
						    .keep_ns = 3600000000000, .keep_bytes = 4ull << 30}},
			       .o = {.port = 18090, .interval_ns = 5000000000, .window_ns = 30000000000,
				     .keep_ns = 900000000000, .keep_bytes = 256u << 20, .rate_hz = 5000,
				     .publish_entities = 500, .clients = 512, .threads = 4, .timeout_s = 10, .ready = say_ready},
			       .host = "127.0.0.1"};
	struct err e;
	int opt, rc = 0;

	instance_default(a.lock, sizeof(a.lock));
	a.o.lock_file = fleet ? NULL : a.lock;
	if (fleet) {
		a.o.port = 18091;
		a.o.interval_ns = 10000000000;
	}
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, fleet ? "l:i:" : "l:i:p:", fleet ? fleet_options : options,
					       NULL)) != -1)
		rc = opt == '?'		 ? wrong_option(&a, argv, optind - 1)
		     : opt == OPT_CONFIG ? read_config(&a, optarg)
		     : fleet		 ? parse_fleet_option(&a, opt)
					 : parse_option(&a, opt);
	if (!rc && optind < argc)
		rc = usage_error(a.verb, "too much: '%s'", argv[optind]);
	rc = rc ?: check_exposure(&a);
	if (!rc && fleet)
		rc = complete_fleet(&a);
	if (!rc) {
		add_publisher(&a);
		a.o.broker_settings = a.settings.v;
		a.o.nbroker_settings = a.settings.n;
		a.o.host = a.host;
		a.o.hosts = a.hosts.v;
		a.o.nhosts = a.hosts.n;
		a.o.targets = a.targets.v;
		a.o.ntargets = a.targets.n;
		a.o.subscribe = a.subscribe.v;
		a.o.nsubscribe = a.subscribe.n;
		a.o.collect.pids = a.pids.v;
		a.o.collect.npids = a.pids.n;
		a.o.collect.probe.refuse = a.refuse.v;
		a.o.collect.probe.nrefuse = a.refuse.n;
		a.o.limits = &a.limits;
		rc = limits_load(&a.limits, a.preset, a.limits_path, &e);
		rc = rc < 0 || serve(&a.o, &e) < 0 ? fail(&e) : EXIT_DONE;
	}
	vec_done(&a.pids);
	vec_done(&a.refuse);
	vec_done(&a.hosts);
	vec_done(&a.targets);
	vec_done(&a.subscribe);
	vec_done(&a.settings);
	vec_for(&a.made, text)
		free(*text);
	vec_done(&a.made);
	return rc;
}

static int run_serve(int argc, char **argv)
{
	return run_either(&verb_serve, argc, argv);
}

static int run_fleet(int argc, char **argv)
{
	return run_either(&verb_fleet, argc, argv);
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
};
