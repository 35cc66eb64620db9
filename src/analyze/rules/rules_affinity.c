/* Compute: where threads may run: masks that are too narrow or overlap, neighbours, interrupts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rule_parts.h"

/* A thread or process that wants less of a CPU than this is not held up by its neighbours. */
#define WANTS_PCT 20

/* Share of the time in which a process had no CPU though it wanted one, of the threads that wanted.
 */
static double lost_share(const struct process_fact *p)
{
	uint64_t wanted = p->run_ns + p->runq_ns;

	return wanted ? (double)p->runq_ns * 100 / (double)wanted : 0;
}

static bool within(const struct idrange *inner, const struct idrange *outer)
{
	for (int64_t id = -1; (id = idrange_next(inner, id + 1)) >= 0;)
		if (!idrange_has(outer, (uint32_t)id))
			return false;
	return true;
}

/* Variables by which a library pins the thread that loads it. */
static const char *pinning_variable(const struct facts *x, const struct process_fact *p)
{
	static const char *const names[] = {"OMP_PROC_BIND",       "OMP_PLACES",
					    "GOMP_CPU_AFFINITY",   "KMP_AFFINITY",
					    "MV2_ENABLE_AFFINITY", "I_MPI_PIN"};
	const struct node *n = x->g->nodes.v[p->node];

	if (!HAS(process, n, environment))
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(GET(process, n, environment), names[i]))
			return names[i];
	return NULL;
}

/* How many of the process's threads have another mask than its first one. */
static uint32_t other_masks(const struct facts *x, const struct process_fact *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct hot_thread *th = fact_thread(x, p, i);

		n += th->cpus_allowed && p->allowed && strcmp(th->cpus_allowed, p->allowed);
	}
	return n;
}

static void add_waiting_threads(struct rule_run *r, struct finding *fi,
				const struct process_fact *p)
{
	const struct hot_thread *most = NULL;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct hot_thread *th = fact_thread(r->x, p, i);

		if (!most || th->runq_ns > most->runq_ns)
			most = th;
	}
	if (most)
		finding_subject(fi, most->node);
	for (uint32_t i = 0; i < p->n; i++)
		if (facts_pct(r->x, (double)fact_thread(r->x, p, i)->runq_ns) >= 5)
			finding_subject(fi, fact_thread(r->x, p, i)->node);
	finding_subject(fi, p->node);
}

static const char *mask_text(struct rule_run *r, const struct idrange *mask)
{
	struct strbuf b = {0};
	const char *ret;

	idrange_format(mask, &b);
	ret = arena_strdup(&r->f->arena, strbuf_str(&b));
	strbuf_done(&b);
	return ret;
}

/* --- a mask narrower than what the process needs, while other CPUs idle --- */

static bool narrowed_itself(const struct facts *x, const struct process_fact *p)
{
	const struct process_fact *up = p->parent == NODE_NONE ? NULL : &x->processes.v[p->parent];

	return pinning_variable(x, p) || other_masks(x, p) ||
	       (up && up->mask_n > p->mask_n && within(&p->mask, &up->mask));
}

static bool is_narrow(struct rule_run *r, const struct process_fact *p)
{
	struct idrange idle = {0};
	bool outside = false;

	if (p->kernel || !p->mask_n || p->mask_n >= r->x->n_cpus ||
	    p->busy_threads <= p->mask_n * rule_limit(r, LIMIT_affinity_demand) ||
	    rule_grade(r, lost_share(p)) == SEVERITY_INFO)
		return false;
	if (facts_idle_cpus(r->x, rule_limit(r, LIMIT_affinity_idle), &idle) > 0)
		for (int64_t id = -1; (id = idrange_next(&idle, id + 1)) >= 0;)
			outside |= !idrange_has(&p->mask, (uint32_t)id);
	idrange_done(&idle);
	return outside;
}

/* Another process that is confined to the same CPUs and wants them as well. */
static struct process_fact *rival_on_mask(const struct facts *x, const struct process_fact *p)
{
	struct process_fact *most = NULL;

