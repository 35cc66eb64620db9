/* witty-profiler show: what a recording or graph file holds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "load.h"
#include "numa_score.h"
#include "options.h"
#include "recording.h"
#include "render.h"
#include "render_waitfor.h"
#include "study_open.h"

struct view_args {
	const char *file, *what, *id, *other, *output;
	const char *type_name, *format;
	bool json, md, idle, force;
	uint64_t limit, hops, budget, from_ns, to_ns;
	struct selection selection;
};

static int find_type(struct view_args *a)
{
	bool edges = a->what && !strcmp(a->what, "edges");

	if (!a->type_name)
		return 0;
	a->selection.type = type_find(edges ? KIND_EDGE : KIND_ENTITY, a->type_name);
	if (!a->selection.type)
		return usage_error(&verb_show, "no %s type '%s'; docs/schema.md lists them",
				   edges ? "edge" : "entity", a->type_name);
	return 0;
}

static int output(struct view_args *a, struct strbuf *b)
{
	struct err e;
	int rc = write_output(a->output, a->force, b, &e);

	return rc < 0 ? fail(&e) : EXIT_DONE;
}

static void render_show_flows(struct graph *g, const struct selection *s, struct strbuf *b)
{
	render_flows_text(g, s, b);
	render_shared_note(g, b);
}

static void render(struct view_args *a, struct graph *g, uint32_t node, uint32_t other, struct strbuf *b)
{
	uint64_t *entities = mem_alloc(n_entity_types * sizeof(*entities));
	uint64_t *edges = mem_alloc(n_edge_types * sizeof(*edges));
	struct json_writer w;
	struct err e;

	count_types(g, entities, edges);
	json_writer_init_strbuf(&w, b, JSON_INDENT);
	if (!strcmp(a->what, "summary"))
		a->json ? render_summary_json(g, entities, edges, &w) : render_summary_text(g, entities, edges, b);
	else if (!strcmp(a->what, "entities"))
		a->json ? render_entities_json(g, &a->selection, &w) : render_entities_text(g, &a->selection, b);
	else if (!strcmp(a->what, "edges"))
		a->json ? render_edges_json(g, &a->selection, &w) : render_edges_text(g, &a->selection, b);
	else if (!strcmp(a->what, "flows"))
		a->json ? render_flows_json(g, &a->selection, &w) : render_show_flows(g, &a->selection, b);
	else if (!strcmp(a->what, "shared-memory"))
		a->json ? render_shared_json(g, &a->selection, &w) : render_shared_text(g, &a->selection, b);
	else if (!strcmp(a->what, "numa"))
		a->json ? render_numa_json(g, &a->selection, &w) : render_numa_text(g, &a->selection, b);
	else if (!strcmp(a->what, "waits"))
		a->json ? render_waits_json(g, &a->selection, &w) : render_waits_text(g, &a->selection, b);
	else if (!strcmp(a->what, "wakes"))
		a->json ? render_wakes_json(g, &a->selection, &w) : render_wakes_text(g, &a->selection, b);
	else if (!strcmp(a->what, "paths"))
		a->json ? render_paths_json(g, node, other, &w) : render_paths_text(g, node, other, b);
	else
		a->json ? render_entity_json(g, node, &w) : render_entity_text(g, node, b);
	if (a->json) {
		json_writer_finish(&w, &e);
		strbuf_addc(b, '\n');
	} else {
		json_writer_drop(&w);
	}
	free(entities);
	free(edges);
}

/* A common size of a token, for texts like these. */
#define TOKEN_BYTES 4

static bool fits(struct view_args *a, struct graph *g, uint64_t limit, struct strbuf *b)
{
	a->selection.limit = limit;
	strbuf_clear(b);
	render(a, g, NODE_NONE, NODE_NONE, b);
	return b->n <= a->budget * TOKEN_BYTES;
}

/* As many of a list as fit, the most important first. The text says what is left out; JSON has no place for it. */
static void render_within(struct view_args *a, struct graph *g, struct strbuf *b)
{
	uint64_t low = 0, high = 1;

	a->selection.important_first = true;
	if (fits(a, g, a->limit, b))
		return;
	while (fits(a, g, high, b)) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (fits(a, g, middle, b))
			low = middle;
		else
			high = middle;
	}
	fits(a, g, low ? low : 1, b);
	if (a->json)
		fprintf(stderr, "note: the budget holds %" PRIu64 " items; --after %" PRIu64 " goes on\n",
			a->selection.limit, a->selection.after + a->selection.limit);
}

