/* The topology as text for people and as Markdown: one set of sections, two ways to set them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render_topology.h"
#include "text.h"

struct page {
	struct topology *t;
	struct strbuf *b;
	const struct topology_view *v;
	bool md;
	const char *file; /**< for the commands that show more */
};

static uint64_t most(const struct page *p, uint64_t usual)
{
	return p->v->limit ? p->v->limit : usual;
}

/* On one line. */
static const char *label(const struct page *p, uint32_t actor)
{
	struct strbuf b = {0};
	const char *ret;

	text_clean(&b, p->t->actors.v[actor].label, 200);
	ret = graph_str(p->t->g, strbuf_str(&b));
	strbuf_done(&b);
	return ret;
}

static void heading(const struct page *p, const char *title)
{
	if (p->md)
		strbuf_addf(p->b, "\n## %s\n\n", title);
	else
		strbuf_addf(p->b, "%s%s\n", p->b->n ? "\n" : "", title);
}

/* One line of a list. The caller adds its text and a new line. */
static void item(const struct page *p)
{
	strbuf_add(p->b, p->md ? "- " : "  ");
}

static void left_out(const struct page *p, uint64_t shown, uint64_t all)
{
	if (shown >= all)
		return;
	item(p);
	strbuf_addf(p->b, "+%" PRIu64 " more; --limit %" PRIu64 " shows all\n", all - shown, all);
}

static void put_amount(const struct page *p, uint64_t bytes, bool measured)
{
	if (!measured) {
		strbuf_add(p->b, "amount unknown");
		return;
	}
	text_bytes(p->b, (double)bytes);
	if (!p->t->window_ns)
		return;
	strbuf_add(p->b, " (");
	text_bytes(p->b, (double)bytes * 1e9 / (double)p->t->window_ns);
	strbuf_add(p->b, "/s)");
}

static void add_overview(const struct page *p)
{
	struct topology *t = p->t;
	size_t kinds[4] = {0};

	vec_for(&t->actors, a)
		kinds[a->kind]++;
	heading(p, "OVERVIEW");
	item(p);
	strbuf_addf(p->b,
		    "%zu processes, %zu accelerators, %zu file systems, %zu ends outside; %zu "
		    "links of data\n",
		    t->n_processes, t->devices.n, kinds[ACTOR_STORAGE], kinds[ACTOR_OUTSIDE],
		    t->links.n);
	if (t->main_actor != TOPO_NONE) {
		const struct topo_actor *a = &t->actors.v[t->main_actor];

		item(p);
		strbuf_addf(p->b, "main process: %s, %s%s%s\n", label(p, t->main_actor), role_name(a->role),
			    a->container ? ", in container " : "",
			    a->container ? a->container : "");
	}
	vec_for(&t->groups, gr) {
		if (!gr->patterns.n)
			continue;
		item(p);
		strbuf_addf(p->b, "%s: %s (%u %%)\n", gr->name, gr->patterns.v[0].text,
			    gr->patterns.v[0].pct);
	}
	if (!t->groups.n) {
		item(p);
		strbuf_add(p->b, "no group of equal ranks: no parallel job is recognised\n");
	}
	if (t->problems.n) {
		item(p);
		strbuf_addf(p->b, "%zu problem%s, the gravest: %s\n", t->problems.n,
			    t->problems.n == 1 ? "" : "s", t->problems.v[0].id);
	}
}

/* A tree holds processes that play a part, and those above them. */
static uint8_t *wanted_processes(const struct page *p, uint64_t *ret_n)
{
	struct topology *t = p->t;
	uint8_t *want = mem_alloc(t->n_processes + 1);

	*ret_n = 0;
	for (uint32_t i = 0; i < t->n_processes; i++) {
		const struct topo_actor *a = &t->actors.v[i];
		bool part = p->v->focus == TOPO_NONE
				? a->group != TOPO_NONE || a->bytes_in || a->bytes_out ||
				      (a->role != ROLE_UNKNOWN && a->role != ROLE_SHELL) ||
				      t->n_processes <= 40
				: topo_related(t, p->v->focus, i);

		for (uint32_t at = i; part && at != TOPO_NONE && !want[at];
		     at = t->actors.v[at].parent) {
			want[at] = 1;
			++*ret_n;
		}
	}
	return want;
}

