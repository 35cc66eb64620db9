/*
 * Threads and the roles that they play: those of one process, or of processes with one name and one parent, that have
 * the same name but for numbers are equal.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"
#include "waitfor/parts.h"

#define NAME_MAX_BYTES 64

/* "worker-12" and "worker-3" become "worker"; a name that is nothing but a number stays. */
static void plain_name(const char *name, char *ret)
{
	size_t n = 0;

	for (const char *c = name; *c && n < NAME_MAX_BYTES - 1; c++)
		if (!isdigit((unsigned char)*c))
			ret[n++] = *c;
	while (n && strchr("-_:#./ [(", ret[n - 1]))
		n--;
	ret[n] = 0;
	if (!n) {
		strncpy(ret, name, NAME_MAX_BYTES - 1);
		ret[NAME_MAX_BYTES - 1] = 0;
	}
}

static uint32_t process_of(const struct node *n)
{
	return HAS(thread, n, process) ? GET(thread, n, process) : NODE_NONE;
}

static const char *thread_name(const struct graph *g, const struct node *n)
{
	uint32_t p = process_of(n);
	const char *name = wf_str(n, thread_f_name);

	if (!name && p != NODE_NONE && g->nodes.v[p]->type == &process_type)
		name = wf_str(g->nodes.v[p], process_f_name);
	return name ?: "?";
}

static bool is_kernel(const struct graph *g, uint32_t process)
{
	const struct node *p = process == NODE_NONE ? NULL : g->nodes.v[process];

	return p && p->type == &process_type && HAS(process, p, kthread) && GET(process, p, kthread);
}

struct naming {
	const struct wf *x;
	const uint32_t *family; /* [g->nodes.n + 1] of a process: the first one like it */
	char (*names)[NAME_MAX_BYTES]; /* by thread number */
};

static uint32_t family_of(const struct naming *names, const struct wf_thread *t)
{
	return t->process == NODE_NONE ? NODE_NONE : names->family[t->process];
}

static int role_order(const void *a, const void *b, void *ctx)
{
	const struct naming *names = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct wf_thread *p = &names->x->threads.v[i], *q = &names->x->threads.v[j];
	uint32_t f = family_of(names, p), g = family_of(names, q);
	int by_name;

	if (f != g)
		return f < g ? -1 : 1;
	by_name = strcmp(names->names[i], names->names[j]);
	if (by_name)
		return by_name;
	if (p->process != q->process)
		return p->process < q->process ? -1 : 1;
	return p->node < q->node ? -1 : p->node > q->node;
}

/* Children of one parent with one name; those of init are whoever lost its parent. */
static uint32_t *find_process_families(const struct graph *g)
{
	uint32_t *family = mem_alloc((g->nodes.n + 1) * sizeof(*family));
	char name[NAME_MAX_BYTES];
	struct idmap of = {0};

	for (uint32_t i = 0; i < g->nodes.n; i++) {
		const struct node *p = g->nodes.v[i];
		const char *text = p->type == &process_type ? wf_str(p, process_f_name) : NULL;
		uint64_t key;

		family[i] = i;
		if (!text || !HAS(process, p, ppid) || GET(process, p, ppid) <= 2)
			continue;
		plain_name(text, name);
		key = hash_bytes(name, strlen(name), GET(process, p, ppid));
		family[i] = idmap_get(&of, key, GET(process, p, ppid));
		if (family[i] == IDMAP_NONE) {
			family[i] = i;
			idmap_put(&of, key, GET(process, p, ppid), i);
		}
	}
	idmap_done(&of);
	return family;
}

static const char *process_text(struct wf *x, uint32_t process)
{
	const struct node *p = process == NODE_NONE ? NULL : x->g->nodes.v[process];
	const char *name;

	if (!p || p->type != &process_type)
		return NULL;
	name = wf_str(p, process_f_name);
	if (!HAS(process, p, pid))
		return name;
	return wf_text(x->w, "%s[%" PRIu64 "]", name ?: "?", GET(process, p, pid));
}

