/* What the server says of itself: its work, its cost, and what was lost. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer.h"
#include "cleanup.h"
#include "clock.h"
#include "finding.h"
#include "flight.h"
#include "http.h"
#include "mem.h"
#include "metrics.h"
#include "server.h"
#include "sink.h"

#define SOURCES_MOST 200 /* of a fleet: a host has about 40, all of them the same */

static void add_one(struct metrics *m, enum metric_kind kind, const char *name, const char *unit,
		    const char *help, double v)
{
	metrics_sample(m, metrics_family(m, kind, name, unit, help), v, NULL);
}

static void add_collector(struct metrics *m, struct server *s)
{
	struct collector_state c;
	struct board_counts b;

	collector_get(s->collector, &c);
	board_count(s->board, &b);
	add_one(m, METRIC_GAUGE, "witty_collecting", "1", "1: the host is observed; 0: that is paused.", c.running);
	add_one(m, METRIC_COUNTER, "witty_intervals_total", "1", "Intervals observed.", (double)c.ticks);
	add_one(m, METRIC_COUNTER, "witty_intervals_late_total", "1",
		"Intervals that were taken later than a tenth of their length.", (double)c.late_ticks);
	add_one(m, METRIC_GAUGE, "witty_interval_duration_seconds", "s",
		"Time that the last observation and its snapshot took.", (double)c.tick_ns / 1e9);
	add_one(m, METRIC_GAUGE, "witty_interval_duration_longest_seconds", "s", "The longest so far.",
		(double)c.longest_ns / 1e9);
	add_one(m, METRIC_COUNTER, "witty_collection_busy_seconds_total", "s", "Time spent on observations.",
		(double)c.busy_ns / 1e9);
	if (c.last_ns)
		add_one(m, METRIC_GAUGE, "witty_last_interval_timestamp_seconds", "s",
			"End of the last interval, since 1970.", (double)c.last_ns / 1e9);
	add_one(m, METRIC_GAUGE, "witty_kept_intervals", "1", "Intervals that the flight recorder keeps.",
		(double)c.intervals);
	add_one(m, METRIC_GAUGE, "witty_kept_intervals_bytes", "By", "Memory of these intervals.", (double)c.intervals_bytes);
	add_one(m, METRIC_GAUGE, "witty_known_bytes", "By",
		"Memory of what is known of all that is there, and of what was there minutes ago.", (double)c.known_bytes);
	add_one(m, METRIC_GAUGE, "witty_snapshots", "1", "Snapshots kept.", (double)b.snapshots);
	add_one(m, METRIC_GAUGE, "witty_snapshots_bytes", "By", "Memory of the snapshots kept.", (double)b.bytes);
	add_one(m, METRIC_COUNTER, "witty_snapshots_evicted_total", "1",
		"Snapshots that were given up for their size before their age.", (double)b.evicted);
}

static void add_http(struct metrics *m, struct server *s)
{
	static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
	static const char *const reasons[REFUSE_COUNT] = {NULL, "rate", "host", "origin", "token", "right"};
	struct metric *f;
	struct http_counts c;

	http_get(s->http, &c);
	f = metrics_family(m, METRIC_COUNTER, "witty_http_requests_total", "1", "Requests, by class of status.");
	for (size_t i = 0; i < 6; i++)
		metrics_sample(m, f, (double)c.requests[i], "code", classes[i], NULL);
	f = metrics_family(m, METRIC_COUNTER, "witty_http_refused_total", "1", "Requests refused, by reason.");
	for (size_t i = 1; i < REFUSE_COUNT; i++)
		metrics_sample(m, f, (double)c.refused[i], "reason", reasons[i], NULL);
	metrics_sample(m, f, (double)c.too_large, "reason", "size", NULL);
	metrics_sample(m, f, (double)c.timed_out, "reason", "time", NULL);
	add_one(m, METRIC_GAUGE, "witty_http_connections", "1", "Connections open.", (double)c.connections);
	add_one(m, METRIC_COUNTER, "witty_http_busy_seconds_total", "s", "Time spent on making answers.",
		(double)c.busy_ns / 1e9);
	add_one(m, METRIC_GAUGE, "witty_event_clients", "1", "Clients of the event stream.",
		(double)events_clients(s->events));
	add_one(m, METRIC_COUNTER, "witty_events_missed_total", "1", "Events that clients were too slow for.",
		(double)events_missed(s->events));
}

