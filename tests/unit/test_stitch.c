/* Hosts side by side become one graph: which ends of connections and queue pairs are joined, and
 * which are not. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "hosts.h"
#include "stitch.h"

#define S 1000000000ull

/* A host with one process. */
struct side {
	struct graph g;
	uint32_t process;
};

static void begin(struct side *h, const char *name, uint64_t pid)
{
	struct node *n;

	graph_init(&h->g);
	n = graph_new_node(&h->g, &host_type);
	SET(host, n, hostname, graph_str(&h->g, name));
	SET(host, n, boot_id, graph_str(&h->g, name));
	graph_add_node(&h->g, n);
	n = graph_new_node(&h->g, &process_type);
	SET(process, n, pid, pid);
	h->process = graph_add_node(&h->g, n)->index;
	h->g.meta.start_ns = 100 * S;
	h->g.meta.window_ns = 10 * S;
	h->g.meta.complete = true;
}

static uint32_t add_socket(struct side *h, const char *addr, uint64_t port, bool external)
{
	struct node *n = graph_new_node(&h->g, &socket_type);

	SET(socket, n, socket_type, graph_str(&h->g, "TCP"));
	SET(socket, n, socket_addr, graph_str(&h->g, addr));
	SET(socket, n, socket_port, port);
	SET(socket, n, netns, 1);
	if (external)
		SET(socket, n, external, true);
	return graph_add_node(&h->g, n)->index;
}

/* A connection with what its host would have of it: @p sent and @p received bytes from @p first s
 * on. */
static struct edge *connect_to(struct side *h, const char *own, uint64_t port, const char *other,
			       uint64_t other_port, uint64_t sent, uint64_t received,
			       uint64_t first)
{
	uint32_t a = add_socket(h, own, port, false), b = add_socket(h, other, other_port, true);
	struct edge *d = graph_new_edge(&h->g, &connection_type, a, b), *f;

	SET(connection, d, process, h->process);
	SET(connection, d, bytes_sent, sent);
	SET(connection, d, messages_sent, sent / 10);
	SET(connection, d, bytes_received, received);
	SET(connection, d, messages_received, received / 10);
	SET(connection, d, first_ns, first * S);
	SET(connection, d, last_ns, (first + 1) * S);
	d = graph_add_edge(&h->g, d);
	for (int way = 0; way < 2; way++) {
		uint64_t before = 0;

		f = graph_new_edge(&h->g, &flow_type, way ? b : h->process, way ? h->process : b);
		SET(flow, f, kind, graph_str(&h->g, "tcp"));
		vec_for(&h->g.edges, e)
			if ((*e)->type == &flow_type && (*e)->source == f->source &&
			    (*e)->target == f->target)
				before = GET(flow, *e, bytes);
		SET(flow, f, bytes, before + (way ? received : sent));
		SET(flow, f, messages, (before + (way ? received : sent)) / 10);
		if (way)
			SET(flow, f, bytes_received, GET(flow, f, bytes));
		else
			SET(flow, f, bytes_sent, GET(flow, f, bytes));
		graph_add_edge(&h->g, f);
	}
	return d;
}

static void join(struct side *hosts, size_t n, struct graph *ret, struct stitched *found)
{
	struct graph all;
	char name[8];

	graph_init(&all);
	graph_init(ret);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "h%zu", i);
		hosts_add(&all, &hosts[i].g, name);
		graph_done(&hosts[i].g);
	}
	stitch(ret, &all, STITCH_CLOCK_NS, found);
	hosts_copy_about(ret, &all);
	graph_done(&all);
}

/* Bytes that a flow between two printed ids has; UINT64_MAX: there is none. */
static uint64_t flow_bytes(struct graph *g, const char *from, const char *to)
{
	uint32_t a = graph_find(g, from), b = graph_find(g, to);

	vec_for(&g->edges, d)
		if ((*d)->type == &flow_type && (*d)->source == a && (*d)->target == b)
			return GET(flow, *d, bytes);
	return UINT64_MAX;
}

TEST(both_ends_become_a_flow_and_the_socket_stands_for_the_external_one)
{
	struct stitched found;
	struct side h[2];
	struct graph g;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	connect_to(&h[0], "10.0.0.1", 40000, "10.0.0.2", 80, 1000, 5000, 101);
	connect_to(&h[0], "10.0.0.1", 40001, "10.0.0.2", 80, 100, 500, 103);
	connect_to(&h[1], "10.0.0.2", 80, "10.0.0.1", 40000, 5000, 990, 101);
	connect_to(&h[1], "10.0.0.2", 80, "10.0.0.1", 40001, 500, 100, 103);
	join(h, 2, &g, &found);
	assert_int_equal(found.joined, 4);
	assert_int_equal(found.alone + found.ambiguous, 0);
	assert_int_equal(found.flows, 2);
	assert_int_equal(flow_bytes(&g, "process:7@h0", "process:8@h1"), 1100);
	assert_int_equal(flow_bytes(&g, "process:8@h1", "process:7@h0"), 5500);
	vec_for(&g.edges, d)
		if ((*d)->type == &flow_type) {
			assert_true(HAS(flow, *d, bytes_sent) && HAS(flow, *d, bytes_received));
			assert_true(g.nodes.v[(*d)->source]->type == &process_type);
			assert_true(g.nodes.v[(*d)->target]->type == &process_type);
		}
	/* Three sockets are left: none of them is external. */
	vec_for(&g.nodes, n)
		assert_false((*n)->type == &socket_type && HAS(socket, *n, external));
	assert_int_not_equal(graph_find(&g, "socket:TCP:10.0.0.2:80@h1"), NODE_NONE);
	assert_int_equal(graph_find(&g, "socket:TCP:10.0.0.2:80@h0"), NODE_NONE);
	assert_int_equal(g.meta.window_ns, 10 * S);
	assert_true(g.meta.complete);
	graph_done(&g);
}

