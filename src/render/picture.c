/* Pictures of a topology: which boxes and arrows there are, at a level, within limits. */
#include "picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "map.h"
#include "picture_parts.h"

#define KIND_MOST 40 /* code points */

/* Interned texts: equal ones have one address. Nothing walks the map. */
static uint64_t hash_text(const char *s)
{
	return hash_u64((uint64_t)(uintptr_t)s);
}

MAP_DEFINE(slot_map, const char *, uint32_t, hash_text, map_equal)

int picture_level_find(const char *name, enum picture_level *ret)
{
	static const char *const names[] = {"process", "container", "host"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum picture_level)i;
			return 0;
		}
	return -EINVAL;
}

static const struct node *node_of(const struct topology *t, const struct topo_actor *a)
{
	return t->g->nodes.v[a->node];
}

/* Containers by process; topo_actor has their names only, which hosts may share. */
static void find_containers(struct picture_maker *m)
{
	const struct topology *t = m->t;

	m->container = mem_alloc((t->actors.n + 1) * sizeof(*m->container));
	memset(m->container, 0xff, (t->actors.n + 1) * sizeof(*m->container));
	vec_for(&t->g->edges, d) {
		uint32_t a = t->actor_of[(*d)->source];

		if ((*d)->type == &run_on_type && a != TOPO_NONE &&
		    t->g->nodes.v[(*d)->target]->type == &container_type)
			m->container[a] = (*d)->target;
	}
}

static const char *address_of(const struct topology *t, const struct topo_actor *a)
{
	const struct node *n = node_of(t, a);

	if (n->type == &socket_type && HAS(socket, n, socket_addr))
		return GET(socket, n, socket_addr);
	return a->label;
}

/* What is one box at this level has one key; NULL: the actor is a box of its own. */
static const char *key_of(struct picture_maker *m, uint32_t actor)
{
	const struct topo_actor *a = &m->t->actors.v[actor];
	const char *ns = node_of(m->t, a)->ns, *key = NULL;
	struct strbuf b = {0};

	if (m->o->level == PICTURE_PROCESS)
		return NULL;
	if (a->kind == ACTOR_OUTSIDE)
		strbuf_addf(&b, "outside %s", address_of(m->t, a));
	else if (m->o->level == PICTURE_HOST)
		strbuf_addf(&b, "host %s", ns);
	else if (a->kind == ACTOR_PROCESS && m->container[actor] == NODE_NONE)
		strbuf_addf(&b, "none %s", ns);
	else if (a->kind == ACTOR_PROCESS)
		strbuf_addf(&b, "container %u", m->container[actor]);
	if (b.n)
		key = graph_str(m->t->g, b.s);
	strbuf_done(&b);
	return key;
}

static void add_cpu(struct picture_slot *s, const struct topology *t, const struct topo_actor *a)
{
	const struct node *n = node_of(t, a);

	if (a->kind != ACTOR_PROCESS)
		return;
	s->members++;
	if (HAS(process, n, cpu_ns)) {
		s->cpu_ns += GET(process, n, cpu_ns);
		s->has_cpu = true;
	}
}

static void add_numa(struct picture_slot *s, const struct topology *t, uint32_t actor)
{
	uint32_t node;

	if (actor >= t->places.n || !t->places.v[actor].cpu.n)
		return;
	node = t->places.v[actor].cpu.v[0].node;
	if (s->members == 1)
		s->numa_node = node;
	else if (s->numa_node != node)
		s->numa_node = PICTURE_NONE;
}

static void make_slots(struct picture_maker *m)
{
	const struct topology *t = m->t;
	struct slot_map by_key = {0};

	m->slot_of = mem_alloc((t->actors.n + 1) * sizeof(*m->slot_of));
	for (uint32_t i = 0; i < t->actors.n; i++) {
		const char *key = key_of(m, i);
		bool is_new = true;
		uint32_t *v = key ? slot_map_put(&by_key, key, &is_new) : NULL, at = (uint32_t)m->slots.n;
		struct picture_slot *s;

		if (!is_new)
			at = *v;
		else if (v)
			*v = at;
		if (is_new)
			*vec_add(&m->slots) =
			    (struct picture_slot){.actor = i, .numa_node = PICTURE_NONE, .index = PICTURE_NONE};
		s = &m->slots.v[at];
		m->slot_of[i] = at;
		add_cpu(s, t, &t->actors.v[i]);
		add_numa(s, t, i);
	}
	slot_map_done(&by_key);
}

