/* Links of a topology: all data between two actors by one kind of path, from the relations of a
 * graph. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derive_flows.h"
#include "hash.h"
#include "map.h"
#include "shared_memory.h"
#include "topology_parts.h"

/* Not a kind of path: who ended whose waits. It is folded into the largest link of the two. */
static const char wakes_kind[] = "~wakes";

/* Keys are interned texts: equal ones have one address. Nothing walks the map. */
static uint64_t hash_text(const char *s)
{
	return hash_u64((uint64_t)(uintptr_t)s);
}

MAP_DEFINE(label_map, const char *, uint32_t, hash_text, map_equal)

MAP_DEFINE(pair_map, uint64_t, bool, hash_u64, map_equal)

static uint64_t pair_of(uint32_t a, uint32_t b)
{
	return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

struct linker {
	struct topology *t;
	struct label_map ends;
	bool has_copies; /**< copies of memory are among the flows already */
};

void topo_put_link(struct topology *t, const struct topo_link *l)
{
	vec_push(&t->links, *l);
}

static uint32_t end_by_label(struct linker *k, enum actor_kind kind, uint32_t node,
			     const char *label)
{
	const char *key = graph_str(k->t->g, label);
	bool is_new;
	uint32_t *v = label_map_put(&k->ends, key, &is_new);

	if (is_new) {
		*v = (uint32_t)k->t->actors.n;
		topo_new_actor(k->t, kind, node, key);
	}
	k->t->actor_of[node] = *v;
	return *v;
}

/* Ephemeral ports of one client are one client. */
#define EPHEMERAL_PORT 32768

static uint32_t outside(struct linker *k, uint32_t node)
{
	const struct node *n = k->t->g->nodes.v[node];
	const char *addr = n->type == &socket_type ? topo_str(n, socket_f_socket_addr) : NULL;
	uint64_t port = addr ? GET(socket, n, socket_port) : 0;

	if (!addr)
		return end_by_label(k, ACTOR_OUTSIDE, node, graph_node_id(k->t->g, node));
	if (!port ||
	    (port >= EPHEMERAL_PORT && !(HAS(socket, n, listening) && GET(socket, n, listening))))
		return end_by_label(k, ACTOR_OUTSIDE, node, addr);
	return end_by_label(k, ACTOR_OUTSIDE, node, topo_text(k->t, "%s:%" PRIu64, addr, port));
}

/* An end of a flow: a process, or something outside. TOPO_NONE: of no interest. */
static uint32_t end_of(struct linker *k, uint32_t node)
{
	struct topology *t = k->t;
	uint32_t p = process_of(t->g, node);

	if (p != NODE_NONE)
		return t->actor_of[p];
	return t->actor_of[node] != TOPO_NONE ? t->actor_of[node] : outside(k, node);
}

static void add_flow(struct linker *k, const struct edge *d)
{
	struct topo_link l = {.measured = true};

	/* Its other end became known later: it counts there. */
	if (HAS(flow, d, messages) && !GET(flow, d, messages))
		return;
	l.from = end_of(k, d->source);
	l.to = end_of(k, d->target);
	if (l.from == TOPO_NONE || l.to == TOPO_NONE || l.from == l.to)
		return;
	l.kind = HAS(flow, d, kind) ? GET(flow, d, kind) : "unknown";
	l.bytes = GET(flow, d, bytes);
	l.shared = HAS(flow, d, estimated) && GET(flow, d, estimated);
	l.messages = GET(flow, d, messages);
	l.first_ns = HAS(flow, d, first_ns) ? GET(flow, d, first_ns) : 0;
	k->has_copies |= !strcmp(l.kind, "memory_copy");
	topo_put_link(k->t, &l);
}

static bool is_pseudo(const char *fs)
{
	static const char *const names[] = {"proc",       "sysfs",  "cgroup",       "cgroup2",
					    "devtmpfs",   "devpts", "debugfs",      "tracefs",
					    "securityfs", "bpf",    "anon_inodefs", "sockfs",
					    "pipefs",     "pidfs",  "nsfs"};

	for (size_t i = 0; fs && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(fs, names[i]))
			return true;
	return false;
}

static uint32_t storage(struct linker *k, uint32_t node)
{
	const struct node *n = k->t->g->nodes.v[node];
	bool here = !strcmp(n->ns, "local");
	const char *fs, *dev;

	if (n->type != &file_type || is_pseudo(topo_str(n, file_f_fs_type)))
		return TOPO_NONE;
	if (k->t->actor_of[node] != TOPO_NONE)
		return k->t->actor_of[node];
	fs = topo_str(n, file_f_fs_type);
	dev = topo_str(n, file_f_dev);
	return end_by_label(k, ACTOR_STORAGE, node,
			    topo_text(k->t, "storage %s%s%s%s%s%s", dev ? dev : "?", fs ? " (" : "",
				      fs ? fs : "", fs ? ")" : "", here ? "" : "@",
				      here ? "" : n->ns));
}

static void add_file(struct linker *k, const struct edge *d, bool write)
{
	uint32_t process = process_of(k->t->g, write ? d->source : d->target);
	uint32_t file = storage(k, write ? d->target : d->source);
	struct topo_link l = {.kind = "storage"};

	if (process == NODE_NONE || file == TOPO_NONE)
		return;
	process = k->t->actor_of[process];
	if (process == TOPO_NONE)
		return;
	l.from = write ? process : file;
	l.to = write ? file : process;
	l.measured = write ? HAS(write_to, d, bytes) : HAS(read_from, d, bytes);
	l.bytes = write ? GET(write_to, d, bytes) : GET(read_from, d, bytes);
	l.messages = write ? GET(write_to, d, calls) : GET(read_from, d, calls);
	topo_put_link(k->t, &l);
}

static void add_device(struct linker *k, const struct edge *d)
{
	const struct node *n = k->t->g->nodes.v[d->target];
	uint32_t process = process_of(k->t->g, d->source), device = k->t->actor_of[d->target];
	struct topo_link l = {.kind = "device"};

	if (process == NODE_NONE || (n->type != &npu_type && n->type != &gpu_type))
		return;
	if (device == TOPO_NONE) {
		device = k->t->actor_of[d->target] = (uint32_t)k->t->actors.n;
		topo_new_actor(k->t, ACTOR_DEVICE, d->target, graph_node_id(k->t->g, d->target));
	}
	l.from = k->t->actor_of[process];
	l.to = device;
	if (l.from != TOPO_NONE)
		topo_put_link(k->t, &l);
}

static void add_between(struct linker *k, const struct edge *d, const char *kind)
{
	uint32_t from = process_of(k->t->g, d->source), to = process_of(k->t->g, d->target);
	struct topo_link l = {.kind = kind};

	if (from == NODE_NONE || to == NODE_NONE || from == to)
		return;
	l.from = k->t->actor_of[from];
	l.to = k->t->actor_of[to];
	if (l.from == TOPO_NONE || l.to == TOPO_NONE)
		return;
	if (d->type == &memory_copy_type) {
		l.measured = true;
		l.bytes = GET(memory_copy, d, bytes);
		l.messages = GET(memory_copy, d, calls);
	} else if (d->type == &wakes_type) {
		l.waited_ns = GET(wakes, d, waited_ns);
	}
	topo_put_link(k->t, &l);
}

static void add_edge(struct linker *k, const struct edge *d)
{
	if (d->type == &flow_type)
		add_flow(k, d);
	else if (d->type == &read_from_type || d->type == &write_to_type)
		add_file(k, d, d->type == &write_to_type);
	else if (d->type == &access_type)
		add_device(k, d);
	else if (d->type == &ipc_type)
		add_between(k, d, "ipc");
	else if (d->type == &wakes_type)
		add_between(k, d, wakes_kind);
}

static bool may_write(const struct graph *g, const struct shared_mapper *m)
{
	const struct edge *d = g->edges.v[m->access];

	return HAS(access, d, mode) && strchr(GET(access, d, mode), 'w');
}

/* Mapped, and read or written: pages that nobody touched are not resident. */
static bool is_touched(const struct graph *g, const struct shared_mapper *m)
{
	const struct edge *d = g->edges.v[m->access];

	return !HAS(access, d, resident_bytes) || GET(access, d, resident_bytes);
}

/* Of memory that one process may write and others may only read, the direction is plain. */
static void add_one_writer(struct topology *t, const struct shared_object *o,
			   const struct pair_map *proven)
{
	struct topo_link l = {.kind = "shared_memory", .from = TOPO_NONE};

	vec_for(&o->mappers, m)
		if (may_write(t->g, m) && is_touched(t->g, m))
			l.from = t->actor_of[m->process];
	vec_for(&o->mappers, m) {
		l.to = t->actor_of[m->process];
		if (l.from != TOPO_NONE && l.to != TOPO_NONE && l.to != l.from &&
		    is_touched(t->g, m) && !pair_map_get(proven, pair_of(l.from, l.to)))
			topo_put_link(t, &l);
	}
}

static void add_proven(struct topology *t, const struct shared_object *o, struct pair_map *proven)
{
	vec_for(&o->wakes, w) {
		struct topo_link l = {.kind = "shared_memory",
				      .from = t->actor_of[w->waker],
				      .to = t->actor_of[w->waiter],
				      .messages = w->wakeups,
				      .waited_ns = w->waited_ns};
		bool is_new;

		if (l.from == TOPO_NONE || l.to == TOPO_NONE)
			continue;
		topo_put_link(t, &l);
		*pair_map_put(proven, pair_of(l.from, l.to), &is_new) = true;
	}
}

/* What fits into a page holds locks and counters: who wakes whom there says nothing of data. */
#define LOCKS_BYTES 4096

static bool is_memory(const struct topology *t, const struct shared_object *o)
{
	const struct node *n = t->g->nodes.v[o->node];
	const char *kind = topo_str(n, shared_memory_f_kind);

	if (HAS(shared_memory, n, shm_size) && GET(shared_memory, n, shm_size) <= LOCKS_BYTES)
		return false;
	return shared_memory_is_path(o) && !(kind && !strcmp(kind, "device"));
}

/* Between two processes, wake-ups tell more than what they may do: the latter counts where there
 * are none. */
static void add_shared_memory(struct topology *t)
{
	struct pair_map proven = {0};
	struct shared_objects all;

	shared_memory_objects(t->g, &all);
	vec_for(&all.v, o)
		if (is_memory(t, o))
			add_proven(t, o, &proven);
	vec_for(&all.v, o)
		if (is_memory(t, o) && !o->wakes.n && o->writers == 1)
			add_one_writer(t, o, &proven);
	shared_memory_done(&all);
	pair_map_done(&proven);
}

static uint64_t device_number(const struct node *n)
{
	return n->type == &npu_type ? GET(npu, n, id) : n->type == &gpu_type ? GET(gpu, n, id) : 0;
}

static int compare_ends(const void *a, const void *b, void *ctx)
{
	const struct topology *t = ctx;
	const struct topo_actor *x = &t->actors.v[*(const uint32_t *)a],
				*y = &t->actors.v[*(const uint32_t *)b];
	uint64_t i, j;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	i = x->kind == ACTOR_DEVICE ? device_number(t->g->nodes.v[x->node]) : 0;
	j = y->kind == ACTOR_DEVICE ? device_number(t->g->nodes.v[y->node]) : 0;
	return i != j ? (i < j ? -1 : 1) : strcmp(x->label, y->label);
}

/* Ends were numbered as relations named them; the order of relations in a file means nothing. */
static void sort_ends(struct topology *t)
{
	size_t n = t->actors.n - t->n_processes;
	struct topo_actor *sorted = mem_alloc((n + 1) * sizeof(*sorted));
	uint32_t *order = mem_alloc((n + 1) * sizeof(*order)),
		 *number = mem_alloc((t->actors.n + 1) * sizeof(*number));

	for (uint32_t i = 0; i < n; i++)
		order[i] = (uint32_t)t->n_processes + i;
	qsort_r(order, n, sizeof(*order), compare_ends, t);
	for (uint32_t i = 0; i < t->n_processes; i++)
		number[i] = i;
	for (uint32_t i = 0; i < n; i++) {
		number[order[i]] = (uint32_t)t->n_processes + i;
		sorted[i] = t->actors.v[order[i]];
	}
	for (size_t i = 0; i < n; i++)
		t->actors.v[t->n_processes + i] = sorted[i];
	for (size_t i = 0; i < t->g->nodes.n; i++)
		if (t->actor_of[i] != TOPO_NONE)
			t->actor_of[i] = number[t->actor_of[i]];
	vec_for(&t->links, l) {
		l->from = number[l->from];
		l->to = number[l->to];
	}
	free(sorted);
	free(order);
	free(number);
}

static int compare_links(const void *a, const void *b)
{
	const struct topo_link *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->kind == y->kind ? 0 : strcmp(x->kind, y->kind);
}

static void add_up(struct topo_link *to, const struct topo_link *l)
{
	to->bytes += l->bytes;
	to->messages += l->messages;
	to->waited_ns += l->waited_ns;
	to->measured |= l->measured;
	to->shared &= l->shared;
	if (l->first_ns && (!to->first_ns || l->first_ns < to->first_ns))
		to->first_ns = l->first_ns;
}

/* Sorted by from, to, kind; "~" sorts behind all kinds, so that wakes meet the links that they
 * belong to. */
static void merge_links(struct topology *t)
{
	size_t n = 0, run = 0;

	if (t->links.n)
		qsort(t->links.v, t->links.n, sizeof(*t->links.v), compare_links);
	for (size_t i = 0; i < t->links.n; i++) {
		const struct topo_link l = t->links.v[i];
		bool same =
		    n > run && t->links.v[n - 1].from == l.from && t->links.v[n - 1].to == l.to;

		if (!same)
			run = n;
		if (l.kind == wakes_kind) {
			size_t best = run;

			for (size_t k = run; k < n; k++)
				best = t->links.v[k].bytes > t->links.v[best].bytes ? k : best;
			if (same)
				t->links.v[best].waited_ns += l.waited_ns;
			continue;
		}
		if (same && !strcmp(t->links.v[n - 1].kind, l.kind))
			add_up(&t->links.v[n - 1], &l);
		else
			t->links.v[n++] = l;
	}
	t->links.n = n;
}

static void index_links(struct topology *t)
{
	size_t at = 0;

	t->first_link = mem_alloc((t->actors.n + 1) * sizeof(*t->first_link));
	for (size_t a = 0; a <= t->actors.n; a++) {
		while (at < t->links.n && t->links.v[at].from < a)
			at++;
		t->first_link[a] = (uint32_t)at;
	}
	vec_for(&t->links, l) {
		t->actors.v[l->from].bytes_out += l->bytes;
		t->actors.v[l->to].bytes_in += l->bytes;
	}
}

static void find_listeners(struct topology *t)
{
	vec_for(&t->g->edges, d) {
		const struct node *n = t->g->nodes.v[(*d)->target];
		uint32_t p;

		if ((*d)->type != &own_type)
			continue;
		if (!(n->type == &socket_type && HAS(socket, n, listening) &&
		      GET(socket, n, listening)) &&
		    !(n->type == &unix_socket_type && HAS(unix_socket, n, listening) &&
		      GET(unix_socket, n, listening)))
			continue;
		p = process_of(t->g, (*d)->source);
		if (p != NODE_NONE && t->actor_of[p] != TOPO_NONE)
			t->actors.v[t->actor_of[p]].listens = true;
	}
}

void topo_add_links(struct topology *t)
{
	struct linker k = {.t = t};

	vec_for(&t->g->edges, d)
		add_edge(&k, *d);
	if (!k.has_copies)
		vec_for(&t->g->edges, d)
			if ((*d)->type == &memory_copy_type)
				add_between(&k, *d, "memory_copy");
	add_shared_memory(t);
	sort_ends(t);
	merge_links(t);
	index_links(t);
	find_listeners(t);
	label_map_done(&k.ends);
}

size_t topo_find_link(const struct topology *t, uint32_t from, uint32_t to)
{
	size_t low = t->first_link[from], high = t->first_link[from + 1];

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->links.v[mid].to < to)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->first_link[from + 1] && t->links.v[low].to == to ? low : SIZE_MAX;
}

/* Of all links from one to the other; 0: not known. */
static uint64_t first_transfer(const struct topology *t, uint32_t from, uint32_t to)
{
	uint64_t ret = 0;

	for (size_t i = topo_find_link(t, from, to);
	     i < t->links.n && t->links.v[i].from == from && t->links.v[i].to == to; i++) {
		uint64_t ns = t->links.v[i].first_ns;

		if (ns && (!ret || ns < ret))
			ret = ns;
	}
	return ret;
}

int topo_who_asks(const struct topology *t, uint32_t a, uint32_t b)
{
	const struct topo_actor *x = &t->actors.v[a], *y = &t->actors.v[b];
	uint64_t there, back;

	if ((x->role == ROLE_CLIENT) != (y->role == ROLE_CLIENT))
		return x->role == ROLE_CLIENT ? 1 : -1;
	if ((x->role == ROLE_DATABASE) != (y->role == ROLE_DATABASE))
		return y->role == ROLE_DATABASE ? 1 : -1;
	if (x->listens != y->listens)
		return y->listens ? 1 : -1;
	there = first_transfer(t, a, b);
	back = first_transfer(t, b, a);
	if (!there || !back || there == back)
		return 0;
	return there < back ? 1 : -1;
}
