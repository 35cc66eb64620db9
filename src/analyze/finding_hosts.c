/* Findings of several hosts: each is looked at by itself, by its own CPUs, memory and window; then all of them together. */
#include "finding_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "rule_parts.h"

/* The hosts of a graph, each by its namespace. */
struct host_part {
	const char *ns;
	uint32_t node;
};

struct hosts_work {
	struct findings *f;
	const struct study *s;
	VEC(struct host_part) hosts;
};

static void find_hosts(struct hosts_work *w)
{
	vec_for(&w->s->g->nodes, n) {
		bool known = false;

		if ((*n)->type != &host_type)
			continue;
		vec_for(&w->hosts, h)
			known |= h->ns == (*n)->ns;
		if (!known)
			vec_push(&w->hosts, ((struct host_part){(*n)->ns, (*n)->index}));
	}
}

/* What belongs to one host. Its relations to others belong to all. */
static void extract(const struct graph *g, const struct host_part *h, struct graph *ret, uint32_t *back)
{
	bool *nodes = mem_alloc(g->nodes.n + 1), *edges = mem_alloc(g->edges.n + 1);
	uint32_t *to = mem_alloc((g->nodes.n + 1) * sizeof(*to)), *unused = mem_alloc((g->edges.n + 1) * sizeof(*unused));
	const struct node *host = g->nodes.v[h->node];
	size_t prefix = strlen(h->ns);

	for (size_t i = 0; i < g->nodes.n; i++)
		nodes[i] = g->nodes.v[i]->ns == h->ns;
	for (size_t i = 0; i < g->edges.n; i++)
		edges[i] = nodes[g->edges.v[i]->source] && nodes[g->edges.v[i]->target];
	graph_merge_some(ret, g, nodes, edges, to, unused);
	for (uint32_t i = 0; i < g->nodes.n; i++)
		if (to[i] != NODE_NONE)
			back[to[i]] = i;
	ret->meta = (struct snapshot_meta){.start_ns = g->meta.start_ns, .window_ns = g->meta.window_ns,
					   .complete = g->meta.complete, .intervals = g->meta.intervals};
	ret->meta.tool = g->meta.tool ? graph_str(ret, g->meta.tool) : NULL;
	if (HAS(host, host, window_ns))
		ret->meta.window_ns = GET(host, host, window_ns);
	/* "HOST: probe sched" */
	vec_for(&g->status, s)
		if (!strncmp(s->source, h->ns, prefix) && !strncmp(s->source + prefix, ": ", 2))
			graph_add_status(ret, graph_str(ret, s->source + prefix + 2), graph_str(ret, s->state),
					 s->rung ? graph_str(ret, s->rung) : NULL,
					 s->reason ? graph_str(ret, s->reason) : NULL);
	free(nodes);
	free(edges);
	free(to);
	free(unused);
}

static const char *keep(struct findings *f, const char *text)
{
	return text ? arena_strdup(&f->arena, text) : NULL;
}

static uint32_t moved(const uint32_t *back, uint32_t node)
{
	return node == NODE_NONE ? NODE_NONE : back[node];
}

/* A finding of one host, in numbers and texts of the whole. */
static void take_finding(struct hosts_work *w, const struct finding *from, const uint32_t *back)
{
	struct findings *f = w->f;
	struct finding *to = vec_add(&f->v);

	*to = *from;
	memset(&to->subjects, 0, sizeof(to->subjects));
	memset(&to->values, 0, sizeof(to->values));
	memset(&to->advice, 0, sizeof(to->advice));
	memset(&to->commands, 0, sizeof(to->commands));
	memset(&to->also, 0, sizeof(to->also));
	to->root = moved(back, from->root);
	to->lost_basis = keep(f, from->lost_basis);
	to->severity_basis = keep(f, from->severity_basis);
	to->title = keep(f, from->title);
	to->why = keep(f, from->why);
	to->expectation = keep(f, from->expectation);
	vec_for(&from->subjects, s)
		vec_push(&to->subjects, moved(back, *s));
	vec_for(&from->values, v) {
		struct finding_value *n = vec_add(&to->values);

		*n = *v;
		n->name = keep(f, v->name);
		n->node = moved(back, v->node);
	}
	vec_for(&from->advice, a)
		vec_push(&to->advice, keep(f, *a));
	vec_for(&from->commands, c)
		vec_push(&to->commands, keep(f, *c));
	vec_for(&from->also, p)
		vec_push(&to->also, ((struct finding_part){p->rule, keep(f, p->title), keep(f, p->why)}));
}

/* Fired on any host, else unknown on any, else clear. */
static void take_verdicts(struct hosts_work *w, const struct findings *of, const char *host)
{
	struct findings *f = w->f;

	for (size_t i = f->verdicts.n; i < of->verdicts.n; i++)
		vec_push(&f->verdicts, ((struct rule_verdict){.rule = of->verdicts.v[i].rule}));
	for (size_t i = 0; i < of->verdicts.n; i++) {
		const struct rule_verdict *from = &of->verdicts.v[i];
		struct rule_verdict *to = &f->verdicts.v[i];
		bool better = !to->evidence || (from->verdict == VERDICT_FIRED && to->verdict != VERDICT_FIRED) ||
			      (from->verdict == VERDICT_UNKNOWN && to->verdict == VERDICT_CLEAR);

		to->findings += from->findings;
		if (!better)
			continue;
		to->verdict = from->verdict;
		to->evidence = NULL;
		if (from->evidence) {
			size_t n = strlen(host) + strlen(from->evidence) + 3;
			char *text = arena_alloc(&f->arena, n);

			strcat(strcat(strcpy(text, host), ": "), from->evidence);
			to->evidence = text;
		}
		to->how = keep(f, from->how);
	}
}

static void look_at(struct hosts_work *w, const struct host_part *h)
{
	const struct graph *g = w->s->g;
	uint32_t *back = mem_alloc((g->nodes.n + 1) * sizeof(*back));
	struct analysis *k = mem_alloc(sizeof(*k));
	struct graph part;

	graph_init(&part);
	extract(g, h, &part, back);
	/* Analyses complete what they look at; they add relations, no entities. */
	analysis_init(k, &part, NULL, w->s->l);
	vec_for(&k->findings.v, fi)
		if (!rule_find(fi->rule)->across)
			take_finding(w, fi, back);
	take_verdicts(w, &k->findings, h->ns);
	analysis_done(k);
	graph_done(&part);
	free(k);
	free(back);
}

bool findings_of_hosts(struct findings *f, const struct study *s)
{
	struct hosts_work w = {.f = f, .s = s};
	bool several;

	find_hosts(&w);
	several = w.hosts.n > 1;
	if (several)
		vec_for(&w.hosts, h)
			look_at(&w, h);
	vec_done(&w.hosts);
	return several;
}
