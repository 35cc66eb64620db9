#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * A server of the Model Context Protocol, for AI agents: one JSON-RPC message a line. It serves
 * clients of revision 2026-07-28, whose requests stand alone, and those of 2024-11-05 to
 * 2025-11-25, which begin with a handshake.
 *
 * It reads files and writes none, unless recording is allowed. Memory: at most MCP_LOADED_MAX
 * files, a line of at most MCP_LINE_MAX, and what is waiting of at most MCP_WAITING_MAX bytes.
 */
struct mcp_options {
	char *const *files; /**< [n_files] what can be asked about */
	size_t n_files;
	bool allow_record;
	const char *record_folder; /**< where recordings are written */
	uint64_t budget;           /**< tokens of an answer, unless the client says */
	bool mirror;               /**< structured answers as text, too */
};

/**
 * Serve until the input ends.
 *
 * @param in,out file descriptors; borrowed
 * @return 0 or -errno: a file cannot be read, or the output cannot be written
 */
int mcp_serve(const struct mcp_options *o, int in, int out, struct err *e);