/* Part of what the job is, whether or not data of it was seen. */
static void find_wanted(struct picture_maker *m)
{
	const struct topology *t = m->t;

	vec_for(&t->groups, gr)
		vec_for(&gr->members, a)
			m->slots.v[m->slot_of[*a]].wanted = true;
	vec_for(&t->devices, d)
		if (d->users.n && t->actor_of[d->node] != TOPO_NONE)
			m->slots.v[m->slot_of[t->actor_of[d->node]]].wanted = true;
	if (t->main_actor != TOPO_NONE)
		m->slots.v[m->slot_of[t->main_actor]].wanted = true;
	vec_for(&t->paths, p) {
		bool guess = false;

		vec_for(&p->links, l)
			guess |= *l == STEP_GUESS;
		vec_for(&p->actors, a)
			if (guess)
				m->slots.v[m->slot_of[*a]].wanted = true;
	}
}

static int compare_sums(const void *a, const void *b)
{
	const struct picture_sum *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return strcmp(x->kind, y->kind);
}

static void add_up(struct picture_sum *to, const struct picture_sum *s)
{
	to->bytes += s->bytes;
	to->messages += s->messages;
	to->waited_ns += s->waited_ns;
	to->measured |= s->measured;
}

static void sum_links(struct picture_maker *m)
{
	size_t n = 0;

	vec_for(&m->t->links, l) {
		struct picture_sum s = {.from = m->slot_of[l->from], .to = m->slot_of[l->to],
					.kind = l->kind, .measured = l->measured,
					.bytes = l->measured ? l->bytes : 0, .messages = l->messages,
					.waited_ns = l->waited_ns};

		if (s.from == s.to)
			m->slots.v[s.from].inner_bytes += s.bytes;
		else
			vec_push(&m->sums, s);
	}
	if (m->sums.n)
		qsort(m->sums.v, m->sums.n, sizeof(*m->sums.v), compare_sums);
	for (size_t i = 0; i < m->sums.n; i++) {
		if (n && !compare_sums(&m->sums.v[n - 1], &m->sums.v[i]))
			add_up(&m->sums.v[n - 1], &m->sums.v[i]);
		else
			m->sums.v[n++] = m->sums.v[i];
	}
	m->sums.n = n;
}

static double rate_of(const struct picture_maker *m, const struct picture_sum *s)
{
	return s->measured && m->t->window_ns ? (double)s->bytes * 1e9 / (double)m->t->window_ns : -1;
}

static void filter_links(struct picture_maker *m)
{
	vec_for(&m->sums, s) {
		s->kept = m->o->min_rate_bps <= 0 || rate_of(m, s) >= m->o->min_rate_bps;
		if (!s->kept)
			continue;
		m->slots.v[s->from].linked = m->slots.v[s->to].linked = true;
		m->slots.v[s->from].bytes += s->bytes;
		m->slots.v[s->to].bytes += s->bytes;
	}
}

