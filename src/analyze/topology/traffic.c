/* Traffic within groups: its matrix, its shape, and the groups that fall into parts by it. */
#include <stdlib.h>
#include <string.h>

#include "topology_parts.h"

/* Where some amounts are known and some not, known ones this much smaller than the largest are
 * control. */
#define CONTROL_SHARE 0.01

static void traffic_init(struct topo_traffic *m, size_t n)
{
	m->n = n;
	m->bytes = mem_alloc(n * n * sizeof(*m->bytes));
	m->first = mem_alloc(n * n * sizeof(*m->first));
	m->listens = mem_alloc(n);
	m->kind = mem_alloc(n * n);
	m->amounts = true;
}

static void traffic_done(struct topo_traffic *m)
{
	free(m->bytes);
	free(m->first);
	free(m->listens);
	free(m->kind);
}

/* Which probe counts it. */
static uint8_t counted_by(const char *kind)
{
	if (!strcmp(kind, "tcp") || !strcmp(kind, "udp") || !strcmp(kind, "unix") || !strcmp(kind, "ip"))
		return 1;
	return !strcmp(kind, "shared_memory") ? 3 : 2;
}

static void add_link(struct topo_traffic *m, uint8_t *unknown, size_t from, size_t to,
		     const struct topo_link *l)
{
	size_t at = from * m->n + to;

	m->kind[at] = m->kind[to * m->n + from] = counted_by(l->kind);
	if (l->measured)
		m->bytes[at] += (double)l->bytes;
	else
		unknown[at] = 1;
	if (l->first_ns && (!m->first[at] || l->first_ns < m->first[at]))
		m->first[at] = l->first_ns;
}

/* Amounts of which some are not known say only where data goes. */
static void forget_amounts(struct topo_traffic *m, const uint8_t *unknown)
{
	double most = 0;

	for (size_t i = 0; i < m->n * m->n; i++)
		most = m->bytes[i] > most ? m->bytes[i] : most;
	for (size_t i = 0; i < m->n * m->n; i++)
		m->bytes[i] = unknown[i] || m->bytes[i] > CONTROL_SHARE * most;
	m->amounts = false;
}

/* Rows and columns are the members in their order. */
static void fill(const struct topology *t, const struct topo_group *gr, uint32_t group,
		 struct topo_traffic *m)
{
	uint8_t *unknown = mem_alloc(m->n * m->n);
	bool some = false;

	for (size_t i = 0; i < m->n; i++) {
		size_t n;
		const struct topo_link *l = topology_out(t, gr->members.v[i], &n);

		m->listens[i] = t->actors.v[gr->members.v[i]].listens;
		for (size_t k = 0; k < n; k++) {
			const struct topo_actor *to = &t->actors.v[l[k].to];

			if (to->group != group || !topo_carries_data(t, &l[k]))
				continue;
			add_link(m, unknown, i, to->rank, &l[k]);
			some |= !l[k].measured;
		}
	}
	if (some)
		forget_amounts(m, unknown);
	free(unknown);
}

static void set_members(struct topology *t, uint32_t group)
{
	struct topo_group *gr = &t->groups.v[group];

	for (size_t i = 0; i < gr->members.n; i++) {
		t->actors.v[gr->members.v[i]].group = group;
		t->actors.v[gr->members.v[i]].rank = (uint32_t)i;
	}
	gr->name = topo_text(t, "%zu x %s", gr->members.n, t->actors.v[gr->members.v[0]].program);
}

static void find_shape(struct topology *t, uint32_t group)
{
	struct topo_group *gr = &t->groups.v[group];
	struct topo_traffic m;

	traffic_init(&m, gr->members.n);
	fill(t, gr, group, &m);
	topo_find_shape(&m, &gr->shape);
	traffic_done(&m);
}

/* Whoever made all the others and takes no part in their pattern is their launcher, not one of
 * them. */
static void leave_launcher(struct topology *t, uint32_t group)
{
	struct topo_group *gr = &t->groups.v[group];
	struct topo_shape with = gr->shape;
	uint32_t launcher = gr->launcher, at = 0;

	if (with.shape != SHAPE_UNKNOWN || launcher == TOPO_NONE ||
	    t->actors.v[launcher].group != group || gr->members.n < 3)
		return;
	while (gr->members.v[at] != launcher)
		at++;
	memmove(gr->members.v + at, gr->members.v + at + 1,
		(gr->members.n - at - 1) * sizeof(*gr->members.v));
	gr->members.n--;
	t->actors.v[launcher].group = TOPO_NONE;
	set_members(t, group);
	vec_done(&gr->shape.order);
	memset(&gr->shape, 0, sizeof(gr->shape));
	find_shape(t, group);
}

