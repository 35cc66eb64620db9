#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "graph.h"
#include "vec.h"

/*
 * What holds the observed system back: findings, and for each rule whether it fired, was clear, or
 * could not be evaluated. A pure function of a study; texts live in the arena of the findings or in
 * the graph.
 */

enum severity { SEVERITY_INFO, SEVERITY_NOTICE, SEVERITY_WARNING, SEVERITY_CRITICAL };
#define SEVERITY_COUNT (SEVERITY_CRITICAL + 1)

enum layer {
	LAYER_COMPUTE,
	LAYER_MEMORY,
	LAYER_INTERCONNECT,
	LAYER_NETWORK,
	LAYER_STORAGE,
	LAYER_CONTROL,
	LAYER_DATA,
	LAYER_COUNT
};

/** One measured value, with the threshold that it is held against. */
struct finding_value {
	const char *name;
	uint32_t node; /**< whose value it is; NODE_NONE: of the whole */
	double value;  /**< in @p unit, as the registry has it: ns, bytes, percent 0–100 */
	enum unit unit;
	double limit;           /**< in the same unit; NaN: none */
	const char *limit_name; /**< name of that threshold in the limits; NULL: none */
};

/** A finding of another rule with the same root, which became part of the first. */
struct finding_part {
	const char *rule, *title, *why;
};

struct finding {
	const char *rule;   /**< id of the rule that fired */
	const char *family; /**< what kind of root it is: findings of one family and root are one */
	enum layer layer;
	bool chains; /**< others wait for its root: what holds that up belongs to it */
	enum severity severity;
	unsigned confidence_pct;
	uint32_t root; /**< node that causes it; NODE_NONE: not known */
	VEC(uint32_t)
	subjects; /**< nodes that suffer from it or that it is about, the most affected first */
	VEC(struct finding_value) values;
	uint64_t lost_ns;       /**< estimated time lost in the window, summed over the subjects */
	const char *lost_basis; /**< what that estimate is; NULL: it cannot be estimated, and
				   lost_ns is 0 */
	const char *severity_basis; /**< "share of time lost", or the metric that it goes by */
	const char *title;          /**< one line, with names: "4 threads wait for lock …" */
	const char *why;            /**< evidence, one to three sentences */
	VEC(const char *) advice;   /**< what to do, one sentence each, best first */
	VEC(const char *) commands; /**< shell lines or settings that do it */
	const char *expectation;    /**< what that can gain, honestly; NULL: nothing to add */
	VEC(struct finding_part) also;
};

enum verdict { VERDICT_CLEAR, VERDICT_FIRED, VERDICT_UNKNOWN };

/** What became of one rule. */
struct rule_verdict {
	const struct rule *rule;
	enum verdict verdict;
	const char *evidence; /**< clear: what was looked at; fired: the first finding's title;
				 unknown: the input that is missing */
	const char *how;      /**< unknown: how to get that input; else NULL */
	uint32_t findings;    /**< how many it gave before those of one root were merged */
};

struct study;

struct findings {
	struct arena arena;
	VEC(struct finding) v; /**< most time lost first; then by severity, rule and subject */
	VEC(struct rule_verdict) verdicts; /**< one for each rule, in the order of the table */
	VEC(const char *)
	limits_of_sight;    /**< what this file cannot tell at all, one sentence each */
	uint64_t window_ns; /**< of the observation; 0: not known */
	uint32_t counts[SEVERITY_COUNT];
};

/**
 * Evaluate all rules. @p s outlives the result. Deterministic. O(V + E) for the graph, and
 * O(S log S) for S wait segments.
 */
void findings_init(struct findings *f, const struct study *s);
void findings_done(struct findings *f);

/** The finding about this node, as subject or root, that lost most; NULL: there is none. */
const struct finding *findings_about(const struct findings *f, uint32_t node);

/** Highest severity of all; SEVERITY_INFO when nothing was found. */
enum severity findings_worst(const struct findings *f);

const char *severity_name(enum severity s); /**< "warning" */
const char *
severity_priority(enum severity s); /**< "P0" critical, "P1" warning, "P2" notice, "-" info */
/** @return 0, or -EINVAL */
int severity_find(const char *name, enum severity *ret);
const char *layer_name(enum layer l);     /**< "control plane" */
const char *verdict_name(enum verdict v); /**< "clear", "fired", "not evaluated" */
