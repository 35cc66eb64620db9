/* Pictures for draw.io: boxes that can be moved, each within the group that it belongs to. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "export.h"
#include "mem.h"

#define GAP	    24
#define TITLE	    28 /* of a group */
#define NODE_HEIGHT 44
#define CHAR_WIDTH  7

struct box {
	double x, y, w, h; /* within the group that it lies in */
};

struct layout {
	const struct picture *p;
	struct box *nodes, *groups;
};

/* Rows from left to right, about as high as wide. */
struct shelf {
	double limit, x, y, row, width;
};

static void place(struct shelf *s, struct box *b)
{
	if (s->x > GAP && s->x + b->w > s->limit) {
		s->x = GAP;
		s->y += s->row + GAP;
		s->row = 0;
	}
	b->x = s->x;
	b->y = s->y;
	s->x += b->w + GAP;
	if (s->x > s->width)
		s->width = s->x;
	if (b->h > s->row)
		s->row = b->h;
}

static double area(const struct box *b)
{
	return (b->w + GAP) * (b->h + GAP);
}

static size_t code_points(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void measure_node(struct box *b, const struct picture_node *n)
{
	size_t most = code_points(n->label), detail = code_points(n->detail);

	if (detail > most)
		most = detail;
	b->w = 30 + CHAR_WIDTH * (double)(most > 12 ? most : 12);
	b->h = NODE_HEIGHT;
}

/* Inner groups first: a group is as large as what is in it. */
static void lay_out(struct layout *l, uint32_t group, struct box *own)
{
	const struct picture *p = l->p;
	struct shelf s = {.x = GAP, .y = TITLE + GAP / 2};
	double sum = 0;

	for (uint32_t i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].group == group) {
			measure_node(&l->nodes[i], &p->nodes.v[i]);
			sum += area(&l->nodes[i]);
		}
	for (uint32_t i = 0; i < p->groups.n; i++)
		if (p->groups.v[i].parent == group) {
			lay_out(l, i, &l->groups[i]);
			sum += area(&l->groups[i]);
		}
	s.limit = sqrt(sum) * 1.5 + GAP;
	for (uint32_t i = 0; i < p->groups.n; i++)
		if (p->groups.v[i].parent == group)
			place(&s, &l->groups[i]);
	for (uint32_t i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].group == group)
			place(&s, &l->nodes[i]);
	own->w = s.width > 160 ? s.width : 160;
	own->h = s.y + s.row + GAP;
}

static const char *style_of(const char *kind)
{
	static const char *const styles[][2] = {
		{"process", "rounded=1;fillColor=#eef4fb;"},
		{"processes", "shape=process;fillColor=#eef4fb;"},
		{"container", "shape=process;fillColor=#eaf6ea;"},
		{"host", "shape=process;fillColor=#f3f3f3;"},
		{"outside", "ellipse;fillColor=#fdf3e1;"},
		{"storage", "shape=cylinder;boundedLbl=1;fillColor=#f3ecf8;"},
		{"device", "shape=cube;size=8;fillColor=#fde8e8;"},
	};

	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
		if (!strcmp(styles[i][0], kind))
			return styles[i][1];
	return "";
}

static void add_geometry(struct strbuf *b, const struct box *x)
{
	strbuf_addf(b, "<mxGeometry x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" as=\"geometry\"/>", x->x,
		    x->y, x->w, x->h);
}

static void add_parent(struct strbuf *b, uint32_t group)
{
	if (group == PICTURE_NONE)
		strbuf_add(b, " parent=\"1\"");
	else
		strbuf_addf(b, " parent=\"g%u\"", group);
}

/* Labels are plain text: html=0. */
static void add_group(const struct layout *l, uint32_t i, struct strbuf *b)
{
	const struct picture_group *g = &l->p->groups.v[i];

	strbuf_add(b, "        <object label=\"");
	escape_xml(b, g->label);
	strbuf_addf(b, "\" kind=\"%s\"", g->kind);
	if (g->id) {
		strbuf_add(b, " entity=\"");
		escape_xml(b, g->id);
		strbuf_addc(b, '"');
	}
	strbuf_addf(b, " id=\"g%u\"><mxCell style=\"swimlane;html=0;startSize=%d;rounded=1;fillColor=#f7f7f7;"
		       "container=1;collapsible=1;\" vertex=\"1\"",
		    i, TITLE);
	add_parent(b, g->parent);
	strbuf_addc(b, '>');
	add_geometry(b, &l->groups[i]);
	strbuf_add(b, "</mxCell></object>\n");
}