static void add_process(const struct page *p, uint32_t i, unsigned depth)
{
	struct topology *t = p->t;
	const struct topo_actor *a = &t->actors.v[i];
	const char *line = NULL;
	struct value v;

	strbuf_pad(p->b, ' ', 2 * (size_t)depth);
	item(p);
	text_clean(p->b, a->label, 60);
	if (a->role != ROLE_UNKNOWN)
		strbuf_addf(p->b, "  %s (%u %%)", role_name(a->role), a->role_pct);
	if (a->group != TOPO_NONE)
		strbuf_addf(p->b, " %" PRIu32 " of group %" PRIu32, a->rank, a->group);
	vec_for(&t->devices, d)
		vec_for(&d->users, u)
			if (*u == i)
				strbuf_addf(p->b, ", uses %s", d->label);
	if (a->container)
		strbuf_addf(p->b, ", in %s", a->container);
	if (t->g->nodes.v[a->node]->measured & FIELD_BIT(process, cmdline)) {
		v = field_get(&process_type.fields[process_f_cmdline],
			      t->g->nodes.v[a->node]->data);
		line = v.str;
	}
	if (line && *line) {
		strbuf_add(p->b, p->md ? "  `" : "  ");
		text_clean(p->b, line, 70);
		strbuf_add(p->b, p->md ? "`" : "");
	}
	strbuf_addc(p->b, '\n');
}

/* Children of each process, ascending, by first child and next sibling. */
struct tree {
	uint32_t *child, *next;
};

static void tree_init(struct tree *tr, const struct topology *t)
{
	tr->child = mem_alloc((t->n_processes + 1) * sizeof(*tr->child));
	tr->next = mem_alloc((t->n_processes + 1) * sizeof(*tr->next));
	memset(tr->child, 0xff, (t->n_processes + 1) * sizeof(*tr->child));
	/* Those without a parent have no siblings, either. */
	memset(tr->next, 0xff, (t->n_processes + 1) * sizeof(*tr->next));
	for (size_t i = t->n_processes; i-- > 0;) {
		uint32_t up = t->actors.v[i].parent;

		if (up == TOPO_NONE)
			continue;
		tr->next[i] = tr->child[up];
		tr->child[up] = (uint32_t)i;
	}
}

#define TREE_DEPTH 64
/* So many children of one parent that play the same part are shown; the others are counted. */
#define ALIKE_MOST 4

static bool alike(const struct topology *t, uint32_t a, uint32_t b)
{
	const struct topo_actor *x = &t->actors.v[a], *y = &t->actors.v[b];

	return x->parent == y->parent && x->role == y->role && x->group == TOPO_NONE &&
	       y->group == TOPO_NONE && !x->children && !y->children &&
	       !strncmp(x->label, y->label, strcspn(x->label, "["));
}

/* Pass over siblings like the last one. @return the last of them */
static uint32_t fold(const struct page *p, const struct tree *tr, const uint8_t *want, uint32_t at,
		     unsigned depth, uint64_t *shown)
{
	uint64_t n = 0;
	uint32_t last = at;

	for (uint32_t k = tr->next[at]; k != TOPO_NONE && (!want[k] || alike(p->t, at, k));
	     k = tr->next[k]) {
		n += want[k];
		last = k;
	}
	if (n < ALIKE_MOST)
		return at;
	strbuf_pad(p->b, ' ', 2 * (size_t)depth);
	item(p);
	strbuf_addf(p->b, "and %" PRIu64 " more like it\n", n);
	*shown += n;
	return last;
}

