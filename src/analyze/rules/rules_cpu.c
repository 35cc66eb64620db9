/* Compute: quotas, too many threads for the CPUs, neighbours, threads that all others wait for. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "rule_parts.h"

/* Threads that want a CPU at least this much of the window count as busy. */
#define BUSY_PCT 50

/* The process that makes most of what a container computes, if there is one. */
static uint32_t main_process(const struct facts *x, uint32_t container)
{
	const struct process_fact *most = NULL;
	uint64_t all = 0;

	vec_for(&x->processes, p) {
		if (p->container != container)
			continue;
		all += p->run_ns + p->runq_ns;
		if (!most || p->run_ns + p->runq_ns > most->run_ns + most->runq_ns)
			most = p;
	}
	return most && (most->run_ns + most->runq_ns) * 10 > all * 8 ? most->node : NODE_NONE;
}

static void add_members(struct rule_run *r, struct finding *fi, uint32_t container)
{
	uint32_t best[3] = {NODE_NONE, NODE_NONE, NODE_NONE};
	uint64_t size[3] = {0};

	vec_for(&r->x->processes, p) {
		uint64_t v = p->run_ns + p->runq_ns;

		if (p->container != container)
			continue;
		for (int i = 0; i < 3; i++)
			if (v > size[i]) {
				for (int k = 2; k > i; k--) {
					size[k] = size[k - 1];
					best[k] = best[k - 1];
				}
				size[i] = v;
				best[i] = p->node;
				break;
			}
	}
	for (int i = 0; i < 3; i++)
		if (best[i] != NODE_NONE)
			finding_subject(fi, best[i]);
}

static void quota_fired(struct rule_run *r, const struct node *n, double share)
{
	uint32_t main = main_process(r->x, n->index);
	double cores =
	    HAS(container, n, cpu_limit_cores) ? GET(container, n, cpu_limit_cores) : NAN;
	const char *name = rule_name(r, n->index);
	struct finding *fi =
	    rule_fire(r, rule_grade(r, share), 95, main != NODE_NONE ? main : n->index);

	vec_for(&r->x->processes, p)
		p->claimed |= p->container == n->index;
	add_members(r, fi, n->index);
	finding_subject(fi, n->index);
	finding_lost(fi, (double)GET(container, n, throttled_ns),
		     "time that the quota held threads back, summed over CPUs by the kernel");
	finding_value(r, fi, n->index, "throttled share of the CPU time wanted", share, PERCENT,
		      LIMIT_quota_throttled);
	finding_value(r, fi, n->index, "throttled_ns", (double)GET(container, n, throttled_ns), NS,
		      LIMIT_COUNT);
	if (HAS(container, n, throttled_periods))
		finding_value(r, fi, n->index, "throttled_periods",
			      (double)GET(container, n, throttled_periods), COUNT, LIMIT_COUNT);
	fi->title = isnan(cores)
			? rule_text(r, "%s is held back by its CPU quota", name)
			: rule_text(r, "%s is held back by its quota of %.2g CPUs", name, cores);
	fi->why = rule_text(
	    r,
	    "The quota held its threads back for %s, against %s that they ran: %.0f %% of the CPU "
	    "time that they wanted%s%s.",
	    rule_ns(r, (double)GET(container, n, throttled_ns)),
	    rule_ns(r, (double)GET(container, n, cpu_ns)), share,
	    main != NODE_NONE ? "; most of it " : "", main != NODE_NONE ? rule_name(r, main) : "");
	finding_advice(
	    fi,
	    "Raise the quota, or give CPUs by a cpuset instead: a quota stops all threads at once, "
	    "also the one that the others wait for.");
	if (!isnan(cores))
		finding_advice(fi, rule_text(r,
					     "Run no more busy threads than the quota is worth: "
					     "OMP_NUM_THREADS=%.0f, torch.set_num_threads(%.0f).",
					     fmax(1, floor(cores)), fmax(1, floor(cores))));
	if (HAS(container, n, container_type) && !strcmp(GET(container, n, container_type), "systemd"))
		finding_command(fi, rule_text(r, "systemctl set-property %s CPUQuota=%.0f%%", name,
					      isnan(cores) ? 400 : ceil(cores * 2) * 100));
	else if (!HAS(container, n, container_type) || strcmp(GET(container, n, container_type), "cgroup"))
		finding_command(fi, rule_text(r, "docker update --cpus=%.0f %s",
					      isnan(cores) ? 4 : ceil(cores * 2), name));
	if (HAS(container, n, cgroup))
		finding_command(fi, rule_text(r, "echo max > /sys/fs/cgroup%s/cpu.max",
					      GET(container, n, cgroup)));
	fi->expectation = "What the quota withheld comes back, as far as the host has idle CPUs.";
}

