/* Adds up what single waits led to: a chain for each role that waits, and the roots of all. */
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "waitfor/cascade.h"

#define ROOT_KINDS (2 * STATE_COUNT)
#define MAP_KEPT   256

/* What a share of the time of one thread counts for, by role. */
struct coarse {
	uint32_t chain, part;
	uint64_t top_ns;
};

struct role_share {
	uint32_t root, role;
	uint64_t ns;
};

/* What is counted of a root while accounts come by, those of one role and one thread after each other. */
struct tally {
	uint64_t most;	 /* longest piece so far, for its object */
	uint32_t waiter; /* the last one that was counted */
	uint32_t role;	 /* of the last ones, with their time */
	uint64_t role_ns;
};

struct folding {
	struct cascade *c;
	struct waitfor *w;
	uint32_t *chain_of; /* [roles.n] index in w->chains, NODE_NONE: none yet */
	VEC(struct coarse) parts;
	/* Of the role at hand only, which comes once: small ones stay in the CPU's cache. */
	struct idmap part_of;	/* hash of a part to its number in parts */
	struct idmap thread_of; /* part and thread to index in shares */
	uint32_t role;
	VEC(uint64_t) shares;
	uint32_t *root_of; /* [threads.n * ROOT_KINDS] by thread, state and idleness, NODE_NONE: none yet */
	VEC(struct role_share) role_ns;
	VEC(struct tally) tallies; /* [w->roots.n] */
};

/* Nobody is late when the root only lets time pass, or when it is outside, where nothing is known of it. */
static bool is_idle(const struct wf_account *a, const struct wf_way *way)
{
	if (a->cause == CAUSE_CHILD)
		return true;
	switch (way->state) {
	case STATE_SLEEP:
	case STATE_OUTSIDE:
		return !a->held;
	case STATE_NETWORK:
	case STATE_BLOCKED:
		return true;
	default:
		return false;
	}
}

/* Roles on the way, those of equal threads that follow each other as one. */
static uint32_t roles_on_way(const struct folding *f, const struct wf_account *a, const struct wf_way *way,
			     uint32_t *ret)
{
	const struct wf *x = f->c->x;
	uint32_t n = 0, last = x->threads.v[a->waiter].role, root = x->threads.v[way->thread].role;

	for (uint32_t i = 0; i < way->nvia; i++) {
		uint32_t role = x->threads.v[way->via[i]].role;

		if (role != last)
			ret[n++] = role;
		last = role;
	}
	if (n && ret[n - 1] == root)
		n--;
	return n;
}

static struct wait_chain *chain_of(struct folding *f, uint32_t role)
{
	struct wait_chain *c;

	if (f->chain_of[role] == NODE_NONE) {
		f->chain_of[role] = (uint32_t)f->w->chains.n;
		c = vec_add(&f->w->chains);
		c->role = role;
	}
	return &f->w->chains.v[f->chain_of[role]];
}

static uint32_t part_of(struct folding *f, const struct wf_account *a, const struct wf_way *way)
{
	const struct wf *x = f->c->x;
	uint32_t via[WAITFOR_DEPTH], n = roles_on_way(f, a, way, via), at;
	uint32_t role = x->threads.v[a->waiter].role, root = x->threads.v[way->thread].role;
	unsigned flags = way->state << 8 | a->cause << 2 | a->held << 1 | is_idle(a, way);
	uint64_t h = hash_pair(hash_pair(role, root), flags), k = hash_pair(flags, hash_pair(root, role));
	struct wait_chain *c = chain_of(f, role);
	struct wait_part *p;

	for (uint32_t i = 0; i < n; i++) {
		h = hash_pair(h, via[i]);
		k = hash_pair(via[i], k);
	}
	at = idmap_get(&f->part_of, h, k);
	if (at != IDMAP_NONE)
		return at;
	at = (uint32_t)f->parts.n;
	idmap_put(&f->part_of, h, k, at);
	vec_push(&f->parts, ((struct coarse){f->chain_of[role], (uint32_t)c->parts.n, 0}));
	p = vec_add(&c->parts);
	for (uint32_t i = 0; i < n; i++)
		vec_push(&p->via, via[i]);
	p->role = root;
	p->thread = NODE_NONE;
	p->state = way->state;
	p->object = p->first_object = NODE_NONE;
	p->cause = a->cause;
	p->held = a->held;
	p->idle = is_idle(a, way);
	return at;
}

