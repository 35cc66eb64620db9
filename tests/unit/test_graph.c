/* Identity, merge rules, ids, adjacency and merging of graphs. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "graph.h"

static struct node *add_process(struct graph *g, uint64_t pid, uint64_t start_ns)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, start_ns, start_ns);
	return graph_add_node(g, n);
}

static struct node *add_socket(struct graph *g, const char *addr, uint64_t port)
{
	struct node *n = graph_new_node(g, &socket_type);

	SET(socket, n, socket_type, graph_str(g, "TCP"));
	SET(socket, n, socket_addr, graph_str(g, addr));
	SET(socket, n, socket_port, port);
	return graph_add_node(g, n);
}

static struct edge *add_send(struct graph *g, uint32_t from, uint32_t to, uint64_t bytes,
			     uint64_t start, uint64_t end)
{
	struct edge *d = graph_new_edge(g, &send_to_socket_type, from, to);

	SET(send_to_socket, d, data_size, bytes);
	SET(send_to_socket, d, start_time, start);
	SET(send_to_socket, d, end_time, end);
	return graph_add_edge(g, d);
}

TEST(equal_texts_have_equal_addresses)
{
	struct graph g;
	char text[] = "abcdefghij";
	const char *a;

	graph_init(&g);
	a = graph_str(&g, text);
	assert_ptr_not_equal(a, text);
	assert_ptr_equal(a, graph_str(&g, "abcdefghij"));
	assert_ptr_equal(a, graph_strn(&g, "abcdefghijk", 10));
	assert_ptr_not_equal(a, graph_str(&g, "abcdefghi"));
	assert_string_equal(graph_strn(&g, "x", 0), "");
	for (unsigned i = 0; i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%u", i);
		graph_str(&g, name);
	}
	assert_ptr_equal(a, graph_str(&g, "abcdefghij"));
	graph_done(&g);
}

TEST(a_graph_can_be_moved)
{
	struct graph g, moved;
	const char *a;

	graph_init(&g);
	a = graph_str(&g, "abc");
	moved = g;
	memset(&g, 0xff, sizeof(g));
	assert_ptr_equal(graph_str(&moved, "abc"), a);
	assert_string_equal(graph_str(&moved, "def"), "def");
	graph_done(&moved);
}

TEST(key_fields_make_the_identity)
{
	struct graph g;
	struct node *a, *other_host, *no_start;

	graph_init(&g);
	a = add_process(&g, 7, 100);
	assert_ptr_equal(add_process(&g, 7, 100), a);
	assert_ptr_not_equal(add_process(&g, 7, 200), a);
	assert_ptr_not_equal(add_process(&g, 8, 100), a);
	other_host = graph_new_node(&g, &process_type);
	other_host->ns = graph_str(&g, "10.0.0.2");
	SET(process, other_host, pid, 7);
	SET(process, other_host, start_ns, 100);
	assert_ptr_not_equal(graph_add_node(&g, other_host), a);
	/* Not known is another value than any known one, zero too. */
	no_start = graph_new_node(&g, &process_type);
	SET(process, no_start, pid, 7);
	no_start = graph_add_node(&g, no_start);
	assert_ptr_not_equal(no_start, a);
	assert_ptr_not_equal(add_process(&g, 7, 0), no_start);
	assert_int_equal(g.nodes.n, 6);
	for (uint32_t i = 0; i < g.nodes.n; i++)
		assert_int_equal(g.nodes.v[i]->index, i);
	graph_done(&g);
}

TEST(many_entities_stay_distinct)
{
	struct graph g;

	graph_init(&g);
	for (unsigned round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 20000; i++)
			assert_int_equal(add_process(&g, i % 200, i / 200)->index, i);
	assert_int_equal(g.nodes.n, 20000);
	graph_done(&g);
}

TEST(last_value_wins_and_unknown_stays)
{
	struct graph g;
	struct node *n, *again;

	graph_init(&g);
	n = graph_new_node(&g, &process_type);
	SET(process, n, pid, 7);
	SET(process, n, name, graph_str(&g, "old"));
	n = graph_add_node(&g, n);
	assert_false(HAS(process, n, cmdline));
	again = graph_new_node(&g, &process_type);
	SET(process, again, pid, 7);
	SET(process, again, cmdline, graph_str(&g, "c"));
	assert_ptr_equal(graph_add_node(&g, again), n);
	assert_string_equal(GET(process, n, name), "old");
	assert_string_equal(GET(process, n, cmdline), "c");
	again = graph_new_node(&g, &process_type);
	assert_int_equal(again->measured, 0);
	assert_null(GET(process, again, cmdline));
	SET(process, again, pid, 7);
	SET(process, again, name, graph_str(&g, "new"));
	graph_add_node(&g, again);
	assert_string_equal(GET(process, n, name), "new");
	assert_int_equal(g.nodes.n, 1);
	graph_done(&g);
}