static void check_quota(struct rule_run *r)
{
	size_t limited = 0;

	vec_for(&r->x->g->nodes, np) {
		const struct node *n = *np;
		double share, all;

		if (n->type != &container_type)
			continue;
		if (!HAS(container, n, throttled_ns) || !HAS(container, n, cpu_ns)) {
			if (HAS(container, n, cpu_limit_cores))
				rule_unknown(
				    r,
				    "time that quotas held threads back (container.throttled_ns)",
				    "record as root, with the cgroup file system mounted");
			continue;
		}
		limited += HAS(container, n, cpu_limit_cores);
		all = (double)(GET(container, n, throttled_ns) + GET(container, n, cpu_ns));
		share = all > 0 ? (double)GET(container, n, throttled_ns) * 100 / all : 0;
		if (share > rule_limit(r, LIMIT_quota_throttled) &&
		    rule_grade(r, share) > SEVERITY_INFO)
			quota_fired(r, n, share);
	}
	if (limited)
		rule_clear(r, "%zu control group%s with a CPU quota", limited,
			   limited == 1 ? "" : "s");
	else if (!r->missing && r->x->window_ns)
		rule_clear(r, "no container has a CPU quota");
	else if (!r->missing)
		rule_unknown(r, "the time that quotas withheld",
			     "record with this program: witty-profiler record");
}

/* CPUs that a process may use at once: its mask, and the quota of its container. */
static double cpus_of(const struct facts *x, const struct process_fact *p)
{
	double n = p->mask_n ? p->mask_n : x->n_cpus;

	if (p->container != NODE_NONE) {
		const struct node *c = x->g->nodes.v[p->container];

		if (HAS(container, c, cpu_limit_cores) && GET(container, c, cpu_limit_cores) > 0)
			n = fmin(n, GET(container, c, cpu_limit_cores));
	}
	return n;
}

/* Threads of a process that want a CPU most of the time, those that wait longest for one first. */
struct wanting {
	VEC(const struct hot_thread *) v;
	double runq_ns;
};

