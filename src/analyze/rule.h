#pragma once

#include "finding.h"
#include "limit.h"
#include "strbuf.h"

/*
 * The rules: one table over all seven layers. A row says in words what its check does in code; the
 * reference docs/rules.md, the ids in reports and the list of what was evaluated come from it.
 */

struct rule_run;

struct rule {
	const char *id; /**< "cpu-quota": stable, in reports and docs */
	enum layer layer;
	const char *title;  /**< what it means when it fires */
	const char *fires;  /**< condition; `limits` are named in back ticks */
	const char *graded; /**< what its severity goes by */
	const char *needs;  /**< inputs without which it is not evaluated, and who gives them */
	const char *advice; /**< the first thing to do, for the docs */
	const enum limit *limits; /**< [n_limits] that it uses, besides those of severities */
	unsigned n_limits;
	/**
	 * Findings of this family with the same root are one. NULL: of this rule only.
	 */
	const char *family;
	bool across; /**< looks at several hosts as one, where there are several; the others at each by itself */
	/** Calls rule_fire() for each finding, or rule_unknown(); neither: clear. */
	void (*check)(struct rule_run *r);
};

#define RULE_LIMITS(...)                                                                           \
	.limits = (const enum limit[]){__VA_ARGS__},                                               \
	.n_limits = sizeof((const enum limit[]){__VA_ARGS__}) / sizeof(enum limit)

/** Row @p i of the table, NULL behind the last one; by layer. */
const struct rule *rule_at(size_t i);

/** NULL: there is none with that id. */
const struct rule *rule_find(const char *id);

/** The table as Markdown: docs/rules.md. */
void rules_write_md(struct strbuf *b);
