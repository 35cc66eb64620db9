/* Patterns of waits: barriers, ranks in step, herds, threads by turns, sides of a pipe, pollers. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "waits_made.h"

TEST(a_barrier_knows_who_comes_last)
{
	for (int slow = -1; slow < 3; slow += 3) {
		struct made m;
		uint32_t p, rank[4];
		const struct wait_pattern *b;

		make(&m, 1000);
		p = process(&m, 10, 1, "job");
		for (unsigned i = 0; i < 4; i++)
			rank[i] = thread(&m, p, 11 + i, "rank");
		meet(&m, rank, 4, slow, word(&m, "10:0x100", 0));
		analyse(&m);
		b = pattern(&m, PATTERN_BARRIER);
		assert_non_null(b);
		assert_int_equal(b->events, 40);
		assert_int_equal(b->root, slow < 0 ? NODE_NONE : rank[slow]);
		assert_int_equal(b->threads.n, slow < 0 ? 4 : 3);
		assert_null(pattern(&m, PATTERN_HERD));
		assert_null(pattern(&m, PATTERN_SLOW_PRODUCER));
		unmake(&m);
	}
}

TEST(ranks_have_a_period_and_a_straggler)
{
	for (int slow = -1; slow < 3; slow += 3) {
		struct made m;
		uint32_t rank[4];
		const struct wait_straggler *s;
		char name[16];

		make(&m, 1000);
		for (unsigned i = 0; i < 4; i++) {
			snprintf(name, sizeof(name), "train-%u", i);
			rank[i] = thread(&m, process(&m, 10 + i, 5, name), 10 + i, name);
			ran(&m, rank[i], slow == (int)i ? 800000 : 160000, 0);
		}
		meet(&m, rank, 4, slow, word(&m, "0:5:77:0", 0));
		analyse(&m);
		assert_int_equal(m.w.stragglers.n, 1);
		s = &m.w.stragglers.v[0];
		assert_int_equal(s->ranks.n, 4);
		assert_true(s->period_ns > 24 * MS && s->period_ns < 26 * MS);
		assert_true(s->period_pct > 80);
		assert_int_equal(s->steps, 40);
		assert_true(s->uneven);
		assert_int_equal(s->fixed, slow >= 0);
		if (slow >= 0) {
			assert_int_equal(s->last, slow);
			assert_int_equal(s->last_count.v[slow], 40);
			assert_int_equal(s->wait_ns.v[slow], 0);
			assert_int_equal(s->wait_ns.v[3], 16 * MS + 2000);
			assert_int_equal(s->extra, STATE_RUN);
			assert_int_equal(s->thread, rank[slow]);
			/* 640 ms in 40 steps, all of which the others wait for. */
			assert_true(s->extra_ns > 15 * MS && s->extra_ns < 17 * MS);
			assert_true(m.w.what_ifs.n > 0);
			assert_true(m.w.paths.n == 1 && m.w.paths.v[0].rounds == 39);
			assert_int_equal(m.w.paths.v[0].parts.v[0].thread, rank[slow]);
		}
		unmake(&m);
	}
}

TEST(two_sides_of_one_program_are_no_ranks)
{
	/* With the same command line but for numbers, and as a server and its client. */
	for (int sides = 0; sides < 2; sides++) {
		struct made m;
		uint32_t rank[2];

		make(&m, 1000);
		for (unsigned i = 0; i < 2; i++) {
			uint32_t p = process(&m, 10 + i, 5, "tool");
			struct node *n = m.g.nodes.v[p];

			SET(process, n, cmdline,
			    graph_str(&m.g, i ? sides ? "tool -c -p 7" : "tool -s -p 8" : "tool -s -p 7"));
			rank[i] = thread(&m, p, 10 + i, "tool");
			ran(&m, rank[i], i ? 800000 : 160000, 0);
		}
		meet(&m, rank, 2, 1, word(&m, "0:5:77:0", 0));
		analyse(&m);
		assert_int_equal(m.w.stragglers.n, !sides);
		unmake(&m);
	}
}