/* A recording answers these without being read whole. */
static int quick_answer(struct view_args *a, struct strbuf *b, struct err *e)
{
	uint64_t *entities = mem_alloc(n_entity_types * sizeof(*entities));
	uint64_t *edges = mem_alloc(n_edge_types * sizeof(*edges));
	struct json_writer w;
	struct stored *s;
	struct graph g;
	int rc = stored_open(&s, a->file, e);

	graph_init(&g);
	if (!rc) {
		rc = stored_load_meta(s, &g, e);
		for (size_t i = 0; i < n_entity_types; i++) {
			int64_t n = stored_count(s, entity_types[i]);

			entities[i] = n > 0 ? (uint64_t)n : 0;
		}
		for (size_t i = 0; i < n_edge_types; i++) {
			int64_t n = stored_count(s, edge_types[i]);

			edges[i] = n > 0 ? (uint64_t)n : 0;
		}
		stored_close(s);
	}
	if (!rc && a->json) {
		json_writer_init_strbuf(&w, b, JSON_INDENT);
		render_summary_json(&g, entities, edges, &w);
		json_writer_finish(&w, e);
		strbuf_addc(b, '\n');
	} else if (!rc) {
		render_summary_text(&g, entities, edges, b);
	}
	graph_done(&g);
	free(entities);
	free(edges);
	return rc;
}

static int load(struct view_args *a, struct graph *g, bool around, struct err *e)
{
	struct stored *s;
	int rc;

	if (!around)
		return graph_load(g, a->file, e);
	rc = stored_open(&s, a->file, e);
	if (rc < 0)
		return rc;
	rc = stored_load_around(s, g, a->id, (unsigned)a->hops, 10000, e);
	rc = rc ?: stored_load_meta(s, g, e);
	stored_close(s);
	return rc;
}

static int view(struct view_args *a)
{
	bool one = a->id != NULL;
	struct strbuf b = {0};
	struct graph g;
	struct err e;
	uint32_t node = NODE_NONE, other = NODE_NONE;
	int format = file_format(a->file, &e), rc;

	if (format < 0)
		return fail(&e);
	if (format == FORMAT_RECORDING && !strcmp(a->what, "summary")) {
		rc = quick_answer(a, &b, &e);
		rc = rc < 0 ? fail(&e) : output(a, &b);
		strbuf_done(&b);
		return rc;
	}
	graph_init(&g);
	rc = load(a, &g, format == FORMAT_RECORDING && one && !a->other, &e);
	if (!rc && one && (node = graph_find(&g, a->id)) == NODE_NONE)
		rc = err_msg(&e, -ENOENT, "no entity '%s' in '%s'", a->id, a->file);
	if (!rc && a->other && (other = graph_find(&g, a->other)) == NODE_NONE)
		rc = err_msg(&e, -ENOENT, "no entity '%s' in '%s'", a->other, a->file);
	if (!rc) {
		if (!strcmp(a->what, "flows"))
			derive_flows(&g);
		if (strcmp(a->what, "summary"))
			derive_numa(&g);
		/* Neighbours: all that was found around it. */
		if (one && !strcmp(a->what, "neighbors") && format == FORMAT_RECORDING && a->hops > 1)
			a->what = "edges";
		if (a->budget)
			render_within(a, &g, &b);
		else
			render(a, &g, node, other, &b);
	}
	rc = rc < 0 ? fail(&e) : output(a, &b);
	strbuf_done(&b);
	graph_done(&g);
	return rc;
}

/* The critical path that ends on one thread. */
static int view_path(struct view_args *a, struct graph *g, const struct timeline *t, struct strbuf *b, struct err *e)
{
	const struct waitfor_view v = {.limit = a->limit};
	uint64_t from = a->from_ns ? g->meta.start_ns + a->from_ns : 0, to = a->to_ns ? g->meta.start_ns + a->to_ns : 0;
	uint32_t thread = graph_find(g, a->id);
	struct json_writer j;
	struct wait_path p;

	if (thread == NODE_NONE)
		return err_msg(e, -ENOENT, "no entity '%s' in '%s'", a->id, a->file);
	if (g->nodes.v[thread]->type != &thread_type)
		return err_msg(e, -EINVAL, "critical path of '%s': it is no thread", a->id);
	if (wait_path_init(&p, g, t, thread, from, to))
		return err_msg(e, -ENOENT, "critical path of '%s': '%s' has no single waits of that time", a->id, a->file);
	if (a->json) {
		json_writer_init_strbuf(&j, b, JSON_INDENT);
		render_wait_path_json(&p, g, &j);
		json_writer_finish(&j, e);
		strbuf_addc(b, '\n');
	} else {
		render_wait_path_text(&p, g, &v, a->md, b);
	}
	wait_path_done(&p);
	return 0;
}

/* Who waits for whom: needs single waits, too. */
static int view_waitfor(struct view_args *a)
{
	struct waitfor_view v = {.limit = a->limit, .idle = a->idle};
	struct timeline t = {0};
	struct strbuf b = {0};
	struct json_writer j;
	struct waitfor w;
	struct graph g;
	struct err e;
	int rc;

	graph_init(&g);
	rc = graph_load_timed(&g, &t, a->file, &e);
	if (!rc && a->id) {
		rc = view_path(a, &g, &t, &b, &e);
	} else if (!rc) {
		waitfor_init(&w, &g, &t);
		if (a->json) {
			json_writer_init_strbuf(&j, &b, JSON_INDENT);
			render_waitfor_json(&w, &g, &v, &j);
			json_writer_finish(&j, &e);
			strbuf_addc(&b, '\n');
		} else {
			render_waitfor_text(&w, &g, &v, a->md, &b);
		}
		waitfor_done(&w);
	}
	rc = rc < 0 ? fail(&e) : output(a, &b);
	strbuf_done(&b);
	timeline_done(&t);
	graph_done(&g);
	return rc;
}

