/* One entity and its relations for agents. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mcp_tools.h"
#include "render.h"

static int find(struct mcp_call *c, struct mcp_file *f, uint32_t *ret, struct err *e)
{
	const char *id = mcp_arg_text(c, "id");

	*ret = graph_find(f->g, id);
	if (*ret != NODE_NONE)
		return 0;
	err_msg(e, -ENOENT, "there is no entity '%.80s' in '%.60s'", id, f->name);
	return err_hint(e, "query with what=entities and a name finds ids");
}

static void count_relations(struct mcp_call *c, struct graph *g, uint32_t node)
{
	uint64_t *counts = mem_alloc(n_edge_types * sizeof(*counts));
	struct edge_list lists[2] = {graph_out(g, node), graph_in(g, node)};
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	for (int way = 0; way < 2; way++)
		for (size_t i = 0; i < lists[way].n; i++)
			counts[g->edges.v[lists[way].v[i]]->type->number]++;
	json_writer_init_strbuf(&w, &b, 0);
	json_write_object(&w);
	for (size_t i = 0; i < n_edge_types; i++)
		if (counts[i])
			json_key_u64(&w, edge_types[i]->name, counts[i]);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	mcp_answer_add(c->answer, "counts", b.s, b.n, 0);
	strbuf_done(&b);
	free(counts);
}

static void add_entity(struct mcp_call *c, struct graph *g, uint32_t node)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	render_node_json(g, node, &w);
	json_writer_finish(&w, &e);
	mcp_answer_add(c->answer, "entity", b.s, b.n, mcp_answer_left(c->answer) / 2);
	strbuf_done(&b);
}

int mcp_explain(struct mcp_call *c, struct err *e)
{
	struct selection s = {0};
	struct strbuf b = {0};
	struct mcp_part part;
	struct json_writer w;
	struct mcp_file *f;
	uint64_t total;
	uint32_t node;
	int rc = mcp_open(c, "file", &f, e);

	rc = rc < 0 ? rc : mcp_begin_list(c, f, &part, e);
	rc = rc < 0 ? rc : find(c, f, &node, e);
	if (rc < 0)
		return rc;
	add_entity(c, f->g, node);
	count_relations(c, f->g, node);
	total = graph_out(f->g, node).n + graph_in(f->g, node).n;
	mcp_answer_u64(c->answer, "total", total);
	s.after = part.skip;
	s.limit = mcp_answer_left(c->answer) / 32 + 1;
	json_writer_init_strbuf(&w, &b, 0);
	render_relations_json(f->g, node, &s, &w);
	json_writer_finish(&w, e);
	part.skip = 0;
	mcp_answer_list(c->answer, "relations", &b, &part);
	part.skip = s.after;
	mcp_end_list(c, f, &part, total);
	strbuf_addf(&c->answer->text, "%s: %llu of %llu relations.", mcp_arg_text(c, "id"),
		    (unsigned long long)part.taken, (unsigned long long)total);
	strbuf_done(&b);
	return 0;
}
