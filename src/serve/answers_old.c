/* The routes of openEuler's interface, with its shapes. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answers.h"
#include "cleanup.h"
#include "graph_json.h"
#include "json.h"
#include "mem.h"
#include "render_describe.h"
#include "server.h"
#include "sink.h"

/* The source address of what goes out by the default route; nothing is sent to find it. */
static bool local_ip(char *ret, socklen_t size)
{
	/* TEST-NET-1: no host has it. */
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201)},
			   own;
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(own);

	return fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
	       !getsockname(fd, (struct sockaddr *)&own, &n) && inet_ntop(AF_INET, &own.sin_addr, ret, size);
}

char *envelope_env(void)
{
	char ip[INET_ADDRSTRLEN], name[256] = "", id[64] = "";
	CLEANUP_FCLOSE FILE *f = fopen("/etc/machine-id", "re");
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	gethostname(name, sizeof(name) - 1);
	if (f && fgets(id, sizeof(id), f))
		id[strcspn(id, "\n")] = '\0';
	json_writer_init_strbuf(&w, &b, 0);
	json_write_object(&w);
	/* As the older tool writes what it does not know. */
	json_key_str(&w, "local_ip", local_ip(ip, sizeof(ip)) ? ip : "None");
	json_key_str(&w, "hostname", name);
	json_key_str(&w, "machine_id", id[0] ? id : "unknown");
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	return b.s;
}

static void open_envelope(struct server *s, struct json_writer *w, struct strbuf *b)
{
	json_writer_init_strbuf(w, b, 0);
	json_write_object(w);
	json_write_key(w, "env");
	json_write_raw(w, s->env, strlen(s->env));
	json_write_key(w, "content");
}

static void close_envelope(struct json_writer *w)
{
	struct err e;

	json_write_object_end(w);
	json_writer_finish(w, &e);
}

