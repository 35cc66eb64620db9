#pragma once

#include "hot.h"
#include "idrange.h"
#include "rule.h"
#include "study.h"
#include "waitfor.h"

/* Private to the rules: what they share, made once before the first one is tried. */

/** A CPU, and how busy it was. */
struct cpu_fact {
	uint32_t node, id;
	uint64_t ran_ns; /**< time of threads on it, as far as they were seen */
	double busy_pct; /**< of the window; NAN: not known */
	double irq_pct;  /**< interrupts and soft interrupts, of the window; NAN: not known */
};

/** A process with the sums over its threads. */
struct process_fact {
	uint32_t node;
	uint32_t container; /**< node, NODE_NONE */
	uint32_t parent;    /**< index of its fact, NODE_NONE */
	uint32_t first, n;  /**< its threads: of facts.by_process */
	uint64_t run_ns, runq_ns;
	double busy_threads; /**< threads that ran or wanted to run on average: (run + runq) /
				window */
	const char *allowed; /**< CPUs that its first thread may use, as ranges; NULL: not known */
	struct idrange mask; /**< the same; empty: not known */
	uint32_t mask_n;
	bool kernel;
	bool claimed; /**< a rule has told why it has too little CPU: the more general ones pass
			 over it */
};

struct facts {
	const struct study *s;
	struct graph *g;
	const struct hot *hot;
	const struct limits *l;
	struct limits own_limits;  /**< defaults, where the study has none */
	uint64_t window_ns;        /**< 0: not known */
	uint32_t n_cpus;           /**< online; 0: not known */
	uint32_t host;             /**< node, NODE_NONE */
	VEC(struct cpu_fact) cpus; /**< by number */
	VEC(struct process_fact) processes;
	uint32_t *process_of; /**< [g->nodes.n] index in processes of a process node, NODE_NONE */
	uint64_t run_ns, runq_ns; /**< of all threads with a process */
	VEC(uint32_t) by_process; /**< indexes in hot->threads, process by process */
};

void facts_init(struct facts *x, const struct study *s);
void facts_done(struct facts *x);

/** Fact of the process that a thread belongs to, or that is the node itself; NULL: none. */
const struct process_fact *fact_process(const struct facts *x, uint32_t node);
const struct cpu_fact *fact_cpu(const struct facts *x, uint32_t id);
/** The @p i th thread of a process. */
const struct hot_thread *fact_thread(const struct facts *x, const struct process_fact *p,
				     uint32_t i);
/** CPUs idle for at least @p pct of the window; -1: not known. @p ret may be NULL */
int facts_idle_cpus(const struct facts *x, double pct, struct idrange *ret);
/** Who had the CPU while a thread was runnable without one, as far as the recording tells. */
enum neighbour {
	NEIGHBOUR_OTHER,   /**< threads of a process that plays another part */
	NEIGHBOUR_EQUAL,   /**< threads of its own process or of equals of its job */
	NEIGHBOUR_UNKNOWN, /**< nobody that was recorded */
};

/** @param ret_other the other party's thread that ran longest; may be NULL */
enum neighbour fact_neighbour(const struct facts *x, const struct hot_thread *th,
			      const struct hot_rival **ret_other);

/** Nice value of a thread: above 0 it has less weight than usual; 0 where it is not known. */
int64_t fact_nice(const struct facts *x, uint32_t thread);
/** Whether it has less weight than usual, and than who came most often in its place, where that is known. */
bool fact_has_less_weight(const struct facts *x, const struct hot_thread *th);

/**
 * Whether a thread lacks CPUs as all others do that were recorded: then the host, or what the job may use of it,
 * has too few, and nobody is to blame for being late by that.
 *
 * @param thread NODE_NONE: no single one
 * @param rival one that does not count among the others; NODE_NONE: all do
 * @return time that the others wanted a CPU for each of time that they had one; 0: it does not
 */
double fact_shared_shortage(const struct facts *x, uint32_t thread, uint32_t rival);

/** Share of the window in percent; 0 when that is not known. */
double facts_pct(const struct facts *x, double ns);
/** Whether the observation lists this source as working ("probe block"), reduced or not. */
bool facts_has_source(const struct facts *x, const char *source);
/** Why a source is off or reduced; NULL: it is not, or it is not there. */
const char *facts_source_reason(const struct facts *x, const char *source);

/* Confidence that small messages hold somebody up: one way, and as requests with answers, which are small by nature. */
#define MESSAGES_PCT	      75
#define MESSAGES_ANSWERED_PCT 55

/** One rule being tried. */
struct rule_run {
	const struct rule *rule;
	struct findings *f;
	struct facts *x;
	const char *missing, *how; /**< of the last rule_unknown() */
	const char *clear;         /**< of the last rule_clear() */
};

/**
 * A new finding, to be filled by the functions below. The pointer is valid until the next one.
 * @param root NODE_NONE: not known
 */
struct finding *rule_fire(struct rule_run *r, enum severity severity, unsigned pct, uint32_t root);

/** It cannot be evaluated, at least not for a part of what it is about. Texts are kept as they are.
 */
void rule_unknown(struct rule_run *r, const char *missing, const char *how);

/** No RDMA port is known: clear on a host that was looked at, not evaluated on a file that does not tell. */
void rule_no_rdma_port(struct rule_run *r);

/** What was looked at, for the verdict "clear". */
__attribute__((format(printf, 2, 3))) void rule_clear(struct rule_run *r, const char *fmt, ...);

/** Whether the run-queue time of threads is known; if not, the rule is not evaluated for that. */
bool rule_has_run_queues(struct rule_run *r);

double rule_limit(const struct rule_run *r, enum limit l);

/**
 * Severity by the share of time lost: finding.critical, .warning, .notice.
 * @param share_pct of the time of those that lose it
 * @return SEVERITY_INFO: too little to be told
 */
enum severity rule_grade(const struct rule_run *r, double share_pct);

/** Severity by a value against rising limits. */
enum severity rule_grade_value(const struct rule_run *r, double v, enum limit notice,
			       enum limit warning, enum limit critical);

/* Formatted text in the arena of the findings. */
__attribute__((format(printf, 2, 3), nonnull(2))) const char *rule_text(struct rule_run *r, const char *fmt,
							    ...);
/** "python3[4711]", "worker[4712] of python3[4711]", name of a container, else the printed id. */
const char *rule_name(struct rule_run *r, uint32_t node);
/** Up to @p most names and how many more. */
const char *rule_names(struct rule_run *r, const uint32_t *nodes, size_t n, size_t most);
const char *rule_ns(struct rule_run *r, double ns);       /**< "12.3 ms" */
const char *rule_bytes(struct rule_run *r, double bytes); /**< "12.3 MiB" */
const char *rule_count(struct rule_run *r, double n);     /**< "12.3 k" */

void finding_subject(struct finding *fi, uint32_t node);
/** A value about @p node (NODE_NONE: as a whole). @p l LIMIT_COUNT: it has no limit */
void finding_value(struct rule_run *r, struct finding *fi, uint32_t node, const char *name,
		   double value, enum unit unit, enum limit l);
void finding_lost(struct finding *fi, double lost_ns, const char *basis);
void finding_advice(struct finding *fi, const char *text);
void finding_command(struct finding *fi, const char *text);

/* The parts of the table, a file each; each ends with a row without id. */
extern const struct rule rules_cpu[], rules_affinity[], rules_device[], rules_memory[],
    rules_counters[], rules_numa[], rules_network[], rules_rdma[], rules_storage[], rules_control[], rules_data[], rules_ranks[], rules_waits[];
