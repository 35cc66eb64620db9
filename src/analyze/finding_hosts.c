/* Findings of several hosts: each is looked at by itself, by its own CPUs, memory and window; then all of them together. */
#include "finding_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "hash.h"
#include "idmap.h"
#include "rule_parts.h"

/* The hosts of a graph, each by its namespace. */
struct host_part {
	const char *ns; /* of the whole graph */
	uint64_t window_ns;  /* 0: not told */
	size_t first_status; /* of its own, which stand together */
};

struct hosts_work {
	struct findings *f;
	const struct study *s;
	VEC(struct host_part) hosts;
	struct idmap by_ns;
};

/* Texts of one graph are equal when their addresses are. @return number of the host, IDMAP_NONE */
static uint32_t number_of(const struct idmap *by_ns, const char *ns)
{
	return idmap_get(by_ns, (uint64_t)(uintptr_t)ns, 0);
}

static void find_hosts(struct hosts_work *w)
{
	vec_for(&w->s->g->nodes, n) {
		if ((*n)->type != &host_type || number_of(&w->by_ns, (*n)->ns) != IDMAP_NONE)
			continue;
		idmap_put(&w->by_ns, (uint64_t)(uintptr_t)(*n)->ns, 0, (uint32_t)w->hosts.n);
		vec_push(&w->hosts, ((struct host_part){(*n)->ns, HAS(host, *n, window_ns) ? GET(host, *n, window_ns) : 0,
							SIZE_MAX}));
	}
}

/* Where the states of each host's sources begin. */
static void find_status(struct hosts_work *w)
{
	const struct graph *g = w->s->g;
	struct idmap by_name = {0};

	vec_for(&w->hosts, h)
		idmap_put(&by_name, hash_bytes(h->ns, strlen(h->ns), 1), 0, (uint32_t)(h - w->hosts.v));
	for (size_t i = 0; i < g->status.n; i++) {
		const char *source = g->status.v[i].source, *end = strstr(source, ": ");
		uint32_t at = end ? idmap_get(&by_name, hash_bytes(source, (size_t)(end - source), 1), 0) : IDMAP_NONE;

		if (at != IDMAP_NONE && w->hosts.v[at].first_status == SIZE_MAX)
			w->hosts.v[at].first_status = i;
	}
	vec_for(&w->hosts, h)
		if (h->first_status == SIZE_MAX)
			h->first_status = g->status.n;
	idmap_done(&by_name);
}

/* What the observation of this host was, out of that of all: "HOST: probe sched". */
static void tell_about(const struct graph *g, const struct host_part *h, struct graph *ret)
{
	size_t prefix = strlen(h->ns);

	ret->meta = (struct snapshot_meta){.start_ns = g->meta.start_ns, .window_ns = h->window_ns ?: g->meta.window_ns,
					   .complete = g->meta.complete, .intervals = g->meta.intervals};
	ret->meta.tool = g->meta.tool ? graph_str(ret, g->meta.tool) : NULL;
	for (const struct status *s = g->status.v + h->first_status; s && s < g->status.v + g->status.n; s++) {
		if (strncmp(s->source, h->ns, prefix) || strncmp(s->source + prefix, ": ", 2))
			break;
		graph_add_status(ret, graph_str(ret, s->source + prefix + 2), graph_str(ret, s->state),
				 s->rung ? graph_str(ret, s->rung) : NULL, s->reason ? graph_str(ret, s->reason) : NULL);
	}
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

static void look_at(struct hosts_work *w, struct graph *g, const struct host_part *h, const uint32_t *back)
{
	struct analysis *k = mem_alloc(sizeof(*k));

	tell_about(w->s->g, h, g);
	/* Analyses complete what they look at; they add relations, no entities. */
	analysis_init(k, g, NULL, w->s->l);
	vec_for(&k->findings.v, fi)
		if (!rule_find(fi->rule)->across)
			take_finding(w, fi, back);
	take_verdicts(w, &k->findings, h->ns);
	analysis_done(k);
	free(k);
}

/* What belongs to one host, in numbers of the whole graph. */
struct share {
	struct number_list nodes, edges;
};

/* Relations to other hosts belong to all of them together. */
static struct share *make_shares(const struct hosts_work *w)
{
	const struct graph *g = w->s->g;
	struct share *ret = mem_alloc(w->hosts.n * sizeof(*ret));
	uint32_t *hosts = mem_alloc((g->nodes.n + 1) * sizeof(*hosts));

	for (uint32_t i = 0; i < g->nodes.n; i++) {
		hosts[i] = number_of(&w->by_ns, g->nodes.v[i]->ns);
		if (hosts[i] != IDMAP_NONE)
			vec_push(&ret[hosts[i]].nodes.v, i);
	}
	for (uint32_t i = 0; i < g->edges.n; i++) {
		uint32_t host = hosts[g->edges.v[i]->source];

		if (host != IDMAP_NONE && host == hosts[g->edges.v[i]->target])
			vec_push(&ret[host].edges.v, i);
	}
	free(hosts);
	return ret;
}

/* The graph is gone through once, and each host's part of it once more, however many there are. */
static void look_at_hosts(struct hosts_work *w)
{
	const struct graph *g = w->s->g;
	struct share *shares = make_shares(w);
	uint32_t *map = mem_alloc((g->nodes.n + 1) * sizeof(*map));

	for (size_t i = 0; i < g->nodes.n; i++)
		map[i] = NODE_NONE;
	for (size_t i = 0; i < w->hosts.n; i++) {
		struct number_list back = {0};
		struct graph part;

		graph_init(&part);
		graph_merge_listed(&part, g, &shares[i].nodes, &shares[i].edges, map, &back);
		vec_for(&back.v, n)
			map[*n] = NODE_NONE;
		look_at(w, &part, &w->hosts.v[i], back.v.v);
		graph_done(&part);
		vec_done(&back.v);
		vec_done(&shares[i].nodes.v);
		vec_done(&shares[i].edges.v);
	}
	free(map);
	free(shares);
}

bool findings_of_hosts(struct findings *f, const struct study *s)
{
	struct hosts_work w = {.f = f, .s = s};
	uint32_t n;

	find_hosts(&w);
	n = (uint32_t)w.hosts.n;
	if (n > 1) {
		find_status(&w);
		look_at_hosts(&w);
	}
	vec_done(&w.hosts);
	idmap_done(&w.by_ns);
	return n > 1;
}
