/* Answers that come from the analysis of snapshots, events, and recordings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer.h"
#include "answers.h"
#include "compare.h"
#include "flight.h"
#include "json.h"
#include "mem.h"
#include "render_compare.h"
#include "server.h"
#include "studied.h"

/* Of the snapshot that is asked for, or of the newest that has been analysed. */
static void answer_analysis(struct server *s, const struct request *r, struct reply *a, enum rendering what)
{
	bool chosen = request_arg(r, "snapshot") || request_arg(r, "at");
	struct snapshot *snap = chosen ? asked_snapshot(s, r, a) : board_analysed(s->board);

	if (chosen && !snap)
		return;
	if (!snap) {
		reply_error(a, 503, "the first analysis is not done yet");
		a->retry_after_s = 1;
		return;
	}
	reply_etag(a, s, snap);
	reply_text(a, r, snap, what, NULL, NULL);
	if (a->status == 404)
		reply_error(a, 404, "snapshot %" PRIu64 " was not analysed: there was a newer one", snap->seq);
}

static void answer_topology(struct server *s, const struct request *r, struct reply *a)
{
	answer_analysis(s, r, a, RENDER_TOPOLOGY);
}

static void answer_waitfor(struct server *s, const struct request *r, struct reply *a)
{
	answer_analysis(s, r, a, RENDER_WAITFOR);
}

static void answer_hotspots(struct server *s, const struct request *r, struct reply *a)
{
	answer_analysis(s, r, a, RENDER_HOTSPOTS);
}

static void answer_bottlenecks(struct server *s, const struct request *r, struct reply *a)
{
	answer_analysis(s, r, a, RENDER_BOTTLENECKS);
}

static void answer_findings(struct server *s, const struct request *r, struct reply *a)
{
	answer_analysis(s, r, a, RENDER_FINDINGS);
}

static void answer_between(struct server *s, const struct request *r, struct reply *a)
{
	uint64_t from = request_count(r, "from_at", 0), to = request_count(r, "to_at", INT64_MAX), since;
	struct strbuf list = {0};

	if (from > to) {
		reply_error(a, 400, "'from_at' is behind 'to_at'");
		return;
	}
	since = analyzer_between(s->analyzer, from, to, &list);
	strbuf_addf(&a->body, "{\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"complete_from_ns\":%" PRIu64 ",\"findings\":%s}",
		    from, to, since > s->started_ns ? since : s->started_ns, strbuf_str(&list));
	strbuf_done(&list);
}

struct both {
	struct studied a, b;
};

static void write_diff(struct server *s, struct snapshot *from, struct snapshot *to, struct strbuf *b)
{
	struct both *k = mem_alloc(sizeof(*k));
	struct compare_view v = {.a = "from", .b = "to", .limit = 100};
	struct json_writer w;
	struct compare c;
	struct err e;

	studied_init(&k->a, from, s->o->limits, NULL);
	studied_init(&k->b, to, s->o->limits, NULL);
	compare_init(&c, &(struct compared){&k->a.all.study, &k->a.all.findings},
		     &(struct compared){&k->b.all.study, &k->b.all.findings});
	json_writer_init_strbuf(&w, b, 0);
	json_write_object(&w);
	json_key_u64(&w, "from", from->seq);
	json_key_u64(&w, "to", to->seq);
	json_write_key(&w, "analysis");
	render_compare_json(&c, &v, &w);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	compare_done(&c);
	studied_done(&k->b);
	studied_done(&k->a);
	free(k);
}

/* By number, or by time; without either the newest. */
static struct snapshot *one_end(struct server *s, const struct request *r, const char *number, const char *time)
{
	uint64_t seq = request_count(r, number, 0), at = request_count(r, time, 0);

	return seq ? board_find(s->board, seq) : at ? board_at(s->board, at) : board_newest(s->board);
}

static void answer_diff(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *from, *to;

	if (!request_arg(r, "from") && !request_arg(r, "from_at")) {
		reply_error(a, 400, "parameter 'from' or 'from_at' is needed: a snapshot, or a time");
		return;
	}
	from = one_end(s, r, "from", "from_at");
	to = one_end(s, r, "to", "to_at");
	if (from && to)
		write_diff(s, from, to, &a->body);
	else
		reply_error(a, 404, "a snapshot that is asked for is not kept: /api/v1/snapshots lists those that are");
	snapshot_unref(from);
	snapshot_unref(to);
}

static void answer_events(struct server *s, const struct request *r, struct reply *a)
{
	(void)s;
	(void)r;
	a->stream = true;
}

static void write_snapshot(void *ctx, const struct snapshot *snap)
{
	struct json_writer *w = ctx;

	json_write_object(w);
	json_key_u64(w, "snapshot", snap->seq);
	json_key_u64(w, "start_ns", snap->start_ns);
	json_key_u64(w, "end_ns", snap->end_ns);
	json_key_u64(w, "entities", snap->entities);
	json_key_u64(w, "edges", snap->edges);
	json_write_key(w, "analysed");
	json_write_bool(w, atomic_load(&snap->analysed));
	json_write_object_end(w);
}

