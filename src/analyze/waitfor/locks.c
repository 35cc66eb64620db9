/* Locks that threads queue for: who had them meanwhile, and whether that one had a CPU. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "waitfor/cascade.h"

struct share {
	uint32_t queue, thread;
	uint64_t ns, ready_ns; /* of it, while the thread had no CPU */
};

/* Of all queues at once: who waits, or who owns. */
struct shares {
	VEC(struct share) v;
	struct idmap of;
};

struct queue {
	uint32_t object;
	uint64_t ns;
};

struct queues {
	struct wf *x;
	VEC(struct queue) v;
	struct idmap of;
	struct shares waiters, owners;
};

static void add_share(struct shares *s, uint32_t queue, uint32_t thread, uint64_t ns, bool ready)
{
	uint32_t at = idmap_get(&s->of, queue, thread);

	if (at == IDMAP_NONE) {
		at = (uint32_t)s->v.n;
		idmap_put(&s->of, queue, thread, at);
		vec_push(&s->v, ((struct share){.queue = queue, .thread = thread}));
	}
	s->v.v[at].ns += ns;
	s->v.v[at].ready_ns += ready ? ns : 0;
}

static int share_order(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Who has the lock: the first on the way that does not queue for it, too. */
static uint32_t owner_of(const struct wf *x, const struct wf_account *a, const struct wf_way *way)
{
	for (uint32_t i = 0; i < way->nvia; i++)
		if (x->threads.v[way->via[i]].role != x->threads.v[a->waiter].role)
			return way->via[i];
	return way->thread;
}

static void read_accounts(struct queues *q)
{
	const struct cascade *c = q->x->c;

	for (size_t i = 0, end; i < c->pieces.n; i = end) {
		const struct wf_account *a = &c->accounts.v[c->pieces.v[i].account];
		uint64_t sum = 0;
		uint32_t at;

		for (end = i; end < c->pieces.n && c->pieces.v[end].account == c->pieces.v[i].account; end++)
			sum += c->pieces.v[end].ns;
		if (!a->held || a->object == NODE_NONE || !sum)
			continue;
		at = idmap_get(&q->of, a->object, 0);
		if (at == IDMAP_NONE) {
			at = (uint32_t)q->v.n;
			idmap_put(&q->of, a->object, 0, at);
			vec_push(&q->v, ((struct queue){a->object, 0}));
		}
		q->v.v[at].ns += a->total_ns;
		add_share(&q->waiters, at, a->waiter, a->total_ns, false);
		for (size_t k = i; k < end; k++) {
			const struct wf_way *way = &c->ways.v[c->pieces.v[k].way];

			if (way->thread == a->waiter)
				continue;
			add_share(&q->owners, at, owner_of(q->x, a, way),
				  (uint64_t)((double)a->total_ns * ((double)c->pieces.v[k].ns / (double)sum)),
				  way->state == STATE_RUNQ);
		}
	}
}

static uint64_t count_waits(const struct wf *x, uint32_t object)
{
	struct edge_list in = graph_in(x->g, object);
	uint64_t n = 0;

	for (size_t i = 0; i < in.n; i++)
		if (x->g->edges.v[in.v[i]]->type == &waits_for_type && HAS(waits_for, x->g->edges.v[in.v[i]], waits))
			n += GET(waits_for, x->g->edges.v[in.v[i]], waits);
	return n;
}

static void add_waiters(struct wf *x, struct wait_pattern *p, const struct share *s, size_t n)
{
	for (size_t i = 0; i < n && s[i].ns * 1000 >= p->ns; i++)
		vec_push(&p->threads, x->threads.v[s[i].thread].node);
}

static const char *who_text(struct wf *x, const struct wait_pattern *p)
{
	uint32_t role = x->w->role_of[p->threads.v[0]];

	for (size_t i = 1; i < p->threads.n; i++)
		if (x->w->role_of[p->threads.v[i]] != role)
			return wf_text(x->w, "%zu threads", p->threads.n);
	if (p->threads.n == 1)
		return wf_thread_text(x->w, x->g, p->threads.v[0]);
	return wf_text(x->w, "%zu %s", p->threads.n, x->w->roles.v[role].name);
}

/* The greater, the sooner a thread gets a CPU: real-time priorities are above all nice values. INT64_MIN: not known. */
static int64_t rank_of(const struct wf *x, uint32_t thread)
{
	const struct node *n = x->g->nodes.v[thread];

	if (HAS(thread, n, rt_priority) && GET(thread, n, rt_priority))
		return 100 + (int64_t)(GET(thread, n, rt_priority) % 100);
	return HAS(thread, n, nice) ? -GET(thread, n, nice) : INT64_MIN;
}

static int64_t rank_of_waiters(const struct wf *x, const struct wait_pattern *p)
{
	int64_t most = INT64_MIN;

	vec_for(&p->threads, th) {
		int64_t rank = rank_of(x, *th);

		most = rank > most ? rank : most;
	}
	return most;
}

/* Who came most often in place of the thread, as text; "": not known. */
static const char *taker_text(struct wf *x, uint32_t thread)
{
	struct edge_list in = graph_in(x->g, thread);
	const struct edge *top = NULL;

	for (size_t i = 0; i < in.n; i++) {
		const struct edge *d = x->g->edges.v[in.v[i]];

		if (d->type == &preempts_type && HAS(preempts, d, times) &&
		    (!top || GET(preempts, d, times) > GET(preempts, top, times)))
			top = d;
	}
	return top ? wf_text(x->w, "; %s came in its place %" PRIu64 " times", wf_thread_text(x->w, x->g, top->source),
			     GET(preempts, top, times))
		   : "";
}

/* The owner of a lock has no CPU. With priorities that are known and no lower than those of who waits, that is no inversion. */
static void add_inversion(struct wf *x, const struct share *top, const struct share *waiters, size_t nwaiters,
			  uint64_t events, uint32_t object)
{
	struct wait_pattern p = {.kind = PATTERN_INVERSION,
				 .object = object,
				 .root = x->threads.v[top->thread].node,
				 .ns = top->ready_ns,
				 .confidence_pct = 70,
				 .events = events,
				 .root_pct = (double)top->ready_ns * 100 / (double)top->ns};
	const char *owner = wf_thread_text(x->w, x->g, p.root);
	int64_t own = rank_of(x, p.root), most;
	bool known;

	add_waiters(x, &p, waiters, nwaiters);
	most = rank_of_waiters(x, &p);
	known = own != INT64_MIN && most != INT64_MIN;
	if (known && own >= most) {
		vec_done(&p.threads);
		return;
	}
	p.confidence_pct = known ? 90 : 70;
	p.text = wf_text(x->w, "%s has a lock that %s want, and has no CPU", owner, who_text(x, &p));
	p.why = wf_text(x->w,
			"for %.0f %% of the time that others waited for it, it could run and was not on a CPU; %s%s",
			p.root_pct, known ? "its priority is lower than theirs" : "priorities are not recorded",
			taker_text(x, p.root));
	vec_push(&x->w->patterns, p);
}

static void add_queue(struct queues *q, uint32_t at, const struct share *waiters, size_t nwaiters,
		      const struct share *owners, size_t nowners)
{
	struct wf *x = q->x;
	const struct queue *k = &q->v.v[at];
	const struct share *top = nowners ? owners : NULL;
	struct wait_pattern p = {.kind = PATTERN_CONVOY, .object = k->object, .root = NODE_NONE, .ns = k->ns};
	const char *owner = "each other", *id = graph_node_id(x->g, k->object);
	bool known = x->g->nodes.v[k->object]->type == &futex_type &&
		     HAS(futex, x->g->nodes.v[k->object], owner_thread);

	if (k->ns < wf_least_ns(x) || !nwaiters)
		return;
	add_waiters(x, &p, waiters, nwaiters);
	p.events = count_waits(x, k->object);
	if (top && top->ns * 2 > k->ns) {
		p.root = x->threads.v[top->thread].node;
		p.root_pct = (double)top->ns * 100 / (double)k->ns;
		owner = wf_thread_text(x->w, x->g, p.root);
		p.ready_ns = top->ready_ns;
	}
	p.confidence_pct = known ? 95 : 90;
	p.text = wf_text(x->w, "%s wait for a lock that %s %s", who_text(x, &p),
			 p.root == NODE_NONE ? "they take from" : "is with", owner);
	p.why = wf_text(x->w, "%" PRIu64 " waits for %s, %.1f s in all%s", p.events, id, (double)k->ns / 1e9,
			p.root == NODE_NONE ? "; no single thread has it most of the time"
					    : wf_text(x->w, "; %.0f %% of that time %s had it or was about to hand it on",
						      p.root_pct, owner));
	vec_push(&x->w->patterns, p);
	if (!top || p.root == NODE_NONE || top->ready_ns * 2 < top->ns || top->ready_ns < wf_least_ns(x))
		return;
	add_inversion(x, top, waiters, nwaiters, p.events, k->object);
}

void wf_add_locks(struct wf *x)
{
	struct queues q = {.x = x};
	size_t i = 0, k = 0;

	read_accounts(&q);
	if (q.waiters.v.n)
		qsort(q.waiters.v.v, q.waiters.v.n, sizeof(*q.waiters.v.v), share_order);
	if (q.owners.v.n)
		qsort(q.owners.v.v, q.owners.v.n, sizeof(*q.owners.v.v), share_order);
	for (uint32_t at = 0; at < q.v.n; at++) {
		size_t first = i, owner = k;

		while (i < q.waiters.v.n && q.waiters.v.v[i].queue == at)
			i++;
		while (k < q.owners.v.n && q.owners.v.v[k].queue == at)
			k++;
		add_queue(&q, at, q.waiters.v.v + first, i - first, q.owners.v.v + owner, k - owner);
	}
	vec_done(&q.v);
	vec_done(&q.waiters.v);
	vec_done(&q.owners.v);
	idmap_done(&q.of);
	idmap_done(&q.waiters.of);
	idmap_done(&q.owners.of);
}
