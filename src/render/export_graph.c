/* Graphs for other programs: GEXF and GraphML. What is not known has no value there. */
#include <inttypes.h>
#include <string.h>

#include "escape.h"
#include "export.h"

/* Attributes of boxes and links, in one order for both formats. */
enum attribute_type { A_STRING, A_LONG, A_DOUBLE };

struct attribute {
	const char *name;
	enum attribute_type type;
};

static const struct attribute node_attributes[] = {
	{"label", A_STRING},	{"kind", A_STRING},   {"entity", A_STRING},    {"role", A_STRING},
	{"detail", A_STRING},	{"command", A_STRING}, {"host", A_STRING},	{"container", A_STRING},
	{"ranks", A_STRING},	{"members", A_LONG},  {"cpu_pct", A_DOUBLE},   {"numa_node", A_LONG},
	{"inner_bytes", A_LONG},
};

static const struct attribute edge_attributes[] = {
	{"label", A_STRING}, {"kind", A_STRING},     {"bytes", A_LONG},
	{"messages", A_LONG}, {"rate_bps", A_DOUBLE}, {"waited_ns", A_LONG},
};

#define N_NODE (sizeof(node_attributes) / sizeof(node_attributes[0]))
#define N_EDGE (sizeof(edge_attributes) / sizeof(edge_attributes[0]))

/** Writes one value of element @p at; @p value is escaped. */
typedef void value_fn(struct strbuf *b, const struct attribute *a, size_t at, bool edge, const char *value);

struct writer {
	struct strbuf *b;
	value_fn *write;
};

static void put_text(const struct writer *w, size_t at, bool edge, const char *s)
{
	struct strbuf v = {0};

	if (!s)
		return;
	escape_xml(&v, s);
	w->write(w->b, edge ? &edge_attributes[at] : &node_attributes[at], at, edge, strbuf_str(&v));
	strbuf_done(&v);
}

static void put_number(const struct writer *w, size_t at, bool edge, bool known, double d, uint64_t n)
{
	const struct attribute *a = edge ? &edge_attributes[at] : &node_attributes[at];
	struct strbuf v = {0};

	if (!known)
		return;
	if (a->type == A_DOUBLE)
		strbuf_add_f64(&v, d);
	else
		strbuf_add_u64(&v, n);
	w->write(w->b, a, at, edge, strbuf_str(&v));
	strbuf_done(&v);
}

/* The group of a kind that encloses the box. */
static const char *enclosing(const struct picture *p, const struct picture_node *n, const char *kind)
{
	for (uint32_t g = n->group; g != PICTURE_NONE; g = p->groups.v[g].parent)
		if (!strcmp(p->groups.v[g].kind, kind))
			return p->groups.v[g].label;
	return NULL;
}

static void put_node(const struct writer *w, const struct picture *p, const struct picture_node *n)
{
	const char *texts[] = {n->label, n->kind, n->id, n->role, *n->detail ? n->detail : NULL, n->command,
			       enclosing(p, n, "host"), enclosing(p, n, "container"), enclosing(p, n, "ranks")};
	size_t at = sizeof(texts) / sizeof(texts[0]);

	for (size_t i = 0; i < at; i++)
		put_text(w, i, false, texts[i]);
	put_number(w, at++, false, n->members, 0, n->members);
	put_number(w, at++, false, n->cpu_pct >= 0, n->cpu_pct, 0);
	put_number(w, at++, false, n->numa_node != PICTURE_NONE, 0, n->numa_node);
	put_number(w, at++, false, n->inner_bytes, 0, n->inner_bytes);
}

static void put_edge(const struct writer *w, const struct picture_edge *e)
{
	put_text(w, 0, true, e->label);
	put_text(w, 1, true, e->kind);
	put_number(w, 2, true, e->measured, 0, e->bytes);
	put_number(w, 3, true, e->measured && e->messages, 0, e->messages);
	put_number(w, 4, true, e->rate_bps >= 0, e->rate_bps, 0);
	put_number(w, 5, true, e->waited_ns, 0, e->waited_ns);
}

static void gexf_value(struct strbuf *b, const struct attribute *a, size_t at, bool edge, const char *value)
{
	(void)a;
	(void)edge;
	/* The label is an attribute of the element itself. */
	if (at)
		strbuf_addf(b, "          <attvalue for=\"%zu\" value=\"%s\"/>\n", at, value);
}

