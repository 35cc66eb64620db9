#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "study_open.h"
#include "vec.h"

/*
 * The files that a server may look at: those of its command line and those that it recorded itself.
 * Nothing that a client says is ever used as a path.
 */

/** What was read of a file; read again when the file has changed. */
struct mcp_file {
	char *
	    name; /**< what clients call it: its last part, or all of it where that is not unique */
	char *path;
	uint64_t stamp;         /**< of the content that is loaded */
	uint64_t used;          /**< higher: used later */
	struct opened_study *o; /**< the file with its analyses; NULL: not loaded */
	struct graph *g;        /**< of it */
};

struct mcp_files {
	VEC(struct mcp_file) v;
	uint64_t uses;
};

/** Files whose content is held at once; the others are read when they are asked for. */
#define MCP_LOADED_MAX 3

void mcp_files_done(struct mcp_files *f);

/** Add a file, which must be readable. @return 0 or -errno */
int mcp_files_add(struct mcp_files *f, const char *path, struct err *e);

/**
 * Load a file, if that is not done.
 *
 * @param name NULL: the newest
 * @param ret  valid until the next call but one: two files can be compared
 * @return 0, -ENOENT with the names that there are, or as study_open()
 */
int mcp_files_get(struct mcp_files *f, const char *name, struct mcp_file **ret, struct err *e);
