/* Ranks that wait for each other: collectives, and stages of a pipeline. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rule_parts.h"

#define HOW_WAITS "record the whole job as root with probe 'sched': witty-profiler record"

/* How long the members of a group wait for other members. */
struct rank_waits {
	double sum_pct, least_pct;
	size_t n;	/* members of which it is known */
	uint32_t least; /* process of the one that waits least */
};

static bool is_member(const struct rule_run *r, const struct topo_group *gr, uint32_t thread)
{
	const struct process_fact *p = fact_process(r->x, thread);

	if (p)
		vec_for(&gr->members, m)
			if (r->x->s->t->actors.v[*m].node == p->node)
				return true;
	return false;
}

/* The thread by which a rank makes its steps: helpers of transports wait for each other by design. */
static const struct hot_thread *busiest(const struct rule_run *r, const struct process_fact *p)
{
	const struct hot_thread *ret = NULL;

	for (uint32_t i = 0; p && i < p->n; i++) {
		const struct hot_thread *th = fact_thread(r->x, p, i);

		if (!ret || th->run_ns > ret->run_ns)
			ret = th;
	}
	return ret;
}

/* Share of the window in which a thread, or one like it, waits for what other members do; negative: not known. */
static double waits_pct(const struct rule_run *r, const struct topo_group *gr, const struct hot_thread *th)
{
	const struct waitfor *w = r->x->s->w;
	const struct wait_chain *c = th ? waitfor_chain(w, th->node) : NULL;
	const struct wait_role *own = c ? &w->roles.v[c->role] : NULL;
	uint64_t ns = 0;

	if (!own)
		return th ? 0 : -1;
	vec_for(&c->parts, p) {
		uint32_t process = w->roles.v[p->role].process;

		if (!p->idle && (own->process == NODE_NONE || process != own->process) && is_member(r, gr, p->thread))
			ns += p->ns;
	}
	return facts_pct(r->x, (double)ns) / (double)own->threads.n;
}

static struct rank_waits waits_of(const struct rule_run *r, const struct topo_group *gr)
{
	struct rank_waits ret = {.least = NODE_NONE};

	vec_for(&gr->members, m) {
		const struct process_fact *p = fact_process(r->x, r->x->s->t->actors.v[*m].node);
		double pct = waits_pct(r, gr, busiest(r, p));

		if (pct < 0)
			continue;
		ret.sum_pct += pct;
		ret.n++;
		if (ret.least == NODE_NONE || pct < ret.least_pct) {
			ret.least = p->node;
			ret.least_pct = pct;
		}
	}
	return ret;
}

/* One that is late is another finding, and so is a host that is too small. */
static bool is_explained(const struct rule_run *r, const struct topo_group *gr)
{
	vec_for(&r->x->s->w->stragglers, s)
		if (s->uneven && s->ranks.n && is_member(r, gr, s->ranks.v[0]))
			return true;
	return fact_shared_shortage(r->x, NODE_NONE, NODE_NONE) > 0;
}

static bool is_pipeline(const struct topo_group *gr)
{
	return gr->patterns.n && gr->patterns.v[0].kind == PAR_PIPELINE;
}

