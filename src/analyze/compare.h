#pragma once

#include "finding.h"
#include "study.h"
#include "timeline.h"

/*
 * What changed between two recordings. Pids differ from run to run: processes are matched by what
 * they run and in which container, threads by their name without numbers too; equal ones are one
 * row, with their figures added up.
 *
 * A change of a thread's figures is significant when Welch's t over the intervals of both
 * recordings exceeds its two-sided 99 % point, and the change is at least 2 points and a tenth of
 * the larger value. A flow has no series: its messages are taken as counts, and their rates have to
 * differ by more than three standard errors and a fifth. With fewer than three intervals on a side,
 * or without a window, nothing is called significant.
 */

/** One figure in both recordings. NaN: not known, or not there. */
struct change {
	double a, b;
	double t;         /**< Welch's t, or the distance in standard errors; NaN: not computed */
	bool significant; /**< b differs from a by more than chance, and by enough to matter */
};

struct thread_change {
	const char *name;      /**< "worker of train.py" */
	uint32_t a_n, b_n;     /**< threads; 0: not there */
	struct change cpu_pct; /**< of one CPU, sum over the threads */
	struct change runq_pct;
	struct change blocked_late_pct; /**< waiting for somebody who was not idle */
	struct change switches_s;
};

struct flow_change {
	const char *from, *to, *kind;
	struct change bytes_s, messages_s;
};

enum finding_fate { FATE_NEW, FATE_WORSE, FATE_BETTER, FATE_GONE, FATE_SAME, FATE_COUNT };

struct finding_change {
	enum finding_fate fate;
	const struct finding *a, *b; /**< NULL: not there */
	const char *who; /**< root or first subject, as threads and processes are matched */
	double a_lost_pct, b_lost_pct; /**< of the window; NaN: not known */
};

struct compare {
	struct arena arena;
	VEC(struct thread_change)
	threads; /**< significant ones first, by change of CPU and run-queue time */
	VEC(struct flow_change) flows;       /**< likewise, by change of bytes */
	VEC(struct finding_change) findings; /**< by fate, then severity and time */
	uint64_t a_window_ns, b_window_ns;   /**< 0: not known */
	size_t a_intervals, b_intervals;
};

/** One side: a study and its findings, which must outlive the comparison. */
struct compared {
	const struct study *study;
	const struct findings *findings;
};

/** O(n log n) in nodes, relations and slices of both. */
void compare_init(struct compare *c, const struct compared *a, const struct compared *b);
void compare_done(struct compare *c);

const char *finding_fate_name(enum finding_fate f); /**< "new" … */

/** The highest severity of findings that are new or worse in the second; SEVERITY_INFO: none. */
enum severity compare_worst(const struct compare *c);
