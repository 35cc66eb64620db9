/* Connections that leave the host, and the addresses that their other ends know. */
#include "connections.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "collect.h"
#include "conntrack.h"
#include "flows.h"
#include "idmap.h"
#include "json.h"

/* Lines of a table of the kernel that are read at most: it may have millions. */
#define LINES_MAX 262144
#define LOOK_EVERY_NS (5 * NS_PER_SEC)
#define LOOK_REST     50 /* times as long as a look took, until the next */

struct connections {
	VEC(struct sock_facts) v;
	struct idmap by_ends;
	uint64_t left_out;
	bool tracked; /* the kernel's table could be read */
	uint64_t due_ns; /* monotonic: when to look again */
};

struct connections *connections_new(void)
{
	return mem_alloc(sizeof(struct connections));
}

void connections_free(struct connections *x)
{
	if (!x)
		return;
	vec_done(&x->v);
	idmap_done(&x->by_ends);
	free(x);
}

static uint64_t ends_key(uint8_t proto, const struct sock_addr_abi *local,
			 const struct sock_addr_abi *remote)
{
	return hash_bytes(
	    remote->addr, sizeof(remote->addr),
	    hash_bytes(local->addr, sizeof(local->addr),
		       (uint64_t)proto << 32 | (uint64_t)local->port << 16 | remote->port));
}

/* @return whether it is one of those that are kept */
static bool keep(struct connections *x, const struct sock_facts *s)
{
	uint64_t key = ends_key(s->proto, &s->local, &s->remote);

	if (idmap_get(&x->by_ends, key, 0) != IDMAP_NONE)
		return true;
	if (x->v.n >= CONNECTIONS_MAX) {
		x->left_out++;
		return false;
	}
	idmap_put(&x->by_ends, key, 0, (uint32_t)x->v.n);
	vec_push(&x->v, *s);
	return true;
}

static struct edge *new_edge(struct graph *g, const struct sock_facts *s)
{
	/* In two steps: making a node may move the list. */
	uint32_t own = endpoint_node(g, s, false, false);
	uint32_t other = endpoint_node(g, s, true, true);

	return graph_new_edge(g, &connection_type, own, other);
}

void connections_add(struct collect *c, struct graph *g, uint32_t proc, const struct sock_sample *s,
		     uint64_t realtime_offset_ns)
{
	const struct sock_value *v = &s->v;
	struct edge *d;

	if (!flows_leaves(c->flows, &v->sock) || !keep(c->connections, &v->sock))
		return;
	d = new_edge(g, &v->sock);
	SET(connection, d, process, procs_node(&c->procs, g, proc));
	if (s->dir == SOCK_SENT) {
		SET(connection, d, bytes_sent, v->bytes);
		SET(connection, d, messages_sent, v->msgs);
	} else {
		SET(connection, d, bytes_received, v->bytes);
		SET(connection, d, messages_received, v->msgs);
	}
	SET(connection, d, first_ns, v->first_ns + realtime_offset_ns);
	SET(connection, d, last_ns, v->last_ns + realtime_offset_ns);
	graph_add_edge(g, d);
}

static const char *address_str(struct graph *g, int family, const struct sock_addr_abi *a)
{
	char text[INET6_ADDRSTRLEN] = "?", all[INET6_ADDRSTRLEN + 16];

	inet_ntop(family, a->addr, text, sizeof(text));
	snprintf(all, sizeof(all), "%s:%u", text, a->port);
	return graph_str(g, all);
}

/* What the other end knows of the connection from @p local to @p remote. */
static void translate(struct collect *c, struct graph *g, uint8_t proto,
		      const struct sock_addr_abi *local, const struct sock_addr_abi *remote,
		      const struct sock_addr_abi *own, const struct sock_addr_abi *other)
{
	uint32_t i = idmap_get(&c->connections->by_ends, ends_key(proto, local, remote), 0);
	const struct sock_facts *s;
	struct edge *d;

	if (i == IDMAP_NONE)
		return;
	s = &c->connections->v.v[i];
	d = new_edge(g, s);
	SET(connection, d, own_address, address_str(g, s->family, own));
	SET(connection, d, other_address, address_str(g, s->family, other));
	graph_add_edge(g, d);
}

