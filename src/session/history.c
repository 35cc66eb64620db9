/* Intervals in memory: the newest ones one by one, and totals of all. Knows nothing of where they come from. */
#include "history_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

#define SECOND_NS 1000000000ull
/* Longer than the pause between two looks at shared memory, which are a minute apart at most. */
#define FORGET_NS (180 * SECOND_NS)
/* Totals are cleaned when they have grown by half and this much. */
#define GROWTH_BYTES (8u << 20)

/* Amounts of a flow, in the order of flow_fields. */
#define AMOUNTS 6
struct amounts {
	uint64_t v[AMOUNTS];
};

static const int flow_fields[AMOUNTS] = {flow_f_bytes,		flow_f_messages,      flow_f_bytes_sent,
					 flow_f_bytes_received, flow_f_messages_sent, flow_f_messages_received};

/* Of an item of the totals. */
struct seen {
	uint64_t ns;	     /* end of the last interval that told something of it */
	struct amounts told; /* flows: the totals that were told last */
};

struct history {
	uint64_t keep_ns;
	size_t keep_bytes;
	VEC(struct history_interval *) kept; /* oldest first */
	struct graph totals;
	VEC(uint64_t) nodes;	/* end of the last interval that told something, by index in totals */
	VEC(struct seen) edges; /* likewise */
	size_t sweep_above;
	uint64_t last_ns; /* end of the newest interval */
};

/* What is there as long as the machine is set up that way, or a process lives; the rest comes and goes. */
static bool is_lasting(const struct node *n)
{
	static const struct type *const passing[] = {
		&thread_type,	    &socket_type,    &unix_socket_type, &file_type,
		&pipe_inode_type,   &eventfd_type,   &futex_type,	&posix_queue_type,
		&sysv_queue_type,   &sysv_sem_type,  &shared_memory_type, &wait_object_type,
		&rdma_endpoint_type};

	if (n->type == &process_type)
		return !HAS(process, n, end_ns);
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (passing[i] == n->type)
			return false;
	return true;
}

static bool has_sums(const struct type *t)
{
	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].merge == SUM)
			return true;
	return false;
}

struct choice {
	bool *nodes, *edges;
	uint32_t *ret_nodes, *ret_edges;
};

static void choice_done(struct choice *c)
{
	free(c->nodes);
	free(c->edges);
	free(c->ret_nodes);
	free(c->ret_edges);
}

static bool ended(const struct node *n)
{
	return n->type == &process_type && HAS(process, n, end_ns);
}

static bool wants_edge(const struct history *h, const struct choice *c, const struct edge *d, bool old_flows)
{
	const struct node *from = h->totals.nodes.v[d->source], *to = h->totals.nodes.v[d->target];

	/* Totals of flows go on as long as both ends do. */
	if (d->type == &flow_type)
		return old_flows && !ended(from) && !ended(to);
	return c->nodes[d->source] && c->nodes[d->target] && !has_sums(d->type);
}

/*
 * Of the totals: what was told of since then, and what lasts.
 *
 * @param threads quiet ones too, of processes that are taken
 * @param flows   quiet ones too
 */
static struct choice choose(const struct history *h, uint64_t since_ns, bool threads, bool flows)
{
	const struct graph *g = &h->totals;
	struct choice c = {.nodes = mem_alloc(g->nodes.n + 1),
			   .edges = mem_alloc(g->edges.n + 1),
			   .ret_nodes = mem_alloc((g->nodes.n + 1) * sizeof(uint32_t)),
			   .ret_edges = mem_alloc((g->edges.n + 1) * sizeof(uint32_t))};

	for (size_t i = 0; i < g->nodes.n; i++)
		c.nodes[i] = h->nodes.v[i] > since_ns || is_lasting(g->nodes.v[i]);
	for (size_t i = 0; threads && i < g->nodes.n; i++) {
		const struct node *n = g->nodes.v[i];

		if (n->type == &thread_type && HAS(thread, n, process))
			c.nodes[i] |= c.nodes[GET(thread, n, process)];
	}
	for (size_t i = 0; i < g->edges.n; i++)
		c.edges[i] = h->edges.v[i].ns > since_ns || wants_edge(h, &c, g->edges.v[i], flows);
	return c;
}

