/* witty-profiler hotspots: which threads are hot, and why. */
#include <string.h>

#include "limits_file.h"
#include "load.h"
#include "options.h"
#include "render_hot.h"
#include "verb.h"

struct hotspots_args {
	const char *file, *output, *format, *limits, *preset;
	uint64_t limit;
	bool force, list;
};

static int analyse(const struct hotspots_args *a, const struct limits *l, struct strbuf *b,
		   struct err *e)
{
	struct hot_view v = {.limit = a->limit, .file = a->file};
	struct timeline time = {0};
	struct waitfor waits;
	struct json_writer w;
	struct hot h;
	struct graph g;
	int rc;

	graph_init(&g);
	rc = graph_load_timed(&g, &time, a->file, e);
	if (!rc) {
		waitfor_init(&waits, &g, &time);
		hot_init(&h, &g, l);
		hot_follow_waits(&h, &waits);
		v.waits = &waits;
		if (!strcmp(a->format, "json")) {
			json_writer_init_strbuf(&w, b, JSON_INDENT);
			render_hot_json(&h, &v, &w);
			rc = json_writer_finish(&w, e);
			strbuf_addc(b, '\n');
		} else {
			render_hot_text(&h, &v, !strcmp(a->format, "md"), b);
		}
		hot_done(&h);
		waitfor_done(&waits);
	}
	timeline_done(&time);
	graph_done(&g);
	return rc;
}

static void list_limits(const struct hotspots_args *a, const struct limits *l, struct strbuf *b)
{
	if (!strcmp(a->format, "md"))
		render_limits_md(b);
	else
		limits_write(l, b);
}

static int run_hotspots(int argc, char **argv)
{
	struct hotspots_args a = {.format = "text"};
	const struct verb_option options[] = {
	    {"format", 'f', OPTION_CHOICE, &a.format, "text, md or json"},
	    {"limit", 'n', OPTION_NUMBER, &a.limit, NULL},
	    {"preset", 'p', OPTION_TEXT, &a.preset, NULL},
	    {"limits", 'l', OPTION_TEXT, &a.limits, NULL},
	    {"list-limits", 0, OPTION_FLAG, &a.list, NULL},
	    {"output", 'o', OPTION_TEXT, &a.output, NULL},
	    {"force", 0, OPTION_FLAG, &a.force, NULL},
	    {0}};
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int first, rc;

	if (parse_options(&verb_hotspots, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + !a.list != argc)
		return usage_error(&verb_hotspots,
				   a.list ? "--list-limits needs no file" : "one file is needed");
	rc = choose_limits(&verb_hotspots, a.preset, a.limits, &l);
	if (rc)
		return rc;
	a.file = argv[first];
	if (a.list)
		list_limits(&a, &l, &b);
	else
		rc = analyse(&a, &l, &b, &e);
	return end_with(rc, a.output, a.force, &b, &e);
}

const struct verb verb_hotspots = {
    .name = "hotspots",
    .usage = "FILE [OPTION]...",
    .summary = "Name the hot threads, and say why they are",
    .help = "  -f, --format FORMAT   text (default), md or json\n"
	    "  -n, --limit N         at most N items of each list\n"
	    "  -p, --preset NAME     limits for: default, hpc or server\n"
	    "  -l, --limits FILE     limits that replace those of the preset: lines NAME = VALUE\n"
	    "      --list-limits     print all limits as such a file, with their reasons, and end\n"
	    "  -o, --output FILE     write there instead of to standard output\n"
	    "      --force           replace that file if it exists\n",
    .run = run_hotspots,
};
