/* Waits: what each thread waits for, as an entity, and who ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "collect.h"
#include "device_calls.h"
#include "flows.h"
#include "ipc_probe.h"
#include "objects.h"
#include "proc_maps.h"
#include "proc_probe.h"
#include "sched_probe.h"

#define NO UINT32_MAX
#define FUTEX_WAITERS_BIT 0x80000000u /* linux/futex.h: the word then holds the owner's thread id */
#define FUTEX_TID_BITS	  0x3fffffffu

#define FUTEXES_KEPT 4096u /* shared words whose place is remembered */
#define FILES_APART  2000u /* files with an entity of their own because they were waited for */

/* What is kept between readings: names that cost something to find. */
struct waits {
	VEC(struct sock_facts) sockets; /* of the last look at the open files */
	struct idmap socket_by_ino;
	bool looked; /* in this reading */
	VEC(char *) futexes; /* keys of shared words */
	struct idmap futex_by_address;
	struct idmap owned; /* by word: for how long, in us, the one that is told to have that lock was waited for, in this reading */
	struct idmap files; /* that have an entity of their own */
	struct idmap selected; /* threads whose waits are wanted, when not all are: they may have ended since */
};

struct waits *waits_new(void)
{
	return mem_alloc(sizeof(struct waits));
}

static void futexes_clear(struct waits *w)
{
	vec_for(&w->futexes, text)
		free(*text);
	vec_clear(&w->futexes);
	idmap_clear(&w->futex_by_address);
}

void waits_free(struct waits *w)
{
	if (!w)
		return;
	futexes_clear(w);
	vec_done(&w->futexes);
	idmap_done(&w->owned);
	idmap_done(&w->files);
	idmap_done(&w->selected);
	vec_done(&w->sockets);
	idmap_done(&w->socket_by_ino);
	idmap_done(&w->futex_by_address);
	free(w);
}

struct sampling {
	struct collect *c;
	struct graph *g;
};

static const char *cause_name(unsigned cause)
{
	static const char *const names[WAIT_CAUSES] = {
		[WAIT_OTHER] = "other",		[WAIT_FUTEX] = "futex",
		[WAIT_PIPE] = "pipe",		[WAIT_SOCKET] = "socket",
		[WAIT_QUEUE] = "queue",		[WAIT_SEMAPHORE] = "semaphore",
		[WAIT_EVENTFD] = "eventfd",	[WAIT_POLL] = "poll",
		[WAIT_SLEEP] = "sleep",		[WAIT_DISK] = "disk",
		[WAIT_FILE] = "file",		[WAIT_FILE_LOCK] = "file_lock",
		[WAIT_PAGE_FAULT] = "page_fault", [WAIT_DEVICE] = "device",
		[WAIT_CHILD] = "child",		[WAIT_SIGNAL] = "signal",
	};

	return cause < WAIT_CAUSES ? names[cause] : "other";
}

/* What stands for a cause that has no object of its own. */
static const char *kind_of_cause(unsigned cause)
{
	static const char *const names[WAIT_CAUSES] = {
		[WAIT_POLL] = "poll",	 [WAIT_SLEEP] = "timer",	   [WAIT_DISK] = "disk",
		[WAIT_DEVICE] = "device", [WAIT_PAGE_FAULT] = "page_fault", [WAIT_CHILD] = "child",
		[WAIT_SIGNAL] = "signal",
	};

	return cause < WAIT_CAUSES && names[cause] ? names[cause] : "other";
}

/* Who stands behind an interrupt that ended a wait: only a time-out can end most of them. */
static const char *kind_of_interrupt(unsigned cause, enum waker_class class)
{
	switch (cause) {
	case WAIT_DISK:
	case WAIT_FILE:
	case WAIT_PAGE_FAULT:
		return "disk";
	case WAIT_DEVICE:
		return "device";
	case WAIT_SOCKET:
	case WAIT_POLL:
		return class == WAKER_SOFTIRQ ? "network" : "timer";
	case WAIT_OTHER:
		return "interrupt";
	}
	return "timer";
}

static struct node *plain_object(struct graph *g, const char *kind, const char *name)
{
	struct node *n = graph_new_node(g, &wait_object_type);

	SET(wait_object, n, kind, graph_str(g, kind));
	if (name)
		SET(wait_object, n, name, graph_str(g, name));
	return graph_add_node(g, n);
}

static int on_file(void *ctx, const struct proc_file *file)
{
	struct waits *w = ctx;

	if (file->kind != PROC_FILE_SOCKET || !file->sock.ino)
		return 0;
	idmap_put(&w->socket_by_ino, file->sock.ino, 0, (uint32_t)w->sockets.n);
	vec_push(&w->sockets, file->sock);
	return 0;
}

