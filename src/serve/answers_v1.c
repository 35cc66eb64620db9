/* The routes of our own interface: what they all share, and the plain ones. */
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "mem.h"
#include "metrics.h"
#include "render.h"

static void make_summary(void *ctx, struct snapshot *snap, struct strbuf *b)
{
	uint64_t *entities = mem_alloc(n_entity_types * sizeof(*entities));
	uint64_t *edges = mem_alloc(n_edge_types * sizeof(*edges));
	struct json_writer w;
	struct err e;

	(void)ctx;
	json_writer_init_strbuf(&w, b, 0);
	pthread_mutex_lock(&snap->lock);
	count_types(&snap->g, entities, edges);
	render_summary_json(&snap->g, entities, edges, &w);
	pthread_mutex_unlock(&snap->lock);
	json_writer_finish(&w, &e);
	free(entities);
	free(edges);
}

static void answer_summary(struct server *s, const struct request *r, struct reply *a)
{
	struct snapshot *snap = board_newest(s->board);

	if (!snap) {
		reply_error(a, 503, "the first interval is not over yet");
		a->retry_after_s = 1;
		return;
	}
	reply_etag(a, s, snap);
	reply_text(a, r, snap, RENDER_SUMMARY, make_summary, NULL);
}

static void answer_metrics(struct server *s, const struct request *r, struct reply *a)
{
	(void)r;
	metrics_text(s, &a->body);
}

static void answer_openapi(struct server *s, const struct request *r, struct reply *a)
{
	(void)s;
	(void)r;
	routes_openapi(&a->body);
}

#define JSON "application/json"

const struct route route_summary = {"GET", "/api/v1/summary", "What the newest snapshot holds, and how it was observed",
				    RIGHT_READ, false, JSON,
				    "{\"type\":\"object\",\"required\":[\"schema_version\",\"entities\",\"edges\"]}",
				    .answer = answer_summary};
const struct route route_metrics = {"GET", "/metrics", "Figures in Prometheus' text format", RIGHT_READ, false,
				    "text/plain; version=0.0.4; charset=utf-8", .answer = answer_metrics};
const struct route route_openapi = {"GET", "/openapi.json", "Description of all routes (OpenAPI 3.1)", RIGHT_READ,
				    false, JSON, "{\"type\":\"object\",\"required\":[\"openapi\",\"paths\"]}",
				    .answer = answer_openapi};
