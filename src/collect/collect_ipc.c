/*
 * Pipes, queues, semaphores, files and memory copies: who moves how much, and the flows that makes.
 */
#include "collect_ipc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channels.h"
#include "device_calls.h"
#include "flows.h"
#include "ipc_probe.h"
#include "objects.h"
#include "sock_turns.h"

struct sampling {
	struct collect *c;
	struct graph *g;
	uint64_t offset_ns;
};

static void name_pipe(struct sampling *x, struct node *n, const struct ipc_sample *s)
{
	char path[PATH_MAX];

	if (s->v.extra)
		SET(pipe_inode, n, capacity_bytes, s->v.extra * (uint64_t)sysconf(_SC_PAGESIZE));
	if (s->key.kind != IPC_FIFO || !ipc_name(x->c->ipc->files, s, path, sizeof(path)))
		return;
	if (path[0] == '/' || !HAS(pipe_inode, n, path))
		SET(pipe_inode, n, path, graph_str(x->g, path));
}

static uint32_t sysv_node(struct sampling *x, const struct ipc_key *k)
{
	bool sem = k->kind == IPC_SYSV_SEM;
	struct node *n = sem ? object_sysv_sem(x->g, k->id, k->space)
			     : object_sysv_queue(x->g, k->id, k->space);
	const struct ipc_sysv *s = ipc_facts_sysv(x->c->ipc->facts, sem, k->id, k->space);

	if (s && sem) {
		SET(sysv_sem, n, ipc_key, s->key);
		SET(sysv_sem, n, semaphores, s->amount);
	} else if (s) {
		SET(sysv_queue, n, ipc_key, s->key);
		SET(sysv_queue, n, queued_bytes, s->amount);
	}
	return n->index;
}

static uint32_t file_node(struct sampling *x, const struct ipc_sample *s)
{
	uint32_t index = ipc_file_node(x->c->ipc->files, x->g, s);
	struct node *n = x->g->nodes.v[index];
	const char *type;

	/* Folded ones may be of several. */
	if (!GET(file, n, inode))
		return index;
	type = ipc_facts_fs_type(x->c->ipc->facts, s->key.space, s->v.task.tgid);
	if (type)
		SET(file, n, fs_type, graph_str(x->g, type));
	return index;
}

/* The entity that a sample is about; NODE_NONE: none of ours. */
static uint32_t object_of(struct sampling *x, const struct ipc_sample *s)
{
	const struct ipc_key *k = &s->key;
	struct node *n;

	switch (k->kind) {
	case IPC_PIPE:
	case IPC_FIFO:
		n = object_pipe(x->g, k->id, k->kind == IPC_FIFO ? k->space : 0);
		name_pipe(x, n, s);
		return n->index;
	case IPC_EVENTFD:
		return object_eventfd(x->g, k->id, k->space)->index;
	case IPC_POSIX_QUEUE:
		n = object_posix_queue(x->g, k->id, k->space);
		if (s->v.name[0]) {
			char name[IPC_NAME_BYTES + 2] = "/";

			memcpy(name + 1, s->v.name, IPC_NAME_BYTES);
			SET(posix_queue, n, name, graph_str(x->g, name));
		}
		return n->index;
	case IPC_SYSV_QUEUE:
	case IPC_SYSV_SEM:
		return sysv_node(x, k);
	case IPC_FILE:
		return file_node(x, s);
	case IPC_BLOCK:
		return object_block_device(x->g, (uint32_t)k->id)->index;
	default:
		return NODE_NONE;
	}
}

static void write_edge(struct sampling *x, const struct ipc_sample *s, uint32_t thread,
		       uint32_t object)
{
	struct edge *d = graph_new_edge(x->g, &write_to_type, thread, object);

	if (s->key.kind != IPC_SYSV_SEM)
		SET(write_to, d, bytes, s->v.bytes);
	SET(write_to, d, calls, s->v.calls);
	if (s->estimated && s->key.kind != IPC_SYSV_SEM)
		SET(write_to, d, estimated_bytes, s->v.bytes);
	SET(write_to, d, first_ns, s->v.first_ns + x->offset_ns);
	SET(write_to, d, last_ns, s->v.last_ns + x->offset_ns);
	graph_add_edge(x->g, d);
}

