/* Hot threads, and what changed between two files, for agents. */
#include <errno.h>
#include <string.h>

#include "mcp_tools.h"
#include "render_compare.h"
#include "render_hot.h"

/* One thread in a list. */
#define THREAD_BYTES 1000
/* One change in a list. */
#define CHANGE_BYTES 500

struct listing {
	struct mcp_call *c;
	const struct hot *hot;
	uint32_t process; /* NODE_NONE: of all */
	size_t at;        /* number of the thread whose JSON comes next */
	struct strbuf list;
	uint64_t total;
};

static void add_thread(void *ctx, const struct strbuf *item)
{
	struct listing *l = ctx;
	const struct hot_thread *t = &l->hot->threads.v[l->at++];

	if (l->process != NODE_NONE && t->process != l->process)
		return;
	if (l->total++)
		strbuf_addc(&l->list, ',');
	strbuf_addn(&l->list, item->s, item->n);
}

static void add_text(void *ctx, const struct strbuf *item)
{
	struct strbuf *b = ctx;

	strbuf_addf(b, "%s{\"what\":%s}", b->n > 1 ? "," : "", item->s);
}

static void add_not_known(struct mcp_call *c, const struct strbuf *rendered)
{
	struct strbuf list = {0}, objects = {0};

	if (mcp_member(rendered, "not_known", &list) && list.n > 2 && list.s[1] == '"') {
		strbuf_addc(&objects, '[');
		mcp_each(&list, add_text, &objects);
		strbuf_addc(&objects, ']');
		mcp_answer_list(
		    c->answer, "not_known", &objects,
		    &(struct mcp_part){.most = mcp_answer_left(c->answer) / 6, .item = 240});
	}
	strbuf_done(&list);
	strbuf_done(&objects);
}

static void render(struct mcp_file *f, uint64_t limit, struct strbuf *b)
{
	struct hot_view v = {.limit = limit};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, b, 0);
	render_hot_json(&f->o->all.hot, &v, &w);
	json_writer_finish(&w, &e);
}

int mcp_hot(struct mcp_call *c, struct err *e)
{
	const char *process = mcp_arg_text(c, "process");
	struct listing l = {.c = c, .process = NODE_NONE};
	struct strbuf b = {0}, threads = {0};
	struct mcp_part part;
	struct mcp_file *f;
	uint64_t limit;
	int rc = mcp_open(c, "file", &f, e);

	rc = rc < 0 ? rc : mcp_begin_list(c, f, &part, e);
	if (rc < 0)
		return rc;
	if (process && (l.process = graph_find(f->g, process)) == NODE_NONE)
		return err_msg(e, -ENOENT, "there is no entity '%.80s'", process);
	/* No thread takes less than this; with a process all of them are looked at. */
	limit = part.skip + mcp_answer_left(c->answer) / 100 + 1;
	render(f, process ? 0 : limit, &b);
	l.hot = &f->o->all.hot;
	strbuf_addc(&l.list, '[');
	if (mcp_member(&b, "threads", &threads))
		mcp_each(&threads, add_thread, &l);
	strbuf_addc(&l.list, ']');
	if (!process)
		l.total = f->o->all.hot.threads.n;
	mcp_answer_pick(c->answer, &b, "demand_pct", 0);
	mcp_answer_u64(c->answer, "total", l.total);
	add_not_known(c, &b);
	part.item = THREAD_BYTES;
	mcp_answer_list(c->answer, "threads", &l.list, &part);
	mcp_end_list(c, f, &part, l.total);
	strbuf_addf(&c->answer->text, "%llu of %llu threads, the hottest first.",
		    (unsigned long long)part.taken, (unsigned long long)l.total);
	strbuf_done(&b);
	strbuf_done(&threads);
	strbuf_done(&l.list);
	return 0;
}

static void add_changes(struct mcp_call *c, const struct strbuf *b, const char *name,
			unsigned part_of_left)
{
	struct strbuf list = {0};

	mcp_member(b, name, &list);
	if (!list.n)
		strbuf_add(&list, "[]");
	mcp_answer_list(c->answer, name, &list,
			&(struct mcp_part){.most = mcp_answer_left(c->answer) / part_of_left,
					   .item = CHANGE_BYTES});
	strbuf_done(&list);
}

int mcp_diff(struct mcp_call *c, struct err *e)
{
	struct compare_view v = {.limit = 200};
	struct mcp_file *before, *after;
	struct strbuf b = {0};
	struct json_writer w;
	struct compare d;
	int rc = mcp_open(c, "before", &before, e);

	rc = rc < 0 ? rc : mcp_open(c, "after", &after, e);
	/* Loading the second may have dropped the first only if there were three others. */
	rc = rc < 0 ? rc : mcp_files_get(c->files, mcp_arg_text(c, "before"), &before, e);
	if (rc < 0)
		return rc;
	v.a = before->name;
	v.b = after->name;
	compare_init(&d, &(struct compared){&before->o->all.study, &before->o->all.findings},
		     &(struct compared){&after->o->all.study, &after->o->all.findings});
	json_writer_init_strbuf(&w, &b, 0);
	render_compare_json(&d, &v, &w);
	json_writer_finish(&w, e);
	strbuf_addf(&c->answer->text, "From %s to %s: %zu findings, worst new or worse: %s.", v.a,
		    v.b, d.findings.n, severity_name(compare_worst(&d)));
	compare_done(&d);
	add_changes(c, &b, "findings", 2);
	add_changes(c, &b, "threads", 2);
	add_changes(c, &b, "flows", 1);
	strbuf_done(&b);
	return 0;
}