static void add_node(const struct layout *l, uint32_t i, struct strbuf *b)
{
	const struct picture_node *n = &l->p->nodes.v[i];

	strbuf_add(b, "        <object label=\"");
	escape_xml(b, n->label);
	if (*n->detail) {
		escape_xml(b, "\n");
		escape_xml(b, n->detail);
	}
	strbuf_addf(b, "\" kind=\"%s\" entity=\"", n->kind);
	escape_xml(b, n->id);
	if (n->command) {
		strbuf_add(b, "\" command=\"");
		escape_xml(b, n->command);
	}
	strbuf_addf(b, "\" id=\"n%u\"><mxCell style=\"%shtml=0;whiteSpace=wrap;fontSize=11;\" vertex=\"1\"", i,
		    style_of(n->kind));
	add_parent(b, n->group);
	strbuf_addc(b, '>');
	add_geometry(b, &l->nodes[i]);
	strbuf_add(b, "</mxCell></object>\n");
}

static void add_edge(const struct picture *p, uint32_t i, struct strbuf *b)
{
	const struct picture_edge *e = &p->edges.v[i];

	strbuf_add(b, "        <object label=\"");
	if (!picture_is_start(e))
		escape_xml(b, e->label);
	strbuf_add(b, "\" kind=\"");
	escape_xml(b, e->kind);
	if (e->measured)
		strbuf_addf(b, "\" bytes=\"%" PRIu64, e->bytes);
	strbuf_addf(b, "\" id=\"e%u\"><mxCell style=\"html=0;fontSize=9;strokeWidth=%.2f;%s\" edge=\"1\" parent=\"1\""
		       " source=\"n%u\" target=\"n%u\"><mxGeometry relative=\"1\" as=\"geometry\"/></mxCell></object>\n",
		    i, 1 + 5 * picture_weight(p, e),
		    picture_is_start(e) ? "dashed=1;dashPattern=1 3;endArrow=open;strokeColor=#9a9a9a;"
		    : e->measured	? ""
					: "dashed=1;",
		    e->from, e->to);
}

static void add_note(const struct layout *l, double bottom, struct strbuf *b)
{
	strbuf_add(b, "        <mxCell id=\"note\" value=\"");
	escape_xml(b, l->p->title);
	if (l->p->left_out) {
		escape_xml(b, "\n");
		escape_xml(b, l->p->left_out);
	}
	strbuf_addf(b, "\" style=\"text;html=0;align=left;whiteSpace=wrap;fontSize=11;\" vertex=\"1\" parent=\"1\">"
		       "<mxGeometry x=\"%d\" y=\"%.0f\" width=\"700\" height=\"40\" as=\"geometry\"/></mxCell>\n",
		    GAP, bottom);
}

int export_drawio(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const struct picture *p = in->picture;
	struct layout l = {.p = p,
			   .nodes = mem_alloc((p->nodes.n + 1) * sizeof(*l.nodes)),
			   .groups = mem_alloc((p->groups.n + 1) * sizeof(*l.groups))};
	struct box all;

	(void)e;
	lay_out(&l, PICTURE_NONE, &all);
	strbuf_add(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<mxfile host=\"witty-profiler\">\n"
		      "  <diagram id=\"topology\" name=\"topology\">\n"
		      "    <mxGraphModel grid=\"1\" gridSize=\"10\" guides=\"1\" tooltips=\"1\" connect=\"1\" arrows=\"1\""
		      " page=\"0\">\n      <root>\n        <mxCell id=\"0\"/>\n        <mxCell id=\"1\" parent=\"0\"/>\n");
	for (uint32_t i = 0; i < p->groups.n; i++)
		add_group(&l, i, b);
	for (uint32_t i = 0; i < p->nodes.n; i++)
		add_node(&l, i, b);
	for (uint32_t i = 0; i < p->edges.n; i++)
		add_edge(p, i, b);
	add_note(&l, all.h + GAP, b);
	strbuf_add(b, "      </root>\n    </mxGraphModel>\n  </diagram>\n</mxfile>\n");
	free(l.nodes);
	free(l.groups);
	return 0;
}
