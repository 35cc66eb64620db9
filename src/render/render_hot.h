#pragma once

#include "hot.h"
#include "json.h"
#include "strbuf.h"
#include "waitfor.h"

/** What of the analysis of threads is wanted. */
struct hot_view {
	uint64_t limit;              /**< of each list; 0: what suits it */
	const struct waitfor *waits; /**< shown, too; NULL: not */
	const char *file;            /**< for the commands that show more; NULL: leave those out */
};

/** For people, as plain text or as Markdown: hot threads, classes, NUMA affinity, context switches.
 */
void render_hot_text(struct hot *h, const struct hot_view *v, bool md, struct strbuf *b);

/** Stable: docs/json.md. Lists are whole unless the view has a limit. */
void render_hot_json(struct hot *h, const struct hot_view *v, struct json_writer *w);

/** The limits as a Markdown page: docs/limits.md. */
void render_limits_md(struct strbuf *b);
