/* Scores of placement, from vectors and from graphs. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "numa_rows.h"

static void assert_near(double have, double want)
{
	if (fabs(have - want) > 5e-4)
		fail_msg("%g is not %g", have, want);
}

TEST(scores_are_what_their_names_say)
{
	const double even[] = {1, 1, 1, 1, 1, 1, 1, 1}, first[] = {5, 0}, second[] = {0, 7}, both[] = {3, 4};
	struct numa_score s = numa_score(even, even, 8);

	assert_true(s.known);
	assert_near(s.similarity, 1);
	assert_near(s.local_share, 0.125);
	assert_near(s.remote_share, 0.875);
	s = numa_score(first, second, 2);
	assert_true(s.known);
	assert_near(s.similarity, 0);
	assert_near(s.remote_share, 1);
	assert_string_equal(numa_verdict(&s), "remote");
	s = numa_score(first, first, 2);
	assert_near(s.similarity, 1);
	assert_near(s.remote_share, 0);
	assert_string_equal(numa_verdict(&s), "local");
	s = numa_score(first, both, 2);
	assert_near(s.similarity, 0.6);
	assert_near(s.local_share, 3.0 / 7);
	assert_string_equal(numa_verdict(&s), "mixed");
	/* 19-digit nanoseconds times bytes do not overflow. */
	s = numa_score((double[]){1e19, 1e19}, (double[]){1e15, 1e15}, 2);
	assert_near(s.similarity, 1);
}

TEST(published_examples_have_their_true_cosines)
{
	static const struct {
		double cpu[4], memory[4], cosine;
	} cases[] = {
		{{.75, .15, .05, .05}, {.10, .15, .60, .15}, 0.2728},
		{{.80, .10, .05, .05}, {.05, .10, .15, .70}, 0.1577},
		{{.40, .35, .15, .10}, {.35, .40, .15, .10}, 0.9921},
		{{.85, .10, .03, .02}, {.80, .12, .05, .03}, 0.9990},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_near(numa_score(cases[i].cpu, cases[i].memory, 4).similarity, cases[i].cosine);
}

TEST(without_time_or_memory_nothing_is_known)
{
	const double none[] = {0, 0}, some[] = {1, 0}, odd[] = {NAN, 1};

	assert_false(numa_score(none, some, 2).known);
	assert_false(numa_score(some, none, 2).known);
	assert_false(numa_score(some, some, 0).known);
	assert_false(numa_score(odd, some, 2).known);
	struct numa_score s = {0};
	assert_null(numa_verdict(&s));
}

TEST(nodes_are_matched_by_number)
{
	struct by_node cpu = {0}, memory = {0};
	struct numa_score s;

	*by_node_at(&cpu, 9) += 4;
	*by_node_at(&cpu, 2) += 3;
	*by_node_at(&memory, 252) += 5;
	*by_node_at(&memory, 2) += 12;
	assert_int_equal(cpu.v.v[0].node, 2);
	s = numa_score_by_node(&cpu, &memory);
	assert_near(s.similarity, 36.0 / (5 * 13));
	assert_near(s.local_share, 36.0 / (7 * 17));
	vec_done(&cpu.v);
	vec_done(&memory.v);
}

static uint32_t add_numa(struct graph *g, uint64_t id)
{
	struct node *n = graph_new_node(g, &numa_type);

	SET(numa, n, numa_id, id);
	return graph_add_node(g, n)->index;
}

static uint32_t add_cpu(struct graph *g, uint64_t id, uint64_t node)
{
	struct node *n = graph_new_node(g, &cpu_type);

	SET(cpu, n, cpu_id, id);
	SET(cpu, n, node, node);
	return graph_add_node(g, n)->index;
}

static uint32_t add_process(struct graph *g, uint64_t pid)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	return graph_add_node(g, n)->index;
}

static uint32_t add_thread(struct graph *g, uint64_t tid, uint32_t process)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, process, process);
	return graph_add_node(g, n)->index;
}