TEST(what_is_not_joined_stays_a_flow_to_the_address)
{
	struct stitched found;
	struct side h[2];
	struct graph g;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	connect_to(&h[0], "10.0.0.1", 40000, "10.0.0.2", 80, 1000, 5000, 101);
	/* The other host did not see this one. */
	connect_to(&h[0], "10.0.0.1", 40001, "10.0.0.2", 80, 300, 40, 102);
	connect_to(&h[1], "10.0.0.2", 80, "10.0.0.1", 40000, 5000, 1000, 101);
	join(h, 2, &g, &found);
	assert_int_equal(found.joined, 2);
	assert_int_equal(found.alone, 1);
	assert_int_equal(flow_bytes(&g, "process:7@h0", "process:8@h1"), 1000);
	assert_int_equal(flow_bytes(&g, "process:7@h0", "socket:TCP:10.0.0.2:80@h1"), 300);
	assert_int_equal(flow_bytes(&g, "socket:TCP:10.0.0.2:80@h1", "process:7@h0"), 40);
	graph_done(&g);
}

TEST(other_times_and_other_ports_are_other_connections)
{
	struct stitched found;
	struct side h[2];
	struct graph g;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	connect_to(&h[0], "10.0.0.1", 40000, "10.0.0.2", 80, 1000, 5000, 101);
	connect_to(&h[1], "10.0.0.2", 80, "10.0.0.1", 40000, 5000, 1000, 105);
	connect_to(&h[1], "10.0.0.2", 81, "10.0.0.1", 40000, 5000, 1000, 101);
	join(h, 2, &g, &found);
	assert_int_equal(found.joined, 0);
	assert_int_equal(found.alone, 3);
	assert_int_equal(flow_bytes(&g, "process:7@h0", "socket:TCP:10.0.0.2:80@h0"), 1000);
	graph_done(&g);
}

TEST(addresses_that_two_hosts_have_are_ambiguous)
{
	struct stitched found;
	struct side h[3];
	struct graph g;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	begin(&h[2], "c", 9);
	connect_to(&h[0], "172.17.0.2", 40000, "172.17.0.3", 80, 1000, 5000, 101);
	connect_to(&h[1], "172.17.0.3", 80, "172.17.0.2", 40000, 5000, 1000, 101);
	connect_to(&h[2], "172.17.0.3", 80, "172.17.0.2", 40000, 5000, 1000, 101);
	join(h, 3, &g, &found);
	assert_int_equal(found.joined, 0);
	assert_int_equal(found.ambiguous, 3);
	assert_int_equal(found.flows, 0);
	graph_done(&g);
}

TEST(rewritten_addresses_are_followed_where_an_end_knows_them)
{
	struct stitched found;
	struct side h[2];
	struct graph g;
	struct edge *d;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	/* A service address, which the host of the client rewrites. */
	d = connect_to(&h[0], "10.0.0.1", 40000, "10.9.9.9", 80, 1000, 5000, 101);
	SET(connection, d, own_address, graph_str(&h[0].g, "192.0.2.1:61000"));
	SET(connection, d, other_address, graph_str(&h[0].g, "10.0.0.2:8080"));
	connect_to(&h[1], "10.0.0.2", 8080, "192.0.2.1", 61000, 5000, 1000, 101);
	join(h, 2, &g, &found);
	assert_int_equal(found.joined, 2);
	assert_int_equal(flow_bytes(&g, "process:7@h0", "process:8@h1"), 1000);
	graph_done(&g);
	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	connect_to(&h[0], "10.0.0.1", 40000, "10.9.9.9", 80, 1000, 5000, 101);
	connect_to(&h[1], "10.0.0.2", 8080, "192.0.2.1", 61000, 5000, 1000, 101);
	join(h, 2, &g, &found);
	assert_int_equal(found.joined, 0);
	graph_done(&g);
}

static uint32_t add_queue_pair(struct side *h, uint64_t qpn, uint64_t rqpn)
{
	struct node *n = graph_new_node(&h->g, &rdma_qp_type), *e;
	uint32_t qp;

	SET(rdma_qp, n, qpn, qpn);
	SET(rdma_qp, n, dev, graph_str(&h->g, "mlx5_0"));
	SET(rdma_qp, n, rqpn, rqpn);
	qp = graph_add_node(&h->g, n)->index;
	e = graph_new_node(&h->g, &rdma_endpoint_type);
	SET(rdma_endpoint, e, qpn, rqpn);
	graph_link(&h->g, &connect_to_type, qp, graph_add_node(&h->g, e)->index);
	return qp;
}

