/* Groups of equal ranks: same program, and joined by traffic, by a device each, or by their
 * environment. */
#include <stdlib.h>
#include <string.h>

#include "topology_parts.h"

/* Below these a link is a token, a heartbeat or a greeting, and joins nobody. */
#define TOKEN_BYTES 16
#define LINK_BYTES  1024 /* at all, and a second */
/* A replica that uses less of a CPU than this is not what the host works for. */
#define BUSY_SHARE 0.02

struct grouper {
	struct topology *t;
	uint32_t *up; /**< union-find over processes */
};

bool topo_is_foreign(const struct topo_actor *a)
{
	switch (a->role) {
	case ROLE_DATABASE:
	case ROLE_WEB_SERVER:
	case ROLE_BUILD:
	case ROLE_CONTAINER:
	case ROLE_SHELL:
	case ROLE_CLIENT:
	case ROLE_MONITOR:
		return true;
	default:
		return false;
	}
}

static uint32_t find(struct grouper *k, uint32_t a)
{
	while (k->up[a] != a)
		a = k->up[a] = k->up[k->up[a]];
	return a;
}

static void join(struct grouper *k, uint32_t a, uint32_t b)
{
	a = find(k, a);
	b = find(k, b);
	if (a < b)
		k->up[b] = a;
	else
		k->up[a] = b;
}

bool topo_carries_data(const struct topology *t, const struct topo_link *l)
{
	if (!strcmp(l->kind, "device") || !strcmp(l->kind, "storage") || !strcmp(l->kind, "ipc"))
		return false;
	if (!l->measured)
		return true;
	return !l->shared && l->bytes >= LINK_BYTES && l->bytes > l->messages * TOKEN_BYTES &&
	       (double)l->bytes >= LINK_BYTES * (double)t->window_ns / 1e9;
}

static bool same_program(const struct topo_actor *a, const struct topo_actor *b)
{
	return a->kind == ACTOR_PROCESS && b->kind == ACTOR_PROCESS &&
	       !strcmp(a->program, b->program);
}

/* Side of a prefill/decode split that a process was started for, by itself or an ancestor; NULL:
 * none. */
static const char *part_of(const struct topology *t, uint32_t actor)
{
	const struct topo_declared *d;

	for (; (d = topo_declared_of(t, actor)) != NULL; actor = t->actors.v[d->actor].parent)
		if (d->part)
			return d->part;
	return NULL;
}

/* Instances that hand their work on to each other are no ranks of one group. */
static bool other_part(const struct topology *t, uint32_t a, uint32_t b)
{
	const char *p, *q;

	if (!t->declared.n)
		return false;
	p = part_of(t, a);
	q = part_of(t, b);
	return p && q && strcmp(p, q) != 0 && (!strcmp(p, "prefill") || !strcmp(p, "decode"));
}

static bool joins(const struct topology *t, const struct topo_link *l)
{
	const struct topo_actor *a = &t->actors.v[l->from], *b = &t->actors.v[l->to];

	return same_program(a, b) && !topo_is_foreign(a) && !topo_is_foreign(b) &&
	       a->role != ROLE_LOADER && b->role != ROLE_LOADER && topo_carries_data(t, l) &&
	       !other_part(t, l->from, l->to);
}

/* What a process exchanges data with. */
struct company {
	bool others; /**< peers of its program that it neither made nor was made by */
	bool other_programs;
	uint64_t to_parent, from_parent;
};

static void learn_company(const struct topology *t, struct company *list)
{
	vec_for(&t->links, l) {
		const struct topo_actor *a = &t->actors.v[l->from], *b = &t->actors.v[l->to];

		if (a->kind != ACTOR_PROCESS || b->kind != ACTOR_PROCESS ||
		    !topo_carries_data(t, l))
			continue;
		if (a->parent == l->to) {
			list[l->from].to_parent += l->measured ? l->bytes : 1;
		} else if (b->parent == l->from) {
			list[l->to].from_parent += l->measured ? l->bytes : 1;
		} else if (same_program(a, b)) {
			list[l->from].others = list[l->to].others = true;
		} else {
			list[l->from].other_programs = list[l->to].other_programs = true;
		}
	}
}

