/* Control plane: threads that others wait for, uneven work, jobs that are not as declared. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

#define HOW_WAITS "record as root with probe 'sched': witty-profiler record"

static const struct finding *told_by(const struct rule_run *r, uint32_t thread)
{
	return findings_about(r->f, thread);
}

/* --- busy threads that nobody waits for --- */

static void check_busy(struct rule_run *r)
{
	size_t known = 0;

	if (r->x->hot)
		vec_for(&r->x->hot->threads, th) {
			const struct process_fact *p = fact_process(r->x, th->node);
			double cpu = facts_pct(r->x, (double)th->run_ns);
			struct finding *fi;

			if (!hot_has(th->cpu_pct))
				continue;
			known++;
			if (cpu <= rule_limit(r, LIMIT_busy_cpu) || (p && p->kernel) ||
			    told_by(r, th->node))
				continue;
			fi = rule_fire(r, SEVERITY_NOTICE, 70, th->node);
			finding_subject(fi, th->node);
			finding_value(r, fi, th->node, "time on a CPU", cpu, PERCENT,
				      LIMIT_busy_cpu);
			if (hot_has(th->user_pct))
				finding_value(r, fi, th->node, "user mode, of it", th->user_pct,
					      PERCENT, LIMIT_COUNT);
			fi->title = rule_text(r, "%s computes for %.0f %% of the window",
					      rule_name(r, th->node), cpu);
			fi->why = rule_text(r,
					    "Nobody was seen to wait for it%s%s: it is bound by "
					    "its own work, or it polls, which looks the same.",
					    th->class_why ? "; " : "",
					    th->class_why ? thread_class_name(th->class) : "");
			finding_advice(
			    fi, "If its work is what the host is there for: split it over threads, "
				"or make it faster (a profile "
				"of its functions says where). If it polls by design, leave it.");
			finding_command(fi,
					rule_text(r, "perf top -t %" PRIu64,
						  GET(thread, r->x->g->nodes.v[th->node], tid)));
			fi->expectation =
			    "Nothing else gets faster by it, as far as the waits tell.";
		}
	if (known)
		rule_clear(r, "CPU time of %zu threads", known);
	else
		rule_unknown(r, "CPU time of threads over the window", HOW_WAITS);
}

/* --- more than the host has --- */

/* It has too little CPU, and no single other one has it instead. */
static bool is_of_a_crowd(const struct finding *fi)
{
	return !strcmp(fi->rule, "cpu-wait") && fi->root == NODE_NONE;
}

/* A finding with another reason than that there are too few CPUs for all: about it, its process or
 * its group. */
static bool is_explained(const struct rule_run *r, uint32_t thread)
{
	const struct process_fact *p = fact_process(r->x, thread);

	vec_for(&r->f->v, fi) {
		if (fi->severity < SEVERITY_WARNING || is_of_a_crowd(fi))
			continue;
		if (fi->root == thread ||
		    (p &&
		     (fi->root == p->node || (fi->root != NODE_NONE && fi->root == p->container))))
			return true;
		vec_for(&fi->subjects, s)
			if (*s == thread || (p && *s == p->node))
				return true;
	}
	return false;
}

static void check_demand(struct rule_run *r)
{
	double demand, runq = 0, run = 0, told = 0;
	enum severity grade;
	struct finding *fi;

	if (!rule_has_run_queues(r))
		return;
	demand = r->x->hot->demand_pct;
	if (!hot_has(demand))
		return rule_unknown(r, "the number of CPUs", "record with this program");
	rule_clear(r, "%.0f %% of all CPUs wanted", demand);
	vec_for(&r->x->hot->threads, th) {
		runq += (double)th->runq_ns;
		run += (double)th->run_ns;
	}
	vec_for(&r->x->hot->threads, th)
		told += is_explained(r, th->node) ? (double)th->runq_ns : 0;
	/* What is short of CPU for a reason of its own has a finding already. */
	if (demand <= rule_limit(r, LIMIT_cpu_demand) || told * 2 > runq ||
	    rule_grade(r, runq * 100 / (run + runq)) == SEVERITY_INFO)
		return;
	/* The host does as much as it can: what is late for it may be planned so. */
	grade = rule_grade(r, runq * 100 / (run + runq));
	fi = rule_fire(r, grade > SEVERITY_WARNING ? SEVERITY_WARNING : grade, 80, r->x->host);
	for (size_t i = 0; i < r->x->hot->threads.n && fi->subjects.n < 5; i++)
		if (facts_pct(r->x, (double)r->x->hot->threads.v[i].runq_ns) > 5)
			finding_subject(fi, r->x->hot->threads.v[i].node);
	finding_lost(fi, runq, "run-queue time of all threads");
	finding_value(r, fi, r->x->host, "CPU time wanted, of all CPUs", demand, PERCENT,
		      LIMIT_cpu_demand);
	fi->title =
	    rule_text(r, "The host's threads want %.0f %% of its %u CPUs", demand, r->x->n_cpus);
	fi->why = rule_text(r, "They ran for %s and stood runnable for %s.", rule_ns(r, run),
			    rule_ns(r, runq));
	finding_advice(fi, "Run less at once, or on more CPUs; keep latency-critical processes on "
			   "CPUs of their own.");
	fi->expectation = "Work done stays the same; what is left gets its CPU sooner.";
}

