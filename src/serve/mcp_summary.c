/* The tool that an agent begins with: what a recording holds. */
#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "mcp_tools.h"
#include "render.h"
#include "render_topology.h"

/* Parts of the budget. */
#define MAIN_BYTES 600

static void add_files(struct mcp_call *c)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_array(&w);
	vec_for(&c->files->v, f) {
		json_write_object(&w);
		json_key_str(&w, "name", f->name);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	mcp_answer_list(c->answer, "files", &b, &(struct mcp_part){.limit = 20});
	strbuf_done(&b);
}

/* What worked as it should is of no interest here. */
static void add_reduced(struct mcp_call *c, const struct graph *g)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_array(&w);
	vec_for(&g->status, s) {
		if (!strcmp(s->state, "ok"))
			continue;
		json_write_object(&w);
		json_key_str(&w, "source", s->source);
		json_key_str(&w, "state", s->state);
		json_key_str(&w, "reason", s->reason);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	if (b.n > 2)
		mcp_answer_list(c->answer, "reduced", &b,
				&(struct mcp_part){.most = mcp_answer_left(c->answer) / 4});
	strbuf_done(&b);
}

static void add_counts(struct mcp_call *c, struct graph *g)
{
	uint64_t *entities = mem_alloc(n_entity_types * sizeof(*entities));
	uint64_t *edges = mem_alloc(n_edge_types * sizeof(*edges));
	struct selection hosts = {.type = &host_type};
	struct strbuf b = {0}, about = {0};
	struct json_writer w;
	struct err e;

	count_types(g, entities, edges);
	json_writer_init_strbuf(&w, &b, 0);
	render_summary_json(g, entities, edges, &w);
	json_writer_finish(&w, &e);
	mcp_answer_pick(c->answer, &b, "entities", 0);
	mcp_answer_pick(c->answer, &b, "edges", 0);
	if (mcp_member(&b, "lost", &about))
		mcp_answer_list(c->answer, "lost", &about, &(struct mcp_part){.most = MAIN_BYTES});
	strbuf_clear(&about);
	strbuf_clear(&b);
	json_writer_init_strbuf(&w, &about, 0);
	json_write_object(&w);
	if (g->meta.window_ns) {
		json_key_u64(&w, "start_ns", g->meta.start_ns);
		json_key_u64(&w, "window_ns", g->meta.window_ns);
		json_key_u64(&w, "intervals", g->meta.intervals);
		json_write_key(&w, "complete");
		json_write_bool(&w, g->meta.complete);
	}
	json_key_str(&w, "tool", g->meta.tool);
	json_key_str(&w, "options", g->meta.options);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	mcp_answer_add(c->answer, "about", about.s, about.n, MAIN_BYTES);
	json_writer_init_strbuf(&w, &b, 0);
	render_entities_json(g, &hosts, &w);
	json_writer_finish(&w, &e);
	if (b.n > 2)
		mcp_answer_list(c->answer, "hosts", &b, &(struct mcp_part){.limit = 4});
	strbuf_done(&b);
	strbuf_done(&about);
	free(entities);
	free(edges);
}

/* How many, and the ones that cost most: what diagnose tells of. */
static void add_findings(struct mcp_call *c, const struct findings *f)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_array(&w);
	vec_for(&f->v, x) {
		json_write_object(&w);
		json_key_str(&w, "severity", severity_name(x->severity));
		json_key_str(&w, "rule", x->rule);
		json_key_str(&w, "title", x->title);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	if (f->v.n) {
		mcp_answer_u64(c->answer, "findings_total", f->v.n);
		mcp_answer_list(
		    c->answer, "findings", &b,
		    &(struct mcp_part){.limit = 5, .most = mcp_answer_left(c->answer) / 3});
	}
	strbuf_done(&b);
}

static void add_topology(struct mcp_call *c, struct topology *t)
{
	struct topology_view v = {.parts = PARTS_ALL, .focus = TOPO_NONE};
	size_t room = mcp_answer_left(c->answer);
	struct strbuf b = {0};

	if (room < 400)
		return;
	/* Line ends take two bytes within JSON. */
	render_topology(t, &v, TOPOLOGY_TEXT, (room - room / 8) / MCP_TOKEN_BYTES, &b);
	mcp_answer_lines(c->answer, "topology", strbuf_str(&b));
	strbuf_done(&b);
}

int mcp_summary(struct mcp_call *c, struct err *e)
{
	struct mcp_file *f;
	int rc = mcp_open(c, "file", &f, e);

	if (rc < 0)
		return rc;
	add_files(c);
	add_counts(c, f->g);
	add_reduced(c, f->g);
	add_findings(c, &f->o->all.findings);
	add_topology(c, &f->o->all.topology);
	strbuf_addf(&c->answer->text, "%s: %zu entities, %zu relations%s.", f->name, f->g->nodes.n,
		    f->g->edges.n,
		    f->g->meta.complete || !f->g->meta.window_ns ? "" : ", incomplete");
	return 0;
}
