#pragma once

#include "compare.h"
#include "json.h"
#include "strbuf.h"

/** What of a comparison is wanted. */
struct compare_view {
	const char *a, *b; /**< what the two are called: their files */
	uint64_t limit;    /**< rows of each list; 0: what suits it */
	bool all;          /**< rows that did not change significantly, too */
};

void render_compare_text(const struct compare *c, const struct compare_view *v, bool md,
			 struct strbuf *b);
/** Stable: docs/bottlenecks.md. Lists are whole unless the view has a limit. */
void render_compare_json(const struct compare *c, const struct compare_view *v,
			 struct json_writer *w);
