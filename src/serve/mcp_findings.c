/* Findings for agents: a list of them, and all about one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "mcp_tools.h"
#include "render.h"
#include "render_findings.h"
#include "rule.h"

/* One finding in a list: who and what; the numbers are for evidence. */
#define ITEM_BYTES 1100

/* "lock-convoy@thread:24983": the rule and its root, or else whom it is about first. */
static void finding_id(struct graph *g, const struct finding *f, struct strbuf *ret)
{
	uint32_t node = f->root != NODE_NONE ? f->root
			: f->subjects.n      ? f->subjects.v[0]
					     : NODE_NONE;

	strbuf_clear(ret);
	strbuf_add(ret, f->rule);
	if (node != NODE_NONE)
		strbuf_addf(ret, "@%s", graph_node_id(g, node));
}

struct listing {
	struct mcp_call *c;
	struct mcp_file *f;
	uint32_t about; /* NODE_NONE: all */
	int layer;      /* -1: all */
	enum severity least;
	size_t at;          /* number of the finding whose JSON comes next */
	struct strbuf list; /* JSON of those that are wanted, with ids */
	uint64_t total;
	const char *wanted_id; /* of the only one that is; NULL: all */
};

static bool is_about(const struct graph *g, uint32_t node, uint32_t about)
{
	return node != NODE_NONE && (node == about || process_of(g, node) == about);
}

static bool wants(struct listing *l, const struct finding *f, const struct strbuf *id)
{
	bool about = l->about == NODE_NONE || is_about(l->f->g, f->root, l->about);

	if (l->wanted_id)
		return !strcmp(strbuf_str(id), l->wanted_id);
	vec_for(&f->subjects, s)
		about = about || is_about(l->f->g, *s, l->about);
	return about && f->severity >= l->least && (l->layer < 0 || (int)f->layer == l->layer);
}

/* The renderer's object, with the id in front. */
static void add_finding(void *ctx, const struct strbuf *item)
{
	struct listing *l = ctx;
	const struct finding *f = &l->f->o->all.findings.v.v[l->at++];
	struct strbuf id = {0};

	finding_id(l->f->g, f, &id);
	if (wants(l, f, &id)) {
		strbuf_add(&l->list, l->total++ ? ",{\"id\":" : "{\"id\":");
		json_quote(&l->list, id.s, id.n, 0);
		strbuf_addf(&l->list, ",%s", item->s + 1);
	}
	strbuf_done(&id);
}

static void render(struct mcp_file *f, struct strbuf *b)
{
	struct findings_view v = {.least = SEVERITY_INFO};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	render_findings_json(&f->o->all.study, &f->o->all.findings, &v, &w);
	json_writer_finish(&w, &e);
}

static void list_findings(struct listing *l, const struct strbuf *rendered)
{
	struct strbuf all = {0};

	strbuf_addc(&l->list, '[');
	if (mcp_member(rendered, "findings", &all))
		mcp_each(&all, add_finding, l);
	strbuf_addc(&l->list, ']');
	strbuf_done(&all);
}

static int read_filters(struct listing *l, struct err *e)
{
	const char *layer = mcp_arg_text(l->c, "layer"), *about = mcp_arg_text(l->c, "about"),
		   *severity = mcp_arg_text(l->c, "severity");

	l->least = SEVERITY_INFO;
	if (severity)
		severity_find(severity, &l->least);
	l->layer = -1;
	for (int i = 0; layer && i < LAYER_COUNT; i++)
		if (!strcmp(layer_name((enum layer)i), layer))
			l->layer = i;
	l->about = NODE_NONE;
	if (!about)
		return 0;
	l->about = graph_find(l->f->g, about);
	return l->about != NODE_NONE ? 0 : err_msg(e, -ENOENT, "there is no entity '%.80s'", about);
}

static void add_counts(struct listing *l)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_object(&w);
	for (int i = SEVERITY_COUNT - 1; i > SEVERITY_INFO; i--)
		json_key_u64(&w, severity_name((enum severity)i), l->f->o->all.findings.counts[i]);
	json_write_object_end(&w);
	json_writer_finish(&w, &e);
	mcp_answer_add(l->c->answer, "counts", b.s, b.n, 0);
	strbuf_done(&b);
}

