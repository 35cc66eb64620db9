/* witty-profiler mcp: a server of the Model Context Protocol on standard input and output. */
#include <getopt.h>
#include <unistd.h>

#include "mcp.h"
#include "mcp_tools.h"
#include "verb.h"

static const struct option options[] = {{"allow-record", no_argument, NULL, 'R'},
					{"record-dir", required_argument, NULL, 'd'},
					{"budget", required_argument, NULL, 'b'},
					{"mirror", no_argument, NULL, 'm'},
					{0}};

static int parse_option(struct mcp_options *o, int opt)
{
	switch (opt) {
	case 'R':
		o->allow_record = true;
		return 0;
	case 'd':
		o->record_folder = optarg;
		return 0;
	case 'b':
		if (parse_number(optarg, &o->budget) || o->budget < MCP_BUDGET_MIN ||
		    o->budget > MCP_BUDGET_MAX)
			return usage_error(&verb_mcp, "'%s' is no number of tokens from %d to %d",
					   optarg, MCP_BUDGET_MIN, MCP_BUDGET_MAX);
		return 0;
	case 'm':
		o->mirror = true;
		return 0;
	}
	return usage_error(&verb_mcp, "wrong option");
}

static int run(int argc, char **argv)
{
	struct mcp_options o = {.record_folder = ".", .budget = MCP_BUDGET};
	struct err e;
	int opt, rc = 0;

	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "b:", options, NULL)) != -1)
		rc = opt == '?' ? usage_error(&verb_mcp, "wrong option '%s'", argv[optind - 1])
				: parse_option(&o, opt);
	if (rc)
		return rc;
	o.files = argv + optind;
	o.n_files = (size_t)(argc - optind);
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