static void add_tree(const struct page *p)
{
	struct topology *t = p->t;
	uint64_t all, shown = 0, limit = most(p, 80);
	uint8_t *want = wanted_processes(p, &all);
	struct tree tr;

	tree_init(&tr, t);
	heading(p, "PROCESSES and their roles");
	for (uint32_t i = 0; i < t->n_processes; i++) {
		uint32_t at = i;
		unsigned depth = 0;

		if (t->actors.v[i].parent != TOPO_NONE || !want[i])
			continue;
		/* Down to the first child, on to the next sibling, up when there is none. */
		while (at != TOPO_NONE) {
			if (want[at] && shown < limit) {
				add_process(p, at, depth < TREE_DEPTH ? depth : TREE_DEPTH);
				shown++;
				at = fold(p, &tr, want, at, depth < TREE_DEPTH ? depth : TREE_DEPTH,
					  &shown);
			}
			if (want[at] && tr.child[at] != TOPO_NONE) {
				at = tr.child[at];
				depth++;
				continue;
			}
			while (at != i && tr.next[at] == TOPO_NONE) {
				at = t->actors.v[at].parent;
				depth--;
			}
			at = at == i ? TOPO_NONE : tr.next[at];
		}
	}
	left_out(p, shown, all);
	free(tr.child);
	free(tr.next);
	free(want);
}

static void add_cell(const struct page *p, const char *text, size_t width)
{
	size_t start = p->b->n;

	if (p->md) {
		strbuf_addf(p->b, "| %s ", text);
		return;
	}
	strbuf_add(p->b, text);
	text_pad(p->b, start, width);
}

static void end_row(const struct page *p)
{
	while (!p->md && p->b->n && p->b->s[p->b->n - 1] == ' ')
		p->b->s[--p->b->n] = '\0';
	strbuf_add(p->b, p->md ? "|\n" : "\n");
}

static const char *shares_text(struct strbuf *b, const struct topo_share *v, size_t n)
{
	strbuf_clear(b);
	for (size_t i = 0; i < n && i < 4; i++)
		if (v[i].share >= 0.01)
			strbuf_addf(b, "%s%" PRIu32 ":%.0f%%", i ? " " : "", v[i].node,
				    v[i].share * 100);
	return b->n ? b->s : "?";
}

static void add_device_row(const struct page *p, const struct topo_device *d)
{
	struct topology *t = p->t;
	struct strbuf b = {0};

	strbuf_add(p->b, p->md ? "" : "  ");
	add_cell(p, d->label, 10);
	add_cell(p, d->numa ? d->numa : "?", 6);
	add_cell(p, d->cpu_affinity ? d->cpu_affinity : "?", 12);
	if (!d->users.n) {
		add_cell(p, "-", 24);
		for (int i = 0; p->md && i < 4; i++)
			add_cell(p, "", 0);
	}
	vec_for(&d->users, u) {
		const struct topo_place *pl = &t->places.v[*u];

		if (u != d->users.v) {
			end_row(p);
			strbuf_add(p->b, p->md ? "" : "  ");
			add_cell(p, "", 10);
			add_cell(p, "", 6);
			add_cell(p, "", 12);
		}
		add_cell(p, label(p, *u), 24);
		add_cell(p, pl->cpus_allowed ? pl->cpus_allowed : "?", 14);
		add_cell(p, shares_text(&b, pl->cpu.v, pl->cpu.n), 20);
		add_cell(p, shares_text(&b, pl->memory.v, pl->memory.n), 30);
		add_cell(p,
			 d->numa_node == TOPO_NONE || !pl->cpu.n   ? "?"
			 : topo_cpu_share(pl, d->numa_node) >= 0.5 ? "yes"
								   : "no",
			 4);
	}
	end_row(p);
	strbuf_done(&b);
}

