/* The page: its data as JSON, put into the template that the build made of web/. */
#include "render_html.h"

#include <errno.h>
#include <string.h>

#include "graph_meta.h"
#include "page_parts.h"
#include "page_template.h"
#include "render_topology.h"

static void write_left_out(const char *what, size_t kept, size_t all, struct json_writer *w)
{
	if (kept == all)
		return;
	json_write_object(w);
	json_key_str(w, "what", what);
	json_key_u64(w, "kept", kept);
	json_key_u64(w, "all", all);
	json_write_object_end(w);
}

static void write_limits(const struct page *p, size_t findings, struct json_writer *w)
{
	static const char *const names[] = {[ACTOR_PROCESS] = "processes",
					    [ACTOR_OUTSIDE] = "ends outside",
					    [ACTOR_STORAGE] = "file systems",
					    [ACTOR_DEVICE] = "accelerators"};

	json_write_key(w, "left_out");
	json_write_array(w);
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		write_left_out(names[k], p->actors_kept[k], p->actors_all[k], w);
	write_left_out("threads", p->threads.n, p->threads_all, w);
	write_left_out("links", p->links.n, p->links_all, w);
	write_left_out("findings", findings < PAGE_FINDINGS_MAX ? findings : PAGE_FINDINGS_MAX,
		       findings, w);
	json_write_array_end(w);
	json_key_u64(w, "processes_all", p->actors_all[ACTOR_PROCESS]);
	json_key_u64(w, "threads_all", p->threads_all);
}

/* Groups, paths and problems are those of the report; they name actors by their ids. */
static void write_structure(const struct study *s, struct json_writer *w)
{
	struct topology_view v = {.parts = 1u << PART_GROUPS | 1u << PART_PATHS |
					   1u << PART_PROBLEMS | 1u << PART_UNSEEN,
				  .limit = 50,
				  .focus = TOPO_NONE};

	json_write_key(w, "topology");
	/* Rendering needs ids of the graph, which are made when asked for. */
	render_topology_json((struct topology *)(uintptr_t)s->t, &v, w);
}

void render_page_json(const struct study *s, const struct findings *f,
		      const struct interval_amounts *a, struct json_writer *w)
{
	struct page p;

	page_init(&p, s, f);
	p.amounts = a;
	json_write_object(w);
	json_key_u64(w, "schema_version", GRAPH_SCHEMA_VERSION);
	json_key_str(w, "generator", "witty-profiler " WITTY_VERSION);
	json_write_key(w, "about");
	json_write_object(w);
	graph_write_about(s->g, w);
	json_write_object_end(w);
	write_limits(&p, f ? f->v.n : 0, w);
	page_write_machine(&p, w);
	page_write_actors(&p, w);
	page_write_links(&p, w);
	page_write_threads(&p, w);
	page_write_waits(&p, w);
	page_write_time(&p, w);
	page_write_findings(&p, f, w);
	write_structure(s, w);
	json_write_object_end(w);
	page_done(&p);
}

bool html_is_built(void)
{
	return page_template_n > 0;
}

/* A '<' ends a script element or begins a comment in it; in JSON it stands only within strings. */
static void add_escaped(struct strbuf *b, const char *json, size_t n)
{
	for (size_t i = 0; i < n;) {
		const char *next = memchr(json + i, '<', n - i);
		size_t plain = next ? (size_t)(next - json) - i : n - i;

		strbuf_addn(b, json + i, plain);
		if (next)
			strbuf_add(b, "\\u003c");
		i += plain + (next != NULL);
	}
}

int render_html(const struct study *s, const struct findings *f, const struct interval_amounts *a,
		struct strbuf *b, struct err *e)
{
	struct strbuf json = {0};
	struct json_writer w;

	if (!html_is_built()) {
		err_msg(e, -ENOTSUP, "this program was built without the page");
		return err_hint(e, "build it with -Dweb=enabled, which needs nodejs and npm");
	}
	/* ASCII only: no separator of lines, no direction of writing and no encoding can come in.
	 */
	json_writer_init_strbuf(&w, &json, JSON_ASCII);
	render_page_json(s, f, a, &w);
	if (json_writer_finish(&w, e) < 0) {
		strbuf_done(&json);
		return e->code;
	}
	for (size_t i = 0; i < page_template_n; i++) {
		strbuf_addn(b, page_template[i].s, page_template[i].n);
		if (page_template[i].data_follows)
			add_escaped(b, json.s, json.n);
	}
	strbuf_done(&json);
	return 0;
}