static void add_to_part(struct folding *f, const struct wf_account *a, const struct wf_way *way, uint64_t ns)
{
	uint32_t at = part_of(f, a, way), share = idmap_get(&f->thread_of, at, way->thread);
	struct coarse *part = &f->parts.v[at];
	struct wait_chain *c = &f->w->chains.v[part->chain];
	struct wait_part *p = &c->parts.v[part->part];

	if (share == IDMAP_NONE) {
		share = (uint32_t)f->shares.n;
		idmap_put(&f->thread_of, at, way->thread, share);
		vec_push(&f->shares, 0);
		p->threads++;
	}
	f->shares.v[share] += ns;
	if (f->shares.v[share] > part->top_ns) {
		part->top_ns = f->shares.v[share];
		p->thread = f->c->x->threads.v[way->thread].node;
		p->object = way->object;
		p->first_object = a->object;
	}
	p->ns += ns;
	c->waited_ns += ns;
	if (!p->idle)
		c->late_ns += ns;
	else if (p->state == STATE_BLOCKED)
		c->unknown_ns += ns;
}

static void add_to_root(struct folding *f, const struct wf_account *a, const struct wf_way *way, uint64_t ns)
{
	struct waitfor *w = f->w;
	unsigned kind = way->state << 1 | is_idle(a, way);
	uint32_t *root = &f->root_of[(size_t)way->thread * ROOT_KINDS + kind], at = *root;
	uint32_t role = f->c->x->threads.v[a->waiter].role;
	struct wait_root *r;
	struct tally *t;

	if (at == NODE_NONE) {
		at = *root = (uint32_t)w->roots.n;
		r = vec_add(&w->roots);
		r->thread = f->c->x->threads.v[way->thread].node;
		r->state = way->state;
		r->idle = is_idle(a, way);
		r->object = NODE_NONE;
		if (!r->idle)
			r->wall_ns = f->c->wall[(size_t)way->thread * STATE_COUNT + way->state].ns;
		vec_push(&f->tallies, ((struct tally){.waiter = NODE_NONE, .role = role}));
	}
	r = &w->roots.v[at];
	t = &f->tallies.v[at];
	if (way->thread == a->waiter)
		r->own_ns += ns;
	else
		r->waited_ns += ns;
	r->held |= a->held;
	if (ns > t->most) {
		t->most = ns;
		r->object = way->object;
	}
	if (way->thread != a->waiter && t->waiter != a->waiter) {
		t->waiter = a->waiter;
		r->waiters++;
	}
	if (t->role != role) {
		vec_push(&f->role_ns, ((struct role_share){at, t->role, t->role_ns}));
		t->role = role;
		t->role_ns = 0;
	}
	t->role_ns += ns;
}

/* The pieces of an account are scaled so that they sum up to its total: what is left goes to the largest. */
static void fold_account(struct folding *f, const struct wf_piece *p, size_t n, const struct wf_account *a)
{
	uint64_t sum = 0, given = 0, most = 0;
	size_t largest = 0;

	for (size_t i = 0; i < n; i++) {
		sum += p[i].ns;
		if (p[i].ns > most) {
			most = p[i].ns;
			largest = i;
		}
	}
	if (!sum || !a->total_ns)
		return;
	for (size_t i = 0; i < n; i++)
		if (i != largest)
			given += (uint64_t)((double)a->total_ns * ((double)p[i].ns / (double)sum));
	for (size_t i = 0; i < n; i++) {
		const struct wf_way *way = &f->c->ways.v[p[i].way];
		uint64_t ns = i == largest ? a->total_ns - given
					   : (uint64_t)((double)a->total_ns * ((double)p[i].ns / (double)sum));

		if (!ns)
			continue;
		add_to_part(f, a, way, ns);
		add_to_root(f, a, way, ns);
	}
}

