/* witty-profiler bottlenecks: what holds the system back, and what can be done about it. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "render_findings.h"
#include "study_open.h"
#include "verb.h"

struct bottlenecks_args {
	const char *file, *output, *format, *limits;
	struct findings_view view;
	enum severity fail_on;
	bool fails, force;
};

static const struct option options[] = {
    {"format", required_argument, NULL, 'f'}, {"limit", required_argument, NULL, 'n'},
    {"limits", required_argument, NULL, 'l'}, {"fail-on", required_argument, NULL, 'x'},
    {"least", required_argument, NULL, 's'},  {"output", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, 'F'},        {0}};

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
		render_findings_text(&o->study, &o->findings, &a->view, !strcmp(a->format, "md"),
				     b);
		return;
	}
	json_writer_init_strbuf(&w, b, JSON_INDENT);
	render_findings_json(&o->study, &o->findings, &a->view, &w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

static int run_bottlenecks(int argc, char **argv)
{
	struct bottlenecks_args a = {.format = "text"};
	struct opened_study o;
	struct strbuf b = {0};
	struct err e;
	int opt, rc = 0;
	bool found;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:o:", options, NULL)) != -1)
		rc = opt == '?'
			 ? usage_error(&verb_bottlenecks, "wrong option '%s'", argv[optind - 1])
			 : parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + 1 != argc)
		return usage_error(&verb_bottlenecks, "one file is needed");
	a.file = a.view.file = argv[optind];
	rc = study_open(&o, a.file, a.limits, &e);
	if (rc < 0)
		return fail(&e);
	render(&a, &o, &b);
	found = a.fails && o.findings.v.n && findings_worst(&o.findings) >= a.fail_on;
	study_close(&o);
	rc = write_output(a.output, a.force, &b, &e);
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
	"      --limits NAME     thresholds: default, hpc or server, or a file that replaces some\n"
	"      --fail-on LEVEL   exit with 3 when there is a finding of this severity or above\n"
	"  -o, --output FILE     write there instead of to standard output\n"
	"      --force           replace that file if it exists\n",
    .run = run_bottlenecks,
};
