/* Single waits and intervals of threads, into a recording and out of it. */
#include "unit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"
#include "recording.h"
#include "segments.h"

#define SECOND 1000000000ull
#define BEGIN  (100 * SECOND)

static char path[64];

static uint32_t thread(struct graph *g, uint64_t tid, uint64_t run_ns)
{
	struct node *n = graph_new_node(g, &thread_type);

	SET(thread, n, tid, tid);
	SET(thread, n, start_ns, 5);
	if (run_ns) {
		SET(thread, n, run_ns, run_ns);
		SET(thread, n, voluntary_switches, 3);
	}
	return graph_add_node(g, n)->index;
}

static void add_interval(struct recording *r, unsigned number, bool second)
{
	struct graph g;
	struct err e;
	struct node *n;

	graph_init(&g);
	thread(&g, 11, (number + 1) * 1000);
	if (second)
		thread(&g, 12, 7);
	n = graph_new_node(&g, &futex_type);
	SET(futex, n, futex_key, graph_str(&g, "10:0x1"));
	graph_add_node(&g, n);
	assert_int_equal(recording_add(r, &g, BEGIN + number * SECOND, BEGIN + (number + 1) * SECOND, &e), 0);
	graph_done(&g);
}

static void record(bool complete)
{
	struct recording *r;
	struct graph about;
	struct err e;
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_timeline.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(recording_create(&r, path, true, &e), 0);
	for (unsigned i = 0; i < 3; i++)
		add_interval(r, i, i == 1);
	if (!complete) {
		recording_drop(r);
		return;
	}
	graph_init(&about);
	about.meta.start_ns = BEGIN;
	about.meta.window_ns = 3 * SECOND;
	about.meta.complete = true;
	assert_int_equal(recording_describe(r, &about, &e), 0);
	graph_done(&about);
	assert_int_equal(recording_close(r, &e), 0);
}

static struct wait_row row(uint64_t out, uint64_t wake, uint64_t in, uint64_t waiter, uint64_t waker, const char *kind,
			   const char *object)
{
	return (struct wait_row){.out_ns = out,
				 .wake_ns = wake,
				 .in_ns = in,
				 .waiter_tid = waiter,
				 .waiter_start_ns = 5,
				 .waker_tid = waker,
				 .waker_start_ns = waker ? 5 : 0,
				 .waker = kind,
				 .cause = "futex",
				 .object = object};
}

static void forget(void)
{
	char name[80];
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

TEST(waits_and_slices_come_back)
{
	const struct wait_row rows[] = {
		row(10, 20, 30, 12, 11, "thread", "futex:10:0x1"),
		row(40, 50, 50, 11, 0, "timer", "wait_object:not there"),
		row(60, 70, 70, 99, 11, "thread", "futex:10:0x1"), /* a waiter that is no entity */
		row(60, 70, 75, 11, 99, "thread", "futex:10:0x1"), /* a waker that is none */
		row(90, 80, 95, 11, 12, "thread", "futex:10:0x1"), /* no order of time */
	};
	const struct thread_slice *s;
	struct timeline t = {0};
	struct graph g;
	struct err e;
	size_t n;

	record(true);
	assert_int_equal(segments_write(path, rows, 5, 8, BEGIN, &e), 0);
	graph_init(&g);
	assert_int_equal(graph_load_timed(&g, &t, path, &e), 0);
	assert_int_equal(t.intervals.n, 3);
	assert_int_equal(t.intervals.v[2].start_ns, BEGIN + 2 * SECOND);
	assert_int_equal(t.intervals.v[2].end_ns, BEGIN + 3 * SECOND);
	assert_int_equal(t.spans_from_ns, BEGIN + 8);
	assert_int_equal(t.spans.n, 3);
	assert_int_equal(t.spans.v[0].out_ns, BEGIN + 10);
	assert_int_equal(t.spans.v[0].wake_ns, BEGIN + 20);
	assert_int_equal(t.spans.v[0].in_ns, BEGIN + 30);
	assert_string_equal(graph_node_id(&g, t.spans.v[0].waiter), "thread:12");
	assert_string_equal(graph_node_id(&g, t.spans.v[0].waker), "thread:11");
	assert_string_equal(graph_node_id(&g, t.spans.v[0].object), "futex:10:0x1");
	assert_int_equal(t.spans.v[0].cause, CAUSE_FUTEX);
	assert_int_equal(t.spans.v[0].ender, ENDER_THREAD);
	assert_int_equal(t.spans.v[1].ender, ENDER_TIMER);
	assert_int_equal(t.spans.v[1].waker, NODE_NONE);
	assert_int_equal(t.spans.v[1].object, NODE_NONE);
	assert_int_equal(t.spans.v[2].ender, ENDER_UNKNOWN);
	assert_int_equal(t.spans.v[2].waker, NODE_NONE);
	s = timeline_slices(&t, t.spans.v[0].waker, &n);
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(s[i].interval, i);
		assert_int_equal(s[i].run_ns, (i + 1) * 1000);
		assert_int_equal(s[i].voluntary, 3);
	}
	s = timeline_slices(&t, t.spans.v[0].waiter, &n);
	assert_int_equal(n, 1);
	assert_int_equal(s->interval, 1);
	assert_int_equal(s->run_ns, 7);
	assert_null(timeline_slices(&t, UINT32_MAX - 1, &n));
	timeline_done(&t);
	graph_done(&g);
	forget();
}

