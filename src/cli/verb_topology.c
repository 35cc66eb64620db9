/* witty-profiler topology: how data moves through a host, and what kind of job its processes form.
 */
#include <errno.h>
#include <string.h>

#include "load.h"
#include "options.h"
#include "render_topology.h"
#include "verb.h"

struct topology_args {
	const char *file, *focus, *output, *format;
	uint64_t limit, budget;
	bool force;
};

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
	const struct verb_option options[] = {
	    {"format", 'f', OPTION_CHOICE, &a.format, "text, md or json"},
	    {"limit", 'n', OPTION_NUMBER, &a.limit, NULL},
	    {"focus", 'p', OPTION_TEXT, &a.focus, NULL},
	    {"budget", 'b', OPTION_NUMBER, &a.budget, .least = 1},
	    {"output", 'o', OPTION_TEXT, &a.output, NULL},
	    {"force", 0, OPTION_FLAG, &a.force, NULL},
	    {0}};
	struct strbuf b = {0};
	struct err e;
	int first;

	if (parse_options(&verb_topology, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + 1 != argc)
		return usage_error(&verb_topology, "one file is needed");
	a.file = argv[first];
	return end_with(analyse(&a, &b, &e), a.output, a.force, &b, &e);
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