static void add_devices(const struct page *p)
{
	struct topology *t = p->t;
	uint64_t shown = 0;

	if (!t->devices.n)
		return;
	heading(p, "DEVICES and NUMA nodes");
	strbuf_add(p->b, p->md ? "" : "  ");
	add_cell(p, "device", 10);
	add_cell(p, "node", 6);
	add_cell(p, "near CPUs", 12);
	add_cell(p, "user", 24);
	add_cell(p, "CPUs allowed", 14);
	add_cell(p, "runs on nodes", 20);
	add_cell(p, "memory on nodes", 30);
	add_cell(p, "at home", 4);
	end_row(p);
	strbuf_add(p->b, p->md ? "| --- | --- | --- | --- | --- | --- | --- | --- |\n" : "");
	vec_for(&t->devices, d) {
		if (shown >= most(p, 64))
			break;
		add_device_row(p, d);
		shown++;
	}
	left_out(p, shown, t->devices.n);
}

static bool has_place(const struct page *p, const struct topo_place *pl)
{
	if (p->v->focus != TOPO_NONE && !topo_related(p->t, p->v->focus, pl->actor))
		return false;
	return pl->cpu.n && pl->memory.n;
}

static void add_places(const struct page *p)
{
	struct topology *t = p->t;
	struct strbuf b = {0};
	uint64_t all = 0, shown = 0;

	vec_for(&t->places, pl)
		all += has_place(p, pl);
	if (!all)
		return;
	heading(p, "NUMA PLACEMENT of processes");
	strbuf_add(p->b, p->md ? "" : "  ");
	add_cell(p, "process", 28);
	add_cell(p, "runs on nodes", 24);
	add_cell(p, "memory on nodes", 30);
	add_cell(p, "cosine", 8);
	add_cell(p, "remote", 8);
	add_cell(p, "mode", 6);
	end_row(p);
	strbuf_add(p->b, p->md ? "| --- | --- | --- | --- | --- | --- |\n" : "");
	vec_for(&t->places, pl) {
		char number[2][32];

		if (!has_place(p, pl) || shown >= most(p, 40))
			continue;
		snprintf(number[0], sizeof(number[0]), "%.3f", pl->cosine);
		snprintf(number[1], sizeof(number[1]), "%.0f %%", pl->remote * 100);
		strbuf_add(p->b, p->md ? "" : "  ");
		add_cell(p, label(p, pl->actor), 28);
		add_cell(p, shares_text(&b, pl->cpu.v, pl->cpu.n), 24);
		add_cell(p, shares_text(&b, pl->memory.v, pl->memory.n), 30);
		add_cell(p, pl->cosine >= 0 ? number[0] : "?", 8);
		add_cell(p, pl->remote >= 0 ? number[1] : "?", 8);
		add_cell(p, pl->mode ? pl->mode : "?", 6);
		end_row(p);
		shown++;
	}
	left_out(p, shown, all);
	strbuf_done(&b);
}

static void add_evidence(const struct page *p, const struct topo_evidence *e)
{
	static const char *const words[] = {"for:     ", "against: ", "not seen: "};

	strbuf_addf(p->b, "%s%s%s\n", p->md ? "    - " : "      ", words[e->kind], e->text);
}

/* Who sends how much to whom within a group, in its order. */
static void add_matrix(const struct page *p, const struct topo_group *gr)
{
	struct topology *t = p->t;
	size_t n = gr->members.n;

	if (!gr->bytes || n > 16)
		return;
	if (p->md)
		strbuf_add(p->b, "\n```\n");
	strbuf_add(p->b, "    from \\ to");
	for (size_t i = 0; i < n; i++)
		strbuf_addf(p->b, "%11zu", i);
	strbuf_addc(p->b, '\n');
	for (size_t i = 0; i < n; i++) {
		size_t k;
		const struct topo_link *l = topology_out(t, gr->members.v[i], &k);

		strbuf_addf(p->b, "    %9zu", i);
		for (size_t j = 0; j < n; j++) {
			uint64_t bytes = 0;
			bool known = false, some = false;
			struct strbuf cell = {0};

			for (size_t x = 0; x < k; x++) {
				if (l[x].to != gr->members.v[j])
					continue;
				bytes += l[x].bytes;
				known |= l[x].measured;
				some = true;
			}
			if (known)
				text_bytes(&cell, (double)bytes);
			strbuf_addf(p->b, "%11s", known ? cell.s : some ? "some" : "-");
			strbuf_done(&cell);
		}
		strbuf_addc(p->b, '\n');
	}
	if (p->md)
		strbuf_add(p->b, "```\n");
}