static int compare_runq(const void *a, const void *b)
{
	const struct hot_thread *x = *(const struct hot_thread *const *)a,
				*y = *(const struct hot_thread *const *)b;

	if (x->runq_ns != y->runq_ns)
		return x->runq_ns > y->runq_ns ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

/* With a CPU of its own it would be on it for most of the time: who rests between may only be late for others' sake. */
static bool is_busy(const struct facts *x, const struct hot_thread *th)
{
	return facts_pct(x, (double)(th->run_ns + th->runq_ns)) >= BUSY_PCT &&
	       (double)th->run_ns * 100 >= (double)(th->run_ns + th->blocked_ns) * BUSY_PCT;
}

static void find_wanting(const struct facts *x, const struct process_fact *p, struct wanting *ret)
{
	*ret = (struct wanting){0};
	for (uint32_t i = 0; i < p->n; i++) {
		const struct hot_thread *th = fact_thread(x, p, i);

		if (!is_busy(x, th))
			continue;
		vec_push(&ret->v, th);
		ret->runq_ns += (double)th->runq_ns;
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare_runq);
}

static void too_many_fired(struct rule_run *r, struct process_fact *p, const struct wanting *w,
			   double cpus)
{
	double share = facts_pct(r->x, w->runq_ns) / (double)w->v.n;
	const char *name = rule_name(r, p->node);
	struct finding *fi = rule_fire(r, rule_grade(r, share), 90, p->node);

	p->claimed = true;
	vec_for(&w->v, th)
		finding_subject(fi, (*th)->node);
	finding_lost(fi, w->runq_ns, "time that its busy threads were runnable without a CPU");
	finding_value(r, fi, p->node, "busy threads for each CPU that it may use",
		      (double)w->v.n / cpus, RATIO, LIMIT_threads_per_cpu);
	finding_value(r, fi, p->node, "share of their time without a CPU", share, PERCENT,
		      LIMIT_COUNT);
	fi->title = rule_text(r, "%s runs %zu busy threads on %.2g CPU%s", name, w->v.n, cpus,
			      cpus > 1 ? "s" : "");
	fi->why = rule_text(
	    r,
	    "%zu of its threads want a CPU most of the time; it may use %.2g (%s), so each stood "
	    "runnable without one for %.0f %% of the window.",
	    w->v.n, cpus, p->allowed ? p->allowed : "all of the host", share);
	finding_advice(
	    fi,
	    rule_text(r,
		      "Run as many busy threads as there are CPUs: OMP_NUM_THREADS=%.0f "
		      "(MKL_NUM_THREADS, "
		      "OPENBLAS_NUM_THREADS), torch.set_num_threads(%.0f), fewer loader workers.",
		      fmax(1, floor(cpus)), fmax(1, floor(cpus))));
	if (p->mask_n && p->mask_n < r->x->n_cpus && (double)p->mask_n <= cpus) {
		finding_advice(fi, rule_text(r, "Or widen its mask: it may use only CPU%s %s of %u; the others were in use.",
					     p->mask_n > 1 ? "s" : "", p->allowed, r->x->n_cpus));
		finding_command(fi, rule_text(r, "taskset -a -p -c 0-%u %llu", r->x->n_cpus - 1,
					      (unsigned long long)GET(process, r->x->g->nodes.v[p->node], pid)));
	}
	finding_advice(fi, "Let waiting threads sleep rather than spin: OMP_WAIT_POLICY=passive, "
			   "GOMP_SPINCOUNT=0, "
			   "KMP_BLOCKTIME=0.");
	finding_command(fi, rule_text(r, "OMP_NUM_THREADS=%.0f OMP_WAIT_POLICY=passive COMMAND",
				      fmax(1, floor(cpus))));
	fi->expectation = "Fewer threads do the same work with fewer switches; where threads only "
			  "spin, much is gained, "
			  "where all of them compute, the CPUs remain the limit.";
}

static void check_too_many_threads(struct rule_run *r)
{
	size_t looked = 0;

	if (!rule_has_run_queues(r))
		return;
	vec_for(&r->x->processes, p) {
		double cpus = cpus_of(r->x, p);
		struct wanting w;

		if (p->kernel || p->claimed || p->busy_threads <= cpus || cpus <= 0)
			continue;
		find_wanting(r->x, p, &w);
		looked++;
		if ((double)w.v.n > cpus * rule_limit(r, LIMIT_threads_per_cpu) &&
		    rule_grade(r, facts_pct(r->x, w.runq_ns) / (double)w.v.n) > SEVERITY_INFO)
			too_many_fired(r, p, &w, cpus);
		vec_done(&w.v);
	}
	if (!r->x->n_cpus)
		rule_unknown(r, "the number of CPUs", "record with this program");
	else
		rule_clear(r, "%zu process%s that want more CPUs than they may use", looked,
			   looked == 1 ? "" : "es");
}

/* What has no CPU in one process, and who has it instead. */
struct starved {
	const struct hot_thread *worst;
	const struct hot_rival *rival; /* of a process that plays another part */
	enum neighbour neighbour;
	double lost, ran;
	size_t n;
	/* By others, for its threads while these had no CPU; at least one of them, for so long. */
	uint64_t caused_ns, wall_ns;
	uint32_t waiters;
	bool shared; /* the others that were recorded lack CPUs likewise */
};

static bool lacks_cpu(const struct rule_run *r, const struct hot_thread *th)
{
	return facts_pct(r->x, (double)th->runq_ns) >= rule_limit(r, LIMIT_hot_runq);
}

/* A step of a job takes as long as the one that all wait for: it is their time, too. */
static void find_caused(const struct rule_run *r, const struct process_fact *p, struct starved *s)
{
	if (!r->x->s->w)
		return;
	vec_for(&r->x->s->w->roots, root) {
		if (root->state != STATE_RUNQ || root->idle || fact_process(r->x, root->thread) != p)
			continue;
		s->caused_ns += root->waited_ns;
		if (root->wall_ns > s->wall_ns)
			s->wall_ns = root->wall_ns;
		if (root->waiters > s->waiters)
			s->waiters = root->waiters;
	}
}

static void find_starved(const struct rule_run *r, const struct process_fact *p, struct starved *s)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct hot_thread *th = fact_thread(r->x, p, i);

		if (!lacks_cpu(r, th))
			continue;
		s->n++;
		s->lost += (double)th->runq_ns;
		s->ran += (double)th->run_ns;
		if (!s->worst || th->runq_ns > s->worst->runq_ns)
			s->worst = th;
	}
	if (!s->worst)
		return;
	s->neighbour = fact_neighbour(r->x, s->worst, &s->rival);
	find_caused(r, p, s);
	/* Whoever has half of a CPU is no part of a crowd. */
	s->shared = s->neighbour == NEIGHBOUR_OTHER &&
		    facts_pct(r->x, (double)s->rival->run_ns) < BUSY_PCT &&
		    fact_shared_shortage(r->x, s->worst->node, s->rival->node) > 0;
}

