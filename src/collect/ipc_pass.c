/* Descriptors that processes hand to each other: finds who sent what another one received. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "clock.h"
#include "collect_ipc.h"
#include "flows.h"
#include "ipc_probe.h"
#include "objects.h"

/* Messages may lie in a socket for long; then they are given up, oldest first. */
#define SENT_KEPT_NS	 (300 * NS_PER_SEC)
#define SENT_MAX	 4096u
/* The receiver may return from its call before the sender does. */
#define RECEIVED_KEPT_NS (3 * NS_PER_SEC)
/* A look (MSG_PEEK) installs the descriptor, too, before it is received for good. */
#define AGAIN_NS	 (10 * NS_PER_SEC)

struct sent {
	struct ipc_passed ev;
	uint32_t proc;
	uint32_t receiver; /* pid that it arrived at, 0: not yet */
	uint64_t arrived_ns;
};

struct ipc_passes {
	VEC(struct sent) sent; /* in order of time, about */
	VEC(struct ipc_passed) received; /* by whom is not known yet */
	uint64_t unmatched, given_up;
};

struct pairing {
	struct collect *c;
	struct graph *g;
	uint64_t offset_ns;
};

struct ipc_passes *ipc_passes_new(void)
{
	return mem_alloc(sizeof(struct ipc_passes));
}

void ipc_passes_free(struct ipc_passes *p)
{
	if (!p)
		return;
	vec_done(&p->sent);
	vec_done(&p->received);
	free(p);
}

/* "[eventpoll]", "[pidfd]", "inotify": the bare word. */
static const char *anonymous_name(struct graph *g, const char *name)
{
	size_t n = strcspn(name + (name[0] == '['), "]:");

	return n ? graph_strn(g, name + (name[0] == '['), n) : graph_str(g, "other");
}

static const char *kind_name(struct graph *g, const struct ipc_passed *ev)
{
	static const char *const names[IPC_KINDS] = {
		[IPC_PIPE] = "pipe",   [IPC_FIFO] = "fifo",   [IPC_EVENTFD] = "eventfd",
		[IPC_FILE] = "file",   [IPC_SOCKET] = "socket", [IPC_POSIX_QUEUE] = "posix_queue",
		[IPC_BLOCK] = "block_device",
	};

	if (ev->kind == IPC_FILE && !strncmp(ev->name, "memfd:", 6))
		return graph_str(g, "memfd");
	if (ev->kind < IPC_KINDS && names[ev->kind])
		return graph_str(g, names[ev->kind]);
	if (ev->magic != IPC_ANON_INODE_MAGIC && S_ISDIR(ev->mode))
		return graph_str(g, "directory");
	if (S_ISCHR(ev->mode))
		return graph_str(g, "char_device");
	if (ev->magic == IPC_PIDFS_MAGIC)
		return graph_str(g, "pidfd");
	if (ev->magic != IPC_ANON_INODE_MAGIC && S_ISREG(ev->mode))
		return graph_str(g, "file"); /* of /proc and the like */
	return anonymous_name(g, ev->name);
}

static struct node *object_node(struct pairing *x, const struct ipc_passed *ev)
{
	const struct sock_facts *s;

	switch (ev->kind) {
	case IPC_PIPE:
		return object_pipe(x->g, ev->id, 0);
	case IPC_FIFO:
		return object_pipe(x->g, ev->id, ev->space);
	case IPC_EVENTFD:
		return object_eventfd(x->g, ev->id, ev->space);
	case IPC_POSIX_QUEUE:
		return object_posix_queue(x->g, ev->id, ev->space);
	case IPC_FILE:
		return object_file(x->g, ev->id, ev->space);
	case IPC_BLOCK:
		return object_block_device(x->g, (uint32_t)ev->id);
	case IPC_SOCKET:
		s = flows_socket(x->c->flows, ev->ino);
		/* The address is all that tells IP sockets apart. */
		if (!s || (s->family != AF_UNIX && !s->local.port))
			return NULL;
		return x->g->nodes.v[endpoint_node(x->g, s, false, false)];
	default:
		return NULL;
	}
}

static void pass_edge(struct pairing *x, uint32_t from, uint32_t to, const struct ipc_passed *ev,
		      const char *via)
{
	struct procs *p = &x->c->procs;
	struct node *object;
	struct edge *d;
	uint32_t source;

	if (!p->v.v[from].selected && !p->v.v[to].selected)
		return;
	object = object_node(x, ev);
	source = procs_node(p, x->g, from);
	d = graph_new_edge(x->g, &fd_passed_type, source, procs_node(p, x->g, to));
	SET(fd_passed, d, kind, kind_name(x->g, ev));
	if (object)
		SET(fd_passed, d, object, object->index);
	SET(fd_passed, d, descriptors, 1);
	SET(fd_passed, d, via, graph_str(x->g, via));
	SET(fd_passed, d, first_ns, ev->time_ns + x->offset_ns);
	SET(fd_passed, d, last_ns, ev->time_ns + x->offset_ns);
	graph_add_edge(x->g, d);
}

/* The kernel uses an address again as soon as the last descriptor of a file is closed. */
static bool is_same_file(const struct ipc_passed *a, const struct ipc_passed *b)
{
	return a->file == b->file && a->kind == b->kind && a->id == b->id && a->space == b->space &&
	       a->ino == b->ino && a->dev == b->dev;
}

