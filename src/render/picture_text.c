/* Boxes of a picture: what is written on them, and the groups around them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clean.h"
#include "picture_parts.h"
#include "units.h"

#define LABEL_MOST   60 /* code points */
#define COMMAND_MOST 400

static const struct topo_actor *actor_of(const struct picture_maker *m, const struct picture_slot *s)
{
	return &m->t->actors.v[s->actor];
}

bool picture_is_outside(const struct picture_maker *m, const struct picture_slot *s)
{
	return actor_of(m, s)->kind == ACTOR_OUTSIDE;
}

const char *picture_ns(const struct picture_maker *m, const struct picture_slot *s)
{
	return m->t->g->nodes.v[actor_of(m, s)->node]->ns;
}

uint32_t picture_container(const struct picture_maker *m, const struct picture_slot *s)
{
	return m->o->level == PICTURE_PROCESS ? m->container[s->actor] : NODE_NONE;
}

uint32_t picture_ranks(const struct picture_maker *m, const struct picture_slot *s)
{
	return m->o->level == PICTURE_PROCESS ? actor_of(m, s)->group : TOPO_NONE;
}

const char *picture_clean(struct picture_maker *m, const char *s, size_t most)
{
	struct strbuf b = {0};
	const char *ret;

	clean_add(&b, s, most);
	ret = arena_strndup(&m->p->arena, strbuf_str(&b), b.n);
	strbuf_done(&b);
	return ret;
}

static const char *kept_text(struct picture_maker *m, struct strbuf *b)
{
	const char *ret = arena_strndup(&m->p->arena, strbuf_str(b), b->n);

	strbuf_done(b);
	return ret;
}

static const struct node *host_node(const struct picture_maker *m, const char *ns)
{
	vec_for(&m->t->g->nodes, n)
		if ((*n)->type == &host_type && (*n)->ns == ns)
			return *n;
	return NULL;
}

static const char *host_label(const struct picture_maker *m, const char *ns)
{
	const struct node *n = host_node(m, ns);

	if (n && HAS(host, n, hostname))
		return GET(host, n, hostname);
	return strcmp(ns, "local") ? ns : "this host";
}

static const char *container_label(const struct picture_maker *m, uint32_t node)
{
	const struct node *n = m->t->g->nodes.v[node];

	if (HAS(container, n, container_name))
		return GET(container, n, container_name);
	return HAS(container, n, container_id) ? GET(container, n, container_id) : "container";
}

static uint32_t new_group(struct picture_maker *m, const char *kind, uint32_t parent, const char *label,
			  uint32_t node)
{
	struct picture_group *g = vec_add(&m->p->groups);

	g->kind = kind;
	g->parent = parent;
	g->label = picture_clean(m, label, LABEL_MOST);
	g->id = node == NODE_NONE ? NULL : picture_clean(m, graph_node_id(m->t->g, node), COMMAND_MOST);
	return (uint32_t)m->p->groups.n - 1;
}

/* Slots come by host, container and ranks: a group is open until one does not belong to it. */
struct open_groups {
	const char *ns;
	uint32_t host, container, ranks;	     /* groups of the picture */
	uint32_t container_node, rank_group;
};

static const char *ranks_label(struct picture_maker *m, const struct topo_group *gr)
{
	struct strbuf b = {0};

	strbuf_add(&b, gr->name ? gr->name : "ranks");
	if (gr->patterns.n && gr->patterns.v[0].kind != PAR_UNKNOWN)
		strbuf_addf(&b, ": %s", gr->patterns.v[0].text);
	return kept_text(m, &b);
}