static void add_group(const struct page *p, const struct topo_group *gr, size_t index)
{
	struct topology *t = p->t;

	item(p);
	strbuf_addf(p->b, "group %zu: %s", index, gr->name);
	if (gr->launcher != TOPO_NONE)
		strbuf_addf(p->b, ", started by %s", label(p, gr->launcher));
	if (gr->loaders)
		strbuf_addf(p->b, ", with %" PRIu32 " data loaders", gr->loaders);
	strbuf_add(p->b, p->md ? "\n  - members: " : "\n    members: ");
	for (size_t i = 0; i < gr->members.n && i < most(p, 16); i++)
		strbuf_addf(p->b, "%s%s", i ? ", " : "", label(p, gr->members.v[i]));
	if (gr->members.n > most(p, 16))
		strbuf_addf(p->b, ", +%" PRIu64 " more", gr->members.n - most(p, 16));
	strbuf_addc(p->b, '\n');
	vec_for(&gr->basis, e)
		strbuf_addf(p->b, "%s%s\n",
			    p->md ? "  - a group because: " : "    a group because: ", e->text);
	vec_for(&gr->patterns, pa) {
		strbuf_addf(p->b, "%s%s (%u %%, %s%s%s)\n", p->md ? "  - " : "    ", pa->text,
			    pa->pct, pa->declared ? "declared" : "",
			    pa->declared && pa->observed ? " and " : "",
			    pa->observed   ? "observed"
			    : pa->declared ? ", not observed"
					   : "nothing tells");
		vec_for(&pa->evidence, e)
			add_evidence(p, e);
	}
	for (int r = 0; r < THREAD_ROLE_COUNT; r++) {
		size_t n = 0;

		vec_for(&t->threads, th)
			n += t->actors.v[th->actor].group == index &&
			     th->role == (enum thread_role)r;
		if (n)
			strbuf_addf(p->b, "%s%zu %s threads by their names\n",
				    p->md ? "  - " : "    ", n,
				    thread_role_name((enum thread_role)r));
	}
	add_matrix(p, gr);
}

static void add_groups(const struct page *p)
{
	struct topology *t = p->t;
	uint64_t shown = 0, all = 0;

	if (!t->groups.n)
		return;
	heading(p, "RANKS and PATTERNS");
	for (size_t i = 0; i < t->groups.n; i++) {
		const struct topo_group *gr = &t->groups.v[i];

		if (p->v->focus != TOPO_NONE && t->actors.v[p->v->focus].group != i &&
		    !topo_related(t, p->v->focus, gr->members.v[0]))
			continue;
		all++;
		if (shown >= most(p, 20))
			continue;
		add_group(p, gr, i);
		shown++;
	}
	left_out(p, shown, all);
}

/* Data goes from one to the other. */
static bool linked(const struct topology *t, uint32_t from, uint32_t to)
{
	size_t n;
	const struct topo_link *l = topology_out(t, from, &n);

	for (size_t i = 0; i < n; i++)
		if (l[i].to == to)
			return true;
	return false;
}

