/* witty-profiler report: everything that is known of a recording, in sections. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "limits_file.h"
#include "load.h"
#include "mem.h"
#include "render.h"
#include "render_findings.h"
#include "render_html.h"
#include "study_open.h"
#include "verb.h"

struct report_args {
	const char *file, *output, *format, *limits, *preset;
	uint64_t limit;
	bool force;
};

/* clang-format off */
static const struct option options[] = {
	{"format", required_argument, NULL, 'f'},
	{"limit", required_argument, NULL, 'n'},
	{"preset", required_argument, NULL, 'p'},
	{"limits", required_argument, NULL, 'l'},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, 'F'},
	{0}};
/* clang-format on */

static bool is_format(const char *s)
{
	return !strcmp(s, "text") || !strcmp(s, "md") || !strcmp(s, "json") || !strcmp(s, "html");
}

static int parse_option(struct report_args *a, int opt)
{
	switch (opt) {
	case 'f':
		if (!is_format(optarg))
			return usage_error(&verb_report, "no format '%s': text, md, json or html",
					   optarg);
		a->format = optarg;
		return 0;
	case 'n':
		if (parse_number(optarg, &a->limit))
			return usage_error(&verb_report, "'%s' is no number", optarg);
		return 0;
	case 'p':
		a->preset = optarg;
		return 0;
	case 'l':
		a->limits = optarg;
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	}
	return usage_error(&verb_report, "wrong option");
}

static int render(const struct report_args *a, struct opened_study *o, struct strbuf *b,
		  struct err *e)
{
	struct findings_view v = {.limit = a->limit, .file = a->file};
	struct selection s = {.limit = a->limit,
			      .limits = &o->limits,
			      .study = &o->all.study,
			      .findings = &o->all.findings};
	struct interval_amounts amounts = {0};
	struct json_writer w;
	int rc = 0;

	if (!strcmp(a->format, "html")) {
		rc = graph_load_amounts(&o->graph, &amounts, a->file, e);
		rc = rc < 0 ? rc : render_html(&o->all.study, &o->all.findings, &amounts, b, e);
		vec_done(&amounts.v);
	} else if (!strcmp(a->format, "md")) {
		render_findings_report(&o->all.study, &o->all.findings, &v, b);
	} else if (!strcmp(a->format, "json")) {
		json_writer_init_strbuf(&w, b, JSON_INDENT);
		render_report_json(&o->graph, &s, &w);
		rc = json_writer_finish(&w, e);
		strbuf_addc(b, '\n');
	} else {
		render_report_text(&o->graph, &s, b);
	}
	return rc;
}

static int run_report(int argc, char **argv)
{
	struct report_args a = {.format = "text"};
	struct opened_study *o;
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int opt, rc = 0;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:p:l:o:", options, NULL)) != -1)
		rc = opt == '?' ? usage_error(&verb_report, "wrong option '%s'", argv[optind - 1])
				: parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + 1 != argc)
		return usage_error(&verb_report, "one file is needed");
	if (a.preset && limits_preset(&l, a.preset, &e) < 0)
		return usage_error(&verb_report, "%s", e.msg);
	if (limits_load(&l, a.preset, a.limits, &e) < 0)
		return fail(&e);
	a.file = argv[optind];
	o = mem_alloc(sizeof(*o));
	rc = study_open_with(o, a.file, &l, &e);
	if (!rc) {
		rc = render(&a, o, &b, &e);
		study_close(o);
	}
	rc = rc < 0 ? rc : write_output(a.output, a.force, &b, &e);
	strbuf_done(&b);
	free(o);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

const struct verb verb_report = {
    .name = "report",
    .usage = "FILE [OPTION]...",
    .summary = "Report on a recording: bottlenecks, topology, flows, hot threads",
    .help = "  -f, --format FORMAT   text (default); md: by layers, for a document; json; html: "
	    "one page that needs nothing else\n"
	    "  -n, --limit N         at most N items of each list\n"
	    "  -p, --preset NAME     limits for: default, hpc or server\n"
	    "  -l, --limits FILE     limits that replace those of the preset: lines NAME = VALUE\n"
	    "  -o, --output FILE     write there instead of to standard output\n"
	    "      --force           replace that file if it exists\n",
    .run = run_report,
};
