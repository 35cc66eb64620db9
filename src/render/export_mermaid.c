/* Pictures as Mermaid flowcharts, which Markdown viewers draw. */
#include <string.h>

#include "escape.h"
#include "export.h"

struct outline {
	const char *kind, *open, *close;
};

static const struct outline shapes[] = {
	{"process", "[", "]"},	  {"processes", "[[", "]]"}, {"container", "[[", "]]"}, {"host", "[[", "]]"},
	{"outside", "([", "])"}, {"storage", "[(", ")]"},   {"device", "{{", "}}"},
};

static const struct outline *outline_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (!strcmp(shapes[i].kind, kind))
			return &shapes[i];
	return &shapes[0];
}

static void add_node(const struct picture_node *n, uint32_t i, int depth, struct strbuf *b)
{
	const struct outline *s = outline_of(n->kind);

	strbuf_pad(b, ' ', 2 * (size_t)depth);
	strbuf_addf(b, "n%u%s\"", i, s->open);
	escape_mermaid(b, n->label);
	if (*n->detail) {
		strbuf_add(b, "<br/>");
		escape_mermaid(b, n->detail);
	}
	strbuf_addf(b, "\"%s\n", s->close);
}

static void add_content(const struct picture *p, uint32_t group, int depth, struct strbuf *b)
{
	for (uint32_t i = 0; i < p->groups.n; i++) {
		if (p->groups.v[i].parent != group)
			continue;
		strbuf_pad(b, ' ', 2 * (size_t)depth);
		strbuf_addf(b, "subgraph g%u[\"", i);
		escape_mermaid(b, p->groups.v[i].label);
		strbuf_add(b, "\"]\n");
		add_content(p, i, depth + 1, b);
		strbuf_pad(b, ' ', 2 * (size_t)depth);
		strbuf_add(b, "end\n");
	}
	for (uint32_t i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].group == group)
			add_node(&p->nodes.v[i], i, depth, b);
}

/* A comment ends with its line; "%%{" would begin a directive. */
static void add_comment(struct strbuf *b, const char *s)
{
	strbuf_add(b, "%% ");
	for (; *s; s++)
		strbuf_addc(b, *s == '{' || *s == '}' || *s == '%' ? ' ' : *s);
	strbuf_addc(b, '\n');
}

int export_mermaid(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const struct picture *p = in->picture;

	(void)e;
	strbuf_add(b, "flowchart LR\n");
	add_comment(b, p->title);
	if (p->left_out)
		add_comment(b, p->left_out);
	add_content(p, PICTURE_NONE, 1, b);
	vec_for(&p->edges, d) {
		strbuf_addf(b, "  n%u %s", d->from, picture_is_start(d) ? "-.->" : d->measured ? "-->" : "-.->");
		if (!picture_is_start(d)) {
			strbuf_add(b, "|\"");
			escape_mermaid(b, d->label);
			strbuf_add(b, "\"|");
		}
		strbuf_addf(b, " n%u\n", d->to);
	}
	return 0;
}
