/* Pictures for Graphviz, and by Graphviz. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "escape.h"
#include "export.h"
#include "spawn.h"

#define DOT_DEADLINE_MS 60000
#define SVG_MOST	(64u << 20)

struct look {
	const char *kind, *style;
};

/* Of boxes, by kind; colours that are told apart without seeing colour by their shapes. */
static const struct look boxes[] = {
	{"process", "shape=box, fillcolor=\"#eef4fb\""},
	{"processes", "shape=box3d, fillcolor=\"#eef4fb\""},
	{"container", "shape=box3d, fillcolor=\"#eaf6ea\""},
	{"host", "shape=box3d, fillcolor=\"#f3f3f3\""},
	{"outside", "shape=oval, fillcolor=\"#fdf3e1\""},
	{"storage", "shape=cylinder, fillcolor=\"#f3ecf8\""},
	{"device", "shape=component, fillcolor=\"#fde8e8\""},
};

static const struct look arrows[] = {
	{"tcp", "#1f5fa8"},	{"udp", "#1f5fa8"},    {"unix", "#2e7d32"},   {"pipe", "#8a5a00"},
	{"storage", "#6a3d9a"}, {"device", "#b02a2a"}, {"starts", "#9a9a9a"}, {"shared_memory", "#00796b"},
};

#define LOOK(list, kind, other) look_of(list, sizeof(list) / sizeof((list)[0]), kind, other)

static const char *look_of(const struct look *list, size_t n, const char *kind, const char *other)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].kind, kind))
			return list[i].style;
	return other;
}

static void add_attribute(struct strbuf *b, const char *name, const char *value)
{
	strbuf_addf(b, "%s=\"", name);
	escape_dot(b, value);
	strbuf_addc(b, '"');
}

static void add_node(const struct picture *p, uint32_t i, int depth, struct strbuf *b)
{
	const struct picture_node *n = &p->nodes.v[i];

	strbuf_pad(b, '\t', (size_t)depth);
	strbuf_addf(b, "n%u [label=\"", i);
	escape_dot(b, n->label);
	if (*n->detail) {
		strbuf_add(b, "\\n");
		escape_dot(b, n->detail);
	}
	strbuf_add(b, "\", ");
	add_attribute(b, "entity", n->id);
	strbuf_add(b, ", ");
	add_attribute(b, "tooltip", n->command ? n->command : n->id);
	strbuf_addf(b, ", %s];\n", LOOK(boxes, n->kind, "shape=box, fillcolor=white"));
}

static void add_content(const struct picture *p, uint32_t group, int depth, struct strbuf *b)
{
	for (uint32_t i = 0; i < p->groups.n; i++) {
		if (p->groups.v[i].parent != group)
			continue;
		strbuf_pad(b, '\t', (size_t)depth);
		strbuf_addf(b, "subgraph cluster_%u {\n", i);
		strbuf_pad(b, '\t', (size_t)depth + 1);
		add_attribute(b, "label", p->groups.v[i].label);
		strbuf_addf(b, ";\n");
		add_content(p, i, depth + 1, b);
		strbuf_pad(b, '\t', (size_t)depth);
		strbuf_add(b, "}\n");
	}
	for (uint32_t i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].group == group)
			add_node(p, i, depth, b);
}

static void add_edge(const struct picture *p, const struct picture_edge *e, struct strbuf *b)
{
	strbuf_addf(b, "\tn%u -> n%u [", e->from, e->to);
	/* Nobody wants to read "starts" at each step of a process tree. */
	if (!picture_is_start(e)) {
		add_attribute(b, "label", e->label);
		strbuf_add(b, ", ");
	}
	add_attribute(b, "kind", e->kind);
	strbuf_addf(b, ", color=\"%s\", penwidth=%.2f%s];\n", LOOK(arrows, e->kind, "#444444"),
		    1 + 5 * picture_weight(p, e),
		    picture_is_start(e) ? ", style=dotted, arrowhead=empty"
		    : e->measured	? ""
					: ", style=dashed");
}

int export_dot(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const struct picture *p = in->picture;

	(void)e;
	strbuf_add(b, "digraph witty {\n\t");
	strbuf_add(b, "label=\"");
	escape_dot(b, p->title);
	if (p->left_out) {
		strbuf_add(b, "\\n");
		escape_dot(b, p->left_out);
	}
	strbuf_add(b, "\";\n\tlabelloc=t;\n\trankdir=LR;\n\tfontname=\"sans-serif\";\n\tfontsize=12;\n"
		      "\tcolor=\"#999999\";\n"
		      "\tnode [style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11, color=\"#666666\"];\n"
		      "\tedge [fontname=\"sans-serif\", fontsize=9];\n");
	add_content(p, PICTURE_NONE, 1, b);
	vec_for(&p->edges, edge)
		add_edge(p, edge, b);
	strbuf_add(b, "}\n");
	return 0;
}

static int write_file(int fd, const struct strbuf *b)
{
	for (size_t at = 0; at < b->n;) {
		ssize_t n = write(fd, b->s + at, b->n - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int draw(const char *path, struct strbuf *b, struct err *e)
{
	const char *const argv[] = {"dot", "-Tsvg", path, NULL};
	struct spawn_result r;
	int rc = spawn_run(argv, DOT_DEADLINE_MS, SVG_MOST, b, &r, e);

	if (rc == -ENOENT) {
		err_msg(e, rc, "draw a picture: Graphviz's program 'dot' is not installed");
		return err_hint(e, "install graphviz, or convert to .dot, .mmd or .drawio");
	}
	if (rc)
		return rc;
	if (r.timed_out) {
		err_msg(e, -ETIMEDOUT, "draw a picture: 'dot' took longer than %d s", DOT_DEADLINE_MS / 1000);
		return err_hint(e, "draw less, by --top, --min-rate or --level");
	}
	if (r.exit_code || r.truncated || !b->n)
		return err_msg(e, -EIO, "draw a picture: 'dot' failed%s", r.truncated ? ": too large" : "");
	return 0;
}

int export_svg(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	struct strbuf dot = {0};
	int fd, rc;

	if (snprintf(path, sizeof(path), "%s/witty-XXXXXX", folder && *folder ? folder : "/tmp") >= (int)sizeof(path))
		return err_msg(e, -ENAMETOOLONG, "TMPDIR is too long");
	fd = mkstemp(path);
	if (fd < 0)
		return err_set(e, -errno, "create '%s'", path);
	rc = export_dot(in, &dot, e);
	rc = rc ?: write_file(fd, &dot);
	if (rc)
		err_set(e, rc, "write '%s'", path);
	close(fd);
	rc = rc ?: draw(path, b, e);
	unlink(path);
	strbuf_done(&dot);
	return rc;
}
