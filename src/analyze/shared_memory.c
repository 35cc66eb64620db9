/* Joins shared memory with its mappers and with the futex words inside it. */
#include "shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "hash.h"
#include "idmap.h"

bool shared_memory_is_path(const struct shared_object *o)
{
	return o->mappers.n >= 2 && o->writers;
}

static int compare_mappers(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct shared_mapper *x = a, *y = b;
	const struct node *p = g->nodes.v[x->process], *q = g->nodes.v[y->process];
	uint64_t pp = GET(process, p, pid), qp = GET(process, q, pid);

	if (pp != qp)
		return pp < qp ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static int compare_wakes(const void *a, const void *b)
{
	const struct shared_wakes *x = a, *y = b;

	if (x->wakeups != y->wakeups)
		return x->wakeups < y->wakeups ? 1 : -1;
	if (x->waker != y->waker)
		return x->waker < y->waker ? -1 : 1;
	return x->waiter < y->waiter ? -1 : x->waiter > y->waiter;
}

static int compare_objects(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct shared_object *x = a, *y = b;
	int px = shared_memory_is_path(x), py = shared_memory_is_path(y);
	uint64_t sx = GET(shared_memory, g->nodes.v[x->node], shm_size);
	uint64_t sy = GET(shared_memory, g->nodes.v[y->node], shm_size);

	if (px != py)
		return py - px;
	if (sx != sy)
		return sx < sy ? 1 : -1;
	return x->node < y->node ? -1 : 1;
}

static bool maps(const struct shared_object *o, uint32_t process)
{
	vec_for(&o->mappers, m)
		if (m->process == process)
			return true;
	return false;
}

static void add_mappers(struct graph *g, struct shared_object *o)
{
	struct edge_list in = graph_in(g, o->node);

	for (size_t i = 0; i < in.n; i++) {
		const struct edge *d = g->edges.v[in.v[i]];
		struct shared_mapper *m;

		if (d->type != &access_type || g->nodes.v[d->source]->type != &process_type)
			continue;
		m = vec_add(&o->mappers);
		m->process = d->source;
		m->access = d->index;
		o->writers += HAS(access, d, mode) && strchr(GET(access, d, mode), 'w') != NULL;
	}
	if (o->mappers.n)
		qsort_r(o->mappers.v, o->mappers.n, sizeof(*o->mappers.v), compare_mappers, g);
}

static void count_wakes(struct shared_object *o, uint32_t waker, uint32_t waiter, uint64_t wakeups,
			uint64_t waited_ns)
{
	struct shared_wakes *new;

	vec_for(&o->wakes, w) {
		if (w->waker != waker || w->waiter != waiter)
			continue;
		w->wakeups += wakeups;
		w->waited_ns += waited_ns;
		return;
	}
	new = vec_add(&o->wakes);
	*new = (struct shared_wakes){waker, waiter, wakeups, waited_ns};
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Who of the object's other processes ended waits of this thread, which waited on a word in it. */
static void add_wakers(struct graph *g, struct shared_object *o, const struct edge *wait)
{
	uint32_t waiter = process_of(g, wait->source);
	struct edge_list in = graph_in(g, wait->source);

	for (size_t i = 0; waiter != NODE_NONE && i < in.n; i++) {
		const struct edge *d = g->edges.v[in.v[i]];
		uint32_t waker = d->type == &wakes_type ? process_of(g, d->source) : NODE_NONE;

		if (waker == NODE_NONE || waker == waiter || !maps(o, waker))
			continue;
		count_wakes(o, waker, waiter, least(GET(wakes, d, wakeups), GET(waits_for, wait, waits)),
			    least(GET(wakes, d, waited_ns), GET(waits_for, wait, waited_ns)));
	}
}

/* A shared futex is named DEV:INODE:OFFSET, as the memory that it lies in, of the same host. */
struct memory_name {
	const char *ns;
	char begin[80]; /* "DEV:INODE:" */
	uint32_t object, next; /* of the same hash; IDMAP_NONE: the last one */
};

struct memory_names {
	VEC(struct memory_name) v;
	struct idmap by_hash;
};

static uint64_t name_hash(const char *ns, const char *begin, size_t n)
{
	return hash_bytes(begin, n, hash_bytes(ns, strlen(ns), 1));
}

static void add_name(struct memory_names *x, const struct graph *g, const struct shared_object *o, uint32_t object)
{
	const struct node *memory = g->nodes.v[o->node];
	struct memory_name m = {.ns = memory->ns, .object = object};
	uint64_t hash;

	if (o->mappers.n < 2 || !HAS(shared_memory, memory, dev) || !HAS(shared_memory, memory, inode))
		return;
	snprintf(m.begin, sizeof(m.begin), "%.40s:%llu:", GET(shared_memory, memory, dev),
		 (unsigned long long)GET(shared_memory, memory, inode));
	hash = name_hash(m.ns, m.begin, strlen(m.begin));
	m.next = idmap_get(&x->by_hash, hash, 0);
	idmap_put(&x->by_hash, hash, 0, (uint32_t)x->v.n);
	vec_push(&x->v, m);
}

static void add_evidence(struct graph *g, struct shared_objects *all, const struct memory_names *x, const struct node *futex)
{
	const char *key = GET(futex, futex, futex_key), *end = strrchr(key, ':');
	size_t n = end ? (size_t)(end + 1 - key) : 0;
	struct edge_list in = {0};

	for (uint32_t i = n ? idmap_get(&x->by_hash, name_hash(futex->ns, key, n), 0) : IDMAP_NONE; i != IDMAP_NONE;
	     i = x->v.v[i].next) {
		const struct memory_name *m = &x->v.v[i];

		if (strcmp(m->ns, futex->ns) || strncmp(m->begin, key, n) || m->begin[n])
			continue;
		in = graph_in(g, futex->index);
		for (size_t k = 0; k < in.n; k++)
			if (g->edges.v[in.v[k]]->type == &waits_for_type)
				add_wakers(g, &all->v.v[m->object], g->edges.v[in.v[k]]);
	}
}

void shared_memory_objects(struct graph *g, struct shared_objects *ret)
{
	struct memory_names names = {0};

	memset(ret, 0, sizeof(*ret));
	vec_for(&g->nodes, n) {
		struct shared_object *o;

		if ((*n)->type != &shared_memory_type)
			continue;
		o = vec_add(&ret->v);
		o->node = (*n)->index;
		add_mappers(g, o);
	}
	for (uint32_t i = 0; i < ret->v.n; i++)
		add_name(&names, g, &ret->v.v[i], i);
	vec_for(&g->nodes, n)
		if ((*n)->type == &futex_type)
			add_evidence(g, ret, &names, *n);
	vec_done(&names.v);
	idmap_done(&names.by_hash);
	vec_for(&ret->v, o)
		if (o->wakes.n)
			qsort(o->wakes.v, o->wakes.n, sizeof(*o->wakes.v), compare_wakes);
	if (ret->v.n)
		qsort_r(ret->v.v, ret->v.n, sizeof(*ret->v.v), compare_objects, g);
}

void shared_memory_done(struct shared_objects *o)
{
	vec_for(&o->v, it) {
		vec_done(&it->mappers);
		vec_done(&it->wakes);
	}
	vec_done(&o->v);
}