static void ranks_fired(struct rule_run *r, const struct topo_group *gr, const struct rank_waits *v, enum severity s)
{
	bool pipeline = is_pipeline(gr);
	double mean = v->sum_pct / (double)v->n;
	struct finding *fi = rule_fire(r, s, pipeline ? 70 : 60, pipeline ? v->least : NODE_NONE);

	vec_for(&gr->members, m)
		finding_subject(fi, r->x->s->t->actors.v[*m].node);
	finding_lost(fi, v->sum_pct / 100 * (double)r->x->window_ns, "time that ranks were blocked until another rank went on");
	finding_value(r, fi, NODE_NONE, "share of the window that each waits for others, on average", mean, PERCENT,
		      pipeline ? LIMIT_pipeline_notice : LIMIT_network_wait);
	fi->title = rule_text(r, "%s wait for each other for %.0f %% of the window", gr->name, mean);
	fi->why = rule_text(r, "Of %zu, the busiest threads were blocked until another of them went on%s%s, for %.0f %% of the "
			       "window on average, %s for %.0f %%. No one of them is late more than the others.",
			    v->n, gr->patterns.n ? "; they run as " : "", gr->patterns.n ? gr->patterns.v[0].text : "", mean,
			    rule_name(r, v->least), v->least_pct);
	if (pipeline)
		finding_advice(fi, rule_text(r, "Give the stages equal work (layers by measured time, not by number; %s has most), "
						"and use more and smaller micro-batches.",
					     rule_name(r, v->least)));
	else
		finding_advice(fi, "Overlap communication with computing, exchange less often (gradient accumulation) or less "
				   "(compression), and let the library use the fastest way there is between these ranks.");
	finding_command(fi, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL COMMAND   # which algorithm, over what");
	fi->expectation = "At most the time that they wait; a part of it is the exchange itself.";
}

static void check_ranks(struct rule_run *r, bool pipeline)
{
	const struct topology *t = r->x->s->t;
	size_t looked = 0;

	if (!t || !r->x->s->w || !r->x->s->w->recorded || !r->x->window_ns || !r->x->hot)
		return rule_unknown(r, "what ranks wait for and who ends it", HOW_WAITS);
	vec_for(&t->groups, gr) {
		struct rank_waits v;
		double mean;
		enum severity s = SEVERITY_INFO;

		if (gr->members.n < 2 || !(gr->is_job || gr->has_devices) || is_pipeline(gr) != pipeline)
			continue;
		looked++;
		v = waits_of(r, gr);
		mean = v.n ? v.sum_pct / (double)v.n : 0;
		if (mean > rule_limit(r, pipeline ? LIMIT_pipeline_notice : LIMIT_network_wait))
			s = pipeline && mean > rule_limit(r, LIMIT_pipeline_warning) ? SEVERITY_WARNING : SEVERITY_NOTICE;
		if (s != SEVERITY_INFO && !is_explained(r, gr))
			ranks_fired(r, gr, &v, s);
	}
	rule_clear(r, "waits of %zu job%s %s", looked, looked == 1 ? "" : "s",
		   pipeline ? "in stages" : "of ranks that are no stages");
}

static void check_collective_wait(struct rule_run *r)
{
	check_ranks(r, false);
}

static void check_bubble(struct rule_run *r)
{
	check_ranks(r, true);
}

const struct rule rules_ranks[] = {
    {.id = "collective-wait",
     .layer = LAYER_NETWORK,
     .title = "Ranks spend much time waiting for each other",
     .fires = "the busiest threads of the ranks of a job are blocked until another rank goes on, for more than "
	      "`network.wait` of the window on average, none of them is late more than the others (straggler), and they do "
	      "not lack CPUs.",
     .graded = "always a notice: a part of it is the exchange itself, which somebody has to wait for.",
     .needs = "waits_for, wakes (probe sched); groups of ranks.",
     .advice = "overlap with computing, exchange less.",
     RULE_LIMITS(LIMIT_network_wait),
     .check = check_collective_wait},
    {.id = "pipeline-bubble",
     .layer = LAYER_DATA,
     .title = "Stages of a pipeline wait for each other",
     .fires = "as collective-wait, of ranks that are stages of a pipeline, for more than `pipeline.notice`.",
     .graded = "`pipeline.notice` a notice, `pipeline.warning` a warning.",
     .needs = "waits_for, wakes (probe sched); groups of ranks.",
     .advice = "equal stages, more micro-batches.",
     RULE_LIMITS(LIMIT_pipeline_notice, LIMIT_pipeline_warning),
     .family = "thread",
     .check = check_bubble},
    {0}};
