/* Equal processes that wait for each other: the ranks of a job, whatever it is. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "waitfor/ranks.h"

/* "train-3" and "train-4" are alike. */
static uint64_t hash_letters(const char *s, uint64_t h)
{
	for (; s && *s; s++)
		if (!isdigit((unsigned char)*s))
			h = hash_pair(h, (unsigned char)*s);
	return h;
}

static uint64_t find_number(const struct node *p)
{
	const char *env = HAS(process, p, environment) ? GET(process, p, environment) : NULL;
	const char *at = env ? strstr(env, "\"RANK\":") : NULL;

	if (at) {
		at += strlen("\"RANK\":");
		while (*at == ' ' || *at == '"')
			at++;
		if (isdigit((unsigned char)*at))
			return strtoull(at, NULL, 10);
	}
	return HAS(process, p, pid) ? GET(process, p, pid) : p->index;
}

static int rank_order(const void *a, const void *b)
{
	const struct wf_rank *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/*
 * What tells equals: the name, and the command line but for numbers, which differs between the two sides of
 * one program. Whoever has a rank is one of several, however it was started.
 */
static uint64_t equality_of(const struct node *p)
{
	uint64_t h = hash_letters(GET(process, p, name), hash_u64(GET(process, p, ppid)));
	const char *env = HAS(process, p, environment) ? GET(process, p, environment) : NULL;

	if ((env && strstr(env, "\"RANK\":")) || !HAS(process, p, cmdline))
		return h;
	return hash_letters(GET(process, p, cmdline), h);
}

/* Siblings that are equal. */
static void find_siblings(struct wf_rank_sets *s, const struct wf *x)
{
	struct idmap of = {0};

	vec_for(&x->g->nodes, it) {
		const struct node *p = *it;
		uint64_t key;
		uint32_t at;

		if (p->type != &process_type || !HAS(process, p, ppid) || !HAS(process, p, name) ||
		    (HAS(process, p, kthread) && GET(process, p, kthread)))
			continue;
		key = equality_of(p);
		at = idmap_get(&of, key, 0);
		if (at == IDMAP_NONE) {
			at = (uint32_t)s->v.n;
			idmap_put(&of, key, 0, at);
			vec_add(&s->v);
		}
		s->set_of[p->index] = at;
		vec_push(&s->v.v[at].v, ((struct wf_rank){p->index, find_number(p), NODE_NONE, 0}));
	}
	vec_for(&s->v, set) {
		qsort(set->v.v, set->v.n, sizeof(*set->v.v), rank_order);
		vec_for(&set->v, r)
			s->rank_of[r->process] = (uint32_t)(r - set->v.v);
	}
	idmap_done(&of);
}

bool wf_is_inner(const struct wf_rank_sets *s, const struct wf *x, uint32_t waiter, const struct wf_span *span)
{
	uint32_t from = x->threads.v[waiter].process, to;

	if (span->charged == NODE_NONE || from == NODE_NONE)
		return false;
	to = x->threads.v[span->charged].process;
	return to != NODE_NONE && to != from && s->set_of[from] != NODE_NONE && s->set_of[from] == s->set_of[to];
}

/* The thread of each rank that waits for others most; of who hardly waits, the one with the same name. */
static void find_threads(struct wf_rank_sets *s, struct wf *x)
{
	const char **name = mem_alloc((s->v.n + 1) * sizeof(*name));
	uint64_t *most = mem_alloc((s->v.n + 1) * sizeof(*most));
	uint64_t *inner = mem_alloc((x->threads.n + 1) * sizeof(*inner));

	for (uint32_t no = 0; no < x->threads.n; no++) {
		const struct wf_thread *t = &x->threads.v[no];
		uint32_t set = t->process == NODE_NONE ? NODE_NONE : s->set_of[t->process];

		for (uint32_t i = t->first; set != NODE_NONE && i < t->first + t->n; i++)
			if (wf_is_inner(s, x, no, &x->spans.v[i]))
				inner[no] += x->spans.v[i].wake_ns - x->spans.v[i].out_ns;
		if (set != NODE_NONE && inner[no] > most[set]) {
			most[set] = inner[no];
			name[set] = x->w->roles.v[t->role].name;
		}
	}
	for (uint32_t no = 0; no < x->threads.n; no++) {
		const struct wf_thread *t = &x->threads.v[no];
		uint32_t set = t->process == NODE_NONE ? NODE_NONE : s->set_of[t->process];
		struct wf_rank *r;

		if (set == NODE_NONE || !name[set] || strcmp(name[set], x->w->roles.v[t->role].name))
			continue;
		r = &s->v.v[set].v.v[s->rank_of[t->process]];
		s->v.v[set].inner_ns += inner[no];
		if (r->thread == NODE_NONE || inner[no] > r->inner_ns ||
		    (inner[no] == r->inner_ns && t->run_ns > x->threads.v[r->thread].run_ns)) {
			r->thread = no;
			r->inner_ns = inner[no];
		}
	}
	free(name);
	free(most);
	free(inner);
}

/* Those that wait for each other: all but one, at least, and for a while. */
static bool is_set(const struct wf *x, const struct wf_ranks *s)
{
	uint64_t covered = x->to_ns - x->from_ns;
	size_t waiting = 0, there = 0;

	vec_for(&s->v, r) {
		there += r->thread != NODE_NONE;
		waiting += r->inner_ns * 50 > covered;
	}
	return there == s->v.n && s->v.n >= 2 && waiting && waiting + 1 >= s->v.n;
}

void wf_ranks_init(struct wf_rank_sets *s, struct wf *x)
{
	size_t n = x->g->nodes.n + 1, kept = 0;

	memset(s, 0, sizeof(*s));
	s->set_of = mem_alloc(n * sizeof(*s->set_of));
	s->rank_of = mem_alloc(n * sizeof(*s->rank_of));
	memset(s->set_of, 0xff, n * sizeof(*s->set_of));
	memset(s->rank_of, 0xff, n * sizeof(*s->rank_of));
	find_siblings(s, x);
	find_threads(s, x);
	vec_for(&s->v, set) {
		bool keep = is_set(x, set);

		vec_for(&set->v, r)
			s->set_of[r->process] = keep ? (uint32_t)kept : NODE_NONE;
		if (keep)
			s->v.v[kept++] = *set;
		else
			vec_done(&set->v);
	}
	s->v.n = kept;
}

void wf_ranks_done(struct wf_rank_sets *s)
{
	vec_for(&s->v, set)
		vec_done(&set->v);
	vec_done(&s->v);
	free(s->set_of);
	free(s->rank_of);
}
