#pragma once

#include "json.h"
#include "strbuf.h"
#include "topology.h"

/** Parts of a topology, the most important first: what a budget cannot hold is left out from the
 * end. */
enum topology_part {
	PART_OVERVIEW,
	PART_PROBLEMS,
	PART_GROUPS,
	PART_PATHS,
	PART_DEVICES,
	PART_UNSEEN,
	PART_PROCESSES,
	PART_PLACES,
	PART_LINKS,
	PART_MORE,
	PART_COUNT
};
#define PARTS_ALL ((1u << PART_COUNT) - 1)

/** What of a topology is wanted. */
struct topology_view {
	unsigned parts;   /**< bit for each part */
	uint64_t limit;   /**< of each list; 0: what suits it */
	const char *note; /**< what had to be left out, for the end; NULL: nothing */
	uint32_t focus;   /**< only this actor and who has to do with it; TOPO_NONE: all */
	const char *file; /**< for the commands that show more; NULL: leave those out */
	bool has_header;  /**< status and losses of the file are told elsewhere */
};

enum topology_format { TOPOLOGY_TEXT, TOPOLOGY_MD, TOPOLOGY_JSON };

/**
 * Append the topology in a format. With a budget, lists are cut and then parts left out, until it
 * has at most that many tokens, and the end says what is missing.
 *
 * @param tokens of 4 bytes each, a common size for texts like these; 0: no budget
 */
void render_topology(struct topology *t, const struct topology_view *v, enum topology_format format,
		     uint64_t tokens, struct strbuf *b);

/** For people, as plain text or as Markdown. */
void render_topology_text(struct topology *t, const struct topology_view *v, bool md,
			  struct strbuf *b);

/** Stable: docs/json.md. Lists are whole unless the view has a limit. */
void render_topology_json(struct topology *t, const struct topology_view *v, struct json_writer *w);
