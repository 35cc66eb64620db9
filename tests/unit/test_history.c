/* Intervals in memory: windows sum what they cover and know what is there, and nothing grows for ever. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "history.h"
#include "load.h"

#define SECOND 1000000000ull
#define T0     (1700000000ull * SECOND)

static uint32_t process(struct graph *g, uint64_t pid, const char *name)
{
	struct node *n = graph_new_node(g, &process_type);

	SET(process, n, pid, pid);
	SET(process, n, start_ns, pid * 10);
	if (name)
		SET(process, n, name, graph_str(g, name));
	return graph_add_node(g, n)->index;
}

static void thread(struct graph *g, uint64_t tid, uint32_t of, uint64_t run_ns)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, start_ns, tid);
	SET(thread, n, process, of);
	SET(thread, n, run_ns, run_ns);
	graph_link(g, &own_type, of, graph_add_node(g, n)->index);
}

/* As the collectors tell it: a total so far. */
static void flow(struct graph *g, uint32_t from, uint32_t to, uint64_t bytes)
{
	struct edge *d = graph_new_edge(g, &flow_type, from, to);

	SET(flow, d, kind, graph_str(g, "tcp"));
	SET(flow, d, bytes, bytes);
	graph_add_edge(g, d);
}

static const struct node *find(struct graph *g, const char *id)
{
	uint32_t n = graph_find(g, id);

	return n == NODE_NONE ? NULL : g->nodes.v[n];
}

static const struct edge *only_flow(const struct graph *g)
{
	const struct edge *found = NULL;

	for (size_t i = 0; i < g->edges.n; i++)
		if (g->edges.v[i]->type == &flow_type) {
			assert_null(found);
			found = g->edges.v[i];
		}
	return found;
}

/* Two processes that are told of once, then three intervals in which one runs and sends. */
static struct history *three_seconds(void)
{
	struct history *h = history_new(60 * SECOND, 0);
	struct graph g;

	graph_init(&g);
	flow(&g, process(&g, 1, "sender"), process(&g, 2, "receiver"), 1000);
	history_begin(h, &g, T0);
	graph_done(&g);
	for (uint64_t i = 1; i <= 3; i++) {
		graph_init(&g);
		thread(&g, 11, process(&g, 1, NULL), i * 100);
		flow(&g, process(&g, 1, NULL), process(&g, 2, NULL), 1000 + i * i * 10);
		history_add(h, &g, T0 + i * SECOND);
	}
	return h;
}

TEST(a_window_sums_its_intervals_and_knows_older_facts)
{
	struct history *h = three_seconds();
	struct graph g;
	const struct node *n;

	graph_init(&g);
	history_window(h, T0 + SECOND, &g, NULL);
	assert_int_equal(g.meta.start_ns, T0 + SECOND);
	assert_int_equal(g.meta.window_ns, 2 * SECOND);
	n = find(&g, "process:2");
	assert_non_null(n);
	assert_string_equal(GET(process, n, name), "receiver");
	n = find(&g, "thread:11");
	assert_int_equal(GET(thread, n, run_ns), 500);
	assert_int_equal(GET(flow, only_flow(&g), bytes), 80);
	graph_done(&g);
	history_free(h);
}

TEST(the_newest_interval_is_always_there)
{
	struct history *h = three_seconds();
	struct graph g;

	graph_init(&g);
	history_window(h, UINT64_MAX, &g, NULL);
	assert_int_equal(g.meta.intervals, 1);
	assert_int_equal(GET(flow, only_flow(&g), bytes), 50);
	graph_done(&g);
	history_free(h);
}

TEST(totals_go_on)
{
	struct history *h = three_seconds();

	assert_int_equal(GET(thread, find(history_totals(h), "thread:11"), run_ns), 600);
	assert_int_equal(GET(flow, only_flow(history_totals(h)), bytes), 1090);
	history_free(h);
}