static size_t count_nodes(const struct graph *g, const struct type *t)
{
	size_t n = 0;

	vec_for(&g->nodes, x)
		n += (*x)->type == t;
	return n;
}

TEST(queue_pairs_are_joined_when_no_other_pair_fits)
{
	struct stitched found;
	struct side h[3];
	struct graph g;
	uint32_t a, b;

	begin(&h[0], "a", 7);
	begin(&h[1], "b", 8);
	begin(&h[2], "c", 9);
	add_queue_pair(&h[0], 0x11, 0x21);
	add_queue_pair(&h[1], 0x21, 0x11);
	/* These numbers are on two hosts. */
	add_queue_pair(&h[0], 0x12, 0x22);
	add_queue_pair(&h[1], 0x22, 0x12);
	add_queue_pair(&h[2], 0x22, 0x12);
	join(h, 3, &g, &found);
	assert_int_equal(found.queue_pairs, 2);
	assert_int_equal(found.queue_pairs_ambiguous, 1);
	a = graph_find(&g, "rdma_qp:17:mlx5_0@h0");
	b = graph_find(&g, "rdma_qp:33:mlx5_0@h1");
	assert_int_not_equal(a, NODE_NONE);
	assert_int_not_equal(b, NODE_NONE);
	assert_int_equal(graph_out(&g, a).n, 1);
	assert_int_equal(g.edges.v[graph_out(&g, a).v[0]]->target, b);
	assert_int_equal(g.edges.v[graph_out(&g, b).v[0]]->target, a);
	/* The ends of the others are still mere numbers. */
	assert_int_equal(count_nodes(&g, &rdma_endpoint_type), 3);
	graph_done(&g);
}

TEST(queue_pairs_that_their_host_joined_are_not_joined_again)
{
	struct stitched found;
	struct side h[2];
	struct graph g;

	/* The same pair of numbers at both: each host has its own, by itself. */
	for (int i = 0; i < 2; i++) {
		uint32_t qp[2];

		begin(&h[i], i ? "b" : "a", 7);
		for (unsigned k = 0; k < 2; k++) {
			struct node *n = graph_new_node(&h[i].g, &rdma_qp_type);

			SET(rdma_qp, n, qpn, 0x11 + k);
			SET(rdma_qp, n, rqpn, 0x12 - k);
			SET(rdma_qp, n, dev, graph_str(&h[i].g, "rxe0"));
			qp[k] = graph_add_node(&h[i].g, n)->index;
		}
		graph_link(&h[i].g, &connect_to_type, qp[0], qp[1]);
		graph_link(&h[i].g, &connect_to_type, qp[1], qp[0]);
	}
	/* The same number at both ends, each on its host. */
	add_queue_pair(&h[0], 0x21, 0x21);
	add_queue_pair(&h[1], 0x21, 0x21);
	join(h, 2, &g, &found);
	assert_int_equal(found.queue_pairs, 2);
	assert_int_equal(found.queue_pairs_ambiguous, 0);
	assert_int_equal(count_nodes(&g, &rdma_endpoint_type), 0);
	vec_for(&g.edges, d)
		if ((*d)->type == &connect_to_type && g.nodes.v[(*d)->source]->type == &rdma_qp_type) {
			const struct node *from = g.nodes.v[(*d)->source], *to = g.nodes.v[(*d)->target];

			assert_int_equal(from->ns != to->ns, GET(rdma_qp, from, qpn) == 0x21);
		}
	graph_done(&g);
}

TEST(a_host_is_told_by_name_boot_or_installation)
{
	struct host_identity a = {.hostname = "x", .machine_id = "m", .boot_id = "1"}, b = a;

	assert_true(host_is_same(&a, &b));
	b.boot_id = "2";
	assert_true(host_is_same(&a, &b));
	b.hostname = "y";
	assert_false(host_is_same(&a, &b));
	b.boot_id = "1";
	assert_true(host_is_same(&a, &b));
	/* Containers of one machine, each with a name of its own. */
	a.host_id = "one";
	assert_false(host_is_same(&a, &b));
	b.host_id = "two";
	assert_false(host_is_same(&a, &b));
	b.host_id = "one";
	assert_true(host_is_same(&a, &b));
	a = b = (struct host_identity){0};
	assert_false(host_is_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(both_ends_become_a_flow_and_the_socket_stands_for_the_external_one),
	    cmocka_unit_test(what_is_not_joined_stays_a_flow_to_the_address),
	    cmocka_unit_test(other_times_and_other_ports_are_other_connections),
	    cmocka_unit_test(addresses_that_two_hosts_have_are_ambiguous),
	    cmocka_unit_test(rewritten_addresses_are_followed_where_an_end_knows_them),
	    cmocka_unit_test(queue_pairs_are_joined_when_no_other_pair_fits),
	    cmocka_unit_test(queue_pairs_that_their_host_joined_are_not_joined_again),
	    cmocka_unit_test(a_host_is_told_by_name_boot_or_installation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
