/* Lists from the graph for agents, a page at a time. */
#include <errno.h>
#include <string.h>

#include "mcp_tools.h"
#include "render.h"

/* No item of a list is shorter: no more of them need be rendered than could fit. */
#define ITEM_BYTES 24
/* What is told of a NUMA node beside those who run on it. */
#define NODE_BYTES 320

struct query {
	struct mcp_call *c;
	struct mcp_file *f;
	struct selection s;
	struct mcp_part part;
	const char *what;
};

/* So many items from the first, those that are passed over too. */
static uint64_t items_wanted(const struct query *q)
{
	uint64_t most = mcp_answer_left(q->c->answer) / ITEM_BYTES + 2;

	return q->part.limit && q->part.limit < most ? q->part.limit + 1 : most;
}

static bool is(const struct query *q, const char *what)
{
	return !strcmp(q->what, what);
}

static int read_filters(struct query *q, struct err *e)
{
	static const char *const filters[] = {"name", "container", "min_bytes", "type"};
	const char *type = mcp_arg_text(q->c, "type");
	bool filtered = is(q, "entities") || is(q, "edges") || is(q, "flows");

	for (size_t i = 0; i < 4; i++)
		if (mcp_arg(q->c, filters[i])->has && (!filtered || (i == 3 && is(q, "flows"))))
			return err_msg(e, -EINVAL, "'%s' is no filter of '%s'", filters[i],
				       q->what);
	q->s.name = mcp_arg_text(q->c, "name");
	q->s.container = mcp_arg_text(q->c, "container");
	q->s.min_bytes = mcp_arg_whole(q->c, "min_bytes", 0);
	q->s.important_first = true;
	if (!type)
		return 0;
	q->s.type = type_find(is(q, "edges") ? KIND_EDGE : KIND_ENTITY, type);
	if (q->s.type)
		return 0;
	err_msg(e, -EINVAL, "there is no type '%.60s'", type);
	return err_hint(e, "summary lists the types that a file has");
}

static size_t count(struct query *q,
		    void (*list)(struct graph *, const struct selection *, struct index_list *))
{
	struct selection s = q->s;
	struct index_list all;
	size_t n;

	s.important_first = false;
	list(q->f->g, &s, &all);
	n = all.v.n;
	vec_done(&all.v);
	return n;
}

/* Lists that can begin anywhere. */
static uint64_t render_filtered(struct query *q, struct json_writer *w)
{
	q->s.after = q->part.skip;
	q->s.limit = items_wanted(q);
	q->part.skip = 0;
	if (is(q, "entities")) {
		render_entities_json(q->f->g, &q->s, w);
		return count(q, entities_selected);
	}
	if (is(q, "edges")) {
		render_edges_json(q->f->g, &q->s, w);
		return count(q, edges_selected);
	}
	render_flows_json(q->f->g, &q->s, w);
	return count(q, flows_selected);
}

static int render_paths(struct query *q, struct json_writer *w, struct err *e)
{
	static const char *const names[] = {"from", "to"};
	uint32_t node[2];

	for (int i = 0; i < 2; i++) {
		const char *id = mcp_arg_text(q->c, names[i]);

		if (!id)
			return err_msg(e, -EINVAL, "paths need 'from' and 'to'");
		node[i] = graph_find(q->f->g, id);
		if (node[i] == NODE_NONE)
			return err_msg(e, -ENOENT, "there is no entity '%.80s'", id);
	}
	render_paths_json(q->f->g, node[0], node[1], w);
	return 0;
}

static void tell(struct query *q, uint64_t total, bool more)
{
	strbuf_addf(&q->c->answer->text, "%llu %s", (unsigned long long)q->part.taken,
		    q->part.taken == 1 ? "item" : "items");
	if (total)
		strbuf_addf(&q->c->answer->text, " of %llu", (unsigned long long)total);
	strbuf_addf(&q->c->answer->text, " of %s", q->what);
	if (more)
		strbuf_add(&q->c->answer->text, "; next_cursor goes on");
	strbuf_addc(&q->c->answer->text, '.');
}

static void add_filtered(struct query *q, struct strbuf *b, uint64_t total, uint64_t skipped)
{
	mcp_answer_u64(q->c->answer, "total", total);
	mcp_answer_list(q->c->answer, "items", b, &q->part);
	q->part.skip = skipped;
	mcp_end_list(q->c, q->f, &q->part, total);
	tell(q, total, q->part.skip + q->part.taken < total);
}

/* Lists that are rendered from their beginning. */
static void add_whole(struct query *q, const struct strbuf *b)
{
	mcp_answer_list(q->c->answer, "items", b, &q->part);
	mcp_end_list(q->c, q->f, &q->part, q->part.seen);
	tell(q, 0, q->part.skip + q->part.taken < q->part.seen);
}

static void add_parts(struct query *q, const struct strbuf *b)
{
	struct strbuf list = {0};
	bool paths = is(q, "paths");

	if (paths) {
		mcp_answer_pick(q->c->answer, b, "there", 0);
		mcp_answer_pick(q->c->answer, b, "back", 0);
	} else if (mcp_member(b, "nodes", &list)) {
		mcp_answer_list(q->c->answer, "nodes", &list,
				&(struct mcp_part){.most = mcp_answer_left(q->c->answer) / 3,
						   .item = NODE_BYTES});
	}
	mcp_member(b, paths ? "relations" : "processes", &list);
	add_whole(q, &list);
	strbuf_done(&list);
}

static int answer(struct query *q, struct err *e)
{
	struct strbuf b = {0};
	struct json_writer w;
	uint64_t total = 0, skipped = q->part.skip;
	bool filtered = is(q, "entities") || is(q, "edges") || is(q, "flows");
	int rc = 0;

	json_writer_init_strbuf(&w, &b, 0);
	q->s.limit = q->part.skip + items_wanted(q);
	if (filtered)
		total = render_filtered(q, &w);
	else if (is(q, "waits"))
		render_waits_json(q->f->g, &q->s, &w);
	else if (is(q, "wakes"))
		render_wakes_json(q->f->g, &q->s, &w);
	else if (is(q, "shared_memory"))
		render_shared_json(q->f->g, &q->s, &w);
	else if (is(q, "numa"))
		render_numa_json(q->f->g, &q->s, &w);
	else
		rc = render_paths(q, &w, e);
	if (rc < 0) {
		json_writer_drop(&w);
	} else {
		json_writer_finish(&w, e);
		if (filtered)
			add_filtered(q, &b, total, skipped);
		else if (is(q, "numa") || is(q, "paths"))
			add_parts(q, &b);
		else
			add_whole(q, &b);
	}
	strbuf_done(&b);
	return rc;
}

int mcp_query(struct mcp_call *c, struct err *e)
{
	struct query q = {.c = c, .what = mcp_arg_text(c, "what")};
	int rc = mcp_open(c, "file", &q.f, e);

	rc = rc < 0 ? rc : mcp_begin_list(c, q.f, &q.part, e);
	rc = rc < 0 ? rc : read_filters(&q, e);
	return rc < 0 ? rc : answer(&q, e);
}