/* --- what the topology found --- */

static void from_topology(struct rule_run *r, const char *missing, bool known)
{
	const struct topology *t = r->x->s->t;

	if (!t || !known)
		return rule_unknown(r, missing, "record the whole job with this program");
	vec_for(&t->problems, p) {
		struct finding *fi;

		if (strcmp(p->id, r->rule->id) || p->severity == SEVERITY_INFO)
			continue;
		fi = rule_fire(r, p->severity, p->pct,
			       p->actors.n == 1 ? t->actors.v[p->actors.v[0]].node : NODE_NONE);
		vec_for(&p->actors, a)
			finding_subject(fi, t->actors.v[*a].node);
		fi->title =
		    p->actors.n == 1
			? rule_text(r, "%s: %s", t->actors.v[p->actors.v[0]].label, r->rule->title)
			: r->rule->title;
		fi->why = p->text;
		if (p->advice)
			finding_advice(fi, p->advice);
	}
	rule_clear(r, "%zu group%s of ranks", t->groups.n, t->groups.n == 1 ? "" : "s");
}

static void check_uneven(struct rule_run *r)
{
	bool known = false;

	vec_for(&r->x->g->nodes, n)
		known |= (*n)->type == &process_type && HAS(process, *n, cpu_ns);
	from_topology(r, "CPU time of processes over the window", known && r->x->window_ns);
}

static void check_declared(struct rule_run *r)
{
	from_topology(r, "processes and their command lines", r->x->processes.n != 0);
}

const struct rule rules_control[] = {
    {.id = "cpu-oversubscribed",
     .layer = LAYER_COMPUTE,
     .title = "The host's threads want more CPUs than it has",
     .fires = "running and runnable time of all threads is more than `cpu.demand` of all CPUs.",
     .graded = "share of time lost: run-queue time of the wanted CPU time; at most a warning, for "
	       "the host does as much as it can.",
     .needs = "thread.run_ns and runq_ns (probe sched), number of CPUs.",
     .advice = "run less at once, or on more CPUs.",
     RULE_LIMITS(LIMIT_cpu_demand),
     .check = check_demand},
    {.id = "uneven-work",
     .across = true,
     .layer = LAYER_CONTROL,
     .title = "One rank does more work than the others",
     .fires = "the busiest member of a group has at least 1.5 times the mean CPU time of all, and "
	      "it is no server or master.",
     .graded = "always a notice: whether the others wait for it, stragglers and waits tell.",
     .needs = "process.cpu_ns over the window.",
     .advice = "split the work evenly.",
     .family = "thread",
     .check = check_uneven},
    {.id = "not-as-declared",
     .across = true,
     .layer = LAYER_CONTROL,
     .title = "A parallel job does not run as it was declared",
     .fires = "command line or environment declare another number of ranks, or another pattern, "
	      "than is seen.",
     .graded = "always a warning.",
     .needs = "command lines, environments, flows.",
     .advice = "compare the launch command with what runs.",
     .check = check_declared},
    {.id = "busy-thread",
     .layer = LAYER_COMPUTE,
     .title = "A thread computes all the time, and nobody waits for it",
     .fires = "a thread is on a CPU for more than `busy.cpu` of the window, and no other finding "
	      "is about it.",
     .graded = "always a notice: a poller by design looks the same.",
     .needs = "thread.run_ns over the window.",
     .advice = "split its work, or leave it if it polls.",
     RULE_LIMITS(LIMIT_busy_cpu),
     .family = "thread",
     .check = check_busy},
    {0}};