TEST(sums_add_and_extremes_are_exact)
{
	const uint64_t t = 1772608557762327490;
	struct graph g;
	struct edge *d;

	graph_init(&g);
	add_process(&g, 1, 1);
	add_socket(&g, "127.0.0.1", 80);
	d = add_send(&g, 0, 1, 10, t + 1, t + 1);
	assert_ptr_equal(add_send(&g, 0, 1, 5, t, t + 2), d);
	assert_ptr_equal(add_send(&g, 0, 1, 1, t + 3, t - 3), d);
	assert_int_equal(GET(send_to_socket, d, data_size), 16);
	assert_true(GET(send_to_socket, d, start_time) == t);
	assert_true(GET(send_to_socket, d, end_time) == t + 2);
	assert_ptr_not_equal(add_send(&g, 1, 0, 1, t, t), d);
	assert_int_equal(g.edges.n, 2);
	graph_done(&g);
}

TEST(sums_stop_at_what_a_recording_holds)
{
	struct graph g;
	struct edge *d = NULL;

	graph_init(&g);
	add_process(&g, 1, 1);
	for (int i = 0; i < 4; i++)
		d = add_send(&g, 0, 0, (uint64_t)INT64_MAX - 1, 1, 1);
	assert_true(GET(send_to_socket, d, data_size) == INT64_MAX);
	graph_done(&g);
}

TEST(a_copy_replaces_and_does_not_add)
{
	struct graph g;
	struct node *n = NULL;
	struct edge *d = NULL;

	graph_init(&g);
	for (uint64_t i = 1; i <= 3; i++) {
		struct node *draft = graph_new_node(&g, &process_type);

		SET(process, draft, pid, 7);
		SET(process, draft, cpu_ns, i * 10);
		n = graph_put_node(&g, draft);
		d = graph_new_edge(&g, &send_to_socket_type, n->index, n->index);
		SET(send_to_socket, d, data_size, i);
		d = graph_put_edge(&g, d);
	}
	assert_int_equal(GET(process, n, cpu_ns), 30);
	assert_int_equal(GET(send_to_socket, d, data_size), 3);
	assert_int_equal(g.nodes.n, 1);
	assert_int_equal(g.edges.n, 1);
	graph_done(&g);
}

TEST(weight_and_extra_are_kept)
{
	struct graph g;
	struct edge *d;

	graph_init(&g);
	add_process(&g, 1, 1);
	d = graph_new_edge(&g, &own_type, 0, 0);
	d->has_weight = true;
	d->weight = 0;
	d->extra = graph_str(&g, "\"a\":1");
	d = graph_add_edge(&g, d);
	graph_link(&g, &own_type, 0, 0);
	assert_true(d->has_weight);
	assert_string_equal(d->extra, "\"a\":1");
	graph_done(&g);
}

TEST(ids_tell_type_keys_and_host)
{
	struct graph g;
	struct node *n;

	graph_init(&g);
	add_process(&g, 4711, 1);
	assert_string_equal(graph_node_id(&g, 0), "process:4711");
	add_process(&g, 4711, 2);
	add_process(&g, 4711, 3);
	assert_string_equal(graph_node_id(&g, 1), "process:4711#2");
	assert_string_equal(graph_node_id(&g, 2), "process:4711#3");
	assert_string_equal(graph_node_id(&g, 0), "process:4711");
	n = graph_new_node(&g, &process_type);
	n->ns = graph_str(&g, "10.0.0.2");
	SET(process, n, pid, 4711);
	n = graph_add_node(&g, n);
	assert_string_equal(graph_node_id(&g, n->index), "process:4711@10.0.0.2");
	n = add_socket(&g, "::1", 80);
	assert_string_equal(graph_node_id(&g, n->index), "socket:TCP:::1:80");
	n = graph_add_node(&g, graph_new_node(&g, &process_type));
	assert_string_equal(graph_node_id(&g, n->index), "process:?");
	for (uint32_t i = 0; i < g.nodes.n; i++)
		assert_int_equal(graph_find(&g, graph_node_id(&g, i)), i);
	assert_int_equal(graph_find(&g, "process:1"), NODE_NONE);
	assert_int_equal(graph_find(&g, ""), NODE_NONE);
	graph_done(&g);
}

