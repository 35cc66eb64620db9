/* witty-profiler diff: what changed between two recordings. */
#include <errno.h>
#include <string.h>

#include "limits_file.h"
#include "options.h"
#include "render_compare.h"
#include "study_open.h"
#include "verb.h"

struct diff_args {
	struct compare_view view;
	const char *output, *format, *limits, *preset;
	enum severity fail_on; /* SEVERITY_INFO: no exit status for findings */
	bool force;
};

static void render(const struct diff_args *a, const struct compare *c, struct strbuf *b)
{
	struct json_writer w;
	struct err e;

	if (strcmp(a->format, "json")) {
		render_compare_text(c, &a->view, !strcmp(a->format, "md"), b);
		return;
	}
	json_writer_init_strbuf(&w, b, JSON_INDENT);
	render_compare_json(c, &a->view, &w);
	json_writer_finish(&w, &e);
	strbuf_addc(b, '\n');
}

/* @return 0, -errno, or 1: something is new or worse that --fail-on asks for */
static int compare(const struct diff_args *a, const struct limits *l, struct strbuf *b,
		   struct err *e)
{
	struct opened_study then, now;
	struct compare c;
	int rc = study_open_with(&then, a->view.a, l, e);

	if (rc < 0)
		return rc;
	rc = study_open_with(&now, a->view.b, l, e);
	if (!rc) {
		compare_init(&c, &(struct compared){&then.all.study, &then.all.findings},
			     &(struct compared){&now.all.study, &now.all.findings});
		render(a, &c, b);
		rc = a->fail_on != SEVERITY_INFO && compare_worst(&c) >= a->fail_on;
		compare_done(&c);
		study_close(&now);
	}
	study_close(&then);
	return rc;
}

static int run_diff(int argc, char **argv)
{
	struct diff_args a = {.format = "text"};
	const struct verb_option options[] = {
	    {"format", 'f', OPTION_CHOICE, &a.format, "text, md or json"},
	    {"limit", 'n', OPTION_NUMBER, &a.view.limit, NULL},
	    {"preset", 'p', OPTION_TEXT, &a.preset, NULL},
	    {"limits", 'l', OPTION_TEXT, &a.limits, NULL},
	    {"all", 'a', OPTION_FLAG, &a.view.all, NULL},
	    {"fail-on", 0, OPTION_SEVERITY, &a.fail_on, NULL},
	    {"output", 'o', OPTION_TEXT, &a.output, NULL},
	    {"force", 0, OPTION_FLAG, &a.force, NULL},
	    {0}};
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int first, rc, found;

	if (parse_options(&verb_diff, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + 2 != argc)
		return usage_error(&verb_diff, "two files are needed");
	rc = choose_limits(&verb_diff, a.preset, a.limits, &l);
	if (rc)
		return rc;
	a.view.a = argv[first];
	a.view.b = argv[first + 1];
	if (!strcmp(a.view.a, "-") && !strcmp(a.view.b, "-"))
		return usage_error(&verb_diff, "only one of both can be standard input");
	found = compare(&a, &l, &b, &e);
	rc = end_with(found, a.output, a.force, &b, &e);
	return rc == EXIT_DONE && found > 0 ? EXIT_FINDINGS : rc;
}

const struct verb verb_diff = {
    .name = "diff",
    .usage = "A B [OPTION]...",
    .summary = "Tell what changed between two recordings: findings, threads, flows",
    .help = "  -f, --format FORMAT   text (default), md or json\n"
	    "  -n, --limit N         at most N items of each list\n"
	    "  -a, --all             what did not change, too\n"
	    "  -p, --preset NAME     limits for: default, hpc or server\n"
	    "  -l, --limits FILE     limits that replace those of the preset: lines NAME = VALUE\n"
	    "      --fail-on LEVEL   exit with 3 when a finding of this severity or above is new "
	    "or worse in B\n"
	    "  -o, --output FILE     write there instead of to standard output\n"
	    "      --force           replace that file if it exists\n",
    .run = run_diff,
};