bool topo_has_device(const struct topology *t, uint32_t actor)
{
	size_t n;
	const struct topo_link *l = topology_out(t, actor, &n);

	for (size_t i = 0; i < n; i++)
		if (t->actors.v[l[i].to].kind == ACTOR_DEVICE)
			return true;
	return false;
}

/* A rank's children inherit its environment, and are no ranks for that. */
static bool has_rank(const struct topology *t, uint32_t actor)
{
	const struct topo_declared *d = topo_declared_of(t, actor), *up;

	if (!d || d->actor != actor || !d->has_rank || t->actors.v[actor].role == ROLE_LOADER)
		return false;
	up = topo_declared_of(t, t->actors.v[actor].parent);
	return !(up && up->actor == t->actors.v[actor].parent && up->has_rank &&
		 up->rank == d->rank);
}

/* Children that a rank keeps for itself: they talk to nobody but the parent. */
static void find_loaders(struct topology *t)
{
	struct company *list = mem_alloc((t->n_processes + 1) * sizeof(*list));

	learn_company(t, list);
	for (uint32_t i = 0; i < t->n_processes; i++) {
		struct topo_actor *a = &t->actors.v[i];
		const struct company *c = &list[i];

		if (a->parent == TOPO_NONE || !same_program(a, &t->actors.v[a->parent]) ||
		    a->role != ROLE_UNKNOWN || c->others || c->other_programs ||
		    (!c->to_parent && !c->from_parent) || topo_has_device(t, i))
			continue;
		if (!list[a->parent].others && !topo_has_device(t, a->parent) &&
		    !has_rank(t, a->parent))
			continue;
		a->role = ROLE_LOADER;
		a->role_pct = 80;
		a->role_why = topo_text(t,
					"child of %s with the same program, exchanges data with it "
					"and with no other process",
					t->actors.v[a->parent].label);
	}
	free(list);
}

/* Ranks of different hosts meet at an address that both can reach: loopback is each host's own. */
static bool may_meet(const struct topology *t, uint32_t a, uint32_t b, const char *master)
{
	const struct graph *g = t->g;

	if (g->nodes.v[t->actors.v[a].node]->ns == g->nodes.v[t->actors.v[b].node]->ns)
		return true;
	return master && *master && strncmp(master, "127.", 4) != 0 && strcmp(master, "localhost") != 0 &&
	       strcmp(master, "::1") != 0;
}

/* Siblings with a device each, and ranks of the same world. */
static void join_siblings(struct grouper *k)
{
	struct topology *t = k->t;
	uint32_t *last = mem_alloc((t->n_processes + 1) * sizeof(*last)), ranked = TOPO_NONE;

	for (uint32_t i = 0; i < t->n_processes; i++) {
		const struct topo_actor *a = &t->actors.v[i];
		uint32_t before;

		if (has_rank(t, i)) {
			const struct topo_declared *d = topo_declared_of(t, i);
			const struct topo_declared *r =
			    ranked != TOPO_NONE ? topo_declared_of(t, ranked) : NULL;

			if (r && r->world == d->world && may_meet(t, i, ranked, d->master) && same_program(a, &t->actors.v[ranked]) &&
			    (!r->master || !d->master || !strcmp(r->master, d->master)))
				join(k, i, ranked);
			ranked = i;
		}
		if (!topo_has_device(t, i) || a->parent == TOPO_NONE || topo_is_foreign(a))
			continue;
		before = last[a->parent];
		if (before && same_program(a, &t->actors.v[before - 1]))
			join(k, i, before - 1);
		last[a->parent] = i + 1;
	}
	free(last);
}