TEST(an_id_that_looks_numbered_is_no_clash)
{
	struct graph g;

	graph_init(&g);
	for (int i = 0; i < 2; i++) {
		struct node *n = graph_new_node(&g, &host_type);

		n->ns = graph_str(&g, i ? "a" : "a#2");
		graph_add_node(&g, n);
	}
	assert_int_equal(g.nodes.n, 2);
	assert_string_not_equal(graph_node_id(&g, 0), graph_node_id(&g, 1));
	graph_done(&g);
}

static void expect_edges(struct edge_list l, const uint32_t *want, size_t n)
{
	assert_int_equal(l.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(l.v[i], want[i]);
}

TEST(adjacency_lists_edges_by_end)
{
	struct graph g;

	graph_init(&g);
	for (uint64_t i = 0; i < 4; i++)
		add_process(&g, i, 1);
	expect_edges(graph_out(&g, 0), NULL, 0);
	graph_link(&g, &own_type, 0, 1);
	graph_link(&g, &own_type, 2, 1);
	graph_link(&g, &own_type, 0, 2);
	graph_link(&g, &own_type, 3, 3);
	expect_edges(graph_out(&g, 0), (uint32_t[]){0, 2}, 2);
	expect_edges(graph_in(&g, 0), NULL, 0);
	expect_edges(graph_in(&g, 1), (uint32_t[]){0, 1}, 2);
	expect_edges(graph_out(&g, 3), (uint32_t[]){3}, 1);
	expect_edges(graph_in(&g, 3), (uint32_t[]){3}, 1);
	/* What is added later is seen. */
	graph_link(&g, &own_type, 3, 0);
	expect_edges(graph_in(&g, 0), (uint32_t[]){4}, 1);
	add_process(&g, 9, 1);
	expect_edges(graph_out(&g, 4), NULL, 0);
	graph_done(&g);
}

TEST(losses_add_up_by_cause)
{
	struct graph g;

	graph_init(&g);
	graph_add_loss(&g, "a", "full", 0);
	assert_int_equal(g.losses.n, 0);
	graph_add_loss(&g, "a", "full", 2);
	graph_add_loss(&g, "b", "full", 1);
	graph_add_loss(&g, "a", "full", 3);
	assert_int_equal(g.losses.n, 2);
	assert_int_equal(g.losses.v[0].count, 5);
	graph_done(&g);
}

/* Two processes of which the second owns a thread and sends; node numbers depend on @p first. */
static void fill(struct graph *g, uint64_t first, uint64_t bytes)
{
	struct node *thread, *p, *s;

	graph_init(g);
	add_process(g, first, 1);
	s = add_socket(g, "10.0.0.1", 443);
	thread = graph_new_node(g, &thread_type);
	p = add_process(g, 7, 1);
	SET(process, p, cpu_ns, 100);
	SET(thread, thread, tid, 7);
	SET(thread, thread, process, p->index);
	SET(thread, thread, run_ns, 50);
	thread = graph_add_node(g, thread);
	graph_link(g, &own_type, p->index, thread->index);
	add_send(g, thread->index, s->index, bytes, bytes, bytes);
}

TEST(merging_maps_nodes_references_and_sums)
{
	struct graph a, b;
	uint32_t nodes[4], edges[2], at;
	const struct node *thread;
	const struct edge *send;

	fill(&a, 1, 10);
	fill(&b, 2, 32);
	graph_merge(&a, &b, nodes, edges);
	assert_int_equal(a.nodes.n, 5);
	assert_int_equal(a.edges.n, 2);
	assert_int_equal(edges[0], 0);
	assert_int_equal(edges[1], 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_string_equal(graph_node_id(&a, nodes[i]), graph_node_id(&b, i));
	graph_done(&b);
	thread = a.nodes.v[graph_find(&a, "thread:7")];
	at = GET(thread, thread, process);
	assert_string_equal(graph_node_id(&a, at), "process:7");
	assert_int_equal(GET(thread, thread, run_ns), 100);
	assert_int_equal(GET(process, a.nodes.v[at], cpu_ns), 200);
	send = a.edges.v[edges[1]];
	assert_int_equal(GET(send_to_socket, send, data_size), 42);
	assert_int_equal(GET(send_to_socket, send, start_time), 10);
	assert_int_equal(GET(send_to_socket, send, end_time), 32);
	graph_done(&a);
}

TEST(merging_places_what_is_referred_to_first)
{
	struct graph a, b;
	struct node *thread, *p;

	graph_init(&a);
	graph_init(&b);
	thread = graph_new_node(&b, &thread_type);
	SET(thread, thread, tid, 7);
	thread = graph_add_node(&b, thread);
	p = add_process(&b, 7, 1);
	SET(thread, thread, process, p->index);
	graph_merge(&a, &b, NULL, NULL);
	graph_done(&b);
	thread = a.nodes.v[graph_find(&a, "thread:7")];
	assert_string_equal(graph_node_id(&a, GET(thread, thread, process)), "process:7");
	graph_done(&a);
}

TEST(merging_into_an_empty_graph_copies)
{
	struct graph a, b;

	graph_init(&a);
	fill(&b, 1, 3);
	graph_merge(&a, &b, NULL, NULL);
	assert_int_equal(a.nodes.n, b.nodes.n);
	assert_int_equal(a.edges.n, b.edges.n);
	graph_done(&b);
	assert_string_equal(graph_node_id(&a, 0), "process:1");
	graph_init(&b);
	graph_merge(&a, &b, NULL, NULL);
	assert_int_equal(a.nodes.n, 4);
	graph_done(&b);
	graph_done(&a);
}

TEST(references_name_their_type)
{
	for (size_t i = 0; i < n_entity_types; i++)
		for (int k = 0; k < entity_types[i]->nfields; k++) {
			const struct field *f = &entity_types[i]->fields[k];
			int targets = 0;

			if (f->type != T_REF)
				continue;
			for (size_t j = 0; j < n_entity_types; j++)
				targets += field_refers_to(f, entity_types[j]);
			assert_int_equal(targets, 1);
			/* Otherwise an entity could refer to itself. */
			assert_false(field_refers_to(f, entity_types[i]));
		}
	assert_true(field_refers_to(&socket_type.fields[type_field(&socket_type, "socket_thread")],
				    &thread_type));
	assert_false(field_refers_to(&process_type.fields[0], &process_type));
}

TEST(a_rewrite_is_counted_a_repetition_is_not)
{
	struct graph g;
	struct node *n;

	graph_init(&g);
	for (int i = 0; i < 6; i++) {
		n = graph_new_node(&g, &process_type);
		SET(process, n, pid, 7);
		SET(process, n, cpu_ns, i < 2 ? 5 : 6);
		if (i > 3)
			n->extra = graph_str(&g, "\"a\":1");
		graph_put_node(&g, n);
	}
	/* The new sum, then the new member. */
	assert_int_equal(g.rewrites, 2);
	n = graph_new_node(&g, &process_type);
	SET(process, n, pid, 7);
	SET(process, n, cpu_ns, 0);
	n = graph_add_node(&g, n);
	assert_int_equal(g.rewrites, 2);
	n = graph_new_node(&g, &process_type);
	SET(process, n, pid, 7);
	SET(process, n, kthread, false);
	n = graph_add_node(&g, n);
	/* Now it is known not to be one. */
	assert_int_equal(g.rewrites, 3);
	assert_true(HAS(process, n, kthread));
	graph_done(&g);
}

TEST(what_was_appended_is_found_by_what_is_added)
{
	struct graph from, into;
	struct node *n;

	graph_init(&from);
	graph_init(&into);
	add_process(&from, 1, 5);
	add_process(&from, 2, 6);
	graph_link(&from, &parent_of_type, 0, 1);
	/* Into an empty graph, where nothing is looked up. */
	graph_merge(&into, &from, NULL, NULL);
	assert_int_equal(add_process(&into, 2, 6)->index, 1);
	assert_int_equal(add_process(&into, 3, 7)->index, 2);
	assert_int_equal(graph_link(&into, &parent_of_type, 0, 1)->index, 0);
	assert_int_equal(graph_link(&into, &parent_of_type, 0, 2)->index, 1);
	n = graph_new_node(&into, &process_type);
	SET(process, n, pid, 4);
	SET(process, n, start_ns, 8);
	assert_int_equal(graph_append_node(&into, n)->index, 3);
	assert_int_equal(add_process(&into, 4, 8)->index, 3);
	/* And into one that has it all. */
	graph_merge(&into, &from, NULL, NULL);
	assert_int_equal(into.nodes.n, 4);
	assert_int_equal(into.edges.n, 2);
	graph_done(&into);
	graph_done(&from);
}

/* A process of this host and one of another, which the second process is a child of. */
static void two_hosts(struct graph *g, const char *other)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, 1);
	SET(process, n, start_ns, 5);
	n->ns = graph_str(g, other);
	graph_add_node(g, n);
	add_process(g, 2, 6);
	graph_link(g, &parent_of_type, 0, 1);
}