static void add_step(const struct page *p, uint32_t link, uint32_t from)
{
	const struct topo_link *l;

	if (link == STEP_KNOT) {
		strbuf_add(p->b, " ~~ ");
		return;
	}
	if (link == STEP_GUESS) {
		strbuf_add(p->b, " ..> ");
		return;
	}
	l = &p->t->links.v[link];
	/* Of what goes both ways, the larger direction is shown; the arrow is the request's. */
	strbuf_addf(p->b,
		    l->from == from || linked(p->t, from, l->from) ? " --%s--> " : " <--%s-- ",
		    l->kind);
}

static bool path_wanted(const struct page *p, const struct topo_path *pa)
{
	if (p->v->focus == TOPO_NONE)
		return true;
	vec_for(&pa->actors, a)
		if (*a == p->v->focus)
			return true;
	return false;
}

static void add_knots(const struct page *p)
{
	struct topology *t = p->t;

	vec_for(&t->knots, k) {
		if (k - t->knots.v >= 10)
			break;
		item(p);
		strbuf_addf(p->b, "%s: ", k->what);
		for (size_t i = 0; i < k->actors.n && i < 8; i++)
			strbuf_addf(p->b, "%s%s", i ? ", " : "", label(p, k->actors.v[i]));
		strbuf_add(p->b, k->actors.n > 8 ? ", ...  " : "  ");
		put_amount(p, k->bytes, k->bytes != 0);
		strbuf_addc(p->b, '\n');
	}
}

static void add_paths(const struct page *p)
{
	struct topology *t = p->t;
	uint64_t shown = 0, all = 0;
	bool guessed = false, knotted = false;

	heading(p, "PATHS of data, end to end");
	add_knots(p);
	vec_for(&t->paths, pa) {
		if (!path_wanted(p, pa))
			continue;
		all++;
		if (shown >= most(p, 20))
			continue;
		item(p);
		for (size_t i = 0; i < pa->actors.n; i++) {
			strbuf_add(p->b, label(p, pa->actors.v[i]));
			if (i < pa->links.n) {
				guessed |= pa->links.v[i] == STEP_GUESS;
				knotted |= pa->links.v[i] == STEP_KNOT;
				add_step(p, pa->links.v[i], pa->actors.v[i]);
			}
		}
		strbuf_add(p->b, "  ");
		put_amount(p, pa->bytes, pa->bytes != 0);
		if (pa->waited_ns) {
			strbuf_add(p->b, ", others waited ");
			text_time(p->b, (double)pa->waited_ns);
		}
		strbuf_addc(p->b, '\n');
		shown++;
	}
	if (!all) {
		item(p);
		strbuf_add(p->b, "none\n");
	}
	left_out(p, shown, all);
	if (guessed) {
		item(p);
		strbuf_add(p->b, "..> no data was seen here: it follows from who started whom\n");
	}
	if (knotted) {
		item(p);
		strbuf_add(p->b, "~~ within one circle of data\n");
	}
}