static uint32_t add_set(struct graph *g, const char *nodes)
{
	struct node *n = graph_new_node(g, &numa_set_type);

	SET(numa_set, n, numa_id_str, graph_str(g, nodes));
	return graph_add_node(g, n)->index;
}

static void run(struct graph *g, uint32_t thread, uint32_t cpu, uint64_t ns)
{
	struct edge *d = graph_new_edge(g, &ran_on_type, thread, cpu);

	SET(ran_on, d, run_ns, ns);
	graph_add_edge(g, d);
}

TEST(a_recording_is_completed)
{
	struct graph g;
	uint32_t process, one, two, set, cpus[3];
	struct edge *access, *status;

	graph_init(&g);
	add_numa(&g, 0);
	add_numa(&g, 4);
	cpus[0] = add_cpu(&g, 0, 0);
	cpus[1] = add_cpu(&g, 1, 0);
	cpus[2] = add_cpu(&g, 7, 4);
	process = add_process(&g, 10);
	one = add_thread(&g, 10, process);
	two = add_thread(&g, 11, process);
	set = add_set(&g, "0,4");
	run(&g, one, cpus[0], 100);
	run(&g, one, cpus[1], 200);
	run(&g, two, cpus[2], 100);
	access = graph_new_edge(&g, &numa_access_type, process, set);
	SET(numa_access, access, memory_bytes,
	    graph_str(&g, "{\"0\":{\"anon\":0,\"file\":4096},\"4\":{\"anon\":4096,\"shared\":8192}}"));
	access = graph_add_edge(&g, access);
	status = graph_link(&g, &access_with_proc_status_type, one, set);
	for (int again = 0; again < 2; again++) {
		derive_numa(&g);
		assert_string_equal(GET(numa_access, access, numa_index_to_cpu_runtime), "{\"0\":300,\"4\":100}");
		assert_string_equal(GET(numa_access, access, cpu_runtime_pct_in_each_numa), "[0.75,0.25]");
		assert_near(GET(numa_access, access, similarity), 0.316);
		assert_near(GET(numa_access, access, local_share), 0.25);
		assert_string_equal(GET(access_with_proc_status, status, cpus_accessed_list), "0-1");
		assert_string_equal(GET(access_with_proc_status, status, numa_index_to_cpu_runtime), "{\"0\":300}");
		assert_true(HAS(access_with_proc_status, status, similarity));
		assert_near(GET(access_with_proc_status, status, similarity), 0);
	}
	graph_done(&g);
}

static void sample(struct graph *g, uint32_t process, uint64_t cpu_ns, uint64_t samples, uint64_t remote)
{
	struct node *n = g->nodes.v[process];

	SET(process, n, cpu_ns, cpu_ns);
	if (!samples)
		return;
	SET(process, n, memory_samples, samples);
	SET(process, n, remote_samples, remote);
}