TEST(a_flow_that_was_anothers_gains_nothing)
{
	struct history *h = three_seconds();
	struct graph g;

	graph_init(&g);
	flow(&g, process(&g, 1, NULL), process(&g, 2, NULL), 0);
	history_add(h, &g, T0 + 4 * SECOND);
	graph_init(&g);
	flow(&g, process(&g, 1, NULL), process(&g, 2, NULL), 7);
	history_add(h, &g, T0 + 5 * SECOND);
	graph_init(&g);
	history_window(h, T0 + 3 * SECOND, &g, NULL);
	assert_int_equal(GET(flow, only_flow(&g), bytes), 7);
	graph_done(&g);
	history_free(h);
}

TEST(what_slept_is_there_without_amounts)
{
	struct history *h = three_seconds();
	struct graph g;
	const struct node *n;

	graph_init(&g);
	process(&g, 2, NULL);
	history_add(h, &g, T0 + 4 * SECOND);
	graph_init(&g);
	history_window(h, UINT64_MAX, &g, NULL);
	n = find(&g, "thread:11");
	assert_non_null(n);
	assert_false(HAS(thread, n, run_ns));
	assert_null(only_flow(&g));
	graph_done(&g);
	history_free(h);
}

TEST(sleep_before_the_window_is_no_part_of_it)
{
	struct history *h = three_seconds();
	struct graph g;
	struct node *n;

	graph_init(&g);
	thread(&g, 12, process(&g, 2, NULL), 300);
	n = g.nodes.v[graph_find(&g, "thread:12")];
	SET(thread, n, observed_ns, 100 * SECOND);
	SET(thread, n, blocked_ns, 98 * SECOND);
	SET(thread, n, runq_ns, 2 * SECOND - 300);
	history_add(h, &g, T0 + 4 * SECOND);
	for (uint64_t seconds = 1; seconds <= 4; seconds++) {
		uint64_t blocked = seconds > 2 ? (seconds - 2) * SECOND : 0;

		graph_init(&g);
		history_window(h, T0 + (4 - seconds) * SECOND, &g, NULL);
		n = g.nodes.v[graph_find(&g, "thread:12")];
		assert_int_equal(GET(thread, n, observed_ns), seconds * SECOND);
		assert_int_equal(GET(thread, n, run_ns), 300);
		assert_int_equal(GET(thread, n, blocked_ns), blocked);
		assert_int_equal(GET(thread, n, runq_ns), seconds * SECOND - blocked - 300);
		graph_done(&g);
	}
	history_free(h);
}

TEST(old_intervals_go_by_time_and_by_memory)
{
	struct history *h = history_new(2 * SECOND, 0);
	struct graph g;

	for (int round = 0; round < 2; round++) {
		graph_init(&g);
		history_begin(h, &g, T0);
		graph_done(&g);
		for (uint64_t i = 1; i <= 10; i++) {
			graph_init(&g);
			thread(&g, i, process(&g, 1, "x"), 1);
			history_add(h, &g, T0 + i * SECOND);
		}
		assert_int_equal(history_intervals(h), round ? 1 : 3);
		assert_int_equal(history_interval(h, 0)->end_ns, T0 + (round ? 10 : 8) * SECOND);
		history_free(h);
		h = history_new(3600 * SECOND, 1);
	}
	history_free(h);
}

TEST(what_ended_is_forgotten_and_what_lives_is_kept)
{
	struct history *h = history_new(SECOND, 0);
	struct graph g;
	size_t most = 0;

	graph_init(&g);
	process(&g, 1, "init");
	history_begin(h, &g, T0);
	graph_done(&g);
	/* Ten minutes in which 60 processes of ten threads each come and go every second. */
	for (uint64_t i = 1; i <= 600; i++) {
		graph_init(&g);
		for (uint64_t k = 0; k < 60; k++) {
			uint32_t p = process(&g, i * 1000 + k, "short");

			SET(process, g.nodes.v[p], end_ns, i);
			for (uint64_t t = 0; t < 10; t++)
				thread(&g, (i * 1000 + k) * 10 + t, p, 1);
		}
		history_add(h, &g, T0 + i * SECOND);
		if (history_totals(h)->nodes.n > most)
			most = history_totals(h)->nodes.n;
	}
	/* Three minutes' worth, half as much until the next cleaning, and a little. */
	assert_true(most < 60 * 11 * 180 * 2);
	assert_non_null(find(history_totals(h), "process:1"));
	assert_null(find(history_totals(h), "process:1000"));
	history_free(h);
}