enum way {
	WAY_WRONG,   /* to another socket for certain */
	WAY_UNKNOWN, /* no peer is known, or one that may have changed */
	WAY_RIGHT,
};

/* Whether a message from one socket can arrive at the other. */
static enum way way_of(const struct collect *c, uint64_t from_ino, uint64_t to_ino)
{
	const struct sock_facts *from = flows_socket(c->flows, from_ino);
	const struct sock_facts *to = flows_socket(c->flows, to_ino);
	uint64_t leads_to = from ? from->peer_ino : 0, comes_from = to ? to->peer_ino : 0;

	if ((leads_to && leads_to == to_ino) || (comes_from && comes_from == from_ino))
		return WAY_RIGHT;
	/* Datagrams go anywhere; a connection stays what it is. */
	if ((leads_to && from->type != SOCK_DGRAM) || (comes_from && to->type != SOCK_DGRAM))
		return WAY_WRONG;
	return WAY_UNKNOWN;
}

/*
 * The one that was sent to this very socket, the oldest of them; else, where no peer is known, the
 * latest before the arrival: an older one may have been cut off (MSG_CTRUNC), and never arrive.
 */
static struct sent *find_sent(struct collect *c, struct ipc_passes *p, const struct ipc_passed *ev)
{
	struct sent *found = NULL, *again = NULL;

	vec_for(&p->sent, s) {
		enum way way = WAY_WRONG;

		if (is_same_file(&s->ev, ev) && s->ev.time_ns <= ev->time_ns + RECEIVED_KEPT_NS)
			way = way_of(c, s->ev.sock_ino, ev->sock_ino);
		if (way == WAY_WRONG)
			continue;
		if (s->receiver) {
			if (s->receiver == ev->task.tgid && s->arrived_ns + AGAIN_NS > ev->time_ns)
				again = s;
			continue;
		}
		if (way == WAY_RIGHT)
			return s;
		if (!found || s->ev.time_ns <= ev->time_ns)
			found = s;
	}
	return found ?: again;
}

static bool match(struct pairing *x, struct ipc_passes *p, const struct ipc_passed *ev)
{
	struct sent *s = find_sent(x->c, p, ev);
	uint32_t to;

	if (!s)
		return false;
	to = procs_get(&x->c->procs, ev->task.tgid, ev->task.leader_start_ns);
	s->receiver = ev->task.tgid;
	s->arrived_ns = ev->time_ns;
	pass_edge(x, s->proc, to, ev, "SCM_RIGHTS");
	return true;
}

void ipc_passes_add(struct ipc_passes *p, struct collect *c, const struct ipc_passed *ev)
{
	uint32_t proc = procs_get(&c->procs, ev->task.tgid, ev->task.leader_start_ns);

	procs_set_name(&c->procs, proc, ev->task.tid, ev->comm);
	if (ev->how == IPC_PASS_SENT)
		vec_push(&p->sent, ((struct sent){.ev = *ev, .proc = proc}));
	else
		vec_push(&p->received, *ev);
}

static int on_passed(void *ctx, const struct ipc_passed *ev)
{
	struct collect *c = ctx;

	ipc_passes_add(c->ipc->passes, c, ev);
	return 0;
}

int ipc_passes_read(struct ipc_passes *p, struct collect *c, struct err *e)
{
	return ipc_probe_passed(c->ipc_probe, on_passed, c, e);
}

static bool take(struct pairing *x, const struct ipc_passed *ev)
{
	struct procs *p = &x->c->procs;
	uint32_t owner = procs_get(p, ev->owner.tgid, ev->owner.leader_start_ns);

	pass_edge(x, owner, procs_get(p, ev->task.tgid, ev->task.leader_start_ns), ev,
		  "pidfd_getfd");
	return true;
}

static void match_all(struct pairing *x, struct ipc_passes *p)
{
	uint64_t now = clock_boot_ns();
	size_t kept = 0;

	for (size_t i = 0; i < p->received.n; i++) {
		struct ipc_passed ev = p->received.v[i];

		if (ev.how == IPC_PASS_TAKEN ? take(x, &ev) : match(x, p, &ev))
			continue;
		if (ev.time_ns + RECEIVED_KEPT_NS < now)
			p->unmatched++;
		else
			p->received.v[kept++] = ev;
	}
	p->received.n = kept;
}

static void forget_old(struct ipc_passes *p)
{
	uint64_t now = clock_boot_ns();
	size_t over = p->sent.n > SENT_MAX ? p->sent.n - SENT_MAX : 0, kept = 0;

	for (size_t i = 0; i < p->sent.n; i++) {
		const struct sent *s = &p->sent.v[i];
		uint64_t until = s->receiver ? s->arrived_ns + AGAIN_NS
					     : s->ev.time_ns + SENT_KEPT_NS;

		if (i < over || until < now) {
			p->given_up += !s->receiver;
			continue;
		}
		p->sent.v[kept++] = *s;
	}
	p->sent.n = kept;
}

void ipc_passes_match(struct ipc_passes *p, struct collect *c, struct graph *g)
{
	struct pairing x = {c, g, realtime_offset_ns()};

	match_all(&x, p);
	forget_old(p);
}

void ipc_passes_mark(const struct ipc_passes *p, uint64_t *used)
{
	vec_for(&p->sent, s)
		procs_set_bit(used, s->proc);
}

void ipc_passes_describe(const struct ipc_passes *p, struct graph *g)
{
	graph_add_loss(g, "collector ipc", "descriptors_without_sender", p->unmatched);
}
