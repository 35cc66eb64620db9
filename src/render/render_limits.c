/* The limits as a Markdown page: docs/limits.md. */
#include "render_hot.h"

static void add_value(struct strbuf *b, enum limit id, double v, double usual)
{
	strbuf_add(b, "| ");
	if (v != usual)
		strbuf_add(b, "**");
	limit_format(b, id, v);
	strbuf_add(b, v != usual ? "** " : " ");
}

void render_limits_md(struct strbuf *b)
{
	strbuf_add(b, "# Limits\n\n"
		      "Made by `witty-profiler hotspots --list-limits --format md` from "
		      "src/analyze/limits.def; a test keeps\n"
		      "it current. `--preset NAME` takes a column, `--limits FILE` replaces single "
		      "values by lines such as\n"
		      "`hot.cpu = 70 %`; `witty-profiler hotspots --list-limits` prints all of "
		      "them as such a file.\n"
		      "Published rules are those of the older tool.\n\n"
		      "| limit | what is compared with it | default | hpc | server | reason |\n"
		      "| --- | --- | ---: | ---: | ---: | --- |\n");
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_type *t = &limit_types[i];

		strbuf_addf(b, "| `%s` | %s ", t->name, t->doc);
		add_value(b, (enum limit)i, t->usual, t->usual);
		add_value(b, (enum limit)i, t->hpc, t->usual);
		add_value(b, (enum limit)i, t->server, t->usual);
		strbuf_addf(b, "| %s |\n", t->why);
	}
}