TEST(a_recording_that_was_cut_off_has_its_slices)
{
	struct timeline t = {0};
	struct graph g;
	struct err e;

	record(false);
	graph_init(&g);
	assert_int_equal(graph_load_timed(&g, &t, path, &e), 0);
	assert_int_equal(t.spans.n, 0);
	assert_int_equal(t.spans_from_ns, 0);
	assert_int_equal(t.slices.n, 4);
	timeline_done(&t);
	graph_done(&g);
	forget();
}

/* Whoever made the file: numbers of other tables, texts in columns of numbers cannot be, negative times can. */
TEST(hostile_rows_are_left_out)
{
	static const char rows[] =
		"INSERT INTO wait_segment VALUES(-5, 3, 4, 1, 2, 'thread', 'futex', 'x'), (5, 6, 7, 999999999, 1, NULL, '', ''),"
		" (5, 6, 7, -1, 1, NULL, '', ''), (5, 6, 7, 2, 1, NULL, 'futex', 'x'), (9, 9, 9, 1, 1, 'thread', 'no', 'x');"
		"INSERT INTO series_thread(interval, num, run_ns) VALUES(77, 1, 5), (0, 2, 5), (0, 424242, 5);";
	const struct wait_row good = row(10, 20, 30, 12, 11, "thread", "futex:10:0x1");
	struct timeline t = {0};
	struct graph g;
	struct err e;
	sqlite3 *db;

	record(true);
	assert_int_equal(segments_write(path, &good, 1, 8, BEGIN, &e), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	graph_init(&g);
	assert_int_equal(graph_load_timed(&g, &t, path, &e), 0);
	/* The good one, and one that says that a thread woke itself. */
	assert_int_equal(t.spans.n, 2);
	assert_int_equal(t.spans.v[0].out_ns, 9);
	assert_int_equal(t.spans.v[0].waker, NODE_NONE);
	assert_int_equal(t.spans.v[0].cause, CAUSE_OTHER);
	assert_int_equal(t.slices.n, 4);
	timeline_done(&t);
	graph_done(&g);
	forget();
}

TEST(names_of_causes_and_enders_are_found)
{
	for (unsigned i = 0; i < CAUSE_COUNT; i++)
		assert_int_equal(wait_cause_find(wait_cause_name(i)), i);
	assert_int_equal(wait_cause_find(NULL), CAUSE_OTHER);
	assert_int_equal(wait_cause_find("nonsense"), CAUSE_OTHER);
	for (unsigned i = 0; i < ENDER_COUNT; i++)
		assert_int_equal(wait_ender_find(wait_ender_name(i)), i);
	assert_int_equal(wait_ender_find(NULL), ENDER_UNKNOWN);
	assert_int_equal(wait_ender_find("a comet"), ENDER_INTERRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_and_slices_come_back),
		cmocka_unit_test(a_recording_that_was_cut_off_has_its_slices),
		cmocka_unit_test(hostile_rows_are_left_out),
		cmocka_unit_test(names_of_causes_and_enders_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