static void read_edge(struct sampling *x, const struct ipc_sample *s, uint32_t thread,
		      uint32_t object)
{
	struct edge *d = graph_new_edge(x->g, &read_from_type, object, thread);

	if (s->key.kind != IPC_SYSV_SEM)
		SET(read_from, d, bytes, s->v.bytes);
	if (s->estimated && s->key.kind != IPC_SYSV_SEM)
		SET(read_from, d, estimated_bytes, s->v.bytes);
	SET(read_from, d, calls, s->key.dir == IPC_READ ? s->v.calls : 0);
	if (s->key.kind == IPC_SYSV_SEM)
		SET(read_from, d, zero_waits, s->key.dir == IPC_READ ? 0 : s->v.calls);
	SET(read_from, d, first_ns, s->v.first_ns + x->offset_ns);
	SET(read_from, d, last_ns, s->v.last_ns + x->offset_ns);
	graph_add_edge(x->g, d);
}

static void object_edges(struct sampling *x, uint32_t proc, const struct ipc_sample *s)
{
	uint32_t object = object_of(x, s), thread;

	if (object == NODE_NONE)
		return;
	thread = procs_thread(&x->c->procs, x->g, proc, s->v.task.tid, s->v.task.start_ns,
			      s->v.comm)->index;
	if (s->key.dir == IPC_WRITE)
		write_edge(x, s, thread, object);
	else
		read_edge(x, s, thread, object);
}

/*
 * Everything in a channel may reach whoever reads there; a semaphore carries no data, a file keeps
 * it.
 */
static enum flow_kind flow_kind_of(unsigned kind)
{
	switch (kind) {
	case IPC_PIPE:
		return FLOW_PIPE;
	case IPC_FIFO:
		return FLOW_FIFO;
	case IPC_EVENTFD:
		return FLOW_EVENTFD;
	case IPC_POSIX_QUEUE:
		return FLOW_POSIX_QUEUE;
	case IPC_SYSV_QUEUE:
		return FLOW_SYSV_QUEUE;
	default:
		return FLOW_OTHER;
	}
}

/* The process whose memory it is, IDMAP_NONE: not found. */
static uint32_t memory_owner(struct sampling *x, uint32_t caller, const struct ipc_sample *s)
{
	if (s->key.flags & IPC_TARGET_PID)
		return ipc_target(&x->c->procs, caller, (uint32_t)s->key.id, s->key.space);
	return procs_get(&x->c->procs, s->key.space, s->key.id);
}

static void copied_memory(struct sampling *x, uint32_t caller, const struct ipc_sample *s)
{
	struct moved m = {s->v.bytes, s->v.calls, s->v.first_ns, s->v.last_ns};
	uint32_t owner = memory_owner(x, caller, s), from, to, source;
	struct procs *p = &x->c->procs;
	struct edge *d;

	if (owner == IDMAP_NONE) {
		x->c->ipc->targets_unknown += s->v.calls;
		return;
	}
	from = s->key.dir == IPC_READ ? owner : caller;
	to = s->key.dir == IPC_READ ? caller : owner;
	channels_add_direct(x->c->channels, FLOW_MEMORY_COPY, from, to, &m);
	if (!p->v.v[from].selected && !p->v.v[to].selected)
		return;
	source = procs_node(p, x->g, from);
	d = graph_new_edge(x->g, &memory_copy_type, source, procs_node(p, x->g, to));
	SET(memory_copy, d, bytes, s->v.bytes);
	SET(memory_copy, d, calls, s->v.calls);
	SET(memory_copy, d, first_ns, s->v.first_ns + x->offset_ns);
	SET(memory_copy, d, last_ns, s->v.last_ns + x->offset_ns);
	graph_add_edge(x->g, d);
}