static int account_order(const void *a, const void *b, void *ctx)
{
	const struct cascade *c = ctx;
	const struct wf_account *x = &c->accounts.v[*(const uint32_t *)a], *y = &c->accounts.v[*(const uint32_t *)b];
	uint32_t p = c->x->threads.v[x->waiter].role, q = c->x->threads.v[y->waiter].role;

	if (p != q)
		return p < q ? -1 : 1;
	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* What one large role needed is not cleared for each of the small ones. */
static void empty(struct idmap *m)
{
	if (m->cap > MAP_KEPT)
		idmap_done(m);
	else
		idmap_clear(m);
}

static void turn_to(struct folding *f, uint32_t role)
{
	if (f->role == role)
		return;
	f->role = role;
	empty(&f->part_of);
	empty(&f->thread_of);
}

/* Accounts of one role, and in it of one thread, after each other. */
static void fold_accounts(struct folding *f)
{
	struct cascade *c = f->c;
	uint32_t *order = mem_alloc((c->accounts.n + 1) * sizeof(*order));
	uint32_t *first = mem_alloc((c->accounts.n + 2) * sizeof(*first));

	vec_for(&c->pieces, p)
		first[p->account + 1]++;
	for (uint32_t i = 0; i < c->accounts.n; i++) {
		first[i + 1] += first[i];
		order[i] = i;
	}
	if (c->accounts.n)
		qsort_r(order, c->accounts.n, sizeof(*order), account_order, c);
	for (uint32_t i = 0; i < c->accounts.n; i++) {
		const struct wf_account *a = &c->accounts.v[order[i]];

		turn_to(f, c->x->threads.v[a->waiter].role);
		fold_account(f, c->pieces.v + first[order[i]], first[order[i] + 1] - first[order[i]], a);
	}
	for (uint32_t i = 0; i < f->tallies.n; i++)
		vec_push(&f->role_ns, ((struct role_share){i, f->tallies.v[i].role, f->tallies.v[i].role_ns}));
	free(order);
	free(first);
}

static int longest(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int part_order(const void *a, const void *b)
{
	const struct wait_part *x = a, *y = b;

	return longest(x->ns, y->ns) ?: x->role < y->role ? -1
			       : x->role > y->role	  ? 1
			       : x->state < y->state	  ? -1
			       : x->state > y->state	  ? 1
			       : x->cause < y->cause	  ? -1
							  : x->cause > y->cause;
}

static int chain_order(const void *a, const void *b)
{
	const struct wait_chain *x = a, *y = b;

	return longest(x->late_ns, y->late_ns) ?: longest(x->waited_ns, y->waited_ns)
						       ?: x->role < y->role ? -1
									    : x->role > y->role;
}

static int root_order(const void *a, const void *b)
{
	const struct wait_root *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	return longest(x->waited_ns + x->own_ns, y->waited_ns + y->own_ns) ?: x->thread < y->thread ? -1
				      : x->thread > y->thread		    ? 1
				      : x->state < y->state		    ? -1
									    : x->state > y->state;
}

static int role_share_order(const void *a, const void *b)
{
	const struct role_share *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return longest(x->ns, y->ns) ?: x->role < y->role ? -1 : x->role > y->role;
}

static void finish_roots(struct folding *f)
{
	struct waitfor *w = f->w;
	uint64_t covered = f->c->x->to_ns - f->c->x->from_ns;

	if (f->role_ns.n)
		qsort(f->role_ns.v, f->role_ns.n, sizeof(*f->role_ns.v), role_share_order);
	vec_for(&f->role_ns, s)
		vec_push(&w->roots.v[s->root].roles, s->role);
	vec_for(&w->roots, r) {
		if (covered && covered < w->window_ns)
			r->wall_ns = (uint64_t)((double)r->wall_ns * ((double)w->window_ns / (double)covered));
		if (r->wall_ns > r->waited_ns + r->own_ns)
			r->wall_ns = r->waited_ns + r->own_ns;
		if (w->window_ns && r->wall_ns > w->window_ns)
			r->wall_ns = w->window_ns;
	}
	if (w->roots.n)
		qsort(w->roots.v, w->roots.n, sizeof(*w->roots.v), root_order);
}

static void finish_chains(struct folding *f)
{
	struct waitfor *w = f->w;
	uint64_t *seen = mem_alloc((w->roles.n + 1) * sizeof(*seen));

	vec_for(&f->c->accounts, a)
		if (a->counted_ns)
			seen[f->c->x->threads.v[a->waiter].role] +=
				a->counted_ns < a->total_ns ? a->counted_ns : a->total_ns;
	vec_for(&w->chains, c) {
		if (c->parts.n)
			qsort(c->parts.v, c->parts.n, sizeof(*c->parts.v), part_order);
		c->seen_pct = c->waited_ns ? (unsigned)((double)seen[c->role] * 100 / (double)c->waited_ns) : 0;
		if (c->seen_pct > 100)
			c->seen_pct = 100;
	}
	if (w->chains.n)
		qsort(w->chains.v, w->chains.n, sizeof(*w->chains.v), chain_order);
	free(seen);
}

void wf_add_chains(struct wf *x)
{
	struct cascade *c = x->c;
	struct folding f = {.c = c, .w = x->w, .role = NODE_NONE};
	size_t roots = x->threads.n * ROOT_KINDS;

	cascade_run(c, x);
	f.root_of = mem_alloc((roots + 1) * sizeof(*f.root_of));
	memset(f.root_of, 0xff, (roots + 1) * sizeof(*f.root_of));
	f.chain_of = mem_alloc((x->w->roles.n + 1) * sizeof(*f.chain_of));
	memset(f.chain_of, 0xff, (x->w->roles.n + 1) * sizeof(*f.chain_of));
	fold_accounts(&f);
	finish_chains(&f);
	finish_roots(&f);
	free(f.chain_of);
	free(f.root_of);
	vec_done(&f.parts);
	vec_done(&f.shares);
	vec_done(&f.role_ns);
	vec_done(&f.tallies);
	idmap_done(&f.part_of);
	idmap_done(&f.thread_of);
}
