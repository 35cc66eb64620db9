/* Findings of several hosts: each is looked at by itself, by its own CPUs, memory and window; then all of them together. */
#include "finding_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "hash.h"
#include "idmap.h"
#include "mem.h"
#include "parallel.h"
#include "rule_parts.h"

/* What was found on a host, in numbers of its own part of the graph. */
struct known_host {
	char *name;
	uint64_t digest; /* of that part; valid if it has findings */
	bool known, there;
	struct findings found;
};

struct hosts_memory {
	VEC(struct known_host *) v; /* in no order */
	struct idmap by_name;	    /* hashes of the name */
	struct hosts_memory_counts counts;
};

/* The hosts of a graph, each by its namespace. */
struct host_part {
	const char *ns; /* of the whole graph */
	uint64_t window_ns;  /* 0: not told */
	size_t first_status; /* of its own, which stand together */
	struct number_list nodes, edges; /* of the whole graph, that belong to it */
	struct number_list back; /* numbers of the whole, by those of its part */
	struct known_host *known;
	bool looked;
};

struct host_looks {
	const struct graph *g;
	const struct limits *l;
	VEC(struct host_part) hosts;
	struct idmap by_ns;
	struct hosts_memory *memory;
	bool own_memory;
	uint32_t *maps[PARALLEL_MOST]; /* by thread, [g->nodes.n] all NODE_NONE; NULL: not needed yet */
};

static void findings_empty(struct findings *f)
{
	findings_done(f);
	memset(f, 0, sizeof(*f));
	arena_init(&f->arena);
}

struct hosts_memory *hosts_memory_new(void)
{
	return mem_alloc(sizeof(struct hosts_memory));
}

static void known_free(struct known_host *h)
{
	findings_done(&h->found);
	free(h->name);
	free(h);
}

void hosts_memory_free(struct hosts_memory *m)
{
	if (!m)
		return;
	vec_for(&m->v, h)
		known_free(*h);
	vec_done(&m->v);
	idmap_done(&m->by_name);
	free(m);
}

void hosts_memory_get(const struct hosts_memory *m, struct hosts_memory_counts *ret)
{
	*ret = m->counts;
}

/* It is remembered by its name, which is checked: two hashes may be the same. */
static struct known_host *known_of(struct hosts_memory *m, const char *name)
{
	uint64_t a = hash_bytes(name, strlen(name), 1), b = hash_bytes(name, strlen(name), 2);
	uint32_t i = idmap_get(&m->by_name, a, b);
	struct known_host *h;

	if (i != IDMAP_NONE && !strcmp(m->v.v[i]->name, name))
		return m->v.v[i];
	h = mem_alloc(sizeof(*h));
	h->name = mem_strdup(name);
	arena_init(&h->found.arena);
	idmap_put(&m->by_name, a, b, (uint32_t)m->v.n);
	vec_push(&m->v, h);
	return h;
}

/* Hosts that the last graph did not have. */
static void forget_absent(struct hosts_memory *m)
{
	size_t kept = 0;

	idmap_clear(&m->by_name);
	vec_for(&m->v, h) {
		const char *name = (*h)->name;

		if (!(*h)->there) {
			known_free(*h);
			continue;
		}
		idmap_put(&m->by_name, hash_bytes(name, strlen(name), 1), hash_bytes(name, strlen(name), 2), (uint32_t)kept);
		m->v.v[kept++] = *h;
	}
	m->v.n = kept;
}

/* Texts of one graph are equal when their addresses are. @return number of the host, IDMAP_NONE */
static uint32_t number_of(const struct idmap *by_ns, const char *ns)
{
	return idmap_get(by_ns, (uint64_t)(uintptr_t)ns, 0);
}

static void find_hosts(struct host_looks *w)
{
	vec_for(&w->g->nodes, n) {
		if ((*n)->type != &host_type || number_of(&w->by_ns, (*n)->ns) != IDMAP_NONE)
			continue;
		idmap_put(&w->by_ns, (uint64_t)(uintptr_t)(*n)->ns, 0, (uint32_t)w->hosts.n);
		vec_push(&w->hosts, ((struct host_part){.ns = (*n)->ns,
							.window_ns = HAS(host, *n, window_ns) ? GET(host, *n, window_ns) : 0,
							.first_status = SIZE_MAX}));
	}
}