static void answer_snapshots(struct server *s, const struct request *r, struct reply *a)
{
	struct json_writer w;
	struct err e;

	(void)r;
	json_writer_init_strbuf(&w, &a->body, 0);
	json_write_array(&w);
	board_each(s->board, write_snapshot, &w);
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
}

static bool has_flight(struct server *s, struct reply *a)
{
	if (!s->flight)
		reply_error(a, 404, "no recordings are written: the server runs without --state-dir");
	return s->flight;
}

static void answer_recordings(struct server *s, const struct request *r, struct reply *a)
{
	(void)r;
	if (has_flight(s, a))
		flight_list(s->flight, &a->body);
}

static void answer_recording(struct server *s, const struct request *r, struct reply *a)
{
	int fd;

	if (!has_flight(s, a))
		return;
	fd = flight_file(s->flight, r->rest, &a->file_bytes);
	if (fd < 0) {
		reply_error(a, 404, "no recording of that name");
		return;
	}
	a->file_fd = fd;
	a->has_file = true;
	snprintf(a->file_name, sizeof(a->file_name), "%s", r->rest);
}

static void answer_record(struct server *s, const struct request *r, struct reply *a)
{
	char name[128];

	(void)r;
	if (!has_flight(s, a))
		return;
	if (!flight_now(s->flight, "asked", name, sizeof(name))) {
		reply_error(a, 503, "one is being written");
		a->retry_after_s = 1;
		return;
	}
	a->status = 202;
	strbuf_addf(&a->body, "{\"name\":\"%s\"}", name);
}

#define JSON "application/json"
#define ANALYSIS_SCHEMA                                                                                      \
	"{\"type\":\"object\",\"required\":[\"snapshot\",\"start_ns\",\"end_ns\",\"analysis\"]}"

const struct route route_topology = {"GET", "/api/v1/topology", "How data moves: ranks, patterns, paths, placement",
				     RIGHT_READ, false, JSON, ANALYSIS_SCHEMA, .params = {P_SNAPSHOT, P_AT},
				     .answer = answer_topology};
const struct route route_waitfor = {"GET", "/api/v1/wait-chains", "Who waits for whom, down to the root",
				    RIGHT_READ, false, JSON, ANALYSIS_SCHEMA, .params = {P_SNAPSHOT, P_AT},
				    .answer = answer_waitfor};
const struct route route_hotspots = {"GET", "/api/v1/hotspots", "Hot threads: what they do, why, and what they wait for",
				     RIGHT_READ, false, JSON, ANALYSIS_SCHEMA, .params = {P_SNAPSHOT, P_AT},
				     .answer = answer_hotspots};
const struct route route_bottlenecks = {"GET", "/api/v1/bottlenecks", "Findings, and what became of each rule",
					RIGHT_READ, false, JSON, ANALYSIS_SCHEMA, .params = {P_SNAPSHOT, P_AT},
					.answer = answer_bottlenecks};
const struct route route_findings = {"GET", "/api/v1/findings", "What holds the host back, most time lost first",
				     RIGHT_READ, false, JSON, ANALYSIS_SCHEMA, .params = {P_SNAPSHOT, P_AT},
				     .answer = answer_findings};
const struct route route_between = {
	"GET", "/api/v1/findings/between", "Findings that held at any time between two, and when", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"from_ns\",\"to_ns\",\"complete_from_ns\",\"findings\"]}",
	.params = {{"from_at", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "ns since 1970 (default: all that is known)"},
		   {"to_at", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "likewise (default: now)"}},
	.answer = answer_between};
const struct route route_diff = {
	"GET", "/api/v1/diff", "What changed between two snapshots", RIGHT_READ, false, JSON,
	"{\"type\":\"object\",\"required\":[\"from\",\"to\",\"analysis\"]}",
	.params = {{"from", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "number of a snapshot"},
		   {"from_at", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "or a time, ns since 1970"},
		   {"to", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "number of another one (default: the newest)"},
		   {"to_at", PARAM_COUNT_OF, .max = INT64_MAX, .doc = "or a time"}},
	.answer = answer_diff};
const struct route route_events = {
	"GET", "/api/v1/events", "Stream of events: snapshots, findings that come and go", RIGHT_READ, false,
	"text/event-stream",
	.params = {{"types", PARAM_TEXT, .max = 60, .doc = "`snapshot`, `finding`, with commas (default: all)"}},
	.answer = answer_events};
const struct route route_snapshots = {"GET", "/api/v1/snapshots", "The snapshots that are kept, oldest first",
				      RIGHT_READ, false, JSON, "{\"type\":\"array\"}", .answer = answer_snapshots};
const struct route route_recordings = {"GET", "/api/v1/recordings", "Recordings that can be had, newest first",
				       RIGHT_READ, false, JSON, "{\"type\":\"array\"}",
				       .answer = answer_recordings};
const struct route route_recording = {"GET", "/api/v1/recordings/{name}", "One of them", RIGHT_READ, false,
				      "application/vnd.sqlite3", .answer = answer_recording};
const struct route route_record = {"POST", "/api/v1/recordings", "Write the newest minutes as a recording",
				   RIGHT_CONTROL, false, JSON,
				   "{\"type\":\"object\",\"required\":[\"name\"]}", .answer = answer_record};