/* Sockets that moved something are known; for others the open files are looked at, once a reading. */
static const struct sock_facts *find_socket(struct collect *c, const struct wait_on *on)
{
	const struct sock_facts *f = flows_socket(c->flows, on->a);
	struct waits *w = c->waits;
	struct err ignored;
	uint32_t i;

	if (f)
		return f;
	i = idmap_get(&w->socket_by_ino, on->a, 0);
	if (i == IDMAP_NONE && !w->looked && c->proc_probe) {
		w->looked = true;
		vec_clear(&w->sockets);
		idmap_clear(&w->socket_by_ino);
		/* What cannot be listed stays without its address. */
		proc_probe_files(c->proc_probe, PROC_FILES_SOCKETS, on_file, w, &ignored);
		i = idmap_get(&w->socket_by_ino, on->a, 0);
	}
	return i == IDMAP_NONE ? NULL : &w->sockets.v[i];
}

static uint32_t socket_object(struct sampling *x, const struct wait_on *on)
{
	const struct sock_facts *f = find_socket(x->c, on);
	char name[32];

	if (f && f->proto != SOCK_PROTO_OTHER)
		return endpoint_node(x->g, f, false, false);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)on->a);
	return plain_object(x->g, "socket", name)->index;
}

/* "DEV:INODE:OFFSET" of a word in memory that processes share, or false. */
static bool shared_place(uint32_t pid, uint64_t address, char *text, size_t size)
{
	char path[64];
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	struct maps_line m;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0)
		found = maps_line_parse(line, &m) && address >= m.start && address < m.end;
	if (!found || !m.shared)
		return false;
	snprintf(text, size, "%u:%u:%llu:%llu", m.dev >> 20, m.dev & 0xfffff, (unsigned long long)m.ino,
		 (unsigned long long)(address - m.start + m.offset));
	return true;
}

static const char *futex_key(struct collect *c, const struct wait_on *on, char *text, size_t size)
{
	uint32_t pid = (uint32_t)on->b, i;
	struct waits *w = c->waits;

	snprintf(text, size, "%u:0x%llx", pid, (unsigned long long)on->a);
	if (!(on->b & WAIT_SHARED))
		return text;
	i = idmap_get(&w->futex_by_address, on->a, pid);
	if (i == IDMAP_NONE) {
		/* Processes come and go: what is still used is soon found again. */
		if (w->futexes.n >= FUTEXES_KEPT)
			futexes_clear(w);
		shared_place(pid, on->a, text, size);
		i = (uint32_t)w->futexes.n;
		idmap_put(&w->futex_by_address, on->a, pid, i);
		vec_push(&w->futexes, mem_strdup(text));
	}
	return w->futexes.v[i];
}

/*
 * The thread whose id the word holds, by the convention of robust and priority-inheriting locks. A lock that was handed
 * to the one that waited, which has not run since, is with nobody else any more.
 */
static uint32_t word_owner(struct sampling *x, const struct wait_on *on, uint32_t waiter_tid)
{
	uint32_t pid = (uint32_t)on->b, tid = on->word & FUTEX_TID_BITS;
	const struct task_ident *owner;
	uint32_t proc = procs_live(&x->c->procs, pid);

	if (!(on->word & FUTEX_WAITERS_BIT) || !tid || tid == waiter_tid || proc == IDMAP_NONE)
		return NO;
	/* The id is of the waiter's pid namespace. */
	if (x->c->procs.v.v[proc].has_namespaces && x->c->procs.v.v[proc].nspid != pid)
		return NO;
	owner = sched_probe_task(x->c->sched_probe, tid);
	if (!owner || (owner->tgid != pid && !(on->b & WAIT_SHARED)))
		return NO;
	proc = procs_get(&x->c->procs, owner->tgid, owner->leader_start_ns);
	return procs_thread(&x->c->procs, x->g, proc, owner->tid, owner->start_ns, NULL)->index;
}

/* nptl/lowlevellock.h: whoever has to wait for a lock sets it to 2 and waits as long as it is. */
#define CONTENDED_LOCK 2u

static bool is_lock(uint32_t word)
{
	return word == CONTENDED_LOCK || (word >= WAIT_LOCK_OWNED && word - WAIT_LOCK_OWNED < WAIT_OWNER_MAX);
}

/* Of several that had a lock in turns, the one that was waited for longest. */
static bool is_longest(struct sampling *x, const struct wait_sample *s)
{
	struct idmap *owned = &x->c->waits->owned;
	uint64_t us = s->waited_ns / 1000;
	uint32_t now = us < IDMAP_NONE ? (uint32_t)us : IDMAP_NONE - 1, before = idmap_get(owned, s->on.a, s->on.b);

	if (before != IDMAP_NONE && before > now)
		return false;
	idmap_put(owned, s->on.a, s->on.b, now);
	return true;
}

