#pragma once

#include "amounts.h"
#include "finding.h"
#include "json.h"
#include "strbuf.h"
#include "study.h"

/**
 * What the page shows, as one JSON object: web/src/data.ts has its shape. It is made for that page
 * and may change with it; docs/json.md has what is stable.
 *
 * Its size is bounded: of processes, threads, links and the like the most important are written,
 * the others are added up in rows that stand for many, and `left_out` says how many those are.
 *
 * @param f NULL: no findings
 * @param a what each interval added; NULL: not known
 */
void render_page_json(const struct study *s, const struct findings *f,
		      const struct interval_amounts *a, struct json_writer *w);

/**
 * The page itself: one HTML file with everything inside, that asks nothing of any network.
 *
 * @return 0, or -ENOTSUP when the program was built without the page
 */
int render_html(const struct study *s, const struct findings *f, const struct interval_amounts *a,
		struct strbuf *b, struct err *e);

/** Whether the program was built with the page. */
bool html_is_built(void);