TEST(a_saved_recording_holds_what_the_window_does)
{
	struct history *h = three_seconds();
	char path[] = "/tmp/witty-history-XXXXXX";
	struct graph about, g;
	struct err e;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	graph_init(&about);
	graph_init(&g);
	about.meta.complete = true;
	assert_int_equal(history_save(h, T0 + SECOND, path, false, &about, &e), -EEXIST);
	assert_int_equal(history_save(h, T0 + SECOND, path, true, &about, &e), 0);
	assert_int_equal(graph_load(&g, path, &e), 0);
	assert_int_equal(g.meta.window_ns, 2 * SECOND);
	assert_int_equal(g.meta.intervals, 2);
	assert_string_equal(GET(process, find(&g, "process:2"), name), "receiver");
	assert_int_equal(GET(thread, find(&g, "thread:11"), run_ns), 500);
	assert_int_equal(GET(flow, only_flow(&g), bytes), 80);
	unlink(path);
	graph_done(&g);
	graph_done(&about);
	history_free(h);
}

/* Three intervals of two threads; the second one sleeps through two and comes with what was before,
 * too. */
static struct history *two_threads(void)
{
	struct history *h = history_new(60 * SECOND, 0);
	struct graph g;

	graph_init(&g);
	thread(&g, 11, process(&g, 1, "worker"), 0);
	thread(&g, 12, process(&g, 1, NULL), 0);
	history_begin(h, &g, T0);
	graph_done(&g);
	for (uint64_t i = 1; i <= 3; i++) {
		uint32_t p;

		graph_init(&g);
		p = process(&g, 1, NULL);
		thread(&g, 11, p, i * 100);
		SET(thread, g.nodes.v[1], voluntary_switches, i);
		SET(thread, g.nodes.v[1], wakeups, 7);
		thread(&g, 12, p, i == 3 ? 50 : 0);
		if (i == 3) {
			struct node *n = g.nodes.v[2];

			SET(thread, n, runq_ns, 4);
			SET(thread, n, blocked_ns, 30 * SECOND);
			SET(thread, n, observed_ns, 30 * SECOND + 54);
		}
		history_add(h, &g, T0 + i * SECOND);
	}
	return h;
}

static const struct thread_slice *slices_of(const struct timeline *t, struct graph *g,
					    const char *id, size_t n)
{
	size_t found;
	const struct thread_slice *s = timeline_slices(t, graph_find(g, id), &found);

	assert_int_equal(found, n);
	return s;
}

static void check_slices(const struct timeline *t, struct graph *g)
{
	const struct thread_slice *s = slices_of(t, g, "thread:11", 2);

	assert_int_equal(t->intervals.n, 2);
	assert_int_equal(t->intervals.v[0].start_ns, T0 + SECOND);
	assert_int_equal(t->intervals.v[1].end_ns, T0 + 3 * SECOND);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(s[i].interval, i);
		assert_int_equal(s[i].run_ns, (i + 2) * 100);
		assert_int_equal(s[i].voluntary, i + 2);
		assert_int_equal(s[i].wakeups, 7);
	}
	s = slices_of(t, g, "thread:12", 1);
	assert_int_equal(s->interval, 1);
	assert_int_equal(s->run_ns, 50);
	assert_int_equal(s->runq_ns, 4);
	assert_int_equal(s->blocked_ns, 2 * SECOND - 54);
}

TEST(a_window_has_the_series_that_its_recording_has)
{
	struct history *h = two_threads();
	char path[] = "/tmp/witty-history-XXXXXX";
	struct timeline live = {0}, read = {0};
	struct graph about, window, g;
	struct err e;

	close(mkstemp(path));
	graph_init(&about);
	graph_init(&window);
	graph_init(&g);
	about.meta.complete = true;
	history_window(h, T0 + SECOND, &window, &live);
	check_slices(&live, &window);
	assert_int_equal(history_save(h, T0 + SECOND, path, true, &about, &e), 0);
	assert_int_equal(graph_load_timed(&g, &read, path, &e), 0);
	check_slices(&read, &g);
	assert_int_equal(live.slices.n, read.slices.n);
	unlink(path);
	timeline_done(&live);
	timeline_done(&read);
	graph_done(&g);
	graph_done(&window);
	graph_done(&about);
	history_free(h);
}