static double busy_share(const struct topology *t, uint32_t actor)
{
	const struct node *n = t->g->nodes.v[t->actors.v[actor].node];

	if (!HAS(process, n, cpu_ns) || !t->window_ns)
		return 0;
	return (double)GET(process, n, cpu_ns) / (double)t->window_ns;
}

/* Equal processes that are busy are many things; of an AI job they are when a launcher said so. */
bool topo_is_of_job(const struct topology *t, uint32_t actor)
{
	const struct topo_declared *d = topo_declared_of(t, actor);

	return topo_has_device(t, actor) ||
	       (d && (d->framework || (d->actor == actor && d->is_job)));
}

/* Could be one of several that do the same on their own. */
static bool may_be_replica(struct grouper *k, uint32_t i, const struct company *c)
{
	const struct topo_actor *a = &k->t->actors.v[i];
	const struct node *n = k->t->g->nodes.v[a->node];

	if (topo_is_foreign(a) || a->role == ROLE_LOADER || a->parent == TOPO_NONE || a->listens ||
	    a->children || k->t->actors.v[a->parent].listens || HAS(process, n, end_ns) ||
	    find(k, i) != i)
		return false;
	if (c->others || c->other_programs || c->to_parent || c->from_parent)
		return false;
	return topo_is_of_job(k->t, i) && busy_share(k->t, i) >= BUSY_SHARE;
}