	vec_for(&x->processes, o) {
		if (o == p || o->kernel || !o->mask_n || o->mask_n >= x->n_cpus ||
		    !within(&o->mask, &p->mask) ||
		    facts_pct(x, (double)(o->run_ns + o->runq_ns)) < WANTS_PCT)
			continue;
		if (!most || o->run_ns > most->run_ns)
			most = o;
	}
	return most;
}

static void narrow_fired(struct rule_run *r, struct process_fact *p, const char *cause)
{
	struct finding *fi = rule_fire(r, rule_grade(r, lost_share(p)), 85, p->node);
	const char *name = rule_name(r, p->node);

	p->claimed = true;
	add_waiting_threads(r, fi, p);
	finding_lost(fi, (double)p->runq_ns, "time that its threads were runnable without a CPU");
	finding_value(r, fi, p->node, "CPUs wanted on average for each that it may use",
		      p->busy_threads / p->mask_n, RATIO, LIMIT_affinity_demand);
	finding_value(r, fi, p->node, "share of the wanted CPU time that it did not get",
		      lost_share(p), PERCENT, LIMIT_COUNT);
	fi->title = rule_text(r, "%s wants %.1f CPUs and may use only CPU%s %s while others idle%s",
			      name, p->busy_threads, p->mask_n > 1 ? "s" : "", p->allowed, cause);
	fi->why = rule_text(r,
			    "Its threads ran %s and stood runnable for %s: %.0f %% of the CPU time "
			    "that they wanted. "
			    "%u of %u CPUs are in its mask.",
			    rule_ns(r, (double)p->run_ns), rule_ns(r, (double)p->runq_ns),
			    lost_share(p), p->mask_n, r->x->n_cpus);
	finding_advice(fi, "Widen the mask to as many CPUs as it has busy threads, on the node of "
			   "its memory and device.");
	finding_command(
	    fi, rule_text(r, "taskset -a -p -c 0-%u %llu", r->x->n_cpus - 1,
			  (unsigned long long)GET(process, r->x->g->nodes.v[p->node], pid)));
	fi->expectation = "Up to the time lost, as far as the idle CPUs stay idle.";
}

static void check_narrow(struct rule_run *r)
{
	size_t masks = 0;

	if (!rule_has_run_queues(r))
		return;
	vec_for(&r->x->processes, p) {
		masks += p->mask_n != 0;
		if (is_narrow(r, p) && !narrowed_itself(r->x, p) && !rival_on_mask(r->x, p))
			narrow_fired(r, p, "");
	}
	if (masks)
		rule_clear(r, "CPUs allowed to %zu process%s, of %u", masks, masks == 1 ? "" : "es",
			   r->x->n_cpus);
	else
		rule_unknown(r, "the CPUs that processes may use",
			     "record with this program as root");
}

static void check_changed(struct rule_run *r)
{
	size_t masks = 0;

	if (!rule_has_run_queues(r))
		return;
	vec_for(&r->x->processes, p) {
		const char *variable = pinning_variable(r->x, p);
		uint32_t others = other_masks(r->x, p);

		masks += p->mask_n != 0;
		if (!is_narrow(r, p) || !narrowed_itself(r->x, p) || rival_on_mask(r->x, p))
			continue;
		narrow_fired(
		    r, p,
		    variable
			? rule_text(r,
				    ": %s is set, by which a library pins the thread that loads it",
				    variable)
		    : others
			? rule_text(r, ": %u of its threads have another mask than its first one",
				    others)
			: ": its parent may use more, so it or a library narrowed the mask");
		vec_push(&r->f->v.v[r->f->v.n - 1].advice,
			 "Threads and processes that are started later inherit the mask: set it "
			 "back after the import "
			 "(os.sched_setaffinity(0, all)), or unset the variable "
			 "(OMP_PROC_BIND=false, KMP_AFFINITY=none).");
	}
	if (masks)
		rule_clear(r, "CPUs allowed to %zu process%s and to their parents and threads",
			   masks, masks == 1 ? "" : "es");
	else
		rule_unknown(r, "the CPUs that processes may use",
			     "record with this program as root");
}

/* --- two jobs on the same CPUs --- */

