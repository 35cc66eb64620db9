/* witty-profiler mcp: a server of the Model Context Protocol on standard input and output. */
#include <unistd.h>

#include "mcp.h"
#include "mcp_tools.h"
#include "options.h"

static int run(int argc, char **argv)
{
	struct mcp_options o = {.record_folder = ".", .budget = MCP_BUDGET};
	const struct verb_option options[] = {
	    {"allow-record", 0, OPTION_FLAG, &o.allow_record},
	    {"record-dir", 0, OPTION_TEXT, &o.record_folder},
	    {"budget", 'b', OPTION_NUMBER, &o.budget, .least = MCP_BUDGET_MIN, .most = MCP_BUDGET_MAX},
	    {"mirror", 0, OPTION_FLAG, &o.mirror},
	    {0}};
	struct err e;
	int first, rc = parse_options(&verb_mcp, options, argc, argv, &first);

	if (rc)
		return rc;
	o.files = argv + first;
	o.n_files = (size_t)(argc - first);
	if (!o.n_files && !o.allow_record)
		return usage_error(&verb_mcp, "a file is needed, or --allow-record");
	return mcp_serve(&o, STDIN_FILENO, STDOUT_FILENO, &e) < 0 ? fail(&e) : EXIT_DONE;
}

const struct verb verb_mcp = {
    .name = "mcp",
    .usage = "[FILE]... [OPTION]...",
    .summary = "Let AI agents ask about recordings, on standard input and output",
    .help =
	"  -b, --budget N        tokens of an answer unless the client says, of 4 bytes (default "
	"4000)\n"
	"      --allow-record    let clients record this host\n"
	"      --record-dir DIR  write such recordings there (default: the current folder)\n"
	"      --mirror          structured answers as text, too, for clients that show only that\n"
	"It speaks the Model Context Protocol, revisions 2024-11-05 to 2026-07-28: docs/agents.md. "
	"Files are\n"
	"read when they are asked for; only what is given here or recorded can be.\n",
    .run = run,
};