/* Where TCP is watched in turns, the total of the connection has it. */
static void add_spliced(struct collect *c, uint32_t proc, uint64_t ino, const struct moved *m)
{
	const struct sock_facts *s = flows_socket(c->flows, ino);

	if (!s || !sock_turns_splice(c->sock_turns, s, m->bytes))
		flows_add_spliced(c->flows, proc, ino, m);
}

static void add_moved(struct sampling *x, const struct ipc_sample *s)
{
	struct collect *c = x->c;
	uint32_t proc = procs_get(&c->procs, s->v.task.tgid, s->v.task.leader_start_ns);
	enum flow_kind kind = flow_kind_of(s->key.kind);
	struct moved m = {s->v.bytes, s->v.calls, s->v.first_ns, s->v.last_ns};

	procs_set_name(&c->procs, proc, s->v.task.tid, s->v.comm);
	if (s->key.kind == IPC_DEVICE) {
		device_calls_ioctl(c->device_calls, &c->procs.v.v[proc], (uint32_t)s->key.id, s->v.name, s->v.calls,
				   s->v.bytes);
		return;
	}
	if (s->key.kind == IPC_MEMORY)
		copied_memory(x, proc, s);
	else if (s->key.kind == IPC_SOCKET && c->sock_probe &&
		 !sock_probe_sees_splice(c->sock_probe))
		add_spliced(c, proc, s->key.id, &m);
	else if (kind != FLOW_OTHER)
		channels_add(c->channels, kind, s->key.id, s->key.space, proc,
			     s->key.dir == IPC_READ, &m);
	if (c->procs.v.v[proc].selected)
		object_edges(x, proc, s);
}

static int by_time(const void *a, const void *b)
{
	const struct ipc_sample *x = a, *y = b;

	return (x->v.last_ns > y->v.last_ns) - (x->v.last_ns < y->v.last_ns);
}

/*
 * All samples are taken before the events of processes: whoever moved something had begun before,
 * so that it is known by then whether it descends from one that is recorded, and whose memory it
 * copied.
 */
static int sample(struct sampling *x, struct err *e)
{
	struct ipc_state *state = x->c->ipc;
	bool looked = false;
	int rc = ipc_turns_read(x->c, e);

	rc = rc ?: ipc_passes_read(state->passes, x->c, e);
	if (!rc && x->c->ticks)
		rc = collect_procs(x->c, false, e);
	if (rc)
		return rc;
	/* In order of time, so that the name that was seen last stays. */
	if (state->samples.n)
		qsort(state->samples.v, state->samples.n, sizeof(*state->samples.v), by_time);
	vec_for(&state->samples, s) {
		/* Whoever only splices out of a socket may be gone at the next look. */
		if (s->key.kind == IPC_SOCKET && !looked && !flows_socket(x->c->flows, s->key.id)) {
			looked = true;
			rc = collect_open_sockets(x->c, x->g, e);
		}
		if (rc)
			return rc;
		add_moved(x, s);
	}
	vec_clear(&state->samples);
	return 0;
}

static uint32_t recorded_pid(const struct proc *p)
{
	return p->selected && !p->end_ns ? p->pid : 0;
}

/* Who has ended first: the pid may be somebody else's by now. */
static int tell_recorded(struct collect *c, struct err *e)
{
	struct ipc_state *state = c->ipc;
	int rc = 0;

	if (c->procs.select_all)
		return 0;
	while (state->recorded.n < c->procs.v.n)
		vec_push(&state->recorded, 0);
	for (size_t i = 0; !rc && i < state->recorded.n; i++) {
		uint32_t *known = &state->recorded.v[i];

		if (!*known || *known == recorded_pid(&c->procs.v.v[i]))
			continue;
		rc = ipc_probe_record(c->ipc_probe, *known, false, e);
		*known = 0;
	}
	for (size_t i = 0; !rc && i < state->recorded.n; i++) {
		uint32_t *known = &state->recorded.v[i], pid = recorded_pid(&c->procs.v.v[i]);

		if (*known == pid)
			continue;
		rc = ipc_probe_record(c->ipc_probe, pid, true, e);
		*known = pid;
	}
	return rc;
}