/* In each interval a thread sends over TCP and to a pipe, reads a file, and its interface and accelerator tell. */
static void act(struct graph *g, uint64_t i)
{
	uint32_t p = process(g, 1, NULL), t;
	struct node *n;
	struct edge *d;

	thread(g, 11, p, 1);
	t = graph_find(g, "thread:11");
	n = graph_new_node(g, &socket_type);
	SET(socket, n, socket_type, graph_str(g, "TCP"));
	SET(socket, n, socket_addr, graph_str(g, "10.0.0.1"));
	SET(socket, n, socket_port, 80);
	d = graph_new_edge(g, &send_to_socket_type, t, graph_add_node(g, n)->index);
	SET(send_to_socket, d, connection_type, graph_str(g, "TCP"));
	SET(send_to_socket, d, data_size, 100 * i);
	graph_add_edge(g, d);
	n = graph_new_node(g, &pipe_inode_type);
	SET(pipe_inode, n, inode, 5);
	d = graph_new_edge(g, &write_to_type, t, graph_add_node(g, n)->index);
	SET(write_to, d, bytes, 10 * i);
	graph_add_edge(g, d);
	n = graph_new_node(g, &file_type);
	SET(file, n, dev, graph_str(g, "8:1"));
	SET(file, n, inode, 6);
	d = graph_new_edge(g, &read_from_type, graph_add_node(g, n)->index, t);
	SET(read_from, d, bytes, i);
	graph_add_edge(g, d);
	n = graph_new_node(g, &nic_type);
	SET(nic, n, name, graph_str(g, "eth0"));
	SET(nic, n, rx_bytes, 7 * i);
	SET(nic, n, tx_bytes, 1);
	graph_add_node(g, n);
	n = graph_new_node(g, &gpu_type);
	SET(gpu, n, pci_bus_id, graph_str(g, "0000:01:00.0"));
	SET(gpu, n, utilization_pct, (double)(i - 1) * 12.5);
	graph_add_node(g, n);
}

static void waits(struct graph *g, const char *cause, uint64_t ns)
{
	struct node *n = graph_new_node(g, &futex_type);
	struct edge *d;

	SET(futex, n, futex_key, graph_str(g, "1:0x1"));
	d = graph_new_edge(g, &waits_for_type, graph_find(g, "thread:11"), graph_add_node(g, n)->index);
	SET(waits_for, d, cause, graph_str(g, cause));
	SET(waits_for, d, waited_ns, ns);
	graph_add_edge(g, d);
}

/* Its wait for the lock ends in the last of three, 2.5 s long; one of 0.25 s in the first. */
static struct history *three_busy(void)
{
	struct history *h = history_new(60 * SECOND, 0);
	struct graph g;

	graph_init(&g);
	process(&g, 1, "sender");
	history_begin(h, &g, T0);
	graph_done(&g);
	for (uint64_t i = 1; i <= 3; i++) {
		graph_init(&g);
		act(&g, i);
		if (i == 1)
			waits(&g, "disk", SECOND / 4);
		if (i == 3)
			waits(&g, "futex", 5 * SECOND / 2);
		history_add(h, &g, T0 + i * SECOND);
	}
	return h;
}

/* -1: there is none */
static int64_t amount(const struct interval_amounts *a, enum amount_what what, const char *kind, uint32_t interval)
{
	int64_t sum = -1;

	vec_for(&a->v, x)
		if (x->what == what && x->interval == interval && (!kind || !strcmp(kind, x->kind)))
			sum = (sum < 0 ? 0 : sum) + (int64_t)x->n;
	return sum;
}

