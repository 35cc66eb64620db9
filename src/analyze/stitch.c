/* Joining hosts: both ends of a connection, both queue pairs of an RDMA connection. */
#include "stitch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "json.h"
#include "stitch_parts.h"

#define NO UINT32_MAX

/* An end under one of the pairs of addresses that it is known by. */
struct known_as {
	uint64_t own_to_other, other_to_own; /* hashes of both addresses, by direction */
	uint32_t end;
	uint32_t next; /* with the same own_to_other */
};

struct ends {
	const struct graph *g;
	VEC(struct stitch_end) v;
	VEC(struct known_as) names;
	struct idmap by_name; /* own_to_other to the newest of names */
	uint64_t clock_ns;
};

static const char *text_of(const struct node *n, unsigned field)
{
	return n->measured & 1ull << field ? field_get(&n->type->fields[field], n->data).str : "";
}

/* Two hashes, as 64 bits are few where addresses of many hosts must not be taken for each other. */
static uint64_t way_hash(const char *type, const char *from, const char *to, uint64_t seed)
{
	uint64_t h = hash_bytes(type, strlen(type), seed);

	h = hash_bytes(from, strlen(from), h);
	return hash_bytes(to, strlen(to), h);
}

static void add_name(struct ends *x, uint32_t end, const char *type, const char *own,
		     const char *other)
{
	struct known_as n = {.end = end,
			     .own_to_other = way_hash(type, own, other, 1),
			     .other_to_own = way_hash(type, other, own, 1)};
	uint32_t have = idmap_get(&x->by_name, n.own_to_other, 0);

	n.next = have;
	idmap_put(&x->by_name, n.own_to_other, 0, (uint32_t)x->names.n);
	vec_push(&x->names, n);
}

static void address_text(const char *addr, uint64_t port, char *out, size_t size)
{
	snprintf(out, size, "%s:%llu", addr, (unsigned long long)port);
}

static bool is_any(const char *addr)
{
	return !strcmp(addr, "0.0.0.0") || !strcmp(addr, "::");
}

/* An end that is bound to all addresses is known by each of its namespace. */
static void add_all_names(struct ends *x, uint32_t end, const struct node *own, const char *type,
			  const char *other)
{
	char text[128];

	vec_for(&x->g->nodes, n) {
		struct json_reader *r;
		struct err e;
		int token;

		if ((*n)->type != &net_namespace_type || (*n)->ns != own->ns ||
		    !HAS(net_namespace, *n, addresses) || !HAS(socket, own, netns) ||
		    GET(net_namespace, *n, inode) != GET(socket, own, netns))
			continue;
		r = json_reader_new_mem(GET(net_namespace, *n, addresses),
					strlen(GET(net_namespace, *n, addresses)), "addresses",
					NULL);
		while ((token = json_next(r, &e)) > 0) {
			if (token != JSON_STRING)
				continue;
			address_text(json_text(r, NULL), GET(socket, own, socket_port), text,
				     sizeof(text));
			add_name(x, end, type, text, other);
		}
		json_reader_free(r);
	}
}

static void add_end(struct ends *x, const struct edge *d)
{
	const struct node *own = x->g->nodes.v[d->source], *other = x->g->nodes.v[d->target];
	const char *type = text_of(own, socket_f_socket_type);
	struct stitch_end end = {.edge = d, .match = NO, .candidate = NO};
	uint32_t index = (uint32_t)x->v.n;
	char a[128], b[128];

	if (own->type != &socket_type || other->type != &socket_type)
		return;
	vec_push(&x->v, end);
	if (HAS(connection, d, own_address) && HAS(connection, d, other_address)) {
		add_name(x, index, type, GET(connection, d, own_address),
			 GET(connection, d, other_address));
		return;
	}
	address_text(text_of(own, socket_f_socket_addr), GET(socket, own, socket_port), a,
		     sizeof(a));
	address_text(text_of(other, socket_f_socket_addr), GET(socket, other, socket_port), b,
		     sizeof(b));
	if (is_any(text_of(own, socket_f_socket_addr)))
		add_all_names(x, index, own, type, b);
	else
		add_name(x, index, type, a, b);
}