/* One that has most of what it lacks is the cause; a crowd is not. */
static bool has_one_rival(const struct starved *s)
{
	return s->neighbour == NEIGHBOUR_OTHER && !s->shared && s->rival->run_ns * 2 >= s->worst->runq_ns &&
	       s->rival->run_ns * 2 >= s->worst->run_ns * 3;
}

/*
 * Who waits for equals of its own job shares CPUs with them as planned, and who has it from threads
 * that are not in the recording has an unknown neighbour: neither is told with the same weight.
 */
static enum severity starved_grade(struct rule_run *r, const struct starved *s)
{
	double share = facts_pct(r->x, s->lost) / (double)s->n;
	enum severity grade = rule_grade(r, share);

	/* Whoever gave it little weight asked for that, as long as nobody waits for it. */
	if (fact_has_less_weight(r->x, s->worst) && (double)s->caused_ns < s->lost)
		return grade > SEVERITY_NOTICE ? SEVERITY_NOTICE : grade;
	if (has_one_rival(s))
		return rule_grade(r, fmax(share, facts_pct(r->x, (double)s->wall_ns)));
	if (s->neighbour == NEIGHBOUR_EQUAL || s->shared)
		return grade > SEVERITY_NOTICE ? SEVERITY_NOTICE : grade;
	if (s->neighbour == NEIGHBOUR_UNKNOWN)
		return grade > SEVERITY_NOTICE ? grade - 1 : grade;
	return grade;
}

/* Whether threads of other processes wait for its threads: then it would be no gain that it is slowed down. */
static bool holds_up_others(struct rule_run *r, const struct process_fact *p)
{
	const struct waitfor *w = r->x->s->w;

	if (!w)
		return false;
	vec_for(&w->roots, root) {
		if (root->idle || fact_process(r->x, root->thread) != p ||
		    rule_grade(r, facts_pct(r->x, (double)root->waited_ns)) == SEVERITY_INFO)
			continue;
		vec_for(&root->roles, role)
			if (w->roles.v[*role].process != p->node)
				return true;
	}
	return false;
}

