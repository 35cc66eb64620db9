/* witty-profiler hotspots: which threads are hot, and why. */
#include <getopt.h>
#include <string.h>

#include "limits_file.h"
#include "load.h"
#include "render_hot.h"
#include "verb.h"

struct hotspots_args {
	const char *file, *output, *format, *limits, *preset;
	uint64_t limit;
	bool force, list;
};

static const struct option options[] = {
    {"format", required_argument, NULL, 'f'}, {"limit", required_argument, NULL, 'n'},
    {"limits", required_argument, NULL, 'l'}, {"preset", required_argument, NULL, 'p'},
    {"list-limits", no_argument, NULL, 'L'},  {"output", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, 'F'},        {0}};

static int parse_option(struct hotspots_args *a, int opt)
{
	switch (opt) {
	case 'f':
		if (strcmp(optarg, "text") && strcmp(optarg, "md") && strcmp(optarg, "json"))
			return usage_error(&verb_hotspots, "no format '%s': text, md or json",
					   optarg);
		a->format = optarg;
		return 0;
	case 'n':
		if (parse_number(optarg, &a->limit))
			return usage_error(&verb_hotspots, "'%s' is no number", optarg);
		return 0;
	case 'l':
		a->limits = optarg;
		return 0;
	case 'p':
		a->preset = optarg;
		return 0;
	case 'L':
		a->list = true;
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	}
	return usage_error(&verb_hotspots, "wrong option");
}

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
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int opt, rc = 0;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:l:p:o:", options, NULL)) != -1)
		rc = opt == '?' ? usage_error(&verb_hotspots, "wrong option '%s'", argv[optind - 1])
				: parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + !a.list != argc)
		return usage_error(&verb_hotspots,
				   a.list ? "--list-limits needs no file" : "one file is needed");
	if (a.preset && limits_preset(&l, a.preset, &e) < 0)
		return usage_error(&verb_hotspots, "%s", e.msg);
	if (limits_load(&l, a.preset, a.limits, &e) < 0)
		return fail(&e);
	a.file = argv[optind];
	if (a.list)
		list_limits(&a, &l, &b);
	else
		rc = analyse(&a, &l, &b, &e);
	rc = rc < 0 ? rc : write_output(a.output, a.force, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : EXIT_DONE;
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