/* Dead processes and quiet objects go, so that memory does not grow with time. */
static void sweep(struct history *h)
{
	uint64_t since = h->last_ns > FORGET_NS ? h->last_ns - FORGET_NS : 0;
	struct choice c = choose(h, since, false, true);
	struct graph kept;
	typeof(h->nodes) nodes = {0};
	typeof(h->edges) edges = {0};

	graph_init(&kept);
	graph_merge_some(&kept, &h->totals, c.nodes, c.edges, c.ret_nodes, c.ret_edges);
	vec_reserve(&nodes, kept.nodes.n);
	vec_reserve(&edges, kept.edges.n);
	nodes.n = kept.nodes.n;
	edges.n = kept.edges.n;
	for (size_t i = 0; i < h->nodes.n; i++)
		if (c.ret_nodes[i] != NODE_NONE)
			nodes.v[c.ret_nodes[i]] = h->nodes.v[i];
	for (size_t i = 0; i < h->edges.n; i++)
		if (c.ret_edges[i] != NODE_NONE)
			edges.v[c.ret_edges[i]] = h->edges.v[i];
	graph_done(&h->totals);
	vec_done(&h->nodes);
	vec_done(&h->edges);
	h->totals = kept;
	memcpy(&h->nodes, &nodes, sizeof(nodes));
	memcpy(&h->edges, &edges, sizeof(edges));
	h->sweep_above = kept.arena.used_bytes / 2 * 3 + GROWTH_BYTES;
	choice_done(&c);
}

/* Totals of a flow become what it gained; one that goes back was found to be another's. */
static void make_gains(struct edge *d, struct seen *s)
{
	for (int i = 0; i < AMOUNTS; i++) {
		const struct field *f = &flow_type.fields[flow_fields[i]];
		struct value v = field_get(f, d->data);
		uint64_t total = v.u64;

		if (!(d->measured & (1ull << flow_fields[i])))
			continue;
		v.u64 = total > s->told.v[i] ? total - s->told.v[i] : 0;
		s->told.v[i] = total;
		field_set(f, d->data, &v);
	}
}

/* Into the totals; the flows in @p part become gains. */
static void add_up(struct history *h, struct graph *part, uint64_t end_ns)
{
	uint32_t *nodes = mem_alloc((part->nodes.n + 1) * sizeof(*nodes));
	uint32_t *edges = mem_alloc((part->edges.n + 1) * sizeof(*edges));

	graph_merge(&h->totals, part, nodes, edges);
	while (h->nodes.n < h->totals.nodes.n)
		vec_push(&h->nodes, end_ns);
	while (h->edges.n < h->totals.edges.n)
		vec_add(&h->edges);
	for (size_t i = 0; i < part->nodes.n; i++)
		h->nodes.v[nodes[i]] = end_ns;
	for (size_t i = 0; i < part->edges.n; i++) {
		struct seen *s = &h->edges.v[edges[i]];

		s->ns = end_ns;
		if (part->edges.v[i]->type == &flow_type)
			make_gains(part->edges.v[i], s);
	}
	free(nodes);
	free(edges);
}

static void interval_free(struct history_interval *i)
{
	graph_done(&i->part);
	free(i);
}

static void forget_intervals(struct history *h)
{
	size_t bytes = 0, first = h->kept.n - 1;

	while (first > 0) {
		const struct history_interval *i = h->kept.v[first - 1];

		bytes += i->part.arena.used_bytes;
		if (i->end_ns + h->keep_ns < h->last_ns || !h->keep_ns || (h->keep_bytes && bytes > h->keep_bytes))
			break;
		first--;
	}
	for (size_t i = 0; i < first; i++)
		interval_free(h->kept.v[i]);
	memmove(h->kept.v, h->kept.v + first, (h->kept.n - first) * sizeof(*h->kept.v));
	h->kept.n -= first;
}

