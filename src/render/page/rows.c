/* Which processes, threads and links a page has, and which of them it adds up in rows that stand
 * for many. */
#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "hash.h"
#include "idmap.h"
#include "page_parts.h"

uint32_t page_numa_of(const struct page *p, uint32_t actor)
{
	const struct topo_actor *a = &p->t->actors.v[actor];

	if (a->kind == ACTOR_DEVICE && a->rank < p->t->devices.n)
		return p->t->devices.v[a->rank].numa_node;
	if (actor < p->t->n_processes && actor < p->t->places.n && p->t->places.v[actor].cpu.n)
		return p->t->places.v[actor].cpu.v[0].node;
	return PAGE_NONE;
}

static const char *host_of(const struct page *p, uint32_t actor)
{
	return p->g->nodes.v[p->t->actors.v[actor].node]->ns;
}

static uint64_t cpu_ns_of(const struct page *p, uint32_t actor)
{
	const struct node *n = p->g->nodes.v[p->t->actors.v[actor].node];

	return n->type == &process_type && HAS(process, n, cpu_ns) ? GET(process, n, cpu_ns) : 0;
}

/* What the order of importance goes by. */
struct rank {
	uint32_t actor;
	bool named; /* a finding or a problem is about it, or it is what the host is there for */
	uint64_t bytes, cpu_ns;
};

static int by_importance(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->named != y->named)
		return x->named ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

static void name_node(const struct page *p, struct rank *ranks, uint32_t node)
{
	const struct node *n = node < p->g->nodes.n ? p->g->nodes.v[node] : NULL;

	if (n && n->type == &thread_type && HAS(thread, n, process))
		node = GET(thread, n, process);
	if (node < p->g->nodes.n && p->t->actor_of[node] != TOPO_NONE)
		ranks[p->t->actor_of[node]].named = true;
}

static struct rank *rank_actors(const struct page *p, const struct findings *f)
{
	const struct topology *t = p->t;
	struct rank *ranks = mem_alloc((t->actors.n + 1) * sizeof(*ranks));

