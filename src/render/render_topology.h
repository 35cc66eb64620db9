#pragma once

#include "json.h"
#include "strbuf.h"
#include "topology.h"

/** What of a topology is wanted. */
struct topology_view {
	uint64_t limit;	  /**< of each list; 0: what suits it */
	uint32_t focus;	  /**< only this actor and who has to do with it; TOPO_NONE: all */
	const char *file; /**< for the commands that show more; NULL: leave those out */
};

/** For people, as plain text or as Markdown. */
void render_topology_text(struct topology *t, const struct topology_view *v, bool md, struct strbuf *b);

/** What a report of everything has of it: no process tree and no links, which it has already. */
void render_topology_section(struct topology *t, const struct topology_view *v, struct strbuf *b);

/** Stable: docs/json.md. Lists are whole unless the view has a limit. */
void render_topology_json(struct topology *t, const struct topology_view *v, struct json_writer *w);