/* Where the states of each host's sources begin. */
static void find_status(struct host_looks *w)
{
	const struct graph *g = w->g;
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

/* Relations to other hosts belong to all of them together. */
static void share_out(struct host_looks *w)
{
	const struct graph *g = w->g;
	uint32_t *hosts = mem_alloc((g->nodes.n + 1) * sizeof(*hosts));

	for (uint32_t i = 0; i < g->nodes.n; i++) {
		hosts[i] = number_of(&w->by_ns, g->nodes.v[i]->ns);
		if (hosts[i] != IDMAP_NONE)
			vec_push(&w->hosts.v[hosts[i]].nodes.v, i);
	}
	for (uint32_t i = 0; i < g->edges.n; i++) {
		uint32_t host = hosts[g->edges.v[i]->source];

		if (host != IDMAP_NONE && host == hosts[g->edges.v[i]->target])
			vec_push(&w->hosts.v[host].edges.v, i);
	}
	free(hosts);
}

static void remember_hosts(struct host_looks *w)
{
	vec_for(&w->memory->v, h)
		(*h)->there = false;
	vec_for(&w->hosts, h) {
		h->known = known_of(w->memory, h->ns);
		h->known->there = true;
	}
}

struct host_looks *host_looks_new(const struct graph *g, const struct limits *l, const struct analysis_means *m)
{
	struct host_looks *w = mem_alloc(sizeof(*w));

	w->g = g;
	w->l = l;
	find_hosts(w);
	if (w->hosts.n < 2) {
		host_looks_free(w);
		return NULL;
	}
	w->own_memory = !m || !m->memory;
	w->memory = w->own_memory ? hosts_memory_new() : m->memory;
	find_status(w);
	share_out(w);
	remember_hosts(w);
	return w;
}

void host_looks_free(struct host_looks *w)
{
	size_t looked = 0;

	if (!w)
		return;
	vec_for(&w->hosts, h) {
		looked += h->looked;
		vec_done(&h->nodes.v);
		vec_done(&h->edges.v);
		vec_done(&h->back.v);
	}
	if (w->own_memory) {
		hosts_memory_free(w->memory);
	} else if (w->memory) {
		w->memory->counts = (struct hosts_memory_counts){w->hosts.n, looked};
		if (w->memory->v.n > w->hosts.n)
			forget_absent(w->memory);
	}
	for (size_t i = 0; i < PARALLEL_MOST; i++)
		free(w->maps[i]);
	vec_done(&w->hosts);
	idmap_done(&w->by_ns);
	free(w);
}

size_t host_looks_count(const struct host_looks *w)
{
	return w ? w->hosts.n : 0;
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
	return node == NODE_NONE || !back ? node : back[node];
}

/* @param back numbers of the other graph; NULL: they are the same */
static void take_finding(struct findings *f, const struct finding *from, const uint32_t *back)
{
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
static void take_verdicts(struct findings *f, const struct findings *of, const char *host)
{
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

static void remember(struct findings *ret, const struct findings *f)
{
	findings_empty(ret);
	vec_for(&f->v, fi)
		if (!rule_find(fi->rule)->across)
			take_finding(ret, fi, NULL);
	vec_for(&f->verdicts, v)
		vec_push(&ret->verdicts, ((struct rule_verdict){v->rule, v->verdict, keep(ret, v->evidence), keep(ret, v->how),
								v->findings}));
}

static void analyse_part(struct host_looks *w, struct graph *part, struct host_part *h)
{
	struct analysis *k = mem_alloc(sizeof(*k));

	/* Analyses complete what they look at; they add relations, no entities. */
	analysis_init(k, part, NULL, w->l);
	remember(&h->known->found, &k->findings);
	analysis_done(k);
	free(k);
}

void host_look(struct host_looks *w, unsigned thread, size_t i)
{
	struct host_part *h = &w->hosts.v[i];
	struct graph part;
	uint64_t digest;

	if (!w->maps[thread]) {
		w->maps[thread] = mem_alloc((w->g->nodes.n + 1) * sizeof(*w->maps[thread]));
		memset(w->maps[thread], 0xff, (w->g->nodes.n + 1) * sizeof(*w->maps[thread]));
	}
	graph_init(&part);
	graph_merge_listed(&part, w->g, &h->nodes, &h->edges, w->maps[thread], &h->back);
	vec_for(&h->back.v, n)
		w->maps[thread][*n] = NODE_NONE;
	vec_done(&h->nodes.v);
	vec_done(&h->edges.v);
	tell_about(w->g, h, &part);
	digest = w->own_memory ? 0 : graph_content_hash(&part);
	if (!h->known->known || h->known->digest != digest) {
		analyse_part(w, &part, h);
		h->looked = true;
	}
	h->known->digest = digest;
	h->known->known = true;
	graph_done(&part);
}

bool findings_of_hosts(struct findings *f, const struct study *s)
{
	struct host_looks *own = s->looks ? NULL : host_looks_new(s->g, s->l, NULL), *w = s->looks ?: own;

	for (size_t i = 0; i < host_looks_count(own); i++)
		host_look(own, 0, i);
	for (size_t i = 0; i < host_looks_count(w); i++) {
		const struct host_part *h = &w->hosts.v[i];

		vec_for(&h->known->found.v, fi)
			take_finding(f, fi, h->back.v.v);
		take_verdicts(f, &h->known->found, h->ns);
	}
	host_looks_free(own);
	return w;
}
