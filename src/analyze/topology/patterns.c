/* What shapes and declarations stand for: kinds of parallelism with evidence for and against. */
#include <stdlib.h>
#include <string.h>

#include "topology_parts.h"

struct topo_pattern *topo_new_pattern(struct topo_group *gr, enum parallelism kind, unsigned pct)
{
	struct topo_pattern *p = vec_add(&gr->patterns);

	p->kind = kind;
	p->pct = pct;
	return p;
}

static bool is_all_reduce(enum shape s)
{
	return s == SHAPE_PAIR || s == SHAPE_RING || s == SHAPE_TREE || s == SHAPE_ALL_TO_ALL ||
	       s == SHAPE_HIERARCHY;
}

static enum parallelism meaning(enum shape s)
{
	static const enum parallelism kinds[SHAPE_COUNT] = {
	    [SHAPE_UNKNOWN] = PAR_UNKNOWN,
	    [SHAPE_NONE] = PAR_REPLICAS,
	    [SHAPE_PAIR] = PAR_PAIR,
	    [SHAPE_RING] = PAR_RING,
	    [SHAPE_CHAIN] = PAR_PIPELINE,
	    [SHAPE_TREE] = PAR_TREE,
	    [SHAPE_STAR] = PAR_STAR,
	    [SHAPE_SERVERS] = PAR_PARAMETER_SERVER,
	    [SHAPE_ALL_TO_ALL] = PAR_ALL_TO_ALL,
	    [SHAPE_HIERARCHY] = PAR_HIERARCHICAL,
	    [SHAPE_GRID] = PAR_GRID,
	};

	return kinds[s];
}

/* "a[1] -> b[2] -> c[3]", at most eight of them. */
static const char *chain_text(struct topology *t, const struct topo_group *gr, const char *arrow,
			      bool closed)
{
	struct strbuf b = {0};
	const char *ret;
	size_t n = gr->members.n;

	for (size_t i = 0; i < n && i < 8; i++) {
		strbuf_add(&b, i ? arrow : "");
		strbuf_add(&b, t->actors.v[gr->members.v[i]].label);
	}
	if (n > 8)
		strbuf_addf(&b, "%s… %zu more", arrow, n - 8);
	if (closed)
		strbuf_addf(&b, "%s%s", arrow, t->actors.v[gr->members.v[0]].label);
	ret = arena_strdup(&t->arena, b.s);
	strbuf_done(&b);
	return ret;
}

static const char *shape_sentence(struct topology *t, const struct topo_group *gr)
{
	const struct topo_shape *s = &gr->shape;
	const char *arrow = s->both_ways ? " <-> " : " -> ";

	switch (s->shape) {
	case SHAPE_PAIR:
		return topo_text(t, "data goes both ways: %s", chain_text(t, gr, arrow, false));
	case SHAPE_RING:
		return topo_text(t, "each has exactly two neighbours, in a circle: %s",
				 chain_text(t, gr, arrow, true));
	case SHAPE_CHAIN:
		return topo_text(t, "each has the one before and the one after it: %s",
				 chain_text(t, gr, arrow, false));
	case SHAPE_TREE:
		return topo_text(t, "%zu edges without a circle, root %s", gr->members.n - 1,
				 t->actors.v[gr->members.v[0]].label);
	case SHAPE_STAR:
	case SHAPE_SERVERS:
		return topo_text(
		    t,
		    "%u of them exchange%s data with all %zu others, which have no other partner",
		    s->hubs, s->hubs == 1 ? "s" : "", gr->members.n - s->hubs);
	case SHAPE_ALL_TO_ALL:
		return "each exchanges data with each other one";
	case SHAPE_HIERARCHY:
		return topo_text(t, "%u groups of %u (%s), whose leaders form a %s of %u", s->outer,
				 s->inner, shape_name(s->inner_shape), shape_name(s->outer_shape),
				 s->outer);
	case SHAPE_GRID:
		return topo_text(t,
				 "heavy traffic in %u groups of %u (%s), lighter traffic across "
				 "them in %u of %u (%s)",
				 s->outer, s->inner, shape_name(s->inner_shape), s->inner, s->outer,
				 shape_name(s->outer_shape));
	default:
		return "";
	}
}

static const char *pattern_text(struct topology *t, const struct topo_group *gr,
				enum parallelism kind)
{
	const struct topo_shape *s = &gr->shape;
	size_t n = gr->members.n;