struct history *history_new(uint64_t keep_ns, size_t keep_bytes)
{
	struct history *h = mem_alloc(sizeof(*h));

	h->keep_ns = keep_ns;
	h->keep_bytes = keep_bytes;
	h->sweep_above = GROWTH_BYTES;
	graph_init(&h->totals);
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	vec_for(&h->kept, i)
		interval_free(*i);
	vec_done(&h->kept);
	graph_done(&h->totals);
	vec_done(&h->nodes);
	vec_done(&h->edges);
	free(h);
}

void history_begin(struct history *h, struct graph *first, uint64_t end_ns)
{
	h->last_ns = end_ns;
	add_up(h, first, end_ns);
}

void history_add(struct history *h, struct graph *part, uint64_t end_ns)
{
	struct history_interval *i = mem_alloc(sizeof(*i));

	i->start_ns = h->last_ns;
	i->end_ns = h->last_ns = end_ns;
	i->part = *part;
	add_up(h, &i->part, end_ns);
	vec_push(&h->kept, i);
	forget_intervals(h);
	if (h->totals.arena.used_bytes > h->sweep_above)
		sweep(h);
}

size_t history_intervals(const struct history *h)
{
	return h->kept.n;
}

size_t history_bytes(const struct history *h, size_t *ret_known)
{
	size_t sum = 0;

	vec_for(&h->kept, i)
		sum += (*i)->part.arena.used_bytes;
	*ret_known = h->totals.arena.used_bytes + h->nodes.cap * sizeof(*h->nodes.v) + h->edges.cap * sizeof(*h->edges.v);
	return sum;
}

const struct history_interval *history_interval(const struct history *h, size_t i)
{
	return h->kept.v[i];
}

struct graph *history_totals(struct history *h)
{
	return &h->totals;
}

static size_t first_since(const struct history *h, uint64_t since_ns)
{
	size_t i = h->kept.n;

	while (i > 0 && (i == h->kept.n || h->kept.v[i - 1]->end_ns > since_ns))
		i--;
	return i;
}

/* What is said of the whole time is nothing that a part of it may say. */
static uint64_t fields_of_window(const struct type *t)
{
	uint64_t all = 0;

	for (int i = 0; i < t->nfields; i++)
		if (t->fields[i].key == KEY_NONE && t->fields[i].merge != LAST &&
		    t->fields[i].merge != FIRST && t->fields[i].merge != GAUGE)
			all |= 1ull << i;
	for (int i = 0; t == &flow_type && i < AMOUNTS; i++)
		all |= 1ull << flow_fields[i];
	return all;
}

/* Facts that were known, without amounts. */
static void add_facts(const struct history *h, uint64_t since_ns, struct graph *ret)
{
	struct choice c = choose(h, since_ns, true, false);

	graph_merge_some(ret, &h->totals, c.nodes, c.edges, c.ret_nodes, c.ret_edges);
	vec_for(&ret->nodes, n)
		(*n)->measured &= ~fields_of_window((*n)->type);
	vec_for(&ret->edges, d)
		(*d)->measured &= ~fields_of_window((*d)->type);
	choice_done(&c);
}

struct sums {
	VEC(struct amounts) v; /* of flows, by index of the edge in the graph that is made */
};

/* Flows say amounts of the interval: those so far, by the numbers of @p known, or of @p into. */
static void add_part(struct graph *into, const struct graph *part, struct sums *sums,
		     const uint32_t *known, uint32_t *ret_nodes)
{
	uint32_t *edges = mem_alloc((part->edges.n + 1) * sizeof(*edges));

	graph_merge(into, part, ret_nodes, edges);
	for (size_t i = 0; i < part->edges.n; i++) {
		const struct edge *d = part->edges.v[i];
		uint32_t at = known ? known[i] : edges[i];

		if (d->type != &flow_type)
			continue;
		while (sums->v.n <= at)
			vec_add(&sums->v);
		for (int k = 0; k < AMOUNTS; k++) {
			const struct field *f = &flow_type.fields[flow_fields[k]];
			struct value v = field_get(f, d->data);

			if (!(d->measured & (1ull << flow_fields[k])))
				continue;
			v.u64 = sums->v.v[at].v[k] += v.u64;
			field_set(f, into->edges.v[edges[i]]->data, &v);
		}
	}
	free(edges);
}