static uint32_t futex_object(struct sampling *x, const struct wait_sample *s)
{
	const struct wait_on *on = &s->on;
	uint32_t owner = word_owner(x, on, s->task.tid);
	struct node *n = graph_new_node(x->g, &futex_type);
	char text[96];

	SET(futex, n, futex_key, graph_str(x->g, futex_key(x->c, on, text, sizeof(text))));
	if (owner != NO && is_longest(x, s))
		SET(futex, n, owner_thread, owner);
	if (is_lock(on->word) && s->waits)
		SET(futex, n, lock_waits, s->waits);
	return graph_add_node(x->g, n)->index;
}

static uint32_t numbered_object(struct graph *g, const struct wait_on *on)
{
	char name[48];

	switch (on->kind) {
	case WAIT_ON_EPOLL:
	case WAIT_ON_URING:
		snprintf(name, sizeof(name), "%s %u:%u", on->kind == WAIT_ON_EPOLL ? "epoll" : "io_uring",
			 (uint32_t)(on->a >> 32), (uint32_t)on->a);
		break;
	case WAIT_ON_CHAR:
		snprintf(name, sizeof(name), "%u:%u", (uint32_t)on->a >> 20, (uint32_t)on->a & 0xfffff);
		break;
	case WAIT_ON_STOP:
		return plain_object(g, "signal", "stopped")->index;
	case WAIT_ON_LOST:
		return plain_object(g, "other", "not kept: no room in the map")->index;
	default: /* a child: the waker is the one */
		return plain_object(g, kind_of_cause(on->cause), NULL)->index;
	}
	return plain_object(g, kind_of_cause(on->cause), name)->index;
}

/* Whoever reads a source tree waits for thousands of files: those beyond a bound are one. */
static uint32_t file_object(struct sampling *x, const struct wait_on *on)
{
	struct idmap *files = &x->c->waits->files;

	if (idmap_get(files, on->a, on->b) == IDMAP_NONE) {
		if (files->n >= FILES_APART)
			return object_file(x->g, 0, 0)->index;
		idmap_put(files, on->a, on->b, 0);
	}
	return object_file(x->g, on->a, (uint32_t)on->b)->index;
}

static uint32_t eventfd_generation(const struct collect *c, uint32_t id)
{
	return c->ipc_probe ? ipc_eventfd_generation(c->ipc_probe, id) : 0;
}

static uint32_t wait_object_node(struct sampling *x, const struct wait_sample *s)
{
	const struct wait_on *on = &s->on;

	switch (on->kind) {
	case WAIT_ON_NOTHING:
		return plain_object(x->g, kind_of_cause(on->cause), NULL)->index;
	case WAIT_ON_FUTEX:
		return futex_object(x, s);
	case WAIT_ON_PIPE:
		return object_pipe(x->g, on->a, (uint32_t)on->b)->index;
	case WAIT_ON_SOCKET:
		return socket_object(x, on);
	case WAIT_ON_MQUEUE:
		return object_posix_queue(x->g, on->a, (uint32_t)on->b)->index;
	case WAIT_ON_SYSV_QUEUE:
		return object_sysv_queue(x->g, on->a, (uint32_t)on->b)->index;
	case WAIT_ON_SYSV_SEM:
		return object_sysv_sem(x->g, on->a, (uint32_t)on->b)->index;
	case WAIT_ON_EVENTFD:
		return object_eventfd(x->g, on->a, eventfd_generation(x->c, (uint32_t)on->a))->index;
	case WAIT_ON_FILE:
		return file_object(x, on);
	}
	return numbered_object(x->g, on);
}

static uint32_t thread_node(struct sampling *x, const struct task_ident *t)
{
	uint32_t proc = procs_get(&x->c->procs, t->tgid, t->leader_start_ns);

	return procs_thread(&x->c->procs, x->g, proc, t->tid, t->start_ns, NULL)->index;
}

static void waits_edge(struct sampling *x, const struct wait_sample *s, uint32_t waiter)
{
	uint32_t object = wait_object_node(x, s);
	struct edge *d = graph_new_edge(x->g, &waits_for_type, waiter, object);

	SET(waits_for, d, cause, graph_str(x->g, cause_name(s->on.cause)));
	SET(waits_for, d, waits, s->waits);
	SET(waits_for, d, waited_ns, s->waited_ns);
	SET(waits_for, d, longest_ns, s->longest_ns);
	if (s->estimated_waits)
		SET(waits_for, d, estimated_ns, s->estimated_ns);
	graph_add_edge(x->g, d);
}

