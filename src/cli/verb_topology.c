/* witty-profiler topology: how data moves through a host, and what kind of job its processes form.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "load.h"
#include "render_topology.h"
#include "verb.h"

struct topology_args {
	const char *file, *focus, *output, *format;
	uint64_t limit, budget;
	bool force;
};

static const struct option options[] = {{"format", required_argument, NULL, 'f'},
					{"limit", required_argument, NULL, 'n'},
					{"focus", required_argument, NULL, 'p'},
					{"budget", required_argument, NULL, 'b'},
					{"output", required_argument, NULL, 'o'},
					{"force", no_argument, NULL, 'F'},
					{0}};

static int parse_option(struct topology_args *a, int opt)
{
	switch (opt) {
	case 'f':
		if (strcmp(optarg, "text") && strcmp(optarg, "md") && strcmp(optarg, "json"))
			return usage_error(&verb_topology, "no format '%s': text, md or json",
					   optarg);
		a->format = optarg;
		return 0;
	case 'n':
		if (parse_number(optarg, &a->limit))
			return usage_error(&verb_topology, "'%s' is no number", optarg);
		return 0;
	case 'p':
		a->focus = optarg;
		return 0;
	case 'b':
		if (parse_number(optarg, &a->budget) || !a->budget)
			return usage_error(&verb_topology, "'%s' is no number of tokens", optarg);
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	}
	return usage_error(&verb_topology, "wrong option");
}

static enum topology_format format_of(const struct topology_args *a)
{
	return !strcmp(a->format, "json") ? TOPOLOGY_JSON
	       : !strcmp(a->format, "md") ? TOPOLOGY_MD
					  : TOPOLOGY_TEXT;
}

static int find_focus(const struct topology_args *a, struct topology *t, uint32_t *ret,
		      struct err *e)
{
	uint32_t node = graph_find(t->g, a->focus);

	*ret = node != NODE_NONE ? t->actor_of[node] : TOPO_NONE;
	if (*ret != TOPO_NONE)
		return 0;
	err_msg(e, -ENOENT, "no process '%s' in '%s'", a->focus, a->file);
	return err_hint(
	    e, "ids are written as process:4711; 'show FILE entities --type process' lists them");
}

static int analyse(const struct topology_args *a, struct strbuf *b, struct err *e)
{
	struct topology_view v = {
	    .parts = PARTS_ALL, .limit = a->limit, .focus = TOPO_NONE, .file = a->file};
	struct topology t;
	struct graph g;
	int rc;

	graph_init(&g);
	rc = graph_load(&g, a->file, e);
	if (!rc) {
		topology_init(&t, &g);
		rc = a->focus ? find_focus(a, &t, &v.focus, e) : 0;
		if (!rc)
			render_topology(&t, &v, format_of(a), a->budget, b);
		topology_done(&t);
	}
	graph_done(&g);
	return rc;
}

static int run_topology(int argc, char **argv)
{
	struct topology_args a = {.format = "text"};
	struct strbuf b = {0};
	struct err e;
	int opt, rc = 0;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "f:n:p:b:o:", options, NULL)) != -1)
		rc = opt == '?' ? usage_error(&verb_topology, "wrong option '%s'", argv[optind - 1])
				: parse_option(&a, opt);
	if (rc)
		return rc;
	if (optind + 1 != argc)
		return usage_error(&verb_topology, "one file is needed");
	a.file = argv[optind];
	rc = analyse(&a, &b, &e);
	rc = rc < 0 ? rc : write_output(a.output, a.force, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

const struct verb verb_topology = {
    .name = "topology",
    .usage = "FILE [OPTION]...",
    .summary = "Restore how data moves: ranks, patterns, paths, placement",
    .help = "  -f, --format FORMAT   text (default), md or json\n"
	    "  -n, --limit N         at most N items of each list\n"
	    "  -p, --focus ID        only this process and who has to do with it\n"
	    "  -b, --budget N        at most N tokens, of 4 bytes each: what matters most, and "
	    "what is left out\n"
	    "  -o, --output FILE     write there instead of to standard output\n"
	    "      --force           replace that file if it exists\n",
    .run = run_topology,
};