/*
 * A thread that slept through several readings comes with all of them at once. What was before the window
 * is no part of it: the thread was not on a CPU then, or it had been told of.
 */
struct cut {
	uint64_t observed_ns, blocked_ns, runq_ns;
};

/* By the number of the thread: what was taken of it so far, and what was left out. */
struct cuts {
	VEC(struct cut) told, left_out;
};

static void cuts_done(struct cuts *c)
{
	vec_done(&c->told);
	vec_done(&c->left_out);
}

/* @param passed_ns from the start of the window to the end of the interval @return what to leave
 * out of it */
static struct cut cut_of(struct cuts *c, uint32_t number, const struct node *n, uint64_t passed_ns)
{
	struct cut *told, *sum, cut = {0};
	uint64_t rest;

	if (!HAS(thread, n, observed_ns))
		return cut;
	while (c->told.n <= number) {
		vec_add(&c->told);
		vec_add(&c->left_out);
	}
	told = &c->told.v[number];
	told->observed_ns += GET(thread, n, observed_ns);
	if (told->observed_ns <= passed_ns)
		return cut;
	cut.observed_ns = rest = told->observed_ns - passed_ns;
	cut.blocked_ns = GET(thread, n, blocked_ns) < rest ? GET(thread, n, blocked_ns) : rest;
	rest -= cut.blocked_ns;
	cut.runq_ns = GET(thread, n, runq_ns) < rest ? GET(thread, n, runq_ns) : rest;
	told->observed_ns = passed_ns;
	sum = &c->left_out.v[number];
	sum->observed_ns += cut.observed_ns;
	sum->blocked_ns += cut.blocked_ns;
	sum->runq_ns += cut.runq_ns;
	return cut;
}

static void leave_out(struct node *n, const struct cut *cut)
{
	if (cut->observed_ns)
		SET(thread, n, observed_ns, GET(thread, n, observed_ns) - cut->observed_ns);
	if (cut->blocked_ns)
		SET(thread, n, blocked_ns, GET(thread, n, blocked_ns) - cut->blocked_ns);
	if (cut->runq_ns)
		SET(thread, n, runq_ns, GET(thread, n, runq_ns) - cut->runq_ns);
}

/* @param nodes [of the interval's graph] number of each in the window @param passed_ns as in
 * cut_of() */
static void add_slices(struct timeline *t, const struct history_interval *from, uint64_t passed_ns,
		       const uint32_t *nodes, struct cuts *cuts)
{
	uint32_t at = (uint32_t)t->intervals.n;

	vec_push(&t->intervals, ((struct time_span){from->start_ns, from->end_ns}));
	for (size_t i = 0; i < from->part.nodes.n; i++) {
		const struct node *n = from->part.nodes.v[i];
		struct thread_slice *s;
		struct cut cut;

		if (n->type != &thread_type)
			continue;
		cut = cut_of(cuts, nodes[i], n, passed_ns);
		s = timeline_add_slice(t, at, n, nodes[i]);
		if (!s)
			continue;
		s->blocked_ns -= cut.blocked_ns;
		s->runq_ns -= cut.runq_ns;
	}
}

void history_window(struct history *h, uint64_t since_ns, struct graph *ret, struct timeline *time)
{
	history_window_amounts(h, since_ns, ret, time, NULL);
}

void history_window_amounts(struct history *h, uint64_t since_ns, struct graph *ret, struct timeline *time,
			    struct interval_amounts *amounts)
{
	struct window_amounts sum = {.window = ret, .ret = amounts};
	size_t first = first_since(h, since_ns);
	struct timeline own = {0}, *t = time ?: &own;
	struct sums sums = {0};
	struct cuts cuts = {0};

