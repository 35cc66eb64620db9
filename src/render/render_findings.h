#pragma once

#include "finding.h"
#include "json.h"
#include "strbuf.h"
#include "study.h"

/** What of the findings is wanted. */
struct findings_view {
	enum severity least; /**< findings below it are left out */
	uint64_t limit;      /**< findings at most; 0: all */
	bool brief;          /**< as a section of a report: without the rules that are clear */
	const char *file;    /**< for the commands that show more; NULL: leave those out */
};

/** For people, as plain text or as Markdown: findings, and what became of each rule. */
void render_findings_text(const struct study *s, const struct findings *f,
			  const struct findings_view *v, bool md, struct strbuf *b);

/** Stable: docs/json.md. One object. */
void render_findings_json(const struct study *s, const struct findings *f,
			  const struct findings_view *v, struct json_writer *w);

/** Its members, into the object at hand. */
void render_findings_members(const struct study *s, const struct findings *f,
			     const struct findings_view *v, struct json_writer *w);

/** "python3[4711]: time on a CPU 98.0 % (limit 80.0 %, serial.cpu)"; may hold names from the host.
 */
void finding_value_text(const struct study *s, const struct finding_value *v, struct strbuf *b);

/** The report of the whole analysis as Markdown, in the sections of docs/bottlenecks.md. */
void render_findings_report(const struct study *s, const struct findings *f,
			    const struct findings_view *v, struct strbuf *b);