static void add_unknown(struct listing *l)
{
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_array(&w);
	vec_for(&l->f->o->all.findings.verdicts, v) {
		if (v->verdict != VERDICT_UNKNOWN)
			continue;
		json_write_object(&w);
		json_key_str(&w, "rule", v->rule->id);
		json_key_str(&w, "missing", v->evidence);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	if (b.n > 2)
		mcp_answer_list(
		    l->c->answer, "not_evaluated", &b,
		    &(struct mcp_part){.most = mcp_answer_left(l->c->answer) / 5, .item = 160});
	strbuf_done(&b);
}

int mcp_diagnose(struct mcp_call *c, struct err *e)
{
	struct listing l = {.c = c};
	struct strbuf b = {0};
	struct mcp_part part;
	int rc = mcp_open(c, "file", &l.f, e);

	rc = rc < 0 ? rc : mcp_begin_list(c, l.f, &part, e);
	rc = rc < 0 ? rc : read_filters(&l, e);
	if (rc < 0)
		return rc;
	render(l.f, &b);
	list_findings(&l, &b);
	add_counts(&l);
	mcp_answer_u64(c->answer, "total", l.total);
	add_unknown(&l);
	part.item = ITEM_BYTES;
	mcp_answer_list(c->answer, "findings", &l.list, &part);
	mcp_end_list(c, l.f, &part, l.total);
	strbuf_addf(&c->answer->text, "%llu of %llu findings%s.", (unsigned long long)part.taken,
		    (unsigned long long)l.total, l.total ? "; evidence tells all of one" : "");
	strbuf_done(&b);
	strbuf_done(&l.list);
	return 0;
}

/* Relations of an entity that say something of time and data. */
static void add_relations(struct mcp_call *c, struct graph *g, uint32_t node, const char *name,
			  size_t most)
{
	struct selection s = {.limit = 60};
	struct strbuf b = {0};
	struct json_writer w;
	struct err e;

	if (node == NODE_NONE)
		return;
	json_writer_init_strbuf(&w, &b, 0);
	render_relations_json(g, node, &s, &w);
	json_writer_finish(&w, &e);
	mcp_answer_list(c->answer, name, &b, &(struct mcp_part){.most = most, .item = 400});
	strbuf_done(&b);
}

static const struct finding *find(struct mcp_file *f, const char *id)
{
	const struct finding *ret = NULL;
	struct strbuf b = {0};

	vec_for(&f->o->all.findings.v, x) {
		finding_id(f->g, x, &b);
		if (!ret && !strcmp(strbuf_str(&b), id))
			ret = x;
	}
	strbuf_done(&b);
	return ret;
}

static void take_first(void *ctx, const struct strbuf *item)
{
	struct strbuf *b = ctx;

	if (!b->n)
		strbuf_addn(b, item->s, item->n);
}

int mcp_evidence(struct mcp_call *c, struct err *e)
{
	struct listing l = {.c = c, .wanted_id = mcp_arg_text(c, "finding"), .about = NODE_NONE};
	const struct finding *f;
	struct strbuf b = {0};
	size_t left;
	int rc = mcp_open(c, "file", &l.f, e);

	if (rc < 0)
		return rc;
	f = find(l.f, l.wanted_id);
	if (!f) {
		err_msg(e, -ENOENT, "there is no finding '%.100s' in '%.60s'", l.wanted_id,
			l.f->name);
		return err_hint(e, "diagnose lists them with their ids");
	}
	render(l.f, &b);
	list_findings(&l, &b);
	left = mcp_answer_left(c->answer);
	/* Without the brackets; the first one, should a rule have two with one root. */
	strbuf_clear(&b);
	mcp_each(&l.list, take_first, &b);
	mcp_answer_add(c->answer, "finding", b.s, b.n, left * 3 / 5);
	add_relations(c, l.f->g, f->root, "root_relations", mcp_answer_left(c->answer) * 3 / 5);
	if (f->subjects.n && f->subjects.v[0] != f->root)
		add_relations(c, l.f->g, f->subjects.v[0], "subject_waits",
			      mcp_answer_left(c->answer));
	strbuf_addf(&c->answer->text, "%s", f->title);
	strbuf_done(&b);
	strbuf_done(&l.list);
	return 0;
}