TEST(hosts_that_tell_of_each_other_share_what_they_tell_of)
{
	struct graph a, b, into;

	graph_init(&a);
	graph_init(&b);
	graph_init(&into);
	two_hosts(&a, "beta");
	add_process(&b, 1, 5);
	graph_merge_host(&into, &a, "alpha");
	graph_merge_host(&into, &b, "beta");
	assert_int_equal(into.nodes.n, 2);
	graph_merge_host(&into, &a, "alpha");
	assert_int_equal(into.nodes.n, 2);
	assert_int_equal(into.edges.n, 1);
	graph_merge_host(&into, &b, "gamma");
	assert_int_equal(into.nodes.n, 3);
	graph_done(&into);
	graph_done(&b);
	graph_done(&a);
}

/* What goes to a node and to one that it stands for becomes one, whichever comes first; what goes elsewhere stays. */
TEST(relations_to_what_stands_for_another_are_one)
{
	for (int first = 0; first < 2; first++) {
		bool nodes[4] = {true, true, true, true}, edges[4] = {true, true, true, true};
		uint32_t stands[4] = {0, 1, 2, 3}, map[4], other = first ? 2 : 3, stood = first ? 3 : 2;
		struct graph from, into;

		graph_init(&from);
		graph_init(&into);
		add_process(&from, 1, 5);
		add_process(&from, 2, 5);
		add_socket(&from, "a", 1);
		add_socket(&from, "b", 1);
		add_send(&from, 0, 2, 10, 1, 2);
		add_send(&from, 1, 2, 1, 1, 2);
		add_send(&from, 0, 3, 100, 1, 2);
		graph_link(&from, &parent_of_type, 0, 1);
		stands[stood] = other;
		nodes[stood] = false;
		graph_merge_joined(&into, &from, nodes, edges, stands, map);
		assert_int_equal(into.nodes.n, 3);
		assert_int_equal(into.edges.n, 3);
		assert_int_equal(map[2], map[3]);
		assert_true(GET(send_to_socket, into.edges.v[0], data_size) == 110);
		assert_true(GET(send_to_socket, into.edges.v[1], data_size) == 1);
		graph_done(&into);
		graph_done(&from);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_equal_addresses),
		cmocka_unit_test(a_graph_can_be_moved),
		cmocka_unit_test(key_fields_make_the_identity),
		cmocka_unit_test(many_entities_stay_distinct),
		cmocka_unit_test(last_value_wins_and_unknown_stays),
		cmocka_unit_test(sums_add_and_extremes_are_exact),
		cmocka_unit_test(sums_stop_at_what_a_recording_holds),
		cmocka_unit_test(a_copy_replaces_and_does_not_add),
		cmocka_unit_test(weight_and_extra_are_kept),
		cmocka_unit_test(ids_tell_type_keys_and_host),
		cmocka_unit_test(an_id_that_looks_numbered_is_no_clash),
		cmocka_unit_test(adjacency_lists_edges_by_end),
		cmocka_unit_test(losses_add_up_by_cause),
		cmocka_unit_test(merging_maps_nodes_references_and_sums),
		cmocka_unit_test(merging_places_what_is_referred_to_first),
		cmocka_unit_test(merging_into_an_empty_graph_copies),
		cmocka_unit_test(what_was_appended_is_found_by_what_is_added),
		cmocka_unit_test(hosts_that_tell_of_each_other_share_what_they_tell_of),
		cmocka_unit_test(relations_to_what_stands_for_another_are_one),
		cmocka_unit_test(references_name_their_type),
		cmocka_unit_test(a_rewrite_is_counted_a_repetition_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