static void add_analysis(struct metrics *m, struct server *s)
{
	struct analyzer_counts c;
	struct metric *f;

	analyzer_get(s->analyzer, &c);
	add_one(m, METRIC_COUNTER, "witty_analyses_total", "1", "Snapshots analysed.", (double)c.analyses);
	add_one(m, METRIC_GAUGE, "witty_analysis_duration_seconds", "s", "Time that the last analysis took.",
		(double)c.last_ns / 1e9);
	if (c.newest_ns)
		add_one(m, METRIC_GAUGE, "witty_analysis_lag_seconds", "s", "Age of the newest window that has been analysed.",
			m->now_ns > c.newest_ns ? (double)(m->now_ns - c.newest_ns) / 1e9 : 0);
	add_one(m, METRIC_COUNTER, "witty_analysis_busy_seconds_total", "s", "Time spent on analyses.",
		(double)c.busy_ns / 1e9);
	add_one(m, METRIC_COUNTER, "witty_findings_raised_total", "1", "Findings that came up.", (double)c.raised);
	f = metrics_family(m, METRIC_GAUGE, "witty_findings", "1", "Findings of the newest analysis.");
	for (unsigned i = 0; i < SEVERITY_COUNT; i++)
		metrics_sample(m, f, c.current[i], "severity", severity_name(i), NULL);
}

static void add_sinks(struct metrics *m, struct server *s)
{
	struct sink_counts list[SINKS_MAX];
	size_t n = sinks_get(s->sinks, list);
	struct metric *f;

	f = metrics_family(m, METRIC_COUNTER, "witty_subscriber_delivered_total", "1", "What subscribers got.");
	for (size_t i = 0; i < n; i++)
		metrics_sample(m, f, (double)list[i].delivered, "subscriber", list[i].name, NULL);
	f = metrics_family(m, METRIC_COUNTER, "witty_subscriber_failed_total", "1", "Attempts that failed.");
	for (size_t i = 0; i < n; i++)
		metrics_sample(m, f, (double)list[i].failed, "subscriber", list[i].name, NULL);
	f = metrics_family(m, METRIC_COUNTER, "witty_subscriber_dropped_total", "1", "What was given up.");
	for (size_t i = 0; i < n; i++)
		metrics_sample(m, f, (double)list[i].dropped, "subscriber", list[i].name, NULL);
	f = metrics_family(m, METRIC_GAUGE, "witty_subscriber_waiting_bytes", "By", "What waits to be tried again.");
	for (size_t i = 0; i < n; i++)
		metrics_sample(m, f, (double)list[i].spool_bytes, "subscriber", list[i].name, NULL);
}

static void add_flight(struct metrics *m, struct server *s)
{
	struct flight_counts c;

	if (!s->flight)
		return;
	flight_get(s->flight, &c);
	add_one(m, METRIC_COUNTER, "witty_recordings_written_total", "1", "Recordings of the flight recorder.",
		(double)c.written);
	add_one(m, METRIC_COUNTER, "witty_recordings_failed_total", "1", "Those that could not be written.",
		(double)c.failed);
}