TEST(who_waits_for_one_without_a_cpu_says_so)
{
	struct made m;
	uint32_t p, rank[4], timer, on;
	const struct wait_pattern *b;

	/* In each round the last one is ready all the time, and on a CPU for the last 2 of 16 ms. */
	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	for (unsigned i = 0; i < 4; i++)
		rank[i] = thread(&m, p, 11 + i, "rank");
	timer = object(&m, "timer", NULL);
	on = word(&m, "10:0x100", 0);
	for (unsigned round = 0; round < 40; round++) {
		uint64_t at = round * 25000ull;

		for (unsigned i = 0; i < 3; i++) {
			waited(&m, rank[i], at + 7000, at + 23000 + i, at + 23000 + i, rank[3], "futex", on);
			waited(&m, rank[i], at + 23100, at + 25000, at + 25000, timer, "sleep", timer);
		}
		waited(&m, rank[3], at + 1000, at + 2000, at + 21000, timer, "sleep", timer);
	}
	for (unsigned i = 0; i < 4; i++)
		ran(&m, rank[i], 200000, i < 3 ? 0 : 760000);
	analyse(&m);
	b = pattern(&m, PATTERN_BARRIER);
	assert_non_null(b);
	assert_true(b->ready_ns * 16 > b->ns * 13 && b->ready_ns * 16 < b->ns * 15);
	assert_int_equal(b->rest_ns, 0);
	unmake(&m);
}

/* Four takers are woken together, once in so many us, for what the giver has. */
static void make_herd(struct made *m, uint32_t *ret_giver, uint64_t period)
{
	uint32_t p, taker[4], timer, more;

	make(m, 1000);
	p = process(m, 10, 1, "job");
	*ret_giver = thread(m, p, 11, "giver");
	for (unsigned i = 0; i < 4; i++)
		taker[i] = thread(m, p, 20 + i, "taker");
	timer = object(m, "timer", NULL);
	more = word(m, "10:0x100", 0);
	for (uint64_t at = 0; at < 1000000; at += period) {
		waited(m, *ret_giver, at + 1000, at + period - 1000, at + period - 1000, timer, "sleep", timer);
		for (unsigned i = 0; i < 4; i++)
			waited(m, taker[i], at + 30, at + period + i, at + period + i, *ret_giver, "futex", more);
	}
	analyse(m);
}

TEST(a_herd_goes_back_to_where_it_was)
{
	struct made m;
	uint32_t giver;

	make_herd(&m, &giver, 20000);
	assert_non_null(pattern(&m, PATTERN_HERD));
	assert_int_equal(pattern(&m, PATTERN_HERD)->root, giver);
	assert_int_equal(pattern(&m, PATTERN_HERD)->threads.n, 4);
	assert_null(pattern(&m, PATTERN_BARRIER));
	unmake(&m);
}

TEST(a_few_wakeups_too_many_are_no_herd)
{
	struct made m;
	uint32_t giver;

	make_herd(&m, &giver, 100000);
	assert_null(pattern(&m, PATTERN_HERD));
	unmake(&m);
}

/*
 * Two threads that run for 20 ms in turn; the other one looks every 5 ms in vain, as it waits with a time-out. At each
 * turn they wait @apart bytes further on. @exe: the file of their program.
 */
static void run_by_turns(struct made *m, const char *exe, uint64_t apart)
{
	uint32_t p, t[2], timer, on = NODE_NONE;
	char key[32];

	make(m, 1000);
	p = process(m, 10, 1, "counter");
	SET(process, m->g.nodes.v[p], exe, graph_str(&m->g, exe));
	t[0] = thread(m, p, 10, "counter");
	t[1] = thread(m, p, 11, "counter");
	timer = object(m, "timer", NULL);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t at = i * 20000ull;

		snprintf(key, sizeof(key), "10:0x%llx", 0x1000 + i * (unsigned long long)apart);
		if (!i || apart)
			on = word(m, key, 0);
		for (unsigned k = 0; k < 4; k++)
			waited(m, t[i % 2], at + k * 5000 + (k ? 5 : 0), at + (k + 1) * 5000, at + (k + 1) * 5000,
			       k < 3 ? timer : t[!(i % 2)], "futex", on);
	}
	ran(m, t[0], 500000, 0);
	ran(m, t[1], 500000, 0);
}

TEST(threads_that_run_by_turns_hand_over)
{
	const struct wait_pattern *h;
	struct made m;

	run_by_turns(&m, "/usr/bin/python3.11", 0);
	analyse(&m);
	h = pattern(&m, PATTERN_HANDOVER);
	assert_non_null(h);
	assert_int_equal(h->threads.n, 2);
	assert_true(h->root_pct > 90);
	assert_true(h->interpreter);
	/* The time-outs were waits for the other one, too. */
	assert_int_equal(m.w.merged, 150);
	assert_true(m.w.chains.v[0].late_ns > 990 * MS);
	unmake(&m);
}