static int compare_by_bytes(const void *a, const void *b, void *ctx)
{
	const struct topology *t = ctx;
	const struct topo_link *x = &t->links.v[*(const uint32_t *)a],
			       *y = &t->links.v[*(const uint32_t *)b];

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void add_links(const struct page *p)
{
	struct topology *t = p->t;
	VEC(uint32_t) list = {0};
	uint64_t shown = 0;

	for (uint32_t i = 0; i < t->links.n; i++)
		if (p->v->focus == TOPO_NONE || t->links.v[i].from == p->v->focus ||
		    t->links.v[i].to == p->v->focus)
			vec_push(&list, i);
	if (list.n)
		qsort_r(list.v, list.n, sizeof(*list.v), compare_by_bytes, t);
	heading(p, "LINKS by bytes");
	for (; shown < list.n && shown < most(p, 20); shown++) {
		const struct topo_link *l = &t->links.v[list.v[shown]];

		item(p);
		strbuf_addf(p->b, "%s -> %s  %s  ", label(p, l->from), label(p, l->to), l->kind);
		put_amount(p, l->bytes, l->measured);
		if (l->messages)
			strbuf_addf(p->b, ", %" PRIu64 " messages", l->messages);
		if (l->from_node != l->to_node && l->from_node != TOPO_NONE &&
		    l->to_node != TOPO_NONE)
			strbuf_addf(p->b, ", NUMA node %" PRIu32 " to %" PRIu32, l->from_node,
				    l->to_node);
		if (l->waited_ns) {
			strbuf_add(p->b, ", waited for ");
			text_time(p->b, (double)l->waited_ns);
		}
		strbuf_addc(p->b, '\n');
	}
	if (!list.n) {
		item(p);
		strbuf_add(p->b, "none\n");
	}
	left_out(p, shown, list.n);
	vec_done(&list);
}

static void add_problems(const struct page *p)
{
	struct topology *t = p->t;
	uint64_t shown = 0;

	heading(p, "PROBLEMS of placement and transport");
	vec_for(&t->problems, pr) {
		if (shown >= most(p, 20))
			break;
		item(p);
		strbuf_addf(p->b, "%s: %s (%u %%)\n%s%s\n", severity_name(pr->severity), pr->id,
			    pr->pct, p->md ? "  " : "    ", pr->text);
		if (pr->advice)
			strbuf_addf(p->b, "%sadvice: %s\n", p->md ? "  " : "    ", pr->advice);
		shown++;
	}
	if (!t->problems.n) {
		item(p);
		strbuf_add(p->b, "none found\n");
	}
	left_out(p, shown, t->problems.n);
}

static void add_unseen(const struct page *p)
{
	size_t from = p->v->has_header ? p->t->status_from : 0;
	size_t to = p->v->has_header ? p->t->status_to : 0;

	if (p->t->unseen.n == to - from)
		return;
	heading(p, "NOT OBSERVED");
	for (size_t i = 0; i < p->t->unseen.n; i++) {
		if (i >= from && i < to)
			continue;
		item(p);
		text_clean(p->b, p->t->unseen.v[i], 400);
		strbuf_addc(p->b, '\n');
	}
}

static void add_more(const struct page *p)
{
	if (!p->v->file)
		return;
	heading(p, "MORE");
	item(p);
	strbuf_addf(p->b, "one process: witty-profiler topology %s --focus process:PID\n",
		    p->v->file);
	item(p);
	strbuf_addf(p->b, "all it has: witty-profiler show %s entity process:PID\n", p->v->file);
	item(p);
	strbuf_addf(p->b, "all flows: witty-profiler show %s flows\n", p->v->file);
}

static void (*const parts[])(const struct page *) = {
    [PART_OVERVIEW] = add_overview, [PART_PROBLEMS] = add_problems, [PART_GROUPS] = add_groups,
    [PART_PATHS] = add_paths,       [PART_DEVICES] = add_devices,   [PART_UNSEEN] = add_unseen,
    [PART_PROCESSES] = add_tree,    [PART_PLACES] = add_places,     [PART_LINKS] = add_links,
    [PART_MORE] = add_more,
};

/* In the order of reading: what there is before what is wrong with it. */
static const enum topology_part order[] = {
    PART_OVERVIEW, PART_PROCESSES, PART_DEVICES,  PART_PLACES, PART_GROUPS,
    PART_PATHS,    PART_LINKS,     PART_PROBLEMS, PART_UNSEEN, PART_MORE};

void render_topology_text(struct topology *t, const struct topology_view *v, bool md,
			  struct strbuf *b)
{
	struct page p = {.t = t, .b = b, .v = v, .md = md};
	size_t start = b->n;

	if (md)
		strbuf_add(b, "# Topology\n");
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (v->parts & 1u << order[i])
			parts[order[i]](&p);
	if (v->note)
		strbuf_addf(b, "\n%s\n", v->note);
	/* Labels, containers and texts made of them have names of the host in them. */
	text_finish(b, start);
}
