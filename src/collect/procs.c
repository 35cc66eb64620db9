/* The processes of the host, shared by the collectors. */
#include "procs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "redact.h"
#include "strbuf.h"

void procs_init(struct procs *p, bool select_all, bool redact)
{
	memset(p, 0, sizeof(*p));
	p->select_all = select_all;
	p->redact = redact;
	p->own_pid = (uint32_t)getpid();
	prctl(PR_GET_NAME, p->own_name);
}

static void forget(struct proc *x)
{
	free(x->cmdline);
	free(x->exe);
	free(x->cgroup);
	free(x->environment);
	memset(x, 0, sizeof(*x));
}

void procs_done(struct procs *p)
{
	vec_for(&p->v, it)
		forget(it);
	vec_done(&p->v);
	vec_done(&p->free);
	idmap_done(&p->by_ident);
	idmap_done(&p->by_pid);
}

uint32_t procs_get(struct procs *p, uint32_t pid, uint64_t start_ns)
{
	uint64_t start = start_ns - start_ns % START_STEP_NS;
	uint32_t i = idmap_get(&p->by_ident, pid, start);

	if (i == IDMAP_NONE && p->learn && !p->learning) {
		p->learn(p->learn_ctx);
		i = idmap_get(&p->by_ident, pid, start);
	}
	if (i != IDMAP_NONE)
		return i;
	if (p->free.n) {
		i = p->free.v[--p->free.n];
	} else {
		i = (uint32_t)p->v.n;
		vec_add(&p->v);
	}
	p->v.v[i] = (struct proc){.pid = pid, .start_ns = start, .dirty = true,
				  .selected = p->select_all && pid != p->own_pid};
	p->made++;
	idmap_put(&p->by_ident, pid, start, i);
	idmap_put(&p->by_pid, pid, 0, i);
	return i;
}

static bool is_forgotten(const struct procs *p, uint32_t i, const uint64_t *used,
			 uint64_t before_ns)
{
	const struct proc *x = &p->v.v[i];

	return x->end_ns && x->end_ns < before_ns && !procs_bit(used, i) &&
	       !(x->dirty && x->selected);
}

void procs_sweep(struct procs *p, const uint64_t *used, uint64_t before_ns)
{
	idmap_clear(&p->by_ident);
	idmap_clear(&p->by_pid);
	for (uint32_t i = 0; i < p->v.n; i++) {
		struct proc *x = &p->v.v[i];
		uint32_t live;

		if (!x->pid)
			continue;
		if (is_forgotten(p, i, used, before_ns)) {
			forget(x);
			vec_push(&p->free, i);
			continue;
		}
		idmap_put(&p->by_ident, x->pid, x->start_ns, i);
		live = idmap_get(&p->by_pid, x->pid, 0);
		if (live == IDMAP_NONE || p->v.v[live].start_ns < x->start_ns)
			idmap_put(&p->by_pid, x->pid, 0, i);
	}
}

uint32_t procs_live(const struct procs *p, uint32_t pid)
{
	return idmap_get(&p->by_pid, pid, 0);
}

void procs_select(struct procs *p, uint32_t pid)
{
	uint32_t i = procs_live(p, pid);

	if (i == IDMAP_NONE)
		return;
	p->v.v[i].selected = true;
	procs_spread_selection(p);
}

void procs_copied(struct procs *p, uint32_t proc, uint32_t parent_pid)
{
	if (p->select_all && parent_pid == p->own_pid)
		p->v.v[proc].selected = false;
}

void procs_found(struct procs *p, uint32_t proc)
{
	const struct proc *x = &p->v.v[proc];

	if (x->ppid == p->own_pid && !memcmp(x->name, p->own_name, sizeof(x->name)))
		procs_copied(p, proc, x->ppid);
}

bool procs_is_helper(const struct procs *p, uint32_t proc)
{
	const struct proc *x = &p->v.v[proc];

	return p->select_all && !x->selected && x->pid != p->own_pid;
}

void procs_runs_program(struct procs *p, uint32_t proc)
{
	struct proc *x = &p->v.v[proc];

	if (procs_is_helper(p, proc))
		x->selected = x->dirty = true;
}