int collect_ipc(struct collect *c, struct graph *g, struct err *e)
{
	struct sampling x = {c, g, realtime_offset_ns()};
	int rc;

	if (!c->ipc_probe)
		return 0;
	if (!c->ipc) {
		c->ipc = mem_alloc(sizeof(*c->ipc));
		c->ipc->turns = ipc_turns_new(c);
		c->ipc->facts = ipc_facts_new();
		c->ipc->files = ipc_files_new();
		c->ipc->watcher = ipc_watcher_new();
		c->ipc->passes = ipc_passes_new();
	}
	ipc_facts_outdated(c->ipc->facts);
	rc = tell_recorded(c, e);
	rc = rc ?: ipc_watcher_tick(c->ipc->watcher, c, e);
	rc = rc ?: sample(&x, e);
	if (!rc)
		ipc_passes_match(c->ipc->passes, c, g);
	return rc;
}

static void describe_folded(const struct ipc_files *f, struct graph *g)
{
	char text[160];

	if (!ipc_files_folded(f))
		return;
	snprintf(text, sizeof(text),
		 "%llu calls on files beyond the first %u of a process, or beyond what fits in "
		 "an interval, are folded into one file with inode 0",
		 (unsigned long long)ipc_files_folded(f), IPC_FILES_PER_PROCESS);
	graph_add_status(g, "collector ipc files", "reduced", NULL, text);
}

/* Not even together with others: in no edge, and in no flow. */
static void describe_rest(struct collect *c, struct graph *g)
{
	struct ipc_rest rest[IPC_KINDS][IPC_DIRS];
	uint64_t calls = 0, bytes = 0;
	char text[160];

	ipc_probe_rest(c->ipc_probe, rest);
	for (int kind = 0; kind < IPC_KINDS; kind++)
		for (int dir = 0; dir < IPC_DIRS; dir++) {
			calls += rest[kind][dir].calls;
			bytes += rest[kind][dir].bytes;
		}
	if (!calls)
		return;
	snprintf(text, sizeof(text),
		 "%llu calls with %llu bytes are in no edge: the table of what moves in an "
		 "interval was full",
		 (unsigned long long)calls, (unsigned long long)bytes);
	graph_add_status(g, "collector ipc table", "reduced", NULL, text);
}

void collect_ipc_describe(struct collect *c, struct graph *g)
{
	if (!c->ipc)
		return;
	ipc_watcher_describe(c->ipc->watcher, g);
	ipc_turns_describe(c->ipc->turns, c, g);
	ipc_passes_describe(c->ipc->passes, g);
	describe_folded(c->ipc->files, g);
	describe_rest(c, g);
	graph_add_loss(g, "collector ipc", "memory_of_unknown_process", c->ipc->targets_unknown);
}

void collect_ipc_done(struct collect *c)
{
	if (!c->ipc)
		return;
	ipc_facts_free(c->ipc->facts);
	ipc_files_free(c->ipc->files);
	ipc_watcher_free(c->ipc->watcher);
	ipc_turns_free(c->ipc->turns);
	ipc_passes_free(c->ipc->passes);
	vec_done(&c->ipc->samples);
	vec_done(&c->ipc->recorded);
	free(c->ipc);
	c->ipc = NULL;
}

void collect_ipc_mark(const struct collect *c, uint64_t *used)
{
	if (c->ipc)
		ipc_passes_mark(c->ipc->passes, used);
}