static int run_show(int argc, char **argv)
{
	static const char *const whats[] = {"summary", "entities", "edges", "flows", "shared-memory",
					    "numa", "waits", "wakes", "waitfor", "entity", "neighbors", "paths"};
	const size_t n = sizeof(whats) / sizeof(whats[0]);
	struct view_args a = {.hops = 1, .what = "summary", .format = "text"};
	struct selection *s = &a.selection;
	const struct verb_option options[] = {
		{"format", 'f', OPTION_CHOICE, &a.format, "text, json or md"},
		{"type", 't', OPTION_TEXT, &a.type_name},
		{"name", 0, OPTION_TEXT, &s->name},
		{"container", 0, OPTION_TEXT, &s->container},
		{"min-bytes", 0, OPTION_NUMBER, &s->min_bytes},
		{"min-rate", 0, OPTION_NUMBER, &s->min_rate},
		{"limit", 'n', OPTION_NUMBER, &a.limit},
		{"after", 0, OPTION_NUMBER, &s->after},
		{"budget", 0, OPTION_NUMBER, &a.budget},
		{"hops", 0, OPTION_NUMBER, &a.hops, .most = 8},
		{"idle", 0, OPTION_FLAG, &a.idle},
		{"from", 0, OPTION_TIME, &a.from_ns},
		{"to", 0, OPTION_TIME, &a.to_ns},
		{"output", 'o', OPTION_TEXT, &a.output},
		{"force", 0, OPTION_FLAG, &a.force},
		{0}};
	size_t i = 0;
	bool wants_id;
	int at, rc = parse_options(&verb_show, options, argc, argv, &at);

	if (rc)
		return rc;
	s->limit = a.limit;
	a.json = !strcmp(a.format, "json");
	a.md = !strcmp(a.format, "md");
	if (at >= argc)
		return usage_error(&verb_show, "a file is needed");
	a.file = argv[at++];
	if (at < argc)
		a.what = argv[at++];
	while (i < n && strcmp(a.what, whats[i]))
		i++;
	if (i == n)
		return usage_error(&verb_show, "cannot show '%s'", a.what);
	wants_id = !strcmp(a.what, "entity") || !strcmp(a.what, "neighbors") || !strcmp(a.what, "paths");
	if (wants_id && at < argc)
		a.id = argv[at++];
	if (wants_id && !a.id)
		return usage_error(&verb_show, "'%s' needs an id, such as process:4711", a.what);
	if (!strcmp(a.what, "waitfor") && at < argc)
		a.id = argv[at++];
	if ((a.from_ns || a.to_ns) && (strcmp(a.what, "waitfor") || !a.id))
		return usage_error(&verb_show, "--from and --to are for waitfor and a thread");
	if (!strcmp(a.what, "paths") && at < argc)
		a.other = argv[at++];
	if (!strcmp(a.what, "paths") && !a.other)
		return usage_error(&verb_show, "'paths' needs two ids");
	if (a.budget && strcmp(a.what, "entities") && strcmp(a.what, "edges") && strcmp(a.what, "flows"))
		return usage_error(&verb_show, "--budget is for entities, edges and flows; topology has its own");
	if (at < argc)
		return usage_error(&verb_show, "too much: '%s'", argv[at]);
	if (a.md && strcmp(a.what, "waitfor"))
		return usage_error(&verb_show, "no format 'md' of '%s': text or json", a.what);
	if (a.idle && strcmp(a.what, "waitfor"))
		return usage_error(&verb_show, "--idle is for waitfor");
	return find_type(&a) ?: (strcmp(a.what, "waitfor") ? view(&a) : view_waitfor(&a));
}

const struct verb verb_show = {
	.name = "show",
	.usage = "FILE [summary|entities|edges|flows|shared-memory|numa|waits|wakes|waitfor [THREAD]|entity ID|neighbors ID|paths ID ID] [OPTION]...",
	.summary = "Show what a recording or graph file holds",
	.help = "  -f, --format FORMAT   text (default) or json; waitfor: md, too\n"
		"  -t, --type TYPE       only entities or edges of this type\n"
		"      --name TEXT       only what has TEXT in its id or a name; relations: at either end\n"
		"      --container TEXT  only what is in a container with TEXT in its name or id\n"
		"      --min-bytes N     only with an amount of N bytes or more\n"
		"      --min-rate N      only with N bytes a second or more\n"
		"  -n, --limit N         at most N items\n"
		"      --after N         go on behind the first N items of the list\n"
		"      --budget N        as many as fit N tokens of 4 bytes, the most important first\n"
		"      --hops N          neighbors: so many steps away (default 1)\n"
		"      --idle            waitfor: with waits that nobody misses\n"
		"      --from T, --to T  waitfor THREAD: critical path between these times after the begin (default: all)\n"
		"  -o, --output FILE     write there instead of to standard output\n"
		"      --force           replace that file if it exists\n",
	.run = run_show,
};