void procs_spread_selection(struct procs *p)
{
	bool again = !p->select_all;

	/*
	 * A child stands behind its parent except after pids wrapped: repeat until nothing changes.
	 */
	while (again) {
		again = false;
		vec_for(&p->v, it) {
			uint32_t parent = it->selected || !it->pid ? IDMAP_NONE
								   : procs_live(p, it->ppid);

			if (parent == IDMAP_NONE || !p->v.v[parent].selected)
				continue;
			it->selected = again = true;
			it->dirty = true;
		}
	}
}

void procs_set_cmdline(struct procs *p, uint32_t proc, const char *s, size_t n)
{
	struct proc *x = &p->v.v[proc];
	struct strbuf b = {0};

	while (n && !s[n - 1])
		n--;
	if (!n)
		return;
	redact_cmdline(&b, s, n, p->redact);
	free(x->cmdline);
	x->cmdline = mem_strdup(strbuf_str(&b));
	x->dirty = true;
	strbuf_done(&b);
}

void procs_set_name(struct procs *p, uint32_t proc, uint32_t tid, const char comm[16])
{
	struct proc *x = &p->v.v[proc];

	/* The main thread names the process; another's name is better than none. */
	if ((tid != x->pid && x->name[0]) || !memcmp(x->name, comm, sizeof(x->name)))
		return;
	memcpy(x->name, comm, sizeof(x->name));
	x->dirty = true;
}

static void set_facts(struct graph *g, struct node *n, const struct proc *x)
{
	SET(process, n, ppid, x->ppid);
	SET(process, n, name, graph_strn(g, x->name, strnlen(x->name, sizeof(x->name))));
	SET(process, n, kthread, x->kthread);
	if (x->cmdline)
		SET(process, n, cmdline, graph_str(g, x->cmdline));
	if (x->exe)
		SET(process, n, exe, graph_str(g, x->exe));
	if (x->cgroup)
		SET(process, n, cgroup, graph_str(g, x->cgroup));
	if (x->environment)
		SET(process, n, environment, graph_str(g, x->environment));
	if (x->has_ids) {
		SET(process, n, uid, x->uid);
		SET(process, n, threads, x->threads);
	}
	if (x->has_namespaces) {
		SET(process, n, nspid, x->nspid);
		SET(process, n, netns, x->netns);
		SET(process, n, pidns, x->pidns);
		SET(process, n, mntns, x->mntns);
	}
	if (x->rings)
		SET(process, n, io_uring_rings, x->rings);
	if (x->rss_bytes)
		SET(process, n, rss_bytes, x->rss_bytes);
	if (x->end_ns)
		SET(process, n, end_ns, x->end_ns);
	if (x->has_exit)
		SET(process, n, exit_status, x->exit_status);
}

uint32_t procs_node(struct procs *p, struct graph *g, uint32_t proc)
{
	struct proc *x = &p->v.v[proc];
	struct node *n = graph_new_node(g, &process_type);
	uint32_t parent;

	SET(process, n, pid, x->pid);
	SET(process, n, start_ns, x->start_ns);
	if (!x->dirty)
		return graph_add_node(g, n)->index;
	x->dirty = false;
	set_facts(g, n, x);
	n = graph_add_node(g, n);
	parent = x->ppid ? procs_live(p, x->ppid) : IDMAP_NONE;
	if (parent != IDMAP_NONE && parent != proc && p->v.v[parent].start_ns <= x->start_ns)
		graph_link(g, &parent_of_type, procs_node(p, g, parent), n->index);
	if (x->netns) {
		struct node *ns = graph_new_node(g, &net_namespace_type);

		SET(net_namespace, ns, inode, x->netns);
		graph_link(g, &in_net_namespace_type, n->index, graph_add_node(g, ns)->index);
	}
	return n->index;
}

struct node *procs_thread(struct procs *p, struct graph *g, uint32_t proc, uint32_t tid,
			  uint64_t start_ns, const char *comm)
{
	uint32_t process = procs_node(p, g, proc);
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, start_ns, start_ns - start_ns % START_STEP_NS);
	SET(thread, n, process, process);
	if (comm)
		SET(thread, n, name, graph_strn(g, comm, strnlen(comm, 16)));
	n = graph_add_node(g, n);
	graph_link(g, &own_type, process, n->index);
	return n;
}