	switch (kind) {
	case PAR_PARAMETER_SERVER:
		return topo_text(t, "parameter server: %u server%s, %zu workers", s->hubs,
				 s->hubs == 1 ? "" : "s", n - s->hubs);
	case PAR_STAR:
		return topo_text(t, "master/worker star: 1 master, %zu workers", n - 1);
	case PAR_GRID:
		return topo_text(
		    t, "grid %u x %u: tensor parallel %u (heavy), data parallel %u (light)",
		    s->inner, s->outer, s->inner, s->outer);
	case PAR_HIERARCHICAL:
		return topo_text(t, "hierarchical all-reduce: %u groups of %u", s->outer, s->inner);
	case PAR_PIPELINE:
		return topo_text(t, "pipeline of %zu stages", n);
	case PAR_PAIR:
		return "pair exchange of 2";
	case PAR_REPLICAS:
		return topo_text(t, "%zu independent replicas", n);
	default:
		return topo_text(t, "%s of %zu", parallelism_name(kind), n);
	}
}

static void observe_silence(struct topology *t, struct topo_group *gr,
			    const struct topo_declared *said)
{
	struct topo_pattern *p;

	if (said->actor != TOPO_NONE && (said->tensor > 1 || said->pipeline > 1 || said->world > 1))
		return;
	if (gr->has_devices && !gr->bytes) {
		p = topo_new_pattern(gr, PAR_UNKNOWN, 0);
		p->text =
		    topo_text(t, "%zu equal processes with an accelerator each", gr->members.n);
		topo_evidence(
		    &p->evidence, EVIDENCE_UNSEEN,
		    "no data between them was seen; between accelerators there may be some");
		return;
	}
	p = topo_new_pattern(gr, PAR_REPLICAS, 75);
	p->observed = true;
	p->degree = (uint32_t)gr->members.n;
	p->text = pattern_text(t, gr, PAR_REPLICAS);
	topo_evidence(&p->evidence, EVIDENCE_FOR,
		      "equal processes that are at work, and exchange no data");
}

static void observe(struct topology *t, struct topo_group *gr, const struct topo_declared *said)
{
	const struct topo_shape *s = &gr->shape;
	struct topo_pattern *p;

	if (s->shape == SHAPE_NONE) {
		observe_silence(t, gr, said);
		return;
	}
	p = topo_new_pattern(gr, meaning(s->shape), s->pct);
	p->observed = s->shape != SHAPE_UNKNOWN;
	if (!p->observed) {
		p->text = "unknown: the traffic has none of the shapes that are known here";
		if (s->also)
			topo_evidence(&p->evidence, EVIDENCE_AGAINST,
				      topo_text(t, "could be %s", s->also));
		if (gr->members.n > TOPO_SHAPE_MAX)
			topo_evidence(&p->evidence, EVIDENCE_AGAINST,
				      topo_text(t, "more than %d members", TOPO_SHAPE_MAX));
		return;
	}
	p->degree = (uint32_t)gr->members.n;
	p->text = pattern_text(t, gr, p->kind);
	topo_evidence(&p->evidence, EVIDENCE_FOR, shape_sentence(t, gr));
	if (s->also)
		topo_evidence(&p->evidence, EVIDENCE_AGAINST,
			      topo_text(t, "looks the same: %s", s->also));
	if (s->shape == SHAPE_ALL_TO_ALL && said->expert > 1) {
		p->kind = PAR_EXPERT;
		p->text = topo_text(t, "expert parallel %zu", gr->members.n);
		topo_evidence(&p->evidence, EVIDENCE_FOR, topo_text(t, "declared: %s", said->text));
	}
}

/* Members that all descend from what declares it. */
static unsigned declared_size(const struct topo_declared *d)
{
	unsigned ret = 1;

	ret *= d->tensor ? d->tensor : 1;
	ret *= d->pipeline ? d->pipeline : 1;
	ret *= d->data ? d->data : 1;
	ret *= d->context ? d->context : 1;
	return ret;
}

static bool fits_traffic(const struct topo_shape *s, enum parallelism kind, unsigned degree)
{
	if (kind == PAR_PIPELINE)
		return s->shape == SHAPE_CHAIN;
	if (s->shape == SHAPE_GRID)
		return kind == PAR_TENSOR ? s->inner == degree : s->outer == degree;
	return is_all_reduce(s->shape);
}