static void check_overlap(struct rule_run *r)
{
	size_t masks = 0;

	if (!rule_has_run_queues(r))
		return;
	vec_for(&r->x->processes, p) {
		struct process_fact *o;
		struct idrange idle = {0};
		struct finding *fi;
		bool outside = false;

		masks += p->mask_n != 0;
		if (p->kernel || !p->mask_n || p->mask_n >= r->x->n_cpus ||
		    rule_grade(r, lost_share(p)) == SEVERITY_INFO ||
		    facts_pct(r->x, (double)p->runq_ns) < 5)
			continue;
		o = rival_on_mask(r->x, p);
		/* Each pair is told once: by the one that lost more, the earlier one when they are
		 * equal. */
		if (!o || (rival_on_mask(r->x, o) == p &&
			   (o->runq_ns > p->runq_ns || (o->runq_ns == p->runq_ns && o < p))))
			continue;
		if (facts_idle_cpus(r->x, rule_limit(r, LIMIT_affinity_idle), &idle) > 0)
			for (int64_t id = -1; (id = idrange_next(&idle, id + 1)) >= 0;)
				outside |= !idrange_has(&p->mask, (uint32_t)id);
		if (outside) {
			fi = rule_fire(r, rule_grade(r, lost_share(p)), 90, o->node);
			p->claimed = o->claimed = true;
			add_waiting_threads(r, fi, p);
			finding_subject(fi, o->node);
			finding_lost(fi, (double)(p->runq_ns + o->runq_ns),
				     "time that threads of both were runnable without a CPU");
			finding_value(r, fi, p->node,
				      "share of the wanted CPU time that it did not get",
				      lost_share(p), PERCENT, LIMIT_COUNT);
			finding_value(r, fi, o->node,
				      "share of the wanted CPU time that it did not get",
				      lost_share(o), PERCENT, LIMIT_COUNT);
			fi->title = rule_text(
			    r, "%s and %s are confined to the same CPU%s %s while CPU%s %s idle%s",
			    rule_name(r, p->node), rule_name(r, o->node), p->mask_n > 1 ? "s" : "",
			    p->allowed, idrange_count(&idle) > 1 ? "s" : "", mask_text(r, &idle),
			    idrange_count(&idle) > 1 ? "" : "s");
			fi->why = rule_text(
			    r,
			    "%s may run on %s and %s on %s; they were runnable without a CPU for "
			    "%s and %s.",
			    rule_name(r, p->node), p->allowed, rule_name(r, o->node), o->allowed,
			    rule_ns(r, (double)p->runq_ns), rule_ns(r, (double)o->runq_ns));
			finding_advice(fi, "Give each job CPUs of its own.");
			finding_command(
			    fi, rule_text(r, "taskset -a -p -c %s %llu", mask_text(r, &idle),
					  (unsigned long long)GET(process,
								  r->x->g->nodes.v[o->node], pid)));
			fi->expectation = "Both get what they lost to each other.";
		}
		idrange_done(&idle);
	}
	if (masks)
		rule_clear(r, "CPUs allowed to %zu process%s", masks, masks == 1 ? "" : "es");
	else
		rule_unknown(r, "the CPUs that processes may use",
			     "record with this program as root");
}

/* --- interrupts --- */