static void check_amounts(const struct interval_amounts *a)
{
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(amount(a, AMOUNT_SENT, "tcp", i), 100 * (i + 1));
		assert_int_equal(amount(a, AMOUNT_SENT, "pipe", i), 10 * (i + 1));
		assert_int_equal(amount(a, AMOUNT_READ, "storage", i), i + 1);
		assert_int_equal(amount(a, AMOUNT_MOVED, NULL, i), 7 * (i + 1) + 1);
		assert_int_equal(amount(a, AMOUNT_USE, NULL, i), 1250 * i);
	}
	assert_int_equal(amount(a, AMOUNT_WAITED, "futex", 2), SECOND);
	assert_int_equal(amount(a, AMOUNT_WAITED, "futex", 1), SECOND);
	assert_int_equal(amount(a, AMOUNT_WAITED, "futex", 0), SECOND / 2);
	assert_int_equal(amount(a, AMOUNT_WAITED, "disk", 0), SECOND / 4);
	assert_int_equal(amount(a, AMOUNT_WAITED, "disk", 1), -1);
}

TEST(a_window_has_the_amounts_that_its_recording_has_and_long_waits_are_where_they_were)
{
	struct history *h = three_busy();
	char path[] = "/tmp/witty-history-XXXXXX";
	struct interval_amounts live = {0}, read = {0};
	struct graph about, window, g;
	struct err e;

	close(mkstemp(path));
	graph_init(&about);
	graph_init(&window);
	graph_init(&g);
	about.meta.complete = true;
	history_window_amounts(h, T0, &window, NULL, &live);
	check_amounts(&live);
	vec_for(&live.v, a)
		if (a->what == AMOUNT_SENT)
			assert_string_equal(graph_node_id(&window, a->node), "process:1");
	assert_int_equal(history_save(h, T0, path, true, &about, &e), 0);
	assert_int_equal(graph_load(&g, path, &e), 0);
	assert_int_equal(graph_load_amounts(&g, &read, path, &e), 0);
	check_amounts(&read);
	assert_int_equal(live.v.n, read.v.n);
	unlink(path);
	vec_done(&live.v);
	vec_done(&read.v);
	graph_done(&g);
	graph_done(&window);
	graph_done(&about);
	history_free(h);
}

/* One longer than all intervals began before them: nothing of it is lost, or of another thread's. */
TEST(waits_fill_intervals_up_and_stay_where_they_were_told_beyond_that)
{
	struct interval_amounts a = {0};
	struct wait_spread w = {0};
	struct graph g;

	graph_init(&g);
	vec_push(&w.length_ns, 10);
	vec_push(&w.length_ns, 100);
	vec_push(&w.length_ns, 100);
	wait_spread_begin(&w);
	wait_spread_next(&w, CAUSE_PIPE);
	wait_spread_add(&w, 2, 500);
	wait_spread_next(&w, CAUSE_PIPE);
	wait_spread_add(&w, 2, 130);
	wait_spread_add(&w, 1, 60);
	wait_spread_add(&w, 3, 60); /* there is none */
	wait_spread_end(&w, &g, &a);
	assert_int_equal(a.v.n, 3);
	assert_int_equal(a.v.v[0].n, 10);
	assert_int_equal(a.v.v[1].n, 100 + 90);
	assert_int_equal(a.v.v[2].n, 100 + 290 + 100);
	assert_string_equal(a.v.v[2].kind, "pipe");
	vec_done(&a.v);
	graph_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_window_sums_its_intervals_and_knows_older_facts),
	    cmocka_unit_test(the_newest_interval_is_always_there),
	    cmocka_unit_test(totals_go_on),
	    cmocka_unit_test(a_flow_that_was_anothers_gains_nothing),
	    cmocka_unit_test(what_slept_is_there_without_amounts),
	    cmocka_unit_test(sleep_before_the_window_is_no_part_of_it),
	    cmocka_unit_test(old_intervals_go_by_time_and_by_memory),
	    cmocka_unit_test(what_ended_is_forgotten_and_what_lives_is_kept),
	    cmocka_unit_test(a_saved_recording_holds_what_the_window_does),
	    cmocka_unit_test(a_window_has_the_series_that_its_recording_has),
	    cmocka_unit_test(a_window_has_the_amounts_that_its_recording_has_and_long_waits_are_where_they_were),
	    cmocka_unit_test(waits_fill_intervals_up_and_stay_where_they_were_told_beyond_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