static uint32_t group_for(struct picture_maker *m, struct open_groups *o, const struct picture_slot *s)
{
	const char *ns = picture_ns(m, s);
	uint32_t container = picture_container(m, s), ranks = picture_ranks(m, s), group;

	if (picture_is_outside(m, s) || m->o->level == PICTURE_HOST)
		return PICTURE_NONE;
	if (o->ns != ns) {
		const struct node *n = host_node(m, ns);

		o->host = new_group(m, "host", PICTURE_NONE, host_label(m, ns), n ? n->index : NODE_NONE);
		o->ns = ns;
		o->container_node = NODE_NONE;
		o->rank_group = TOPO_NONE;
	}
	group = o->host;
	if (container != NODE_NONE && container != o->container_node) {
		o->container = new_group(m, "container", group, container_label(m, container), container);
		o->rank_group = TOPO_NONE;
	} else if (container != o->container_node) {
		o->rank_group = TOPO_NONE;
	}
	o->container_node = container;
	if (container != NODE_NONE)
		group = o->container;
	if (ranks == TOPO_NONE)
		return group;
	if (ranks != o->rank_group)
		o->ranks = new_group(m, "ranks", group, ranks_label(m, &m->t->groups.v[ranks]), NODE_NONE);
	o->rank_group = ranks;
	return o->ranks;
}

static const char *kind_of(const struct picture_maker *m, const struct picture_slot *s)
{
	const struct topo_actor *a = actor_of(m, s);

	if (a->kind == ACTOR_OUTSIDE)
		return "outside";
	if (m->o->level == PICTURE_HOST)
		return "host";
	if (m->o->level == PICTURE_CONTAINER && a->kind == ACTOR_PROCESS)
		return m->container[s->actor] == NODE_NONE ? "processes" : "container";
	return actor_kind_name(a->kind);
}

/* The entity that a box is, or the first that it stands for. */
static uint32_t entity_of(const struct picture_maker *m, const struct picture_slot *s, const char *kind)
{
	if (!strcmp(kind, "container"))
		return m->container[s->actor];
	if (!strcmp(kind, "host")) {
		const struct node *n = host_node(m, picture_ns(m, s));

		if (n)
			return n->index;
	}
	return actor_of(m, s)->node;
}

static const char *label_of(const struct picture_maker *m, const struct picture_slot *s, const char *kind)
{
	const struct node *n = m->t->g->nodes.v[actor_of(m, s)->node];

	if (!strcmp(kind, "container"))
		return container_label(m, m->container[s->actor]);
	if (!strcmp(kind, "processes"))
		return "outside containers";
	if (!strcmp(kind, "host"))
		return host_label(m, picture_ns(m, s));
	if (m->o->level != PICTURE_PROCESS && n->type == &socket_type && HAS(socket, n, socket_addr))
		return GET(socket, n, socket_addr);
	return actor_of(m, s)->label;
}

__attribute__((format(printf, 2, 3))) static void add_part(struct strbuf *b, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strbuf_addf(b, "%s%s", b->n ? ", " : "", text);
}

static bool has_several_nodes(const struct picture_maker *m)
{
	uint32_t first = PICTURE_NONE;

	vec_for(&m->t->places, p)
		vec_for(&p->cpu, c) {
			if (first == PICTURE_NONE)
				first = c->node;
			if (c->node != first)
				return true;
		}
	return false;
}

static const char *model_of(const struct node *n)
{
	if (n->type == &gpu_type && HAS(gpu, n, model))
		return GET(gpu, n, model);
	return n->type == &npu_type && HAS(npu, n, model) ? GET(npu, n, model) : NULL;
}

static const char *detail_of(struct picture_maker *m, const struct picture_node *n, const struct picture_slot *s,
			     bool several)
{
	const struct topo_actor *a = actor_of(m, s);
	const char *model = model_of(m->t->g->nodes.v[a->node]);
	struct strbuf b = {0};

	if (n->role && a->group != TOPO_NONE && m->t->groups.v[a->group].members.n > 1)
		add_part(&b, "%s %u", n->role, a->rank);
	else if (n->role)
		add_part(&b, "%s", n->role);
	if (n->members > 1)
		add_part(&b, "%u processes", n->members);
	if (n->cpu_pct >= 0.95)
		add_part(&b, "CPU %.0f %%", n->cpu_pct);
	if (several && n->numa_node != PICTURE_NONE)
		add_part(&b, "node %u", n->numa_node);
	if (model && !strcmp(n->kind, "device"))
		add_part(&b, "%s", picture_clean(m, model, LABEL_MOST));
	return kept_text(m, &b);
}

static const char *command_of(struct picture_maker *m, const struct picture_slot *s)
{
	const struct node *n = m->t->g->nodes.v[actor_of(m, s)->node];

	if (s->members != 1 || n->type != &process_type || !HAS(process, n, cmdline))
		return NULL;
	return picture_clean(m, GET(process, n, cmdline), COMMAND_MOST);
}