/* Whose CPUs or priority to change. @param one the process that has most of what is lacking; NULL: it is a crowd */
static void advise_on_rival(struct rule_run *r, struct finding *fi, const struct starved *s,
			    const struct process_fact *one)
{
	const struct process_fact *o = fact_process(r->x, s->rival->node);
	const char *starved = rule_name(r, s->worst->node), *rival = rule_name(r, s->rival->node);

	if (o && holds_up_others(r, o))
		finding_advice(fi, rule_text(r, "Let %s and %s run on different CPUs (taskset, a cpuset). Leave the "
					     "priority of %s as it is: others wait for it.",
					     starved, rival, rival));
	else if (!one)
		finding_advice(fi, rule_text(r, "Let %s run on CPUs that %s and the others there do not use: no single "
					     "one of them has most of what it lacks.",
					     starved, rival));
	else {
		finding_advice(fi, rule_text(r, "Let %s run on CPUs that %s does not use, or lower the priority of %s.",
					     starved, rival, rival));
		finding_command(fi, rule_text(r, "renice -n 10 -p %" PRIu64 "   # %s",
					      GET(process, r->x->g->nodes.v[one->node], pid), rule_name(r, one->node)));
	}
}

static void starved_fired(struct rule_run *r, const struct process_fact *p, const struct starved *s)
{
	bool known = s->neighbour == NEIGHBOUR_OTHER;
	double pct = facts_pct(r->x, (double)s->worst->runq_ns);
	const struct process_fact *o = known ? fact_process(r->x, s->rival->node) : NULL;
	bool one = o && has_one_rival(s), spreads = one && (double)s->caused_ns > s->lost;
	/* Nobody is known to have what it lacks, but others are late by it. */
	bool awaited = s->neighbour == NEIGHBOUR_UNKNOWN && (double)s->caused_ns > s->lost;
	struct finding *fi = rule_fire(r, starved_grade(r, s), known ? 85 : 60,
				       one ? o->node : awaited ? s->worst->node : NODE_NONE);

	finding_subject(fi, s->worst->node);
	for (uint32_t i = 0; i < p->n; i++)
		if (lacks_cpu(r, fact_thread(r->x, p, i)))
			finding_subject(fi, fact_thread(r->x, p, i)->node);
	if (known)
		finding_subject(fi, s->rival->node);
	if (spreads || awaited)
		finding_lost(fi, (double)s->caused_ns, "time that others waited for its threads while these had no CPU");
	else
		finding_lost(fi, s->lost, "time that its threads were runnable without a CPU");
	finding_value(r, fi, s->worst->node, "share of the window runnable without a CPU", pct,
		      PERCENT, LIMIT_hot_runq);
	fi->title = rule_text(r, "%s waits for a CPU for %.0f %% of the window%s%s",
			      rule_name(r, s->worst->node), pct, one ? ", which has gone to " : "",
			      one ? rule_name(r, s->rival->node) : "");
	fi->why = rule_text(
	    r, "%zu thread%s of %s had no CPU for %s though runnable, and ran for %s. ", s->n,
	    s->n == 1 ? "" : "s", rule_name(r, p->node), rule_ns(r, s->lost), rule_ns(r, s->ran));
	if (known) {
		fi->why =
		    rule_text(r, "%sOn its CPUs ran %s for %s.", fi->why,
			      rule_name(r, s->rival->node), rule_ns(r, (double)s->rival->run_ns));
		advise_on_rival(r, fi, s, one ? o : NULL);
	} else if (s->neighbour == NEIGHBOUR_EQUAL) {
		fi->why = rule_text(r, "%sOn its CPUs ran threads of the same job.", fi->why);
		finding_advice(fi, "Run fewer of them at once, or give the job more CPUs.");
	} else {
		fi->why = rule_text(
		    r, "%sWho ran instead is not in this recording, or had a higher priority.",
		    fi->why);
		if (s->worst->preempter != HOT_NONE)
			fi->why = rule_text(r, "%s Most often %s came in its place, %" PRIu64
					       " of %" PRIu64 " times that are known.",
					    fi->why, rule_name(r, s->worst->preempter),
					    s->worst->preempter_times, s->worst->preempted);
		finding_advice(fi, "Record the whole host, without -p, to see who takes its CPUs; "
				   "look at nice values and at what runs "
				   "beside this machine, if it is a virtual one.");
	}
	if (spreads || awaited)
		fi->why = rule_text(r, "%s Meanwhile %u threads waited for its threads, %s in all.", fi->why, s->waiters,
				    rule_ns(r, (double)s->caused_ns));
	if (fact_has_less_weight(r->x, s->worst)) {
		fi->why = rule_text(r, "%s Its nice value is %" PRId64 ": others come first.", fi->why,
				    fact_nice(r->x, s->worst->node));
		finding_advice(fi, "Start it without nice, or set its value back.");
		finding_command(fi, rule_text(r, "renice -n 0 -p %" PRIu64 "   # %s",
					      GET(thread, r->x->g->nodes.v[s->worst->node], tid),
					      rule_name(r, s->worst->node)));
	}
	fi->expectation = "At most the time lost; what the neighbour loses is not counted.";
}