	for (uint32_t i = 0; i < t->actors.n; i++) {
		const struct topo_actor *a = &t->actors.v[i];

		ranks[i] = (struct rank){i, i == t->main_actor, a->bytes_in + a->bytes_out,
					 cpu_ns_of(p, i)};
	}
	vec_for(&t->problems, it) {
		vec_for(&it->actors, a)
			if (*a < t->actors.n)
				ranks[*a].named = true;
	}
	for (size_t i = 0; f && i < f->v.n; i++) {
		name_node(p, ranks, f->v.v[i].root);
		vec_for(&f->v.v[i].subjects, node)
			name_node(p, ranks, *node);
	}
	qsort(ranks, t->actors.n, sizeof(*ranks), by_importance);
	return ranks;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void keep_actors(struct page *p, const struct findings *f)
{
	static const size_t most[] = {[ACTOR_PROCESS] = PAGE_PROCESSES_MAX,
				      [ACTOR_OUTSIDE] = PAGE_ENDS_MAX,
				      [ACTOR_STORAGE] = PAGE_STORAGE_MAX,
				      [ACTOR_DEVICE] = PAGE_DEVICES_MAX};
	struct rank *ranks = rank_actors(p, f);

	for (size_t i = 0; i < p->t->actors.n; i++) {
		enum actor_kind k = p->t->actors.v[ranks[i].actor].kind;

		p->actors_all[k]++;
		if (p->actors_kept[k] >= most[k])
			continue;
		p->actors_kept[k]++;
		vec_push(&p->kept, ranks[i].actor);
	}
	free(ranks);
	if (p->kept.n)
		qsort(p->kept.v, p->kept.n, sizeof(*p->kept.v), ascending);
	for (size_t i = 0; i < p->kept.n; i++)
		p->row_of[p->kept.v[i]] = (uint32_t)i;
}

/* Two numbers that are equal for actors that may share a row. With @p rough only kind and host
 * count. */
static void fold_key(const struct page *p, uint32_t actor, bool rough, uint64_t *a, uint64_t *b)
{
	const struct topo_actor *x = &p->t->actors.v[actor];
	const char *program = x->program ? x->program : "";
	const char *ns = host_of(p, actor);
	uint32_t numa = page_numa_of(p, actor), container = p->container_of[actor];

	*a = hash_bytes(ns, strlen(ns), 1) ^ x->kind;
	*b = rough ? 0 : hash_bytes(program, strlen(program), (uint64_t)numa << 32 | container);
}

static void fold_actor(struct page *p, struct idmap *m, uint32_t actor)
{
	uint64_t a, b;
	uint32_t at;
	struct page_fold *fold;

	for (int rough = 0; rough < 2; rough++) {
		fold_key(p, actor, rough, &a, &b);
		at = idmap_get(m, a, b);
		if (at != IDMAP_NONE || p->folds.n < PAGE_FOLDS_MAX || rough)
			break;
	}
	if (at == IDMAP_NONE) {
		at = (uint32_t)p->folds.n;
		idmap_put(m, a, b, at);
		*vec_add(&p->folds) = (struct page_fold){.first = actor};
	}
	fold = &p->folds.v[at];
	fold->count++;
	fold->cpu_ns += cpu_ns_of(p, actor);
	fold->bytes_in += p->t->actors.v[actor].bytes_in;
	fold->bytes_out += p->t->actors.v[actor].bytes_out;
	p->row_of[actor] = (uint32_t)p->kept.n + at;
}

static void fold_others(struct page *p)
{
	struct idmap m = {0};

	for (uint32_t i = 0; i < p->t->actors.n; i++)
		if (p->row_of[i] == PAGE_NONE)
			fold_actor(p, &m, i);
	idmap_done(&m);
}

static void find_containers(struct page *p)
{
	vec_for(&p->g->nodes, it)
		if ((*it)->type == &container_type) {
			p->container_row[(*it)->index] = (uint32_t)p->containers.n;
			vec_push(&p->containers, (*it)->index);
		}
	vec_for(&p->g->edges, it) {
		const struct edge *d = *it;
		uint32_t actor = p->t->actor_of[d->source];

		if (d->type == &run_on_type && actor != TOPO_NONE)
			p->container_of[actor] = p->container_row[d->target];
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct page_link *x = a, *y = b;
	int order;

	if (x->measured != y->measured)
		return x->measured ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	order = strcmp(x->one->kind, y->one->kind);
	return order ? order : x->one < y->one ? -1 : x->one > y->one;
}

static void collect_links(struct page *p)
{
	struct idmap m = {0};

	vec_for(&p->t->links, l) {
		uint32_t from = p->row_of[l->from], to = p->row_of[l->to], at;
		uint64_t ends = (uint64_t)from << 32 | to,
			 kind = hash_bytes(l->kind, strlen(l->kind), 1);
		struct page_link *x;

		at = idmap_get(&m, ends, kind);
		if (at == IDMAP_NONE) {
			at = (uint32_t)p->links.n;
			idmap_put(&m, ends, kind, at);
			*vec_add(&p->links) = (struct page_link){.from = from, .to = to, .one = l};
		}
		x = &p->links.v[at];
		x->bytes += l->measured ? l->bytes : 0;
		x->messages += l->messages;
		x->waited_ns += l->waited_ns;
		x->measured |= l->measured;
		x->shared |= l->shared;
	}
	idmap_done(&m);
	p->links_all = p->links.n;
	if (p->links.n)
		qsort(p->links.v, p->links.n, sizeof(*p->links.v), by_bytes);
	if (p->links.n > PAGE_LINKS_MAX)
		p->links.n = PAGE_LINKS_MAX;
}

struct busy {
	uint32_t node;
	bool named;
	uint64_t ns; /* on a CPU, waiting for one, and what others waited for it */
};

static int by_busy(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	if (x->named != y->named)
		return x->named ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Time that others waited until a thread woke them, added to what it has. */
static void add_wakes(const struct graph *g, uint64_t *ns)
{
	vec_for(&g->edges, it)
		if ((*it)->type == &wakes_type && HAS(wakes, *it, waited_ns))
			ns[(*it)->source] += GET(wakes, *it, waited_ns);
}

static bool is_of_kept(const struct page *p, const struct node *n)
{
	uint32_t actor =
	    HAS(thread, n, process) ? p->t->actor_of[GET(thread, n, process)] : TOPO_NONE;

	return actor != TOPO_NONE && p->row_of[actor] < p->kept.n;
}

static void keep_threads(struct page *p, const struct findings *f)
{
	struct graph *g = p->g;
	uint64_t *ns = mem_alloc((g->nodes.n + 1) * sizeof(*ns));
	bool *named = mem_alloc((g->nodes.n + 1) * sizeof(*named));
	VEC(struct busy) all = {0};

	add_wakes(g, ns);
	for (size_t i = 0; f && i < f->v.n; i++) {
		if (f->v.v[i].root < g->nodes.n)
			named[f->v.v[i].root] = true;
		vec_for(&f->v.v[i].subjects, node)
			named[*node] = true;
	}
	vec_for(&g->nodes, it) {
		const struct node *n = *it;

		if (n->type != &thread_type)
			continue;
		p->threads_all++;
		if (!is_of_kept(p, n))
			continue;
		ns[n->index] += HAS(thread, n, run_ns) ? GET(thread, n, run_ns) : 0;
		ns[n->index] += HAS(thread, n, runq_ns) ? GET(thread, n, runq_ns) : 0;
		vec_push(&all, ((struct busy){n->index, named[n->index], ns[n->index]}));
	}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_busy);
	for (size_t i = 0; i < all.n && i < PAGE_THREADS_MAX; i++) {
		p->thread_row[all.v[i].node] = (uint32_t)i;
		vec_push(&p->threads, all.v[i].node);
	}
	vec_done(&all);
	free(named);
	free(ns);
}

static uint32_t *no_rows(size_t n)
{
	uint32_t *ret = mem_alloc((n + 1) * sizeof(*ret));

	memset(ret, 0xff, (n + 1) * sizeof(*ret));
	return ret;
}

void page_init(struct page *p, const struct study *s, const struct findings *f)
{
	memset(p, 0, sizeof(*p));
	p->s = s;
	p->g = s->g;
	p->t = s->t;
	p->row_of = no_rows(s->t->actors.n);
	p->container_of = no_rows(s->t->actors.n);
	p->thread_row = no_rows(s->g->nodes.n);
	p->container_row = no_rows(s->g->nodes.n);
	find_containers(p);
	keep_actors(p, f);
	fold_others(p);
	collect_links(p);
	keep_threads(p, f);
}

void page_done(struct page *p)
{
	vec_done(&p->kept);
	vec_done(&p->folds);
	vec_done(&p->links);
	vec_done(&p->threads);
	vec_done(&p->containers);
	free(p->row_of);
	free(p->thread_row);
	free(p->container_row);
	free(p->container_of);
}