static void check_irq(struct rule_run *r)
{
	size_t known = 0;

	vec_for(&r->x->cpus, c) {
		struct finding *fi = NULL;

		if (isnan(c->irq_pct))
			continue;
		known++;
		if (c->irq_pct <= rule_limit(r, LIMIT_irq_share) || !r->x->hot)
			continue;
		vec_for(&r->x->hot->threads, th) {
			const struct process_fact *p = fact_process(r->x, th->node);
			struct idrange mask = {0};
			struct err e;

			if (!th->cpus_allowed || th->cpus_allowed_n > 2 ||
			    th->cpus_allowed_n >= r->x->n_cpus ||
			    facts_pct(r->x, (double)(th->run_ns + th->runq_ns)) < WANTS_PCT ||
			    (p && p->kernel))
				continue;
			if (!idrange_parse(th->cpus_allowed, &mask, &e) &&
			    idrange_has(&mask, c->id)) {
				if (!fi) {
					fi = rule_fire(r, rule_grade(r, c->irq_pct), 85, c->node);
					finding_lost(fi, c->irq_pct / 100 * (double)r->x->window_ns,
						     "time that this CPU spent in interrupts");
					finding_value(r, fi, c->node, "time in interrupts",
						      c->irq_pct, PERCENT, LIMIT_irq_share);
					fi->title =
					    rule_text(r,
						      "CPU %u, to which %s is pinned, spends %.0f "
						      "%% in interrupts",
						      c->id, rule_name(r, th->node), c->irq_pct);
					fi->why = rule_text(r,
							    "It was in interrupts and soft "
							    "interrupts for %.1f %% of the window.",
							    c->irq_pct);
					finding_advice(fi, "Move the interrupts to other CPUs, or "
							   "pin the thread elsewhere.");
					finding_command(fi, "grep . /proc/irq/*/smp_affinity_list  "
							    " # who may interrupt where");
					fi->expectation =
					    "At most the share of the time that interrupts take.";
				}
				finding_subject(fi, th->node);
			}
			idrange_done(&mask);
		}
	}
	if (known)
		rule_clear(r, "interrupt time of %zu CPUs", known);
	else
		rule_unknown(r, "interrupt time of each CPU (cpu.irq_ns)",
			     "record with this program on a live host");
}

const struct rule rules_affinity[] = {
    {.id = "overlapping-pins",
     .layer = LAYER_COMPUTE,
     .title = "Two jobs are confined to the same CPUs while others idle",
     .fires =
	 "two processes want at least 20 % of a CPU each, the mask of one lies within that of the "
	 "other and neither "
	 "has all CPUs, one lost time to it, and a CPU outside idles for at least `affinity.idle`.",
     .graded = "share of time lost: run-queue time of the wanted CPU time.",
     .needs = "thread.runq_ns (probe sched), CPUs allowed, time on each CPU.",
     .advice = "give each job CPUs of its own (taskset, cpuset).",
     RULE_LIMITS(LIMIT_affinity_idle),
     .family = "cpu",
     .check = check_overlap},
    {.id = "affinity-changed",
     .layer = LAYER_COMPUTE,
     .title = "A library or the program itself narrowed the CPU mask",
     .fires = "as affinity-narrow, and the parent's mask is wider, threads of the process have "
	      "different masks, or a "
	      "variable is set by which a library pins threads (OMP_PROC_BIND, KMP_AFFINITY, …).",
     .graded = "share of time lost: run-queue time of the wanted CPU time.",
     .needs = "thread.runq_ns (probe sched), CPUs allowed, time on each CPU.",
     .advice = "set the mask back after the import, or unset the variable.",
     RULE_LIMITS(LIMIT_affinity_demand, LIMIT_affinity_idle),
     .family = "cpu",
     .check = check_changed},
    {.id = "affinity-narrow",
     .layer = LAYER_COMPUTE,
     .title = "A process may use fewer CPUs than it needs while others idle",
     .fires = "a process wants on average more than `affinity.demand` CPUs for each that it may "
	      "use, and a CPU outside its "
	      "mask idles for at least `affinity.idle`.",
     .graded = "share of time lost: run-queue time of the wanted CPU time.",
     .needs = "thread.runq_ns (probe sched), CPUs allowed, time on each CPU.",
     .advice = "widen the mask: taskset -a -p, cpuset, docker --cpuset-cpus.",
     RULE_LIMITS(LIMIT_affinity_demand, LIMIT_affinity_idle),
     .family = "cpu",
     .check = check_narrow},
    {.id = "irq-on-pinned-cpu",
     .layer = LAYER_COMPUTE,
     .title = "Interrupts take time on a CPU to which a thread is pinned",
     .fires = "a CPU spends more than `irq.share` in interrupts and a thread that wants at least "
	      "20 % may use one or two "
	      "CPUs only, this one among them.",
     .graded = "share of time lost: time in interrupts of the window.",
     .needs = "cpu.irq_ns and softirq_ns, CPUs allowed.",
     .advice = "move the interrupts (/proc/irq/N/smp_affinity_list) or the thread.",
     RULE_LIMITS(LIMIT_irq_share),
     .check = check_irq},
    {0}};