static void add_fleet(struct metrics *m, struct server *s)
{
	struct fleet_counts c;

	if (!s->fleet)
		return;
	fleet_get(s->fleet, &c);
	add_one(m, METRIC_GAUGE, "witty_fleet_hosts", "1", "Hosts in the newest graph.", (double)c.hosts);
	add_one(m, METRIC_GAUGE, "witty_fleet_hosts_silent", "1", "Hosts that were not heard of lately.", (double)c.stale);
	add_one(m, METRIC_GAUGE, "witty_fleet_connections_joined", "1", "Connections between hosts in it.", (double)c.joined);
	add_one(m, METRIC_COUNTER, "witty_fleet_messages_taken_total", "1", "Messages of agents that were stored.",
		(double)c.taken);
	add_one(m, METRIC_COUNTER, "witty_fleet_messages_known_total", "1", "Messages that came again, and changed nothing.",
		(double)c.duplicates);
	add_one(m, METRIC_COUNTER, "witty_fleet_messages_refused_total", "1", "Messages that are none of an agent.",
		(double)c.refused);
	add_one(m, METRIC_COUNTER, "witty_fleet_failures_total", "1", "Failures of broker or store, after which it was tried again.",
		(double)c.failures);
	add_one(m, METRIC_GAUGE, "witty_fleet_connected", "1", "1 while the broker answers.", c.connected);
	if (c.pending != UINT64_MAX)
		add_one(m, METRIC_GAUGE, "witty_fleet_messages_pending", "1", "Messages that the broker holds for the group.",
			(double)c.pending);
	add_one(m, METRIC_GAUGE, "witty_fleet_lag_seconds", "s", "From broker to store, of the newest message.",
		(double)c.lag_ns / 1e9);
	add_one(m, METRIC_GAUGE, "witty_fleet_graph_seconds", "s", "Time to make the newest graph of all hosts.",
		(double)c.world_ns / 1e9);
}

/* By the names that all of Prometheus' clients use. */
static void add_process(struct metrics *m, struct server *s)
{
	CLEANUP_FCLOSE FILE *f = fopen("/proc/self/statm", "re");
	CLEANUP_CLOSEDIR DIR *fds = opendir("/proc/self/fd");
	unsigned long long size, resident, n = 0;
	struct mallinfo2 heap = mallinfo2();
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	add_one(m, METRIC_COUNTER, "process_cpu_seconds_total", "s", "CPU time of the server.",
		(double)t.tv_sec + (double)t.tv_nsec / 1e9);
	if (f && fscanf(f, "%llu %llu", &size, &resident) == 2)
		add_one(m, METRIC_GAUGE, "process_resident_memory_bytes", "By", "Resident memory of the server.",
			(double)resident * (double)sysconf(_SC_PAGESIZE));
	while (fds && readdir(fds))
		n++;
	if (n > 3)
		add_one(m, METRIC_GAUGE, "process_open_fds", "1", "Open files of the server.", (double)(n - 3));
	add_one(m, METRIC_GAUGE, "witty_heap_used_bytes", "By", "Memory that the server has allocated.",
		(double)heap.uordblks + (double)heap.hblkhd);
	add_one(m, METRIC_GAUGE, "witty_heap_free_bytes", "By", "Memory of its heaps that nothing is in.", (double)heap.fordblks);
	add_one(m, METRIC_GAUGE, "process_start_time_seconds", "s", "When the server started, since 1970.",
		(double)s->started_ns / 1e9);
}

/* What several hosts tell of their sources, "HOST: SOURCE", added up; whatever they tell, a bounded number. */
struct source_sum {
	const char *source, *what;
	double n;
};

struct source_sums {
	struct source_sum v[SOURCES_MOST];
	size_t n;
	double rest;
};

static void sum_source(struct source_sums *s, const char *source, const char *what, double n)
{
	const char *behind = strstr(source, ": ");

	source = behind ? behind + 2 : source;
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].source, source) && !strcmp(s->v[i].what, what)) {
			s->v[i].n += n;
			return;
		}
	if (s->n < SOURCES_MOST)
		s->v[s->n++] = (struct source_sum){source, what, n};
	else
		s->rest += n;
}

static void add_sums(struct metrics *m, const char *name, const char *label, const char *help, const struct source_sums *s)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, name, "1", help);

	for (size_t i = 0; i < s->n; i++)
		metrics_sample(m, f, s->v[i].n, "source", s->v[i].source, label, s->v[i].what, NULL);
	if (s->rest > 0)
		metrics_sample(m, f, s->rest, "source", "other", label, "", NULL);
}

