/* witty-profiler bottlenecks: what holds the system back, and what can be done about it. */
#include <errno.h>
#include <string.h>

#include "limits_file.h"
#include "options.h"
#include "render_findings.h"
#include "rule.h"
#include "study_open.h"
#include "verb.h"

struct bottlenecks_args {
	const char *file, *output, *format, *limits, *preset;
	struct findings_view view;
	enum severity fail_on; /* SEVERITY_INFO: no exit status for findings */
	bool force, list;
};

static void render(const struct bottlenecks_args *a, const struct opened_study *o, struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	if (strcmp(a->format, "json")) {
		render_findings_text(&o->all.study, &o->all.findings, &a->view,
				     !strcmp(a->format, "md"), b);
		return;
	}
	json_writer_init_strbuf(&w, b, JSON_INDENT);
	render_findings_json(&o->all.study, &o->all.findings, &a->view, &w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

/* @return 0, -errno, or 1: something was found that --fail-on asks for */
static int analyse(const struct bottlenecks_args *a, const struct limits *l, struct strbuf *b,
		   struct err *e)
{
	struct opened_study o;
	int rc = study_open_with(&o, a->file, l, e);

	if (rc < 0)
		return rc;
	render(a, &o, b);
	rc = a->fail_on != SEVERITY_INFO && o.all.findings.v.n && findings_worst(&o.all.findings) >= a->fail_on;
	study_close(&o);
	return rc;
}

static int run_bottlenecks(int argc, char **argv)
{
	struct bottlenecks_args a = {.format = "text"};
	const struct verb_option options[] = {
	    {"format", 'f', OPTION_CHOICE, &a.format, "text, md or json"},
	    {"limit", 'n', OPTION_NUMBER, &a.view.limit, NULL},
	    {"preset", 'p', OPTION_TEXT, &a.preset, NULL},
	    {"limits", 'l', OPTION_TEXT, &a.limits, NULL},
	    {"list-rules", 0, OPTION_FLAG, &a.list, NULL},
	    {"fail-on", 0, OPTION_SEVERITY, &a.fail_on, NULL},
	    {"least", 0, OPTION_SEVERITY, &a.view.least, NULL},
	    {"output", 'o', OPTION_TEXT, &a.output, NULL},
	    {"force", 0, OPTION_FLAG, &a.force, NULL},
	    {0}};
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int first, rc, found;

	if (parse_options(&verb_bottlenecks, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + !a.list != argc)
		return usage_error(&verb_bottlenecks,
				   a.list ? "--list-rules needs no file" : "one file is needed");
	rc = choose_limits(&verb_bottlenecks, a.preset, a.limits, &l);
	if (rc)
		return rc;
	a.file = a.view.file = argv[first];
	if (a.list)
		rules_write_md(&b);
	found = a.list ? 0 : analyse(&a, &l, &b, &e);
	rc = end_with(found, a.output, a.force, &b, &e);
	return rc == EXIT_DONE && found > 0 ? EXIT_FINDINGS : rc;
}

const struct verb verb_bottlenecks = {
    .name = "bottlenecks",
    .usage = "FILE [OPTION]...",
    .summary = "List what holds the system back: evidence, time lost, advice",
    .help =
	"  -f, --format FORMAT   text (default), md or json\n"
	"  -n, --limit N         at most N findings\n"
	"      --least LEVEL     only findings of this severity or above: notice, warning, "
	"critical\n"
	"  -p, --preset NAME     limits for: default, hpc or server\n"
	"  -l, --limits FILE     limits that replace those of the preset: lines NAME = VALUE\n"
	"      --list-rules      print the table of rules as Markdown, and end\n"
	"      --fail-on LEVEL   exit with 3 when there is a finding of this severity or above\n"
	"  -o, --output FILE     write there instead of to standard output\n"
	"      --force           replace that file if it exists\n",
    .run = run_bottlenecks,
};