static void role_text(struct wf *x, struct wait_role *r)
{
	const char *process = process_text(x, r->process);
	const struct node *first = x->g->nodes.v[r->threads.v[0]];
	bool main = r->process != NODE_NONE && x->g->nodes.v[r->process]->type == &process_type &&
		    HAS(process, x->g->nodes.v[r->process], pid) &&
		    GET(process, x->g->nodes.v[r->process], pid) == GET(thread, first, tid);

	if (r->threads.n > 1 && r->process == NODE_NONE)
		r->text = wf_text(x->w, "%zu %s threads of %" PRIu32 " processes", r->threads.n, r->name, r->processes);
	else if (r->threads.n > 1)
		r->text = wf_text(x->w, "%zu %s threads%s%s", r->threads.n, r->name, process ? " of " : "",
				  process ?: "");
	else if (main || !process)
		r->text = wf_thread_text(x->w, x->g, r->threads.v[0]);
	else
		r->text = wf_text(x->w, "%s of %s", wf_thread_text(x->w, x->g, r->threads.v[0]), process);
}

static void add_roles(struct wf *x)
{
	size_t n = x->threads.n;
	uint32_t *family = find_process_families(x->g);
	struct naming names = {x, family, mem_alloc((n + 1) * sizeof(*names.names))};
	uint32_t *order = mem_alloc((n + 1) * sizeof(*order));
	struct wait_role *r = NULL;

	for (uint32_t i = 0; i < n; i++) {
		plain_name(thread_name(x->g, x->g->nodes.v[x->threads.v[i].node]), names.names[i]);
		order[i] = i;
	}
	if (n)
		qsort_r(order, n, sizeof(*order), role_order, &names);
	for (size_t i = 0; i < n; i++) {
		struct wf_thread *t = &x->threads.v[order[i]];

		if (!i || family_of(&names, t) != family_of(&names, &x->threads.v[order[i - 1]]) ||
		    strcmp(names.names[order[i]], names.names[order[i - 1]])) {
			r = vec_add(&x->w->roles);
			r->process = t->process;
			r->name = arena_strdup(&x->w->arena, names.names[order[i]]);
		}
		r->processes += !r->threads.n || x->threads.v[order[i - 1]].process != t->process;
		if (r->process != t->process)
			r->process = NODE_NONE;
		t->role = (uint32_t)(x->w->roles.n - 1);
		x->w->role_of[t->node] = t->role;
		vec_push(&r->threads, t->node);
		r->run_ns += t->run_ns;
		r->runq_ns += t->runq_ns;
		r->blocked_ns += t->blocked_ns;
	}
	vec_for(&x->w->roles, it)
		role_text(x, it);
	free(names.names);
	free(family);
	free(order);
}

/* A word whose waiters found it in the state of a contended lock, one that names its owner, a file lock. */
static void find_locks(struct wf *x)
{
	uint64_t *waits = mem_alloc((x->g->nodes.n + 1) * sizeof(*waits));

	vec_for(&x->g->edges, it) {
		const struct edge *d = *it;

		if (d->type != &waits_for_type)
			continue;
		if (HAS(waits_for, d, waits))
			waits[d->target] += GET(waits_for, d, waits);
		if (wf_edge_cause(d) == CAUSE_FILE_LOCK)
			x->lock[d->target] = 1;
	}
	vec_for(&x->g->nodes, it) {
		const struct node *n = *it;

		if (n->type == &futex_type && HAS(futex, n, owner_thread))
			x->lock[n->index] = 1;
		if (n->type == &futex_type && HAS(futex, n, lock_waits) &&
		    GET(futex, n, lock_waits) * 2 > waits[n->index])
			x->lock[n->index] = 1;
	}
	free(waits);
}

void wf_add_threads(struct wf *x)
{
	struct waitfor *w = x->w;
	size_t n = x->g->nodes.n;

	x->no = mem_alloc((n + 1) * sizeof(*x->no));
	x->lock = mem_alloc(n + 1);
	w->role_of = mem_alloc((n + 1) * sizeof(*w->role_of));
	for (uint32_t i = 0; i < n; i++) {
		const struct node *t = x->g->nodes.v[i];

		x->no[i] = w->role_of[i] = NODE_NONE;
		if (t->type != &thread_type)
			continue;
		x->no[i] = (uint32_t)x->threads.n;
		vec_push(&x->threads, ((struct wf_thread){
					      .node = i,
					      .process = process_of(t),
					      .run_ns = HAS(thread, t, run_ns) ? wf_time(GET(thread, t, run_ns)) : 0,
					      .runq_ns = HAS(thread, t, runq_ns) ? wf_time(GET(thread, t, runq_ns)) : 0,
					      .blocked_ns = HAS(thread, t, blocked_ns)
								? wf_time(GET(thread, t, blocked_ns))
								: 0,
					      .kernel = is_kernel(x->g, process_of(t)),
				      }));
	}
	add_roles(x);
	find_locks(x);
}