static void declare(struct topology *t, struct topo_group *gr, const struct topo_declared *d,
		    enum parallelism kind, unsigned degree)
{
	const struct topo_shape *s = &gr->shape;
	size_t n = gr->members.n, size = declared_size(d);
	struct topo_pattern *p;
	unsigned pct = 50;

	if (degree < 2)
		return;
	p = topo_new_pattern(gr, kind, 0);
	p->declared = true;
	p->degree = degree;
	p->text = topo_text(t, "%s %u", parallelism_name(kind), degree);
	topo_evidence(&p->evidence, EVIDENCE_FOR,
		      topo_text(t, "declared by %s: %s", t->actors.v[d->actor].label,
				d->text ? d->text : "environment"));
	if (n == size || (size == 1 && n == degree) || (d->data && n * d->data == size)) {
		pct += 25;
		topo_evidence(&p->evidence, EVIDENCE_FOR,
			      topo_text(t, "%zu equal ranks, as many as declared", n));
	} else {
		pct -= 25;
		topo_evidence(
		    &p->evidence, EVIDENCE_AGAINST,
		    topo_text(t, "%zu equal ranks, declared are %zu", n, size > 1 ? size : degree));
	}
	if (gr->has_devices) {
		pct += 10;
		topo_evidence(&p->evidence, EVIDENCE_FOR,
			      "each rank uses an accelerator of its own");
	}
	if (s->shape != SHAPE_UNKNOWN && s->shape != SHAPE_NONE && fits_traffic(s, kind, degree)) {
		pct += 14;
		p->observed = true;
		topo_evidence(
		    &p->evidence, EVIDENCE_FOR,
		    topo_text(t, "the traffic is a %s, as it has to be", shape_name(s->shape)));
	} else if (s->shape == SHAPE_NONE) {
		p->observed = gr->has_devices && pct >= 80;
		topo_evidence(&p->evidence, EVIDENCE_UNSEEN,
			      "data between the ranks was not observed: what accelerators send "
			      "each other (HCCS, "
			      "NVLink, RDMA) passes no socket, and shared memory shows only when "
			      "it is recorded");
	} else {
		pct -= 10;
		topo_evidence(
		    &p->evidence, EVIDENCE_AGAINST,
		    topo_text(t, "the traffic is of another shape: %s", shape_name(s->shape)));
	}
	p->pct = pct;
}

/* How many ranks of plain data parallelism a launcher or an environment announces. */
static unsigned announced_ranks(const struct topo_declared *d)
{
	if (d->world)
		return d->world;
	return d->processes * (d->nodes ? d->nodes : 1);
}

static void declare_all(struct topology *t, struct topo_group *gr, const struct topo_declared *d)
{
	if (d->actor == TOPO_NONE)
		return;
	declare(t, gr, d, PAR_TENSOR, d->tensor);
	declare(t, gr, d, PAR_PIPELINE, d->pipeline);
	declare(t, gr, d, PAR_DATA, d->data);
	declare(t, gr, d, PAR_CONTEXT, d->context);
	if (gr->shape.shape != SHAPE_ALL_TO_ALL)
		declare(t, gr, d, PAR_EXPERT, d->expert);
	/* MPI starts ranks for any purpose. */
	if (declared_size(d) == 1 && announced_ranks(d) > 1 && !d->servers &&
	    !(d->framework && !strcmp(d->framework, "MPI")))
		declare(t, gr, d, PAR_DATA, announced_ranks(d));
}