static void add_sources_of_hosts(struct metrics *m, const struct graph *g)
{
	struct source_sums *s = mem_alloc(sizeof(*s));

	vec_for(&g->status, it)
		if (strcmp(it->state, "blind"))
			sum_source(s, it->source, it->state, 1);
	add_sums(m, "witty_fleet_source_hosts", "state", "Hosts with a source in that state: ok, reduced, off.", s);
	memset(s, 0, sizeof(*s));
	vec_for(&g->losses, it)
		sum_source(s, it->source, it->cause, (double)it->count);
	add_sums(m, "witty_fleet_lost", "cause",
		 "Events and reads that the agents of the hosts in the newest graph have lost; each agent counts its own.", s);
	free(s);
}

/* Status, losses and costs of the sources: their names are those of the program. */
static void add_sources(struct metrics *m, struct graph *g)
{
	struct metric *f = metrics_family(m, METRIC_GAUGE, "witty_source_state", "1",
					  "1 for the state that a source is in: ok, reduced, off, blind.");

	vec_for(&g->status, s)
		if (strcmp(s->state, "blind"))
			metrics_sample(m, f, 1, "source", s->source, "state", s->state, NULL);
	f = metrics_family(m, METRIC_COUNTER, "witty_lost_total", "1", "Events and reads that were lost.");
	vec_for(&g->losses, l)
		metrics_sample(m, f, (double)l->count, "source", l->source, "cause", l->cause, NULL);
	vec_for(&g->costs, c) {
		if (!strcmp(c->name, "cpu"))
			add_one(m, METRIC_COUNTER, "witty_observation_cpu_seconds_total", "s",
				"CPU time of the server and its helpers since start-up ended.", c->value / 1e9);
		if (!strcmp(c->name, "maps"))
			add_one(m, METRIC_GAUGE, "witty_bpf_maps_bytes", "By", "Memory of the maps of BPF.", c->value);
		if (!strcmp(c->name, "pss with helpers"))
			add_one(m, METRIC_GAUGE, "witty_memory_with_helpers_bytes", "By",
				"Memory of the server and its helpers, shared pages by halves.", c->value);
	}
}

static void begin(struct metrics *m, const struct server *s)
{
	memset(m, 0, sizeof(*m));
	arena_init(&m->arena);
	m->start_ns = s->started_ns;
	m->now_ns = clock_real_ns();
}

static void add_own(struct metrics *m, struct server *s)
{
	metrics_sample(m, metrics_family(m, METRIC_GAUGE, "witty_build_info", "1", "1, with the version as a label."), 1, "version",
		       WITTY_VERSION, NULL);
	add_collector(m, s);
	add_http(m, s);
	add_analysis(m, s);
	add_sinks(m, s);
	add_flight(m, s);
	add_fleet(m, s);
	add_process(m, s);
}

static void add_observed(struct metrics *m, const struct server *s, struct snapshot *snap)
{
	pthread_mutex_lock(&snap->lock);
	metrics_add_graph(m, &snap->g);
	if (s->fleet)
		add_sources_of_hosts(m, &snap->g);
	else
		add_sources(m, &snap->g);
	pthread_mutex_unlock(&snap->lock);
}

void metrics_init(struct metrics *m, struct server *s)
{
	struct snapshot *snap = board_newest(s->board);

	begin(m, s);
	add_own(m, s);
	if (snap)
		add_observed(m, s, snap);
	snapshot_unref(snap);
}

static void write_observed(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	struct metrics m;

	begin(&m, ctx);
	add_observed(&m, ctx, snap);
	metrics_prometheus(&m, b);
	metrics_done(&m);
}

void metrics_text(struct server *s, struct strbuf *b)
{
	struct snapshot *snap = board_newest(s->board);
	struct metrics m;

	begin(&m, s);
	add_own(&m, s);
	metrics_prometheus(&m, b);
	metrics_done(&m);
	if (snap) {
		enum encoding plain;
		const struct strbuf *text = snapshot_text(snap, RENDER_METRICS, write_observed, s, ENCODING_PLAIN, &plain);

		strbuf_addn(b, strbuf_str(text), text->n);
	}
	snapshot_unref(snap);
}
