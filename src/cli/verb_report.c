/* witty-profiler report: everything that is known of a recording, in sections. */
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "limits_file.h"
#include "load.h"
#include "mem.h"
#include "options.h"
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
	const struct verb_option options[] = {
	    {"format", 'f', OPTION_CHOICE, &a.format, "text, md, json or html"},
	    {"limit", 'n', OPTION_NUMBER, &a.limit, NULL},
	    {"preset", 'p', OPTION_TEXT, &a.preset, NULL},
	    {"limits", 'l', OPTION_TEXT, &a.limits, NULL},
	    {"output", 'o', OPTION_TEXT, &a.output, NULL},
	    {"force", 0, OPTION_FLAG, &a.force, NULL},
	    {0}};
	struct opened_study *o;
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int first, rc;

	if (parse_options(&verb_report, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + 1 != argc)
		return usage_error(&verb_report, "one file is needed");
	rc = choose_limits(&verb_report, a.preset, a.limits, &l);
	if (rc)
		return rc;
	a.file = argv[first];
	o = mem_alloc(sizeof(*o));
	rc = study_open_with(o, a.file, &l, &e);
	if (!rc) {
		rc = render(&a, o, &b, &e);
		study_close(o);
	}
	free(o);
	return end_with(rc, a.output, a.force, &b, &e);
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