/* Which accesses were sampled decides the order, where there are enough. */
TEST(rows_go_by_what_was_measured)
{
	static const struct {
		const char *memory;
		uint64_t samples, remote;
	} of[] = {
		{"{\"4\":{\"anon\":4096}}", 1000, 100}, /* far, but hardly used */
		{"{\"0\":{\"anon\":4096}}", 200, 150},  /* near, and does not use it */
		{"{\"0\":{\"anon\":4096},\"4\":{\"anon\":4096}}", 99, 0},
	};
	const uint64_t order[] = {21, 22, 20};
	struct numa_rows rows;
	uint32_t process, set;
	struct edge *d;
	struct graph g;

	graph_init(&g);
	add_numa(&g, 0);
	add_numa(&g, 4);
	set = add_set(&g, "0,4");
	for (size_t i = 0; i < 3; i++) {
		process = add_process(&g, 20 + i);
		sample(&g, process, 1000, of[i].samples, of[i].remote);
		d = graph_new_edge(&g, &numa_access_type, process, set);
		SET(numa_access, d, cpu_runtime_pct_in_each_numa, graph_str(&g, "[1,0]"));
		SET(numa_access, d, memory_bytes, graph_str(&g, of[i].memory));
		graph_add_edge(&g, d);
	}
	derive_numa(&g);
	numa_rows_of(&g, &process_type, &rows);
	assert_int_equal(rows.v.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(GET(process, g.nodes.v[rows.v.v[i].node], pid), order[i]);
	assert_near(rows.v.v[0].measured, 0.75);
	assert_near(rows.v.v[0].remote_ns, 750);
	assert_near(rows.v.v[0].score.remote_share, 0);
	assert_near(rows.v.v[1].measured, -1);
	assert_int_equal(rows.v.v[1].samples, 99);
	assert_near(rows.v.v[1].remote_ns, 500);
	assert_near(rows.v.v[2].remote_ns, 100);
	assert_near(rows.v.v[2].score.remote_share, 1);
	numa_rows_done(&rows);
	/* More than all of them is not possible, whatever a file says. */
	SET(process, g.nodes.v[process], memory_samples, 100);
	SET(process, g.nodes.v[process], remote_samples, 500);
	assert_near(numa_measured_share(g.nodes.v[process]), 1);
	graph_done(&g);
}

TEST(shared_segments_count_once_in_sums)
{
	struct numa_sums s;
	struct graph g;
	struct node *n;
	struct edge *d;

	graph_init(&g);
	/* Three processes with the same shared 100 bytes, and 10 of their own. */
	for (uint64_t pid = 1; pid <= 3; pid++) {
		uint32_t process, set;

		n = graph_new_node(&g, &process_type);
		SET(process, n, pid, pid);
		process = graph_add_node(&g, n)->index;
		n = graph_new_node(&g, &numa_set_type);
		SET(numa_set, n, numa_id_str, "0-1");
		set = graph_add_node(&g, n)->index;
		d = graph_new_edge(&g, &numa_access_type, process, set);
		SET(numa_access, d, memory_bytes,
		    "{\"0\":{\"anon\":10,\"shared\":25,\"file\":7,\"huge\":0},\"1\":{\"anon\":0,\"shared\":75,\"file\":0,\"huge\":0}}");
		graph_add_edge(&g, d);
	}
	n = graph_new_node(&g, &shared_memory_type);
	SET(shared_memory, n, shm_name, "x");
	SET(shared_memory, n, memory_bytes, "{\"0\":25,\"1\":75}");
	n = graph_add_node(&g, n);
	numa_sums_of(&g, n->ns, &s);
	assert_int_equal(s.segments, 1);
	assert_int_equal(s.v.n, 2);
	assert_near(s.v.v[0].private_bytes, 30);
	assert_near(s.v.v[0].shared_bytes, 25);
	assert_int_equal(s.v.v[1].node, 1);
	assert_near(s.v.v[1].private_bytes, 0);
	assert_near(s.v.v[1].shared_bytes, 75);
	vec_done(&s.v);
	graph_done(&g);
}

TEST(zero_of_the_older_tool_for_unknown_goes_away)
{
	struct graph g;
	struct edge *d;

	graph_init(&g);
	add_numa(&g, 0);
	add_numa(&g, 1);
	d = graph_new_edge(&g, &numa_access_type, add_process(&g, 1), add_set(&g, "0-1"));
	SET(numa_access, d, cpu_runtime_pct_in_each_numa, graph_str(&g, "[0.0,0.0]"));
	SET(numa_access, d, mem_pages_in_each_numa, graph_str(&g, "[3,4]"));
	SET(numa_access, d, similarity, 0.0);
	d = graph_add_edge(&g, d);
	derive_numa(&g);
	assert_false(HAS(numa_access, d, similarity));
	assert_false(HAS(numa_access, d, local_share));
	graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scores_are_what_their_names_say),
		cmocka_unit_test(published_examples_have_their_true_cosines),
		cmocka_unit_test(without_time_or_memory_nothing_is_known),
		cmocka_unit_test(nodes_are_matched_by_number),
		cmocka_unit_test(a_recording_is_completed),
		cmocka_unit_test(rows_go_by_what_was_measured),
		cmocka_unit_test(shared_segments_count_once_in_sums),
		cmocka_unit_test(zero_of_the_older_tool_for_unknown_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