static void read_tracked(struct collect *c, struct graph *g)
{
	char path[64], line[1024];
	struct conntrack t;
	size_t lines = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/net/nf_conntrack", c->o.netns_pid);
	if (!c->o.netns_pid)
		snprintf(path, sizeof(path), "/proc/net/nf_conntrack");
	f = fopen(path, "re");
	c->connections->tracked = f != NULL;
	while (f && lines++ < LINES_MAX && fgets(line, sizeof(line), f)) {
		if (!conntrack_parse(line, &t))
			continue;
		translate(c, g, t.proto, &t.src, &t.dst, &t.reply_dst, &t.reply_src);
		translate(c, g, t.proto, &t.reply_src, &t.reply_dst, &t.dst, &t.src);
	}
	if (f)
		fclose(f);
}

/* Addresses of a network namespace, as its routing table has them: "|-- ADDRESS", then "/32 host
 * LOCAL". */
static void add_ipv4(FILE *f, struct json_writer *w)
{
	char line[256], address[64] = "", last[64] = "";

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " |-- %63s", address) == 1)
			continue;
		/* The table has each twice, and loopback ones are of no use elsewhere. */
		if (!strstr(line, "/32 host LOCAL") || !strncmp(address, "127.", 4) ||
		    !strcmp(address, last))
			continue;
		json_write_str(w, address);
		snprintf(last, sizeof(last), "%s", address);
	}
}

/* "fe800000000000000000000000000001 02 40 20 80 eth0": address, interface, prefix, scope 00 global
 * … */
static void add_ipv6(FILE *f, struct json_writer *w)
{
	char line[256], text[INET6_ADDRSTRLEN];
	unsigned char a[16];
	unsigned scope, byte;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*32s %*x %*x %x", &scope) != 1 || scope)
			continue;
		for (int i = 0; i < 16; i++) {
			char two[3] = {line[i * 2], line[i * 2 + 1], '\0'};

			byte = (unsigned)strtoul(two, NULL, 16);
			a[i] = (unsigned char)byte;
		}
		if (inet_ntop(AF_INET6, a, text, sizeof(text)))
			json_write_str(w, text);
	}
}

static void add_addresses(struct graph *g, uint32_t netns, uint32_t pid)
{
	struct node *n = graph_new_node(g, &net_namespace_type);
	struct strbuf b = {0};
	struct json_writer w;
	char path[64];
	struct err e;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_array(&w);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%u/net/%s", pid, i ? "if_inet6" : "fib_trie");
		CLEANUP(cleanup_fclose) FILE *f = fopen(path, "re");

		if (f)
			i ? add_ipv6(f, &w) : add_ipv4(f, &w);
	}
	json_write_array_end(&w);
	json_writer_finish(&w, &e);
	SET(net_namespace, n, inode, netns);
	if (b.n > 2)
		SET(net_namespace, n, addresses, graph_str(g, b.s));
	graph_add_node(g, n);
	strbuf_done(&b);
}

/* Once for each namespace that a recorded process is in. */
static void look_at_namespaces(struct collect *c, struct graph *g)
{
	struct idmap seen = {0};

	vec_for(&c->procs.v, p) {
		if (!p->selected || !p->netns || p->end_ns ||
		    idmap_get(&seen, p->netns, 0) != IDMAP_NONE)
			continue;
		idmap_put(&seen, p->netns, 0, 0);
		add_addresses(g, p->netns, p->pid);
	}
	idmap_done(&seen);
}

void connections_look(struct collect *c, struct graph *g)
{
	struct connections *x = c->connections;
	uint64_t began = clock_mono_ns(), took;

	if (!x->v.n)
		return;
	read_tracked(c, g);
	look_at_namespaces(c, g);
	took = clock_mono_ns() - began;
	x->due_ns = began + (took * LOOK_REST > LOOK_EVERY_NS ? took * LOOK_REST : LOOK_EVERY_NS);
	/* Those that still move something come again: of an observation that goes on, the newest are kept. */
	if (c->goes_on && x->v.n > CONNECTIONS_MAX / 2) {
		vec_clear(&x->v);
		idmap_done(&x->by_ends);
	}
}

bool connections_due(const struct collect *c)
{
	return clock_mono_ns() >= c->connections->due_ns;
}

void connections_describe(const struct collect *c, struct graph *g)
{
	graph_add_loss(g, "collector sock", "connections_above_limit", c->connections->left_out);
}