/* Who is no interpreter has no such lock, nor has a Python that was built without it. */
TEST(only_an_interpreter_has_an_interpreter_lock)
{
	static const char *const others[] = {"/usr/bin/qemu-system-x86_64", "/opt/py/bin/python3.13t", "/usr/bin/pythonic"};
	static const char *const interpreters[] = {"/opt/py/bin/python", "/usr/bin/ruby3.1", "/usr/bin/pypy3"};
	struct made m;

	for (size_t i = 0; i < 3; i++) {
		const struct wait_pattern *h;

		run_by_turns(&m, others[i], 0);
		analyse(&m);
		h = pattern(&m, PATTERN_HANDOVER);
		assert_non_null(h);
		assert_false(h->interpreter);
		unmake(&m);
		run_by_turns(&m, interpreters[i], 0);
		analyse(&m);
		assert_true(pattern(&m, PATTERN_HANDOVER)->interpreter);
		unmake(&m);
	}
}

/* One at a time because they lack CPUs, or each time at another place: nothing that one of them has. */
TEST(who_lacks_cpus_does_not_hand_over)
{
	struct made m;

	run_by_turns(&m, "/usr/bin/qemu-system-x86_64", 0);
	for (uint32_t i = 0; i < m.g.nodes.n; i++)
		if (m.g.nodes.v[i]->type == &thread_type)
			SET(thread, m.g.nodes.v[i], runq_ns, 300 * MS);
	analyse(&m);
	assert_null(pattern(&m, PATTERN_HANDOVER));
	unmake(&m);
	run_by_turns(&m, "/usr/bin/python3.11", 4096);
	analyse(&m);
	assert_null(pattern(&m, PATTERN_HANDOVER));
	unmake(&m);
}

TEST(the_slow_side_of_a_pipe_is_told_by_who_writes)
{
	for (int full = 0; full < 2; full++) {
		struct made m;
		uint32_t a, b, pipe;
		struct node *n;
		const struct wait_pattern *p;

		make(&m, 1000);
		a = thread(&m, process(&m, 10, 1, "makes"), 10, "makes");
		b = thread(&m, process(&m, 20, 1, "takes"), 20, "takes");
		n = graph_new_node(&m.g, &pipe_inode_type);
		SET(pipe_inode, n, inode, 5);
		pipe = graph_add_node(&m.g, n)->index;
		graph_link(&m.g, &write_to_type, a, pipe);
		graph_link(&m.g, &read_from_type, pipe, b);
		for (uint64_t at = 0; at < 1000000; at += 50000)
			waited(&m, full ? a : b, at + 1000, at + 45000, at + 45000, full ? b : a, "pipe", pipe);
		ran(&m, a, full ? 100000 : 900000, 0);
		ran(&m, b, full ? 900000 : 100000, 0);
		analyse(&m);
		p = pattern(&m, full ? PATTERN_BACK_PRESSURE : PATTERN_SLOW_PRODUCER);
		assert_non_null(p);
		assert_int_equal(p->root, full ? b : a);
		assert_int_equal(p->threads.v[0], full ? a : b);
		assert_int_equal(p->ns, 20 * 44 * MS);
		assert_null(pattern(&m, full ? PATTERN_SLOW_PRODUCER : PATTERN_BACK_PRESSURE));
		unmake(&m);
	}
}

TEST(who_is_busy_for_nobody_may_be_a_poller)
{
	struct made m;
	uint32_t p, looks, works, waits, on;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	looks = thread(&m, p, 11, "looks");
	works = thread(&m, p, 12, "works");
	waits = thread(&m, p, 13, "waits");
	on = word(&m, "10:0x100", 0);
	ran(&m, looks, 990000, 0);
	ran(&m, works, 990000, 0);
	ran(&m, waits, 100000, 0);
	for (uint64_t at = 0; at < 1000000; at += 50000)
		waited(&m, waits, at + 1000, at + 45000, at + 45000, works, "futex", on);
	analyse(&m);
	assert_non_null(pattern(&m, PATTERN_POLLER));
	assert_int_equal(pattern(&m, PATTERN_POLLER)->root, looks);
	assert_int_equal(m.w.serial.n, 1);
	assert_true(m.w.serial.v[0].mean_active > 2 && m.w.serial.v[0].mean_active < 2.2);
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_barrier_knows_who_comes_last),
		cmocka_unit_test(ranks_have_a_period_and_a_straggler),
		cmocka_unit_test(two_sides_of_one_program_are_no_ranks),
		cmocka_unit_test(who_waits_for_one_without_a_cpu_says_so),
		cmocka_unit_test(a_herd_goes_back_to_where_it_was),
		cmocka_unit_test(a_few_wakeups_too_many_are_no_herd),
		cmocka_unit_test(threads_that_run_by_turns_hand_over),
		cmocka_unit_test(only_an_interpreter_has_an_interpreter_lock),
		cmocka_unit_test(who_lacks_cpus_does_not_hand_over),
		cmocka_unit_test(the_slow_side_of_a_pipe_is_told_by_who_writes),
		cmocka_unit_test(who_is_busy_for_nobody_may_be_a_poller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