/* One more group of the members that are in part @p p of those of @p from. */
static void split_off(struct topology *t, uint32_t from, const struct topo_group *all,
		      const uint32_t *part, uint32_t p)
{
	struct topo_group gr = {.launcher = all->launcher, .has_devices = all->has_devices};
	uint32_t group = from;

	for (size_t i = 0; i < all->members.n; i++)
		if (part[i] == p)
			vec_push(&gr.members, all->members.v[i]);
	vec_for(&all->basis, e)
		vec_push(&gr.basis, *e);
	if (p) {
		group = (uint32_t)t->groups.n;
		vec_push(&t->groups, gr);
	} else {
		t->groups.v[from] = gr;
	}
	set_members(t, group);
}

/* Parts of several become groups of their own; a member without a partner leaves, unless a device
   or a rank makes it one of them. */
static void split(struct topology *t, uint32_t group)
{
	struct topo_group all = t->groups.v[group];
	uint32_t *part = mem_alloc(all.members.n * sizeof(*part)), parts, *count;
	struct topo_traffic m;
	uint32_t kept = 0, alone;

	traffic_init(&m, all.members.n);
	fill(t, &all, group, &m);
	parts = topo_split_traffic(&m, part);
	traffic_done(&m);
	count = mem_alloc((parts + 1) * sizeof(*count));
	for (size_t i = 0; i < all.members.n; i++)
		count[part[i]]++;
	for (uint32_t p = 0; p < parts; p++)
		kept += count[p] > 1;
	alone = parts - kept;
	if (parts > 1 && kept && !(alone && all.has_devices)) {
		uint32_t *number = mem_alloc(parts * sizeof(*number));
		uint32_t next = 0;

		for (uint32_t p = 0; p < parts; p++)
			number[p] = count[p] > 1 ? next++ : TOPO_NONE;
		for (size_t i = 0; i < all.members.n; i++) {
			part[i] = number[part[i]];
			if (part[i] == TOPO_NONE)
				t->actors.v[all.members.v[i]].group = TOPO_NONE;
		}
		for (uint32_t p = 0; p < kept; p++)
			split_off(t, group, &all, part, p);
		free(number);
		vec_done(&all.members);
		vec_done(&all.basis);
	}
	free(count);
	free(part);
}

static void add_up(struct topology *t, struct topo_group *gr)
{
	gr->bytes = 0;
	vec_for(&gr->members, a) {
		size_t n;
		const struct topo_link *l = topology_out(t, *a, &n);

		for (size_t k = 0; k < n; k++)
			if (t->actors.v[l[k].to].group == t->actors.v[*a].group)
				gr->bytes += l[k].bytes;
	}
}

/* Two processes of one program that exchange data, or filters that a shell put in a row, are no job
 * yet. */
static bool is_weak(const struct topology *t, const struct topo_group *gr)
{
	uint32_t parent = t->actors.v[gr->members.v[0]].parent;

	if (gr->is_job)
		return false;
	return gr->members.n == 2 || (gr->shape.shape == SHAPE_CHAIN && parent != TOPO_NONE &&
				      t->actors.v[parent].role == ROLE_SHELL);
}

static void drop_weak(struct topology *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->groups.n; i++) {
		struct topo_group *gr = &t->groups.v[i];
		bool weak;

		vec_for(&gr->members, m)
			gr->is_job = gr->is_job || topo_is_of_job(t, *m);
		weak = is_weak(t, gr);
		vec_for(&gr->members, m)
			t->actors.v[*m].group = weak ? TOPO_NONE : (uint32_t)n;
		if (weak) {
			vec_done(&gr->members);
			vec_done(&gr->shape.order);
			vec_done(&gr->basis);
		} else {
			t->groups.v[n++] = *gr;
		}
	}
	t->groups.n = n;
}

void topo_add_shapes(struct topology *t)
{
	size_t n = t->groups.n;

	for (uint32_t i = 0; i < n; i++)
		if (t->groups.v[i].members.n <= TOPO_SHAPE_MAX)
			split(t, i);
	for (uint32_t i = 0; i < t->groups.n; i++) {
		if (t->groups.v[i].members.n > TOPO_SHAPE_MAX)
			continue;
		find_shape(t, i);
		leave_launcher(t, i);
	}
	drop_weak(t);
	vec_for(&t->groups, gr) {
		vec_for(&gr->shape.order, o)
			*o = gr->members.v[*o];
		if (gr->shape.order.n == gr->members.n)
			memcpy(gr->members.v, gr->shape.order.v,
			       gr->members.n * sizeof(*gr->members.v));
		for (size_t i = 0; i < gr->members.n; i++)
			t->actors.v[gr->members.v[i]].rank = (uint32_t)i;
		add_up(t, gr);
	}
}
