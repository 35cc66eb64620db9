/* Five thousand threads that all do something: what looking at them costs, and that it is the same
 * each time. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "render_hot.h"

#define PROCESSES 500
#define THREADS   5000
#define CPUS      64
#define NODES     4
#define SECOND    1000000000ull
#define WINDOW    (60 * SECOND)

/* A sanitizer or a debug build takes several times as long; then only the result counts. */
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define CHECK_TIME 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECK_TIME 0
#endif
#endif
#ifndef CHECK_TIME
#define CHECK_TIME 1
#endif
#define LIMIT_S 0.5

static uint64_t seed;

static uint64_t up_to(uint64_t n)
{
	return unit_random(&seed) % n;
}

static uint32_t add_machine(struct graph *g, uint32_t *cpus)
{
	struct node *n;

	for (unsigned i = 0; i < NODES; i++) {
		n = graph_new_node(g, &numa_type);
		SET(numa, n, numa_id, i);
		graph_add_node(g, n);
	}
	for (unsigned i = 0; i < CPUS; i++) {
		n = graph_new_node(g, &cpu_type);
		SET(cpu, n, cpu_id, i);
		SET(cpu, n, node, i * NODES / CPUS);
		cpus[i] = graph_add_node(g, n)->index;
	}
	n = graph_new_node(g, &numa_set_type);
	SET(numa_set, n, numa_id_str, graph_str(g, "0-3"));
	return graph_add_node(g, n)->index;
}

static uint32_t add_process(struct graph *g, unsigned i, uint32_t set)
{
	struct node *n = graph_new_node(g, &process_type);
	char memory[64];
	struct edge *d;
	uint32_t process;

	SET(process, n, pid, 1000 + 20 * i);
	SET(process, n, name, graph_str(g, "server"));
	process = graph_add_node(g, n)->index;
	snprintf(memory, sizeof(memory), "{\"%u\":{\"anon\":%u}}", i % NODES, 4096 * (i + 1));
	d = graph_new_edge(g, &numa_access_type, process, set);
	SET(numa_access, d, memory_bytes, graph_str(g, memory));
	graph_add_edge(g, d);
	return process;
}

static void add_thread(struct graph *g, unsigned i, uint32_t process, uint32_t set,
		       const uint32_t *cpus, uint32_t *threads)
{
	struct node *t = graph_new_node(g, &thread_type);
	uint64_t run = 0, runq = up_to(WINDOW / 4);
	struct edge *d;

	SET(thread, t, tid, 1000 + 2 * i);
	SET(thread, t, process, process);
	SET(thread, t, name, graph_str(g, i % 10 ? "worker" : "main"));
	threads[i] = graph_add_node(g, t)->index;
	for (unsigned k = 0; k < 8; k++) {
		uint64_t ns = up_to(WINDOW / 100);

		d = graph_new_edge(g, &ran_on_type, threads[i], cpus[up_to(CPUS)]);
		SET(ran_on, d, run_ns, ns);
		graph_add_edge(g, d);
		run += ns;
	}
	t = g->nodes.v[threads[i]];
	SET(thread, t, run_ns, run);
	SET(thread, t, runq_ns, runq);
	SET(thread, t, blocked_ns, WINDOW - run - runq);
	SET(thread, t, observed_ns, WINDOW);
	SET(thread, t, voluntary_switches, up_to(600000));
	SET(thread, t, involuntary_switches, up_to(600000));
	SET(thread, t, user_ns, run / 2);
	SET(thread, t, system_ns, run / 3);
	d = graph_new_edge(g, &access_with_proc_status_type, threads[i], set);
	SET(access_with_proc_status, d, cpus_allowed_list, graph_str(g, "0-63"));
	graph_add_edge(g, d);
}

static void add_waits(struct graph *g, unsigned i, const uint32_t *threads)
{
	static const char *const causes[] = {"futex", "poll", "pipe"};

	for (unsigned k = 0; k < 3; k++) {
		struct node *n = graph_new_node(g, &futex_type);
		uint64_t ns = up_to(WINDOW / 3);
		char key[32];
		struct edge *d;

		snprintf(key, sizeof(key), "%u:%u", i / 10, k);
		SET(futex, n, futex_key, graph_str(g, key));
		n = graph_add_node(g, n);
		d = graph_new_edge(g, &waits_for_type, threads[i], n->index);
		SET(waits_for, d, cause, graph_str(g, causes[k]));
		SET(waits_for, d, waits, 100);
		SET(waits_for, d, waited_ns, ns);
		graph_add_edge(g, d);
		d = graph_new_edge(g, &wakes_type, threads[up_to(THREADS)], threads[i]);
		SET(wakes, d, cause, graph_str(g, causes[k]));
		SET(wakes, d, wakeups, 100);
		SET(wakes, d, waited_ns, ns);
		graph_add_edge(g, d);
		d = graph_new_edge(g, &write_to_type, threads[i], n->index);
		SET(write_to, d, bytes, up_to(1 << 30));
		SET(write_to, d, calls, 1000);
		graph_add_edge(g, d);
	}
}

static void make(struct graph *g)
{
	static uint32_t threads[THREADS];
	uint32_t cpus[CPUS], set, process = 0;

	seed = 42;
	graph_init(g);
	g->meta.window_ns = WINDOW;
	set = add_machine(g, cpus);
	for (unsigned i = 0; i < THREADS; i++) {
		if (i % (THREADS / PROCESSES) == 0)
			process = add_process(g, i / (THREADS / PROCESSES), set);
		add_thread(g, i, process, set, cpus, threads);
	}
	for (unsigned i = 0; i < THREADS; i++)
		add_waits(g, i, threads);
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @return CPU time of the analysis and of the text, in seconds */
static double look(struct strbuf *text, struct strbuf *json)
{
	struct hot_view v = {.limit = 0};
	struct json_writer w;
	struct graph g;
	struct hot h;
	struct err e;
	double start, took;

	make(&g);
	start = cpu_s();
	hot_init(&h, &g, NULL);
	render_hot_text(&h, &v, false, text);
	took = cpu_s() - start;
	json_writer_init_strbuf(&w, json, 0);
	render_hot_json(&h, &v, &w);
	assert_int_equal(json_writer_finish(&w, &e), 0);
	assert_int_equal(h.threads.n, THREADS);
	hot_done(&h);
	graph_done(&g);
	return took;
}

TEST(many_threads_are_cheap_and_the_same_each_time)
{
	struct strbuf text[2] = {0}, json[2] = {0};
	double took[2], best;

	for (int i = 0; i < 2; i++)
		took[i] = look(&text[i], &json[i]);
	best = took[0] < took[1] ? took[0] : took[1];
	printf("%d threads: %.3f s of CPU time, JSON of %zu bytes\n", THREADS, best, json[0].n);
	assert_string_equal(text[0].s, text[1].s);
	assert_int_equal(json[0].n, json[1].n);
	assert_memory_equal(json[0].s, json[1].s, json[0].n);
	if (CHECK_TIME)
		assert_true(best < LIMIT_S);
	for (int i = 0; i < 2; i++) {
		strbuf_done(&text[i]);
		strbuf_done(&json[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_threads_are_cheap_and_the_same_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