static void wakes_edge(struct sampling *x, const struct wait_sample *s, uint32_t waiter)
{
	const struct task_ident *by = s->waker;
	uint32_t from;
	struct edge *d;

	if (s->waker_class == WAKER_NONE ||
	    (s->waker_class == WAKER_THREAD &&
	     procs_is_helper(&x->c->procs, procs_get(&x->c->procs, by->tgid, by->leader_start_ns))))
		return;
	if (s->waker_class == WAKER_THREAD)
		from = thread_node(x, by);
	else
		from = plain_object(x->g, kind_of_interrupt(s->on.cause, s->waker_class), NULL)->index;
	d = graph_new_edge(x->g, &wakes_type, from, waiter);
	SET(wakes, d, cause, graph_str(x->g, cause_name(s->on.cause)));
	SET(wakes, d, wakeups, s->waits);
	SET(wakes, d, waited_ns, s->waited_ns);
	SET(wakes, d, longest_ns, s->longest_ns);
	if (s->estimated_waits)
		SET(wakes, d, estimated_ns, s->estimated_ns);
	graph_add_edge(x->g, d);
}

static int on_wait(void *ctx, const struct wait_sample *s)
{
	struct sampling *x = ctx;
	uint32_t proc = procs_get(&x->c->procs, s->task.tgid, s->task.leader_start_ns), waiter;

	if (!x->c->procs.v.v[proc].selected)
		return 0;
	if (!x->c->procs.select_all)
		idmap_put(&x->c->waits->selected, s->task.tid, s->task.start_ns, 0);
	if (!s->ended && s->on.cause == WAIT_DEVICE)
		device_calls_blocked(x->c->device_calls, &x->c->procs.v.v[proc], (uint32_t)s->on.a, s->waits,
				     s->waited_ns);
	waiter = thread_node(x, &s->task);
	if (s->ended)
		wakes_edge(x, s, waiter);
	else
		waits_edge(x, s, waiter);
	return 0;
}

int collect_waits(struct collect *c, struct graph *g)
{
	struct sampling x = {c, g};

	c->waits->looked = false;
	idmap_clear(&c->waits->owned);
	return sched_probe_waits(c->sched_probe, on_wait, &x);
}

struct segments {
	struct sampling x;
	VEC(struct wait_row) rows;
	VEC(uint32_t) objects; /* nodes, by row: ids are made once, when all are there */
};

static const char *segment_waker(const struct wait_segment *s)
{
	if (s->waker_class == WAKER_NONE)
		return NULL;
	return s->waker_class == WAKER_THREAD ? "thread" : kind_of_interrupt(s->cause, s->waker_class);
}

static bool is_selected(struct collect *c, const struct wait_segment *s)
{
	return c->procs.select_all || idmap_get(&c->waits->selected, s->tid, s->start_ns) != IDMAP_NONE;
}

static int on_segment(void *ctx, const struct wait_segment *s)
{
	struct segments *x = ctx;
	struct wait_sample wait = {.task = {.tid = s->tid, .start_ns = s->start_ns},
				   .on = {.a = s->a, .b = s->b, .cause = s->cause, .kind = s->kind}};
	struct wait_row row = {
		.out_ns = s->out_ns,
		.wake_ns = s->wake_ns,
		.in_ns = s->in_ns,
		.waiter_tid = s->tid,
		.waiter_start_ns = s->start_ns - s->start_ns % START_STEP_NS,
		.waker_tid = s->waker_tid,
		.waker_start_ns = s->waker_start_ns - s->waker_start_ns % START_STEP_NS,
		.waker = segment_waker(s),
		.cause = cause_name(s->cause),
	};

	if (!is_selected(x->x.c, s))
		return 0;
	vec_push(&x->rows, row);
	vec_push(&x->objects, wait_object_node(&x->x, &wait));
	return 0;
}

int collect_segments(struct collect *c, struct graph *scratch,
		     int (*cb)(void *ctx, const struct wait_row *row), void *ctx, uint64_t *ret_from_ns,
		     struct err *e)
{
	struct segments x = {.x = {c, scratch}};
	int rc = c->sched_probe ? sched_probe_segments(c->sched_probe, on_segment, &x, ret_from_ns, e) : 0;

	for (size_t i = 0; !rc && i < x.rows.n; i++) {
		x.rows.v[i].object = graph_node_id(scratch, x.objects.v[i]);
		rc = cb(ctx, &x.rows.v[i]);
	}
	vec_done(&x.rows);
	vec_done(&x.objects);
	return rc;
}