static int by_importance(const void *a, const void *b, void *ctx)
{
	const struct picture_maker *m = ctx;
	const struct picture_slot *x = &m->slots.v[*(const uint32_t *)a], *y = &m->slots.v[*(const uint32_t *)b];

	if (x->wanted != y->wanted)
		return x->wanted ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

/* Texts of the same host are one address; a box of no host comes last. */
static int by_place(const void *a, const void *b, void *ctx)
{
	const struct picture_maker *m = ctx;
	const struct picture_slot *x = &m->slots.v[*(const uint32_t *)a], *y = &m->slots.v[*(const uint32_t *)b];
	int c = picture_is_outside(m, x) - picture_is_outside(m, y);

	c = c ?: strcmp(picture_ns(m, x), picture_ns(m, y));
	if (c)
		return c;
	if (picture_container(m, x) != picture_container(m, y))
		return picture_container(m, x) < picture_container(m, y) ? -1 : 1;
	if (picture_ranks(m, x) != picture_ranks(m, y))
		return picture_ranks(m, x) < picture_ranks(m, y) ? -1 : 1;
	return x->actor < y->actor ? -1 : x->actor > y->actor;
}

static int by_bytes(const void *a, const void *b, void *ctx)
{
	const struct picture_maker *m = ctx;
	const struct picture_sum *x = &m->sums.v[*(const uint32_t *)a], *y = &m->sums.v[*(const uint32_t *)b];

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Both ends of the largest links, while there is room: boxes without arrows say little. */
static size_t mark_ends(struct picture_maker *m, bool *chosen, size_t n)
{
	VEC(uint32_t) order = {0};

	for (uint32_t i = 0; i < m->sums.n; i++)
		if (m->sums.v[i].kept)
			vec_push(&order, i);
	if (order.n)
		qsort_r(order.v, order.n, sizeof(*order.v), by_bytes, m);
	vec_for(&order, i) {
		const struct picture_sum *s = &m->sums.v[*i];
		size_t more = (size_t)!chosen[s->from] + !chosen[s->to];

		if (n + more > m->o->top)
			continue;
		chosen[s->from] = chosen[s->to] = true;
		n += more;
	}
	vec_done(&order);
	return n;
}

/* Of more than there is room for: the job if it fits, then ends of links, then whatever is left. */
static void cut_nodes(struct picture_maker *m)
{
	bool *chosen = mem_alloc(m->slots.n + 1);
	size_t n = 0, wanted = 0, kept = 0;

	qsort_r(m->kept.v, m->kept.n, sizeof(*m->kept.v), by_importance, m);
	while (wanted < m->kept.n && m->slots.v[m->kept.v[wanted]].wanted)
		wanted++;
	for (; wanted <= m->o->top && n < wanted; n++)
		chosen[m->kept.v[n]] = true;
	n = mark_ends(m, chosen, n);
	for (size_t i = 0; i < m->kept.n && n < m->o->top; i++) {
		n += !chosen[m->kept.v[i]];
		chosen[m->kept.v[i]] = true;
	}
	for (size_t i = 0; i < m->kept.n; i++)
		if (chosen[m->kept.v[i]])
			m->kept.v[kept++] = m->kept.v[i];
	m->kept.n = kept;
	free(chosen);
}

static void choose_nodes(struct picture_maker *m)
{
	for (uint32_t i = 0; i < m->slots.n; i++)
		if (m->slots.v[i].linked || m->slots.v[i].wanted || m->o->alone)
			vec_push(&m->kept, i);
	m->with_links = m->kept.n;
	if (m->o->top && m->kept.n > m->o->top)
		cut_nodes(m);
	if (m->kept.n)
		qsort_r(m->kept.v, m->kept.n, sizeof(*m->kept.v), by_place, m);
	for (uint32_t i = 0; i < m->kept.n; i++)
		m->slots.v[m->kept.v[i]].index = i;
}

static void add_edge(struct picture_maker *m, const struct picture_sum *s)
{
	struct picture_edge *e;

	if (!s->kept || m->slots.v[s->from].index == PICTURE_NONE || m->slots.v[s->to].index == PICTURE_NONE) {
		m->p->links_left++;
		m->p->bytes_left += s->bytes;
		return;
	}
	e = vec_add(&m->p->edges);
	e->from = m->slots.v[s->from].index;
	e->to = m->slots.v[s->to].index;
	e->kind = picture_clean(m, s->kind, KIND_MOST);
	e->measured = s->measured;
	e->bytes = s->bytes;
	e->messages = s->messages;
	e->waited_ns = s->waited_ns;
	e->rate_bps = rate_of(m, s);
	e->label = picture_edge_label(m, e);
	if (s->bytes > m->p->max_bytes)
		m->p->max_bytes = s->bytes;
}

static const char starts[] = "starts";

static void add_starts(struct picture_maker *m)
{
	const struct topology *t = m->t;

	if (m->o->level != PICTURE_PROCESS)
		return;
	for (uint32_t i = 0; i < t->n_processes; i++) {
		uint32_t parent = t->actors.v[i].parent;
		struct picture_edge *e;

		if (parent == TOPO_NONE || m->slots.v[m->slot_of[i]].index == PICTURE_NONE ||
		    m->slots.v[m->slot_of[parent]].index == PICTURE_NONE)
			continue;
		e = vec_add(&m->p->edges);
		e->from = m->slots.v[m->slot_of[parent]].index;
		e->to = m->slots.v[m->slot_of[i]].index;
		e->kind = e->label = starts;
		e->rate_bps = -1;
	}
}

static int compare_edges(const void *a, const void *b)
{
	const struct picture_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return strcmp(x->kind, y->kind);
}

void picture_init(struct picture *p, const struct topology *t, const struct picture_options *o)
{
	struct picture_maker m = {.p = p, .t = t, .o = o};

	memset(p, 0, sizeof(*p));
	arena_init(&p->arena);
	p->start_ns = t->g->meta.start_ns;
	p->window_ns = t->window_ns;
	find_containers(&m);
	make_slots(&m);
	find_wanted(&m);
	sum_links(&m);
	filter_links(&m);
	choose_nodes(&m);
	picture_add_nodes(&m);
	vec_for(&m.sums, s)
		add_edge(&m, s);
	p->nodes_left = m.slots.n - m.kept.n;
	add_starts(&m);
	if (p->edges.n)
		qsort(p->edges.v, p->edges.n, sizeof(*p->edges.v), compare_edges);
	picture_add_texts(&m);
	free(m.container);
	free(m.slot_of);
	vec_done(&m.slots);
	vec_done(&m.sums);
	vec_done(&m.kept);
}

void picture_done(struct picture *p)
{
	vec_done(&p->groups);
	vec_done(&p->nodes);
	vec_done(&p->edges);
	arena_done(&p->arena);
	memset(p, 0, sizeof(*p));
}

bool picture_is_start(const struct picture_edge *e)
{
	return e->kind == starts;
}

double picture_weight(const struct picture *p, const struct picture_edge *e)
{
	if (!e->measured || !e->bytes || !p->max_bytes)
		return 0;
	return sqrt((double)e->bytes / (double)p->max_bytes);
}
