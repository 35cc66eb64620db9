#pragma once

#include "json.h"
#include "strbuf.h"
#include "waitfor.h"

/** What of an analysis of waits is wanted. */
struct waitfor_view {
	uint64_t limit; /**< of each list; 0: what suits it, in JSON all */
	bool idle;	/**< with waits that nobody misses; JSON has them always */
	unsigned level; /**< of the headings in Markdown, 2: "##"; 0: 2 */
};

/** For people, as plain text or as Markdown: a section for each part that has something in it. */
void render_waitfor_text(const struct waitfor *w, struct graph *g, const struct waitfor_view *v, bool md,
			 struct strbuf *b);

/** One object, stable: docs/json.md. */
void render_waitfor_json(const struct waitfor *w, struct graph *g, const struct waitfor_view *v,
			 struct json_writer *j);

/** The critical path of an interval: its parts, as text also the first of its pieces. */
void render_wait_path_text(const struct wait_path *p, struct graph *g, const struct waitfor_view *v, bool md,
			   struct strbuf *b);
void render_wait_path_json(const struct wait_path *p, struct graph *g, struct json_writer *j);
