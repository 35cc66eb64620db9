/* Actors of a topology: processes with their parents and programs, and the whole's begin and end.
 */
#include "topology.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "hash.h"
#include "map.h"
#include "topology_parts.h"

const char *topo_text(struct topology *t, const char *fmt, ...)
{
	struct strbuf b = {0};
	const char *ret;
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Longer ones hold command lines, whose ends nobody misses. */
	strbuf_addn(&b, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
	ret = arena_strndup(&t->arena, strbuf_str(&b), b.n);
	strbuf_done(&b);
	return ret;
}

const char *topo_str(const struct node *n, unsigned field)
{
	struct value v;

	if (!(n->measured & (1ull << field)))
		return NULL;
	v = field_get(&n->type->fields[field], n->data);
	return v.type == T_STR || v.type == T_JSON ? v.str : NULL;
}

struct topo_actor *topo_new_actor(struct topology *t, enum actor_kind kind, uint32_t node,
				  const char *label)
{
	struct topo_actor *a = vec_add(&t->actors);

	a->node = node;
	a->kind = kind;
	a->label = label;
	a->parent = a->group = TOPO_NONE;
	return a;
}

/* Numbers that tell one rank, port or version from another are no part of what is run. */
static const char *without_numbers(struct topology *t, const char *s, size_t n)
{
	struct strbuf b = {0};
	const char *ret;

	for (size_t i = 0; i < n && i < 60; i++) {
		bool digit = isdigit((unsigned char)s[i]);

		if (digit && b.n && b.s[b.n - 1] == '#')
			continue;
		strbuf_addc(&b, digit ? '#' : s[i]);
	}
	while (b.n && b.s[b.n - 1] == ':')
		b.n--;
	ret = arena_strndup(&t->arena, strbuf_str(&b), b.n);
	strbuf_done(&b);
	return ret;
}

static size_t word_length(const char *s)
{
	return strcspn(s, " ");
}

static const char *next_word(const char *s)
{
	s += word_length(s);
	return s + strspn(s, " ");
}

/* Of a word that is a path, its last part. */
static const char *base_of(const char *word, size_t *n)
{
	const char *ret = word;

	for (size_t i = 0; i < *n; i++)
		if (word[i] == '/' && i + 1 < *n)
			ret = word + i + 1;
	*n -= (size_t)(ret - word);
	return ret;
}

static bool is_interpreter(const char *word, size_t n)
{
	static const char *const names[] = {"python", "bash", "sh",   "dash",
					    "perl",   "ruby", "node", "java"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t k = strlen(names[i]);

		if (n >= k && !strncmp(word, names[i], k) &&
		    strspn(word + k, "0123456789.") >= n - k)
			return true;
	}
	return false;
}

/* The script that an interpreter runs, with the subcommand: "vllm serve". */
static const char *script_of(struct topology *t, const char *args)
{
	const char *base, *sub;
	size_t n, k;

	while (*args == '-') {
		if (!strncmp(args, "-c ", 3))
			return strstr(args, "multiprocessing.spawn") ? "multiprocessing.spawn"
			       : strstr(args, "multiprocessing.forkserver")
				   ? "multiprocessing.forkserver"
			       : strstr(args, "multiprocessing.resource_tracker")
				   ? "multiprocessing.resource_tracker"
				   : "-c";
		if (!strncmp(args, "-m ", 3)) {
			args = next_word(args);
			break;
		}
		args = next_word(args);
	}
	n = word_length(args);
	if (!n)
		return NULL;
	base = base_of(args, &n);
	sub = next_word(args);
	k = strspn(sub, "abcdefghijklmnopqrstuvwxyz-");
	if (k && k <= 12 && sub[0] != '-' && k == word_length(sub) && !memchr(base, '.', n))
		return topo_text(t, "%s %.*s", without_numbers(t, base, n), (int)k, sub);
	return without_numbers(t, base, n);
}

static const char *program_of(struct topology *t, const struct node *n)
{
	const char *line = topo_str(n, process_f_cmdline), *script = NULL, *base;
	size_t k;

	if (!line || !*line)
		line = topo_str(n, process_f_exe);
	if (!line || !*line)
		line = topo_str(n, process_f_name);
	if (!line || !*line)
		return "?";
	k = word_length(line);
	base = base_of(line, &k);
	if (*base == '-')
		base++, k--;
	if (is_interpreter(base, k))
		script = script_of(t, next_word(line));
	/* A shell that runs a text of its own is a shell. */
	if (script && !strcmp(script, "-c") && strncmp(base, "python", 6) != 0)
		script = NULL;
	return script ? script : without_numbers(t, base, k);
}

static int compare_processes(const void *a, const void *b, void *ctx)
{
	const struct graph *g = ctx;
	const struct node *x = g->nodes.v[*(const uint32_t *)a],
			  *y = g->nodes.v[*(const uint32_t *)b];
	int ns = x->ns == y->ns ? 0 : strcmp(x->ns, y->ns);

	if (ns)
		return ns;
	if (GET(process, x, pid) != GET(process, y, pid))
		return GET(process, x, pid) < GET(process, y, pid) ? -1 : 1;
	if (GET(process, x, start_ns) != GET(process, y, start_ns))
		return GET(process, x, start_ns) < GET(process, y, start_ns) ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static const char *process_label(struct topology *t, const struct node *n)
{
	const char *name = topo_str(n, process_f_name);
	bool here = !strcmp(n->ns, "local");

	return topo_text(t, "%s[%" PRIu64 "]%s%s", name ? name : "?", GET(process, n, pid),
			 here ? "" : "@", here ? "" : n->ns);
}

static void set_parents_by_edges(struct topology *t)
{
	vec_for(&t->g->edges, d) {
		uint32_t parent = t->actor_of[(*d)->source], child = t->actor_of[(*d)->target];

		if ((*d)->type == &parent_of_type && parent != child && parent < t->n_processes &&
		    child < t->n_processes)
			t->actors.v[child].parent = parent;
	}
}

/* The process with that pid that had begun when the child began: processes of a pid lie side by
 * side. */
static uint32_t find_parent(const struct topology *t, const struct node *child)
{
	size_t low = 0, high = t->n_processes;
	uint32_t ret = TOPO_NONE;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct node *n = t->g->nodes.v[t->actors.v[mid].node];
		int c = n->ns == child->ns ? 0 : strcmp(n->ns, child->ns);

		if (c < 0 || (!c && GET(process, n, pid) < GET(process, child, ppid)))
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < t->n_processes; low++) {
		const struct node *n = t->g->nodes.v[t->actors.v[low].node];

		if (strcmp(n->ns, child->ns) || GET(process, n, pid) != GET(process, child, ppid) ||
		    n == child)
			break;
		if (ret == TOPO_NONE || GET(process, n, start_ns) <= GET(process, child, start_ns))
			ret = (uint32_t)low;
	}
	return ret;
}

/* A file may say that processes are each other's parents: whoever closes a circle has none. */
static void cut_circles(struct topology *t)
{
	uint32_t *seen = mem_alloc((t->n_processes + 1) * sizeof(*seen));

	for (uint32_t i = 0; i < t->n_processes; i++) {
		for (uint32_t at = i; at != TOPO_NONE && seen[at] != i + 1;
		     at = t->actors.v[at].parent) {
			uint32_t up = t->actors.v[at].parent;

			if (seen[at])
				break;
			seen[at] = i + 1;
			if (up != TOPO_NONE && seen[up] == i + 1)
				t->actors.v[at].parent = TOPO_NONE;
		}
	}
	free(seen);
	for (uint32_t i = 0; i < t->n_processes; i++)
		if (t->actors.v[i].parent != TOPO_NONE)
			t->actors.v[t->actors.v[i].parent].children++;
}

static void set_containers(struct topology *t)
{
	vec_for(&t->g->edges, d) {
		uint32_t a = t->actor_of[(*d)->source];
		const struct node *n = t->g->nodes.v[(*d)->target];
		const char *name;

		if ((*d)->type != &run_on_type || a == TOPO_NONE || n->type != &container_type)
			continue;
		name = topo_str(n, container_f_container_name);
		t->actors.v[a].container = name ? name : topo_str(n, container_f_container_id);
	}
}

void topo_add_processes(struct topology *t)
{
	struct graph *g = t->g;
	VEC(uint32_t) list = {0};

	t->actor_of = mem_alloc((g->nodes.n + 1) * sizeof(*t->actor_of));
	memset(t->actor_of, 0xff, (g->nodes.n + 1) * sizeof(*t->actor_of));
	vec_for(&g->nodes, n)
		if ((*n)->type == &process_type &&
		    !(HAS(process, *n, kthread) && GET(process, *n, kthread)))
			vec_push(&list, (*n)->index);
	if (list.n)
		qsort_r(list.v, list.n, sizeof(*list.v), compare_processes, g);
	vec_reserve(&t->actors, list.n + 64);
	vec_for(&list, i) {
		struct topo_actor *a =
		    topo_new_actor(t, ACTOR_PROCESS, *i, process_label(t, g->nodes.v[*i]));

		a->program = program_of(t, g->nodes.v[*i]);
		t->actor_of[*i] = (uint32_t)(a - t->actors.v);
	}
	t->n_processes = t->actors.n;
	vec_done(&list);
	set_parents_by_edges(t);
	for (size_t i = 0; i < t->n_processes; i++) {
		const struct node *n = g->nodes.v[t->actors.v[i].node];

		if (t->actors.v[i].parent == TOPO_NONE && HAS(process, n, ppid) &&
		    GET(process, n, ppid))
			t->actors.v[i].parent = find_parent(t, n);
	}
	cut_circles(t);
	set_containers(t);
}

bool topo_descends(const struct topology *t, uint32_t actor, uint32_t ancestor)
{
	while (actor != TOPO_NONE && actor != ancestor)
		actor = t->actors.v[actor].parent;
	return actor == ancestor && ancestor != TOPO_NONE;
}

void topology_init(struct topology *t, struct graph *g)
{
	memset(t, 0, sizeof(*t));
	t->g = g;
	t->window_ns = g->meta.window_ns;
	t->main_actor = TOPO_NONE;
	arena_init(&t->arena);
	derive_flows(g);
	topo_add_processes(t);
	topo_add_links(t);
	topo_add_places(t);
	topo_add_declared(t);
	topo_add_program_roles(t);
	topo_add_groups(t);
	topo_add_shapes(t);
	topo_add_patterns(t);
	topo_add_roles(t);
	topo_add_paths(t);
	topo_add_problems(t);
}

static void free_groups(struct topology *t)
{
	vec_for(&t->groups, gr) {
		vec_for(&gr->patterns, p)
			vec_done(&p->evidence);
		vec_done(&gr->members);
		vec_done(&gr->shape.order);
		vec_done(&gr->patterns);
		vec_done(&gr->basis);
	}
	vec_done(&t->groups);
}

void topology_done(struct topology *t)
{
	free_groups(t);
	vec_for(&t->knots, k)
		vec_done(&k->actors);
	vec_for(&t->paths, p) {
		vec_done(&p->actors);
		vec_done(&p->links);
	}
	vec_for(&t->places, p) {
		vec_done(&p->cpu);
		vec_done(&p->memory);
	}
	vec_for(&t->devices, d)
		vec_done(&d->users);
	vec_for(&t->problems, p)
		vec_done(&p->actors);
	vec_done(&t->actors);
	vec_done(&t->links);
	vec_done(&t->knots);
	vec_done(&t->paths);
	vec_done(&t->declared);
	vec_done(&t->places);
	vec_done(&t->devices);
	vec_done(&t->problems);
	vec_done(&t->threads);
	vec_done(&t->unseen);
	free(t->actor_of);
	free(t->first_link);
	arena_done(&t->arena);
	memset(t, 0, sizeof(*t));
}

const struct topo_link *topology_out(const struct topology *t, uint32_t actor, size_t *ret_n)
{
	*ret_n = t->first_link[actor + 1] - t->first_link[actor];
	return t->links.v + t->first_link[actor];
}

bool topo_related(const struct topology *t, uint32_t actor, uint32_t other)
{
	size_t n;
	const struct topo_link *l;

	if (topo_descends(t, actor, other) || topo_descends(t, other, actor))
		return true;
	if (t->actors.v[actor].group != TOPO_NONE &&
	    t->actors.v[actor].group == t->actors.v[other].group)
		return true;
	l = topology_out(t, actor, &n);
	for (size_t i = 0; i < n; i++)
		if (l[i].to == other)
			return true;
	l = topology_out(t, other, &n);
	for (size_t i = 0; i < n; i++)
		if (l[i].to == actor)
			return true;
	return false;
}