static void answer_root(struct server *s, const struct request *r, struct reply *a)
{
	struct json_writer w;
	struct strbuf key = {0};

	if (r->wants_html) {
		answer_page(s, r, a);
		return;
	}
	open_envelope(s, &w, &a->body);
	json_write_object(&w);
	json_key_str(&w, "service", "Witty Profiler Topology API");
	json_key_str(&w, "version", WITTY_VERSION);
	json_write_key(&w, "endpoints");
	json_write_object(&w);
	for (const struct route *const *it = routes_all(); *it; it++) {
		if (*it == r->route)
			continue;
		strbuf_clear(&key);
		strbuf_addf(&key, "%s %s", (*it)->method, (*it)->path);
		json_key_str(&w, key.s, (*it)->summary);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	close_envelope(&w);
	strbuf_done(&key);
}

static void answer_help(struct server *s, const struct request *r, struct reply *a)
{
	(void)s;
	(void)r;
	routes_help(&a->body);
}

static void write_content(struct snapshot *snap, bool old_only, struct strbuf *b)
{
	struct graph_json_style style = {.old_only = old_only, .compact = true};

	pthread_mutex_lock(&snap->lock);
	graph_write_json_strbuf(&snap->g, b, &style);
	pthread_mutex_unlock(&snap->lock);
}

void graph_content(struct snapshot *snap, struct strbuf *b)
{
	write_content(snap, true, b);
}

static void write_graph(struct server *s, struct snapshot *snap, bool old_only, struct strbuf *b)
{
	strbuf_addf(b, "{\"env\":%s,\"content\":", s->env);
	write_content(snap, old_only, b);
	strbuf_addc(b, '}');
}

static void make_graph(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	write_graph(ctx, snap, true, b);
}

static void make_graph_full(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	write_graph(ctx, snap, false, b);
}

void reply_etag(struct reply *a, const struct server *s, const struct snapshot *snap)
{
	snprintf(a->etag, sizeof(a->etag), "%" PRIx64 "-%" PRIu64, s->instance, snap->seq);
}

static void answer_graph(struct server *s, const struct request *r, struct reply *a)
{
	bool full = request_count(r, "full", 0);
	struct snapshot *snap = board_newest(s->board);

	if (!snap) {
		strbuf_addf(&a->body, "{\"env\":%s,\"content\":{\"nodes\":[],\"edges\":[]}}", s->env);
		return;
	}
	reply_etag(a, s, snap);
	reply_text(a, r, snap, full ? RENDER_GRAPH_FULL : RENDER_GRAPH, full ? make_graph_full : make_graph, s);
}

static void make_describe(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	(void)ctx;
	pthread_mutex_lock(&snap->lock);
	render_describe(&snap->g, b);
	pthread_mutex_unlock(&snap->lock);
}

const struct strbuf *describe_text(struct snapshot *snap)
{
	enum encoding plain;

	return snapshot_text(snap, RENDER_DESCRIBE, make_describe, NULL, ENCODING_PLAIN, &plain);
}

static void answer_compressed(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = board_newest(s->board);

	if (!snap) {
		strbuf_add(&a->body, "Graph with 0 nodes and 0 edges\nNodes:\nEdges:");
		return;
	}
	reply_etag(a, s, snap);
	reply_text(a, r, snap, RENDER_DESCRIBE, make_describe, NULL);
}

/* What collects, by the names of the older tool, where it has one. */
static const char *const collectors[] = {"CommonProcessParent", "Container", "GPU",	 "IPC",	   "NPU", "Numa",
					 "RDMA",		"Scheduler", "SharedMemory", "Socket"};

static void write_names(struct json_writer *w, const char *const *names, size_t n)
{
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		json_write_str(w, names[i]);
	json_write_array_end(w);
}

static void answer_status(struct server *s, const struct request *r, struct reply *a)
{
	const size_t n = sizeof(collectors) / sizeof(collectors[0]);
	struct snapshot *snap = board_newest(s->board);
	struct sink_counts sinks[SINKS_MAX];
	size_t n_sinks = sinks_get(s->sinks, sinks);
	struct collector_state c;
	struct json_writer w;

	(void)r;
	collector_get(s->collector, &c);
	open_envelope(s, &w, &a->body);
	json_write_object(&w);
	json_write_key(&w, "running");
	json_write_bool(&w, c.running);
	json_write_key(&w, "graph");
	json_write_object(&w);
	json_key_u64(&w, "node_count", snap ? snap->entities : 0);
	json_key_u64(&w, "edge_count", snap ? snap->edges : 0);
	json_write_object_end(&w);
	json_write_key(&w, "collectors");
	json_write_object(&w);
	json_key_u64(&w, "count", n);
	json_write_key(&w, "types");
	write_names(&w, collectors, n);
	json_write_object_end(&w);
	json_write_key(&w, "subscribers");
	json_write_object(&w);
	json_key_u64(&w, "count", n_sinks + 1);
	json_write_key(&w, "names");
	json_write_array(&w);
	json_write_str(&w, "witty_profilercore-memory-subscriber");
	for (size_t i = 0; i < n_sinks; i++)
		json_write_str(&w, sinks[i].name);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_key_u64(&w, "intervals", c.ticks);
	json_key_u64(&w, "late_intervals", c.late_ticks);
	json_write_object_end(&w);
	close_envelope(&w);
	snapshot_unref(snap);
}

static void say_done(struct server *s, struct reply *a, const char *message, const char *summary)
{
	struct json_writer w;

	open_envelope(s, &w, &a->body);
	json_write_object(&w);
	json_key_str(&w, "status", "success");
	json_key_str(&w, "message", message);
	if (summary)
		json_key_str(&w, "graph_summary", summary);
	json_write_object_end(&w);
	close_envelope(&w);
}

static void answer_start(struct server *s, const struct request *r, struct reply *a)
{
	(void)r;
	collector_run(s->collector, true);
	say_done(s, a, "Collection started", NULL);
}

static void answer_stop(struct server *s, const struct request *r, struct reply *a)
{
	(void)r;
	collector_run(s->collector, false);
	say_done(s, a, "Collection stopped", NULL);
}

static void answer_clear(struct server *s, const struct request *r, struct reply *a)
{
	(void)r;
	collector_clear(s->collector);
	say_done(s, a, "Collected data cleared", NULL);
}

/* The older tool collects while it answers; here the request is put off until the collection is done. */
static void answer_trigger(struct server *s, const struct request *r, struct reply *a)
{
	struct collector_state c;
	struct snapshot *snap;

	if (!r->passed) {
		a->tick = collector_trigger(s->collector);
		a->wait_tick = true;
		return;
	}
	collector_get(s->collector, &c);
	if (c.ticks <= r->tick) {
		a->tick = r->tick;
		a->wait_tick = true;
		return;
	}
	snap = board_newest(s->board);
	say_done(s, a, "Collection triggered", snap ? strbuf_str(describe_text(snap)) : "");
	snapshot_unref(snap);
}

#define JSON "application/json"
#define ENVELOPE(content)                                                                                    \
	"{\"type\":\"object\",\"required\":[\"env\",\"content\"],\"properties\":{\"env\":{\"type\":\"object\","  \
	"\"required\":[\"local_ip\",\"hostname\",\"machine_id\"]},\"content\":" content "}}"
#define DONE_SCHEMA                                                                                          \
	ENVELOPE("{\"type\":\"object\",\"required\":[\"status\",\"message\"],\"properties\":{\"status\":"        \
		 "{\"const\":\"success\"},\"message\":{\"type\":\"string\"}}}")
#define GRAPH_SCHEMA                                                                                         \
	ENVELOPE("{\"type\":\"object\",\"required\":[\"nodes\",\"edges\"],\"properties\":{\"nodes\":{\"type\":"  \
		 "\"array\"},\"edges\":{\"type\":\"array\"}}}")

const struct route route_root = {"GET", "/", "This list; for browsers, the live page", RIGHT_READ, true, JSON,
				 ENVELOPE("{\"type\":\"object\",\"required\":[\"service\",\"version\",\"endpoints\"]}"),
				 .answer = answer_root};
const struct route route_help = {"GET", "/help", "All routes as text", RIGHT_READ, true,
				 "text/plain; charset=utf-8", .answer = answer_help};
const struct route route_graph = {
	"GET", "/graph", "The newest graph, as openEuler's witty-profiler writes it", RIGHT_READ, true, JSON,
	GRAPH_SCHEMA, .params = {{"full", PARAM_FLAG, .doc = "with all types and fields that it does not know"}},
	.answer = answer_graph};
const struct route route_compressed = {"GET", "/compressed_graph", "The newest graph as text, a line an item",
				       RIGHT_READ, true, "text/plain; charset=utf-8",
				       .answer = answer_compressed};
const struct route route_status = {"GET", "/status", "Whether it collects, and how much there is", RIGHT_READ,
				   true, JSON,
				   ENVELOPE("{\"type\":\"object\",\"required\":[\"running\",\"graph\",\"collectors\","
					    "\"subscribers\"]}"),
				   .answer = answer_status};
const struct route route_start = {"POST", "/control/start", "Go on collecting", RIGHT_CONTROL, true, JSON,
				  DONE_SCHEMA, .answer = answer_start};
const struct route route_stop = {"POST", "/control/stop", "Pause collecting", RIGHT_CONTROL, true, JSON,
				 DONE_SCHEMA, .answer = answer_stop};
const struct route route_trigger = {"POST", "/control/trigger", "Collect now, and tell what was found",
				    RIGHT_CONTROL, true, JSON, DONE_SCHEMA, .answer = answer_trigger};
const struct route route_clear = {"POST", "/control/clear", "Forget what was collected before now",
				  RIGHT_CONTROL, true, JSON, DONE_SCHEMA, .answer = answer_clear};