	if (first == h->kept.n)
		return;
	since_ns = h->kept.v[first]->start_ns;
	add_facts(h, since_ns, ret);
	for (size_t i = first; i < h->kept.n; i++) {
		const struct history_interval *from = h->kept.v[i];
		uint32_t *nodes = mem_alloc((from->part.nodes.n + 1) * sizeof(*nodes));

		add_part(ret, &from->part, &sums, NULL, nodes);
		add_slices(t, from, from->end_ns - since_ns, nodes, &cuts);
		if (amounts)
			window_amounts_add(&sum, from, nodes);
		free(nodes);
	}
	for (size_t i = 0; i < cuts.left_out.n; i++)
		leave_out(ret->nodes.v[i], &cuts.left_out.v[i]);
	timeline_sort(t);
	timeline_done(&own);
	if (amounts)
		window_amounts_end(&sum);
	ret->meta.start_ns = since_ns;
	ret->meta.window_ns = h->last_ns - since_ns;
	ret->meta.intervals = h->kept.n - first;
	vec_done(&sums.v);
	cuts_done(&cuts);
}

/* @param numbers [of the interval's graph] of each over all intervals @param nodes its index in @p
 * part */
static void cut_threads(const struct history_interval *from, uint64_t since_ns,
			const uint32_t *numbers, const uint32_t *nodes, struct cuts *cuts,
			struct graph *part)
{
	for (size_t i = 0; i < from->part.nodes.n; i++) {
		const struct node *n = from->part.nodes.v[i];

		if (n->type == &thread_type) {
			struct cut cut = cut_of(cuts, numbers[i], n, from->end_ns - since_ns);

			leave_out(part->nodes.v[nodes[i]], &cut);
		}
	}
}

/* What is numbered over all intervals. */
struct saving {
	struct graph all;
	struct sums sums;
	struct cuts cuts;
};

static int save_interval(struct history *h, size_t first, size_t i, struct saving *s,
			 struct recording *r, struct err *e)
{
	const struct history_interval *from = h->kept.v[i];
	uint32_t *edges = mem_alloc((from->part.edges.n + 1) * sizeof(*edges));
	uint32_t *numbers = mem_alloc((from->part.nodes.n + 1) * sizeof(*numbers));
	uint32_t *nodes = mem_alloc((from->part.nodes.n + 1) * sizeof(*nodes));
	struct graph part;
	int rc;

	graph_merge(&s->all, &from->part, numbers, edges);
	graph_init(&part);
	if (i == first)
		add_facts(h, from->start_ns, &part);
	add_part(&part, &from->part, &s->sums, edges, nodes);
	cut_threads(from, h->kept.v[first]->start_ns, numbers, nodes, &s->cuts, &part);
	rc = recording_add(r, &part, from->start_ns, from->end_ns, e);
	graph_done(&part);
	free(edges);
	free(numbers);
	free(nodes);
	return rc;
}

static int save_intervals(struct history *h, size_t first, struct recording *r, struct err *e)
{
	struct saving s = {0};
	int rc = 0;

	graph_init(&s.all);
	for (size_t i = first; !rc && i < h->kept.n; i++)
		rc = save_interval(h, first, i, &s, r, e);
	graph_done(&s.all);
	vec_done(&s.sums.v);
	cuts_done(&s.cuts);
	return rc;
}

int history_save(struct history *h, uint64_t since_ns, const char *path, bool force, struct graph *about,
		 struct err *e)
{
	size_t first = first_since(h, since_ns);
	struct recording *r;
	int rc;

	if (first == h->kept.n)
		return err_msg(e, -ENODATA, "save '%s': nothing was observed yet", path);
	rc = recording_create(&r, path, force, e);
	if (rc)
		return rc;
	about->meta.start_ns = h->kept.v[first]->start_ns;
	about->meta.window_ns = h->last_ns - about->meta.start_ns;
	rc = save_intervals(h, first, r, e);
	rc = rc ?: recording_describe(r, about, e);
	if (!rc)
		return recording_close(r, e);
	recording_drop(r);
	return rc;
}