void picture_add_nodes(struct picture_maker *m)
{
	struct open_groups open = {.container_node = NODE_NONE, .rank_group = TOPO_NONE};
	bool several = has_several_nodes(m);

	vec_for(&m->kept, i) {
		const struct picture_slot *s = &m->slots.v[*i];
		struct picture_node *n;
		uint32_t group = group_for(m, &open, s);

		n = vec_add(&m->p->nodes);
		n->group = group;
		n->kind = kind_of(m, s);
		n->id = picture_clean(m, graph_node_id(m->t->g, entity_of(m, s, n->kind)), COMMAND_MOST);
		n->label = picture_clean(m, label_of(m, s, n->kind), LABEL_MOST);
		if (!strcmp(n->kind, "process") && actor_of(m, s)->role != ROLE_UNKNOWN)
			n->role = role_name(actor_of(m, s)->role);
		n->members = s->members;
		n->cpu_pct = s->has_cpu && m->t->window_ns ? 100 * (double)s->cpu_ns / (double)m->t->window_ns : -1;
		n->numa_node = s->numa_node;
		n->inner_bytes = s->inner_bytes;
		n->wanted = s->wanted;
		n->command = command_of(m, s);
		n->detail = detail_of(m, n, s, several);
	}
}

const char *picture_edge_label(struct picture_maker *m, const struct picture_edge *e)
{
	struct strbuf b = {0};

	strbuf_add(&b, e->kind);
	if (e->measured) {
		strbuf_addc(&b, ' ');
		units_add_bytes(&b, e->bytes);
	}
	if (e->rate_bps >= 0) {
		strbuf_add(&b, " (");
		units_add_rate(&b, e->rate_bps);
		strbuf_addc(&b, ')');
	}
	/* From a hundredth of the window on it matters. */
	if (m->p->window_ns && e->waited_ns >= m->p->window_ns / 100) {
		strbuf_add(&b, ", waited for ");
		units_add_ns(&b, e->waited_ns);
	}
	return kept_text(m, &b);
}

static void add_limits(const struct picture_maker *m, struct strbuf *b)
{
	size_t alone = m->slots.n - m->with_links;
	const char *sep = ": ";

	if (alone) {
		strbuf_addf(b, "%s%zu have no link", sep, alone);
		sep = ", ";
	}
	if (m->o->top && m->with_links > m->o->top) {
		strbuf_addf(b, "%sat most %" PRIu64 " boxes (--top)", sep, m->o->top);
		sep = ", ";
	}
	if (m->o->min_rate_bps > 0) {
		strbuf_addf(b, "%slinks of less than ", sep);
		units_add_rate(b, m->o->min_rate_bps);
		strbuf_add(b, " or of unknown amount (--min-rate)");
	}
}

void picture_add_texts(struct picture_maker *m)
{
	static const char *const levels[] = {"processes", "containers", "hosts"};
	const struct picture_group *host = NULL;
	struct picture *p = m->p;
	struct strbuf b = {0};
	size_t hosts = 0;

	vec_for(&p->groups, g)
		if (!strcmp(g->kind, "host")) {
			host = g;
			hosts++;
		}
	strbuf_addf(&b, "Data flow between %s", levels[m->o->level]);
	if (hosts == 1)
		strbuf_addf(&b, " of %s", host->label);
	else if (hosts)
		strbuf_addf(&b, " of %zu hosts", hosts);
	if (p->window_ns) {
		strbuf_add(&b, ", ");
		units_add_ns(&b, p->window_ns);
	}
	p->title = kept_text(m, &b);
	if (!p->nodes_left && !p->links_left)
		return;
	strbuf_addf(&b, "Left out: %" PRIu64 " of %zu boxes, %" PRIu64 " of %zu links", p->nodes_left, m->slots.n,
		    p->links_left, m->sums.n);
	if (p->bytes_left) {
		strbuf_add(&b, " with ");
		units_add_bytes(&b, p->bytes_left);
	}
	add_limits(m, &b);
	p->left_out = kept_text(m, &b);
}