static void gexf_declare(struct strbuf *b, const char *of, const struct attribute *a, size_t n)
{
	static const char *const types[] = {"string", "long", "double"};

	strbuf_addf(b, "    <attributes class=\"%s\">\n", of);
	for (size_t i = 1; i < n; i++)
		strbuf_addf(b, "      <attribute id=\"%zu\" title=\"%s\" type=\"%s\"/>\n", i, a[i].name,
			    types[a[i].type]);
	strbuf_add(b, "    </attributes>\n");
}

static void add_description(struct strbuf *b, const struct picture *p)
{
	escape_xml(b, p->title);
	if (p->left_out) {
		strbuf_add(b, ". ");
		escape_xml(b, p->left_out);
	}
}

int export_gexf(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const struct picture *p = in->picture;
	const struct writer w = {b, gexf_value};

	(void)e;
	strbuf_add(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<gexf xmlns=\"http://www.gexf.net/1.2draft\" version=\"1.2\">\n"
		      "  <meta>\n    <creator>witty-profiler</creator>\n    <description>");
	add_description(b, p);
	strbuf_add(b, "</description>\n  </meta>\n  <graph defaultedgetype=\"directed\" mode=\"static\">\n");
	gexf_declare(b, "node", node_attributes, N_NODE);
	gexf_declare(b, "edge", edge_attributes, N_EDGE);
	strbuf_add(b, "    <nodes>\n");
	for (uint32_t i = 0; i < p->nodes.n; i++) {
		strbuf_addf(b, "      <node id=\"n%u\" label=\"", i);
		escape_xml(b, p->nodes.v[i].label);
		strbuf_add(b, "\">\n        <attvalues>\n");
		put_node(&w, p, &p->nodes.v[i]);
		strbuf_add(b, "        </attvalues>\n      </node>\n");
	}
	strbuf_add(b, "    </nodes>\n    <edges>\n");
	for (uint32_t i = 0; i < p->edges.n; i++) {
		const struct picture_edge *d = &p->edges.v[i];

		strbuf_addf(b, "      <edge id=\"e%u\" source=\"n%u\" target=\"n%u\" label=\"", i, d->from, d->to);
		escape_xml(b, d->label);
		strbuf_addc(b, '"');
		if (d->measured && d->bytes)
			strbuf_addf(b, " weight=\"%" PRIu64 "\"", d->bytes);
		strbuf_add(b, ">\n        <attvalues>\n");
		put_edge(&w, d);
		strbuf_add(b, "        </attvalues>\n      </edge>\n");
	}
	strbuf_add(b, "    </edges>\n  </graph>\n</gexf>\n");
	return 0;
}

static void graphml_value(struct strbuf *b, const struct attribute *a, size_t at, bool edge, const char *value)
{
	(void)at;
	strbuf_addf(b, "      <data key=\"%s_%s\">%s</data>\n", edge ? "edge" : "node", a->name, value);
}

static void graphml_declare(struct strbuf *b, const char *of, const struct attribute *a, size_t n)
{
	static const char *const types[] = {"string", "long", "double"};

	for (size_t i = 0; i < n; i++)
		strbuf_addf(b,
			    "  <key id=\"%s_%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\"/>\n", of, a[i].name, of,
			    a[i].name, types[a[i].type]);
}

int export_graphml(const struct export_input *in, struct strbuf *b, struct err *e)
{
	const struct picture *p = in->picture;
	const struct writer w = {b, graphml_value};

	(void)e;
	strbuf_add(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  <desc>");
	add_description(b, p);
	strbuf_add(b, "</desc>\n");
	graphml_declare(b, "node", node_attributes, N_NODE);
	graphml_declare(b, "edge", edge_attributes, N_EDGE);
	strbuf_add(b, "  <graph id=\"G\" edgedefault=\"directed\">\n");
	for (uint32_t i = 0; i < p->nodes.n; i++) {
		strbuf_addf(b, "    <node id=\"n%u\">\n", i);
		put_node(&w, p, &p->nodes.v[i]);
		strbuf_add(b, "    </node>\n");
	}
	for (uint32_t i = 0; i < p->edges.n; i++) {
		const struct picture_edge *d = &p->edges.v[i];

		strbuf_addf(b, "    <edge id=\"e%u\" source=\"n%u\" target=\"n%u\">\n", i, d->from, d->to);
		put_edge(&w, d);
		strbuf_add(b, "    </edge>\n");
	}
	strbuf_add(b, "  </graph>\n</graphml>\n");
	return 0;
}
