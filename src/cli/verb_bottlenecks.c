/* witty-profiler bottlenecks: what holds the system back, and what can be done about it. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "limits_file.h"
#include "render_findings.h"
#include "rule.h"
#include "study_open.h"
#include "verb.h"

struct bottlenecks_args {
	const char *file, *output, *format, *limits, *preset;
	struct findings_view view;
	enum severity fail_on;
	bool fails, force, list;
};

/* clang-format off */
static const struct option options[] = {
	{"format", required_argument, NULL, 'f'},
	{"limit", required_argument, NULL, 'n'},
	{"preset", required_argument, NULL, 'p'},
	{"limits", required_argument, NULL, 'l'},
	{"list-rules", no_argument, NULL, 'L'},
	{"fail-on", required_argument, NULL, 'x'},
	{"least", required_argument, NULL, 's'},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, 'F'},
	{0}};
/* clang-format on */

static int parse_severity(const char *s, enum severity *ret)
{
	if (severity_find(s, ret) || *ret == SEVERITY_INFO)
		return usage_error(&verb_bottlenecks,
				   "no severity '%s': notice, warning or critical", s);
	return 0;
}

static int parse_option(struct bottlenecks_args *a, int opt)
{
	switch (opt) {
	case 'f':
		if (strcmp(optarg, "text") && strcmp(optarg, "md") && strcmp(optarg, "json"))
			return usage_error(&verb_bottlenecks, "no format '%s': text, md or json",
					   optarg);
		a->format = optarg;
		return 0;
	case 'n':
		if (parse_number(optarg, &a->view.limit))
			return usage_error(&verb_bottlenecks, "'%s' is no number", optarg);
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
	case 'x':
		a->fails = true;
		return parse_severity(optarg, &a->fail_on);
	case 's':
		return parse_severity(optarg, &a->view.least);
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	}
	return usage_error(&verb_bottlenecks, "wrong option");
}

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
	rc = a->fails && o.all.findings.v.n && findings_worst(&o.all.findings) >= a->fail_on;
	study_close(&o);
	return rc;
}

static int run_bottlenecks(int argc, char **argv)
{
	struct bottlenecks_args a = {.format = "text"};
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int opt, rc = 0, found;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:l:p:o:", options, NULL)) != -1)
		rc = opt == '?'
			 ? usage_error(&verb_bottlenecks, "wrong option '%s'", argv[optind - 1])
			 : parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + !a.list != argc)
		return usage_error(&verb_bottlenecks,
				   a.list ? "--list-rules needs no file" : "one file is needed");
	if (a.preset && limits_preset(&l, a.preset, &e) < 0)
		return usage_error(&verb_bottlenecks, "%s", e.msg);
	if (limits_load(&l, a.preset, a.limits, &e) < 0)
		return fail(&e);
	a.file = a.view.file = argv[optind];
	if (a.list)
		rules_write_md(&b);
	found = a.list ? 0 : analyse(&a, &l, &b, &e);
	rc = found < 0 ? found : write_output(a.output, a.force, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : found ? EXIT_FINDINGS : EXIT_DONE;
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