static int compare_replicas(const void *a, const void *b, void *ctx)
{
	const struct topology *t = ctx;
	const struct topo_actor *x = &t->actors.v[*(const uint32_t *)a],
				*y = &t->actors.v[*(const uint32_t *)b];
	int c;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	c = strcmp(x->program, y->program);
	return c ? c : *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void join_replicas(struct grouper *k)
{
	struct topology *t = k->t;
	struct company *list = mem_alloc((t->n_processes + 1) * sizeof(*list));
	uint8_t *joined = mem_alloc(t->n_processes + 1);
	VEC(uint32_t) found = {0};

	learn_company(t, list);
	for (uint32_t i = 0; i < t->n_processes; i++)
		joined[find(k, i)] |= find(k, i) != i;
	for (uint32_t i = 0; i < t->n_processes; i++)
		if (!joined[i] && may_be_replica(k, i, &list[i]))
			vec_push(&found, i);
	if (found.n)
		qsort_r(found.v, found.n, sizeof(*found.v), compare_replicas, t);
	for (size_t i = 1; i < found.n; i++)
		if (t->actors.v[found.v[i]].parent == t->actors.v[found.v[i - 1]].parent &&
		    same_program(&t->actors.v[found.v[i]], &t->actors.v[found.v[i - 1]]))
			join(k, found.v[i], found.v[i - 1]);
	vec_done(&found);
	free(joined);
	free(list);
}

static uint32_t common_ancestor(const struct topology *t, const struct topo_group *gr)
{
	uint32_t a = gr->members.v[0];

	for (; a != TOPO_NONE; a = t->actors.v[a].parent) {
		bool all = true;

		vec_for(&gr->members, m)
			all = all && topo_descends(t, *m, a);
		if (all)
			return a;
	}
	return TOPO_NONE;
}

static uint64_t device_of(const struct topology *t, uint32_t actor)
{
	size_t n;
	const struct topo_link *l = topology_out(t, actor, &n);

	for (size_t i = 0; i < n; i++)
		if (t->actors.v[l[i].to].kind == ACTOR_DEVICE)
			return t->actors.v[l[i].to].rank;
	return UINT64_MAX;
}

struct member_key {
	uint64_t key;
	uint32_t actor;
};

static int compare_members(const void *a, const void *b)
{
	const struct member_key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

/* By declared rank if all have one, else by device, else by pid. */
static void order_members(struct topology *t, struct topo_group *gr)
{
	struct member_key *keys = mem_alloc(gr->members.n * sizeof(*keys));
	bool ranks = true;

	gr->has_devices = true;
	vec_for(&gr->members, m) {
		ranks = ranks && has_rank(t, *m);
		gr->has_devices = gr->has_devices && topo_has_device(t, *m);
	}
	for (size_t i = 0; i < gr->members.n; i++) {
		uint32_t a = gr->members.v[i];

		keys[i].actor = a;
		keys[i].key = ranks             ? topo_declared_of(t, a)->rank
			      : gr->has_devices ? device_of(t, a)
						: 0;
	}
	qsort(keys, gr->members.n, sizeof(*keys), compare_members);
	for (size_t i = 0; i < gr->members.n; i++)
		gr->members.v[i] = keys[i].actor;
	free(keys);
}

static void add_basis(struct topology *t, struct topo_group *gr)
{
	uint32_t parent = t->actors.v[gr->members.v[0]].parent;
	size_t siblings = 0, ranks = 0;

	vec_for(&gr->members, m) {
		siblings += t->actors.v[*m].parent == parent;
		ranks += has_rank(t, *m);
	}
	topo_evidence(&gr->basis, EVIDENCE_FOR,
		      topo_text(t, "same program: %s", t->actors.v[gr->members.v[0]].program));
	if (siblings == gr->members.n && parent != TOPO_NONE)
		topo_evidence(&gr->basis, EVIDENCE_FOR,
			      topo_text(t, "same parent: %s", t->actors.v[parent].label));
	if (gr->has_devices)
		topo_evidence(&gr->basis, EVIDENCE_FOR, "each uses an accelerator of its own");
	if (ranks == gr->members.n)
		topo_evidence(&gr->basis, EVIDENCE_FOR, "each has a rank in its environment");
}

static void finish_group(struct topology *t, uint32_t index)
{
	struct topo_group *gr = &t->groups.v[index];

	order_members(t, gr);
	for (size_t i = 0; i < gr->members.n; i++) {
		t->actors.v[gr->members.v[i]].group = index;
		t->actors.v[gr->members.v[i]].rank = (uint32_t)i;
	}
	gr->launcher = common_ancestor(t, gr);
	gr->name = topo_text(t, "%zu x %s", gr->members.n, t->actors.v[gr->members.v[0]].program);
	add_basis(t, gr);
}

static void collect_groups(struct grouper *k)
{
	struct topology *t = k->t;
	uint32_t *group_of = mem_alloc((t->n_processes + 1) * sizeof(*group_of));
	uint32_t *count = mem_alloc((t->n_processes + 1) * sizeof(*count));

	for (uint32_t i = 0; i < t->n_processes; i++)
		count[find(k, i)]++;
	for (uint32_t i = 0; i < t->n_processes; i++) {
		uint32_t top = find(k, i);

		if (count[top] < 2)
			continue;
		if (!group_of[top]) {
			vec_add(&t->groups)->launcher = TOPO_NONE;
			group_of[top] = (uint32_t)t->groups.n;
		}
		vec_push(&t->groups.v[group_of[top] - 1].members, i);
	}
	for (uint32_t i = 0; i < t->groups.n; i++)
		finish_group(t, i);
	for (uint32_t i = 0; i < t->n_processes; i++) {
		uint32_t p = t->actors.v[i].parent;

		if (t->actors.v[i].role == ROLE_LOADER && p != TOPO_NONE &&
		    t->actors.v[p].group != TOPO_NONE)
			t->groups.v[t->actors.v[p].group].loaders++;
	}
	free(group_of);
	free(count);
}

void topo_add_groups(struct topology *t)
{
	struct grouper k = {.t = t, .up = mem_alloc((t->n_processes + 1) * sizeof(*k.up))};

	for (uint32_t i = 0; i < t->n_processes; i++)
		k.up[i] = i;
	find_loaders(t);
	vec_for(&t->links, l)
		if (joins(t, l))
			join(&k, l->from, l->to);
	join_siblings(&k);
	join_replicas(&k);
	collect_groups(&k);
	free(k.up);
}