static bool at_the_same_time(const struct edge *a, const struct edge *b, uint64_t clock_ns)
{
	if (!HAS(connection, a, first_ns) || !HAS(connection, b, first_ns))
		return true;
	return GET(connection, a, first_ns) <= GET(connection, b, last_ns) + clock_ns &&
	       GET(connection, b, first_ns) <= GET(connection, a, last_ns) + clock_ns;
}

/* The only end of another host that has these addresses the other way round; NO: none or several.
 */
static uint32_t find_other(const struct ends *x, const struct known_as *n, bool *ret_several)
{
	const struct edge *d = x->v.v[n->end].edge;
	const char *ns = x->g->nodes.v[d->source]->ns;
	uint32_t found = NO;

	for (uint32_t i = idmap_get(&x->by_name, n->other_to_own, 0); i != IDMAP_NONE;
	     i = x->names.v[i].next) {
		uint32_t end = x->names.v[i].end;
		const struct edge *o = x->v.v[end].edge;

		if (end == found || x->g->nodes.v[o->source]->ns == ns ||
		    !at_the_same_time(d, o, x->clock_ns))
			continue;
		if (found != NO) {
			*ret_several = true;
			return NO;
		}
		found = end;
	}
	return found;
}

static void match(struct ends *x)
{
	vec_for(&x->names, n) {
		struct stitch_end *e = &x->v.v[n->end];
		uint32_t other = find_other(x, n, &e->several);

		e->several |= other != NO && e->candidate != NO && e->candidate != other;
		if (other != NO)
			e->candidate = other;
	}
	/* Both must mean each other, and nobody else. */
	for (uint32_t i = 0; i < x->v.n; i++) {
		struct stitch_end *e = &x->v.v[i];
		const struct stitch_end *o = e->candidate != NO ? &x->v.v[e->candidate] : NULL;

		if (o && !e->several && !o->several && o->candidate == i)
			e->match = e->candidate;
	}
}

/* The socket of the other host stands for the external one, if all connections to it say so. */
static void find_stand_ins(const struct ends *x, uint32_t *stands)
{
	bool *unsure = mem_alloc(x->g->nodes.n + 1);

	vec_for(&x->v, e) {
		uint32_t outside = e->edge->target, inside;

		if (e->match == NO)
			continue;
		inside = x->v.v[e->match].edge->source;
		if (stands[outside] != outside && stands[outside] != inside)
			unsure[outside] = true;
		stands[outside] = inside;
	}
	for (uint32_t i = 0; i < x->g->nodes.n; i++) {
		const struct node *n = x->g->nodes.v[i];

		if (stands[i] != i &&
		    (unsure[i] || !HAS(socket, n, external) || !GET(socket, n, external)))
			stands[i] = i;
	}
	free(unsure);
}

void stitch(struct graph *into, struct graph *from, uint64_t clock_ns, struct stitched *ret)
{
	struct stitch_work w = {.into = into, .from = from, .ret = ret};
	struct ends x = {.g = from, .clock_ns = clock_ns};

	*ret = (struct stitched){0};
	w.stands = mem_alloc((from->nodes.n + 1) * sizeof(*w.stands));
	w.nodes = mem_alloc((from->nodes.n + 1) * sizeof(*w.nodes));
	w.keep_node = mem_alloc(from->nodes.n + 1);
	w.keep_edge = mem_alloc(from->edges.n + 1);
	for (uint32_t i = 0; i < from->nodes.n; i++)
		w.stands[i] = i;
	memset(w.keep_node, 1, from->nodes.n);
	memset(w.keep_edge, 1, from->edges.n);
	vec_for(&from->edges, d)
		if ((*d)->type == &connection_type)
			add_end(&x, *d);
	match(&x);
	vec_for(&x.v, e) {
		ret->joined += e->match != NO;
		ret->ambiguous += e->match == NO && (e->several || e->candidate != NO);
		ret->alone += e->match == NO && !e->several && e->candidate == NO;
	}
	find_stand_ins(&x, w.stands);
	w.ends = x.v.v;
	w.n_ends = x.v.n;
	stitch_queue_pairs(&w);
	stitch_copy(&w);
	vec_done(&w.queue_pairs);
	vec_done(&x.v);
	vec_done(&x.names);
	idmap_done(&x.by_name);
	free(w.stands);
	free(w.nodes);
	free(w.keep_node);
	free(w.keep_edge);
}
