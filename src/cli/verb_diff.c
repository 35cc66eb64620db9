/* witty-profiler diff: what changed between two recordings. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "limits_file.h"
#include "render_compare.h"
#include "study_open.h"
#include "verb.h"

struct diff_args {
	struct compare_view view;
	const char *output, *format, *limits, *preset;
	enum severity fail_on;
	bool fails, force;
};

/* clang-format off */
static const struct option options[] = {
	{"format", required_argument, NULL, 'f'},
	{"limit", required_argument, NULL, 'n'},
	{"preset", required_argument, NULL, 'p'},
	{"limits", required_argument, NULL, 'l'},
	{"all", no_argument, NULL, 'a'},
	{"fail-on", required_argument, NULL, 'x'},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, 'F'},
	{0}};
/* clang-format on */

static int parse_option(struct diff_args *a, int opt)
{
	switch (opt) {
	case 'f':
		if (strcmp(optarg, "text") && strcmp(optarg, "md") && strcmp(optarg, "json"))
			return usage_error(&verb_diff, "no format '%s': text, md or json", optarg);
		a->format = optarg;
		return 0;
	case 'n':
		if (parse_number(optarg, &a->view.limit))
			return usage_error(&verb_diff, "'%s' is no number", optarg);
		return 0;
	case 'p':
		a->preset = optarg;
		return 0;
	case 'l':
		a->limits = optarg;
		return 0;
	case 'a':
		a->view.all = true;
		return 0;
	case 'x':
		a->fails = true;
		if (severity_find(optarg, &a->fail_on) || a->fail_on == SEVERITY_INFO)
			return usage_error(&verb_diff,
					   "no severity '%s': notice, warning or critical", optarg);
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	}
	return usage_error(&verb_diff, "wrong option");
}

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
		rc = a->fails && compare_worst(&c) >= a->fail_on;
		compare_done(&c);
		study_close(&now);
	}
	study_close(&then);
	return rc;
}

static int run_diff(int argc, char **argv)
{
	struct diff_args a = {.format = "text"};
	struct strbuf b = {0};
	struct limits l;
	struct err e;
	int opt, rc = 0, found;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:p:l:ao:", options, NULL)) != -1)
		rc = opt == '?' ? usage_error(&verb_diff, "wrong option '%s'", argv[optind - 1])
				: parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + 2 != argc)
		return usage_error(&verb_diff, "two files are needed");
	if (a.preset && limits_preset(&l, a.preset, &e) < 0)
		return usage_error(&verb_diff, "%s", e.msg);
	if (limits_load(&l, a.preset, a.limits, &e) < 0)
		return fail(&e);
	a.view.a = argv[optind];
	a.view.b = argv[optind + 1];
	if (!strcmp(a.view.a, "-") && !strcmp(a.view.b, "-"))
		return usage_error(&verb_diff, "only one of both can be standard input");
	found = compare(&a, &l, &b, &e);
	rc = found < 0 ? found : write_output(a.output, a.force, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : found ? EXIT_FINDINGS : EXIT_DONE;
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