static void check_cpu_wait(struct rule_run *r)
{
	size_t all = 0;

	if (!rule_has_run_queues(r))
		return;
	vec_for(&r->x->processes, p) {
		struct starved s = {0};

		if (p->kernel || p->claimed)
			continue;
		all++;
		find_starved(r, p, &s);
		if (s.n && starved_grade(r, &s) > SEVERITY_INFO)
			starved_fired(r, p, &s);
	}
	rule_clear(r, "run-queue time of the threads of %zu processes", all);
}

const struct rule rules_cpu[] = {
    {.id = "cpu-quota",
     .layer = LAYER_COMPUTE,
     .title = "A CPU quota holds threads back",
     .fires = "a control group was throttled for more than `quota.throttled` of the CPU time that "
	      "it wanted "
	      "(throttled / (throttled + used)).",
     .graded = "share of time lost: throttled of wanted CPU time.",
     .needs = "container.throttled_ns and cpu_ns, of the cgroup file system.",
     .advice =
	 "raise the quota or replace it by a cpuset; run no more busy threads than it is worth.",
     RULE_LIMITS(LIMIT_quota_throttled),
     .family = "cpu",
     .check = check_quota},
    {.id = "too-many-threads",
     .layer = LAYER_COMPUTE,
     .title = "More busy threads than CPUs",
     .fires = "a process has more than `threads.per-cpu` times as many threads that want a CPU at least half of the window, "
	      "and are blocked for no longer than they run, as CPUs that its mask and quota allow.",
     .graded = "share of time lost: run-queue time of those threads.",
     .needs = "thread.run_ns and runq_ns (probe sched); CPUs allowed.",
     .advice = "OMP_NUM_THREADS and its like; passive waiting.",
     RULE_LIMITS(LIMIT_threads_per_cpu),
     .family = "cpu",
     .check = check_too_many_threads},
    {.id = "cpu-wait",
     .layer = LAYER_COMPUTE,
     .title = "Threads wait for a free CPU",
     .fires =
	 "threads of a process were runnable without a CPU for more than `hot.runq` of the window.",
     .graded = "share of time lost: mean run-queue time of those threads, of the window, or, where one other "
	       "process has the CPU instead, the time in which anybody waited for them meanwhile, if that is more; at most a "
	       "notice where equals of the same job had the CPU, all others lack CPUs likewise, or it has less weight than "
	       "usual (nice) and nobody waits for it; one level less where it is not known who had it.",
     .needs = "thread.runq_ns (probe sched).",
     .advice = "CPUs that the neighbour does not use, or a lower priority for it, unless others wait for it.",
     RULE_LIMITS(LIMIT_hot_runq),
     .family = "cpu",
     .check = check_cpu_wait},
    {0}};