static int compare_patterns(const void *a, const void *b)
{
	const struct topo_pattern *x = a, *y = b;

	if (x->pct != y->pct)
		return x->pct < y->pct ? 1 : -1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static int compare_jobs(const struct topology *t, const struct topo_group *a,
			const struct topo_group *b)
{
	if (a->launcher != b->launcher)
		return a->launcher < b->launcher ? -1 : 1;
	if (a->members.n != b->members.n)
		return a->members.n < b->members.n ? -1 : 1;
	if (a->shape.shape != b->shape.shape)
		return a->shape.shape < b->shape.shape ? -1 : 1;
	return strcmp(t->actors.v[a->members.v[0]].program, t->actors.v[b->members.v[0]].program);
}

static int compare_numbers(const void *a, const void *b, void *ctx)
{
	const struct topology *t = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare_jobs(t, &t->groups.v[x], &t->groups.v[y]);

	return c ? c : x < y ? -1 : x > y;
}

static void add_replica(struct topology *t, struct topo_group *gr, size_t equal)
{
	struct topo_pattern *p = topo_new_pattern(gr, PAR_REPLICAS, 60);

	p->observed = true;
	p->degree = (uint32_t)equal;
	p->text = topo_text(t, "one of %zu independent replicas", equal);
	topo_evidence(&p->evidence, EVIDENCE_FOR,
		      topo_text(t, "%zu equal groups below %s exchange no data", equal,
				t->actors.v[gr->launcher].label));
}

/* Equal jobs side by side that exchange nothing. */
static void find_replicas(struct topology *t)
{
	uint32_t *order = mem_alloc((t->groups.n + 1) * sizeof(*order));
	size_t n = t->groups.n, end;

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	if (n)
		qsort_r(order, n, sizeof(*order), compare_numbers, t);
	for (size_t i = 0; i < n; i = end) {
		const struct topo_group *first = &t->groups.v[order[i]];

		for (end = i + 1; end < n && !compare_jobs(t, first, &t->groups.v[order[end]]);)
			end++;
		/* Groups of which nothing is known are not known to be equal. */
		if (end - i < 2 || first->launcher == TOPO_NONE || first->shape.shape == SHAPE_NONE ||
		    first->shape.shape == SHAPE_UNKNOWN)
			continue;
		for (size_t k = i; k < end; k++)
			add_replica(t, &t->groups.v[order[k]], end - i);
	}
	free(order);
}

static uint32_t instance_of(const struct topology *t, const struct topo_group *gr, const char *part)
{
	vec_for(&t->declared, d)
		if (d->part && !strcmp(d->part, part) &&
		    topo_descends(t, gr->members.v[0], d->actor))
			return d->actor;
	return TOPO_NONE;
}

/* Bytes from one instance, all its processes, to another. */
static uint64_t bytes_between(const struct topology *t, uint32_t from, uint32_t to)
{
	uint64_t ret = 0;

	vec_for(&t->links, l)
		if (topo_descends(t, l->from, from) && topo_descends(t, l->to, to))
			ret += l->bytes;
	return ret;
}

/* One instance fills the cache, another one reads it. */
static void find_split(struct topology *t)
{
	uint32_t sides[2] = {TOPO_NONE, TOPO_NONE};
	struct topo_pattern *p;
	uint64_t there, back;
	bool parts = false;

	vec_for(&t->declared, d)
		parts |= d->part != NULL;
	for (size_t i = 0; parts && i < t->groups.n; i++) {
		const struct topo_group *gr = &t->groups.v[i];

		for (size_t k = 0; k < 2; k++) {
			uint32_t a = instance_of(t, gr, k ? "decode" : "prefill");

			sides[k] = a != TOPO_NONE ? a : sides[k];
		}
	}
	if (sides[0] == TOPO_NONE || sides[1] == TOPO_NONE)
		return;
	there = bytes_between(t, sides[0], sides[1]);
	back = bytes_between(t, sides[1], sides[0]);
	vec_for(&t->groups, gr) {
		bool prefill = topo_descends(t, gr->members.v[0], sides[0]);

		if (!prefill && !topo_descends(t, gr->members.v[0], sides[1]))
			continue;
		p = topo_new_pattern(gr, PAR_PREFILL_DECODE, there > 2 * back && there ? 90 : 65);
		p->declared = true;
		p->observed = there > 2 * back && there;
		p->text = topo_text(t, "%s side of a prefill/decode split",
				    prefill ? "prefill" : "decode");
		topo_evidence(&p->evidence, EVIDENCE_FOR,
			      topo_text(t, "%s fills the cache, %s reads it, as declared",
					t->actors.v[sides[0]].label, t->actors.v[sides[1]].label));
		topo_evidence(&p->evidence, p->observed ? EVIDENCE_FOR : EVIDENCE_UNSEEN,
			      p->observed ? "most data goes from the first to the second"
					  : "no such flow of data was seen");
	}
}

void topo_add_patterns(struct topology *t)
{
	vec_for(&t->groups, gr) {
		struct topo_declared said;

		topo_declared_around(t, gr->members.v[0], &said);
		observe(t, gr, &said);
		declare_all(t, gr, &said);
	}
	find_replicas(t);
	find_split(t);
	vec_for(&t->groups, gr)
		if (gr->patterns.n)
			qsort(gr->patterns.v, gr->patterns.n, sizeof(*gr->patterns.v),
			      compare_patterns);
}
