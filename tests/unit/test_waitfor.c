/* Who waits for whom: small programs, written down wait by wait, whose truth is plain. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "waits_made.h"

TEST(nothing_is_nothing)
{
	struct made m;

	make(&m, 1000);
	analyse(&m);
	assert_int_equal(m.w.chains.n + m.w.roots.n + m.w.patterns.n + m.w.hangs.n + m.w.stragglers.n + m.w.paths.n, 0);
	waitfor_done(&m.w);
	waitfor_init(&m.w, &m.g, NULL);
	assert_int_equal(m.w.chains.n, 0);
	assert_int_equal(m.w.seen_from_ns, 0);
	assert_false(m.w.recorded);
	unmake(&m);
}

TEST(a_wait_is_for_what_the_last_of_the_chain_does)
{
	struct made m;
	uint32_t p, a, b, c, timer, disk, lock, pipe;
	const struct wait_chain *chain;

	make(&m, 100);
	p = process(&m, 10, 1, "job");
	a = thread(&m, p, 11, "asks");
	b = thread(&m, p, 12, "hands");
	c = thread(&m, p, 13, "works");
	timer = object(&m, "timer", NULL);
	disk = object(&m, "disk", NULL);
	lock = word(&m, "10:0x100", 0);
	pipe = object(&m, "other", NULL);
	/* a waits 90 ms for b, of which b waits 60 for c, which reads for 10 of these. */
	waited(&m, a, 5000, 95000, 96000, b, "pipe", pipe);
	waited(&m, b, 20000, 80000, 82000, c, "futex", lock);
	waited(&m, c, 30000, 40000, 40000, disk, "disk", disk);
	waited(&m, c, 90000, 99000, 99000, timer, "sleep", timer);
	ran(&m, a, 9000, 1000);
	ran(&m, b, 38000, 2000);
	ran(&m, c, 81000, 0);
	analyse(&m);
	chain = waitfor_chain(&m.w, a);
	assert_non_null(chain);
	assert_int_equal(chain->waited_ns, 90 * MS);
	assert_int_equal(chain->late_ns, 90 * MS);
	assert_int_equal(chain->seen_pct, 100);
	/* c on a CPU 50, b on a CPU 28, c at the disk 10, b ready 2 */
	assert_int_equal(chain->parts.n, 4);
	assert_int_equal(chain->parts.v[0].thread, c);
	assert_int_equal(chain->parts.v[0].state, STATE_RUN);
	assert_int_equal(chain->parts.v[0].ns, 50 * MS);
	assert_int_equal(chain->parts.v[0].via.n, 1);
	assert_int_equal(chain->parts.v[0].via.v[0], m.w.role_of[b]);
	assert_int_equal(chain->parts.v[0].first_object, pipe);
	assert_int_equal(chain->parts.v[1].thread, b);
	assert_int_equal(chain->parts.v[1].ns, 28 * MS);
	assert_int_equal(chain->parts.v[2].state, STATE_DISK);
	assert_int_equal(chain->parts.v[2].object, disk);
	assert_int_equal(chain->parts.v[2].ns, 10 * MS);
	assert_int_equal(chain->parts.v[3].state, STATE_RUNQ);
	assert_int_equal(chain->parts.v[3].ns, 2 * MS);
	/* b and a both waited for c: at once, which counts once for the wall. */
	assert_int_equal(m.w.roots.v[0].thread, c);
	assert_int_equal(m.w.roots.v[0].waiters, 2);
	assert_int_equal(m.w.roots.v[0].waited_ns, 100 * MS);
	assert_int_equal(m.w.roots.v[0].wall_ns, 50 * MS);
	assert_int_equal(waitfor_caused_ns(&m.w, c, false), (100 + 20) * MS);
	unmake(&m);
}

TEST(who_sleeps_makes_nobody_late_but_with_a_lock)
{
	for (int locked = 0; locked < 2; locked++) {
		struct made m;
		uint32_t p, a, b, timer, lock;

		make(&m, 100);
		p = process(&m, 10, 1, "job");
		a = thread(&m, p, 11, "wants");
		b = thread(&m, p, 12, "sleeps");
		timer = object(&m, "timer", NULL);
		lock = word(&m, "10:0x100", locked);
		waited(&m, a, 10000, 60000, 60000, b, "futex", lock);
		waited(&m, b, 5000, 59000, 60000, timer, "sleep", timer);
		analyse(&m);
		assert_int_equal(m.w.chains.v[0].waited_ns, 50 * MS);
		assert_int_equal(m.w.chains.v[0].parts.v[0].state, STATE_SLEEP);
		assert_int_equal(m.w.chains.v[0].parts.v[0].ns, 49 * MS);
		assert_int_equal(m.w.chains.v[0].parts.v[0].idle, !locked);
		assert_int_equal(m.w.chains.v[0].parts.v[0].held, locked);
		assert_int_equal(m.w.chains.v[0].late_ns, (locked ? 50 : 1) * MS);
		assert_int_equal(pattern(&m, PATTERN_CONVOY) != NULL, locked);
		if (locked)
			assert_int_equal(pattern(&m, PATTERN_CONVOY)->root, b);
		unmake(&m);
	}
}

TEST(who_waits_for_a_person_makes_nobody_late)
{
	static const struct {
		const char *cause, *kind, *name;
		enum wait_state state;
	} reads[] = {{"device", "device", "136:3", STATE_OUTSIDE}, {"device", "device", "5:2", STATE_OUTSIDE},
		     {"device", "device", "195:0", STATE_DEVICE},  {"signal", "signal", NULL, STATE_OUTSIDE},
		     {"signal", "signal", "stopped", STATE_STOPPED}};

	for (unsigned i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		for (int totals = 0; totals < 2; totals++) {
			bool idle = reads[i].state == STATE_OUTSIDE;
			const struct wait_chain *c;
			struct made m;
			uint32_t cat, use, from, other, pipe;

			/* use reads from a pipe what cat reads from a terminal, a device … */
			make(&m, 1000);
			cat = thread(&m, process(&m, 10, 1, "cat"), 10, "cat");
			use = thread(&m, process(&m, 11, 1, "use"), 11, "use");
			from = object(&m, reads[i].kind, reads[i].name);
			other = object(&m, "interrupt", NULL);
			pipe = object(&m, "other", "pipe");
			for (uint64_t at = 0; at < 1000000; at += 100000) {
				waited(&m, cat, at + 1000, at + 99000, at + 99000, other, reads[i].cause, from);
				waited(&m, use, at + 2000, at + 99500, at + 99600, cat, "pipe", pipe);
			}
			ran(&m, cat, 20000, 0);
			if (totals)
				vec_clear(&m.t.spans);
			analyse(&m);
			c = waitfor_chain(&m.w, use);
			assert_non_null(c);
			assert_int_equal(c->parts.v[0].state, reads[i].state);
			assert_int_equal(c->parts.v[0].idle, idle);
			assert_int_equal(pattern(&m, PATTERN_SLOW_PRODUCER) != NULL, !idle);
			unmake(&m);
		}
}

TEST(totals_alone_go_by_what_wakers_did)
{
	struct made m;
	uint32_t p, a, b, timer, lock;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	a = thread(&m, p, 11, "wants");
	b = thread(&m, p, 12, "works");
	timer = object(&m, "timer", NULL);
	lock = word(&m, "10:0x100", 0);
	put_edges(&m, a, 800 * MS, b, "futex", lock);
	put_edges(&m, b, 200 * MS, timer, "sleep", timer);
	ran(&m, a, 200000, 0);
	ran(&m, b, 700000, 100000);
	analyse(&m);
	assert_int_equal(m.w.seen_from_ns, 0);
	assert_int_equal(m.w.chains.v[0].waited_ns, 800 * MS);
	assert_int_equal(m.w.chains.v[0].seen_pct, 0);
	assert_int_equal(m.w.chains.v[0].parts.v[0].state, STATE_RUN);
	assert_int_equal(m.w.chains.v[0].parts.v[0].ns, 560 * MS);
	assert_int_equal(m.w.chains.v[0].parts.v[1].state, STATE_SLEEP);
	assert_int_equal(m.w.chains.v[0].parts.v[1].ns, 160 * MS);
	unmake(&m);
}

/* Workers take a lock one after the other from each other; the keeper had it before all of them. */
TEST(a_lock_is_with_who_had_it_first)
{
	struct made m;
	uint32_t p, keeper, user[3], timer, lock;
	const struct wait_pattern *c;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	keeper = thread(&m, p, 11, "keeper");
	for (unsigned i = 0; i < 3; i++)
		user[i] = thread(&m, p, 20 + i, i == 0 ? "user-0" : i == 1 ? "user-1" : "user-2");
	timer = object(&m, "timer", NULL);
	lock = word(&m, "10:0x100", 1000);
	for (uint64_t at = 0; at < 1000000; at += 100000) {
		for (unsigned i = 0; i < 3; i++)
			waited(&m, user[i], at + 1000, at + 80000 + i * 100, at + 80000 + i * 100, i ? user[i - 1] : keeper,
			       "futex", lock);
		waited(&m, keeper, at + 90000, at + 99000, at + 99000, timer, "sleep", timer);
	}
	analyse(&m);
	c = pattern(&m, PATTERN_CONVOY);
	assert_non_null(c);
	assert_int_equal(c->root, keeper);
	assert_int_equal(c->object, lock);
	assert_int_equal(c->threads.n, 3);
	assert_int_equal(c->events, 30);
	assert_true(c->root_pct > 99);
	assert_null(pattern(&m, PATTERN_INVERSION));
	assert_string_equal(m.w.roles.v[m.w.chains.v[0].role].text, "3 user threads of job[10]");
	assert_string_equal(c->text, "3 user wait for a lock that is with keeper[11]");
	unmake(&m);
}

TEST(who_has_a_lock_and_no_cpu_is_an_inversion)
{
	struct made m;
	uint32_t p, keeper, user, timer, lock;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	keeper = thread(&m, p, 11, "keeper");
	user = thread(&m, p, 12, "user");
	timer = object(&m, "timer", NULL);
	lock = word(&m, "10:0x100", 10);
	for (uint64_t at = 0; at < 1000000; at += 100000) {
		/* Woken at once, on a CPU 70 ms later. */
		waited(&m, keeper, at + 1000, at + 2000, at + 72000, timer, "sleep", timer);
		waited(&m, user, at + 2000, at + 80000, at + 80000, keeper, "futex", lock);
	}
	ran(&m, keeper, 290000, 700000);
	analyse(&m);
	assert_non_null(pattern(&m, PATTERN_INVERSION));
	assert_int_equal(pattern(&m, PATTERN_INVERSION)->root, keeper);
	assert_true(pattern(&m, PATTERN_INVERSION)->root_pct > 85);
	unmake(&m);
}

TEST(priorities_tell_what_is_an_inversion)
{
	/* nice values of the keeper and of who waits; its real-time priority */
	static const struct {
		int64_t keeper, user;
		uint64_t real_time;
		bool inverted;
	} ranks[] = {{10, 0, 0, true}, {0, 0, 0, false}, {-5, 0, 0, false}, {-20, 0, 1, true}};

	for (unsigned i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		struct made m;
		uint32_t p, keeper, user, hog, timer, lock;
		struct edge *d;

		make(&m, 1000);
		p = process(&m, 10, 1, "job");
		keeper = thread(&m, p, 11, "keeper");
		user = thread(&m, p, 12, "user");
		hog = thread(&m, p, 13, "hog");
		SET(thread, m.g.nodes.v[keeper], nice, ranks[i].keeper);
		SET(thread, m.g.nodes.v[user], nice, ranks[i].user);
		SET(thread, m.g.nodes.v[user], rt_priority, ranks[i].real_time);
		d = graph_new_edge(&m.g, &preempts_type, hog, keeper);
		SET(preempts, d, times, 40);
		graph_add_edge(&m.g, d);
		timer = object(&m, "timer", NULL);
		lock = word(&m, "10:0x100", 10);
		for (uint64_t at = 0; at < 1000000; at += 100000) {
			waited(&m, keeper, at + 1000, at + 2000, at + 72000, timer, "sleep", timer);
			waited(&m, user, at + 2000, at + 80000, at + 80000, keeper, "futex", lock);
		}
		ran(&m, keeper, 290000, 700000);
		analyse(&m);
		assert_non_null(pattern(&m, PATTERN_CONVOY));
		assert_true(pattern(&m, PATTERN_CONVOY)->ready_ns > 600 * MS);
		assert_int_equal(pattern(&m, PATTERN_INVERSION) != NULL, ranks[i].inverted);
		if (ranks[i].inverted) {
			assert_int_equal(pattern(&m, PATTERN_INVERSION)->confidence_pct, 90);
			assert_non_null(strstr(pattern(&m, PATTERN_INVERSION)->why, "hog[13] came in its place 40 times"));
		}
		unmake(&m);
	}
}

TEST(circles_end)
{
	struct made m;
	uint32_t p, t[3], on;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	for (unsigned i = 0; i < 3; i++)
		t[i] = thread(&m, p, 11 + i, i == 0 ? "a" : i == 1 ? "b" : "c");
	on = word(&m, "10:0x100", 0);
	/* All wait at once, each to be woken by the next one: no order of events can be so, but a file can say it. */
	for (unsigned i = 0; i < 3; i++)
		waited(&m, t[i], 1000, 900000, 900000, t[(i + 1) % 3], "futex", on);
	analyse(&m);
	assert_int_equal(m.w.chains.n, 3);
	assert_int_equal(m.w.chains.v[0].parts.v[0].state, STATE_CYCLE);
	assert_int_equal(m.w.knots.n, 1);
	assert_int_equal(m.w.knots.v[0].roles.n, 3);
	assert_int_equal(m.w.knots.v[0].links.n, 3);
	unmake(&m);
}

TEST(a_path_of_a_chosen_interval_has_its_length)
{
	struct made m;
	uint32_t p, rank[4];
	struct wait_path path;
	uint64_t sum = 0;

	make(&m, 1000);
	p = process(&m, 10, 1, "job");
	for (unsigned i = 0; i < 4; i++)
		rank[i] = thread(&m, p, 11 + i, "rank");
	meet(&m, rank, 4, 2, word(&m, "10:0x100", 0));
	timeline_sort(&m.t);
	/* One step, to the end of the wait of another one. */
	assert_int_equal(wait_path_init(&path, &m.g, &m.t, rank[0], BEGIN + 25 * MS, BEGIN + 48 * MS), 0);
	assert_int_equal(path.steps.n, 1);
	assert_int_equal(path.steps.v[0].thread, rank[2]);
	assert_int_equal(path.steps.v[0].state, STATE_RUN);
	vec_for(&path.parts, part)
		sum += part->ns;
	assert_int_equal(sum, 23 * MS);
	wait_path_done(&path);
	/* Beyond what is known, it is cut. */
	assert_int_equal(wait_path_init(&path, &m.g, &m.t, rank[0], 0, 0), 0);
	assert_int_equal(path.from_ns, BEGIN);
	assert_int_equal(path.to_ns, BEGIN + 1000 * MS);
	wait_path_done(&path);
	assert_true(wait_path_init(&path, &m.g, &m.t, p, 0, 0) < 0);
	assert_true(wait_path_init(&path, &m.g, &m.t, rank[0], BEGIN + 2000 * MS, 0) < 0);
	assert_true(wait_path_init(&path, &m.g, NULL, rank[0], 0, 0) < 0);
	unmake(&m);
}

/* Whatever a file says, times add up and two analyses are the same. */
TEST(random_waits_add_up_and_repeat)
{
	uint64_t seed = 5;

	for (unsigned round = 0; round < 60; round++) {
		struct made m;
		struct waitfor again;
		uint32_t t[12], on[4], p = 0, ender[3];

		make(&m, 1000);
		for (unsigned i = 0; i < 12; i++) {
			if (i % 4 == 0)
				p = process(&m, 100 + i, 1 + i % 2, i % 8 ? "x" : "y");
			t[i] = thread(&m, p, 100 + i, i % 3 ? "worker" : "main");
			ran(&m, t[i], unit_random(&seed) % 500000, unit_random(&seed) % 400000);
		}
		for (unsigned i = 0; i < 4; i++)
			on[i] = word(&m, i == 0 ? "1:0x1" : i == 1 ? "1:0x2" : i == 2 ? "2:0x1" : "3:0x9", i % 2 ? 0 : 900);
		ender[0] = object(&m, "timer", NULL);
		ender[1] = object(&m, "disk", NULL);
		ender[2] = object(&m, "network", NULL);
		for (unsigned i = 0; i < 12; i++) {
			uint64_t at = unit_random(&seed) % 50000;

			while (at < 1000000) {
				uint64_t wake = at + 50 + unit_random(&seed) % 60000;
				uint64_t in = wake + unit_random(&seed) % 5000, kind = unit_random(&seed) % 16;
				uint32_t by = kind < 3 ? ender[kind] : t[unit_random(&seed) % 12];
				static const char *const causes[] = {"futex", "sleep", "disk", "socket", "poll", "pipe"};

				waited(&m, t[i], at, wake, in, by == t[i] ? ender[0] : by, causes[unit_random(&seed) % 6],
				       on[unit_random(&seed) % 4]);
				at = in + (unit_random(&seed) % 3 ? unit_random(&seed) % 20000 : 5);
			}
		}
		if (round % 3 == 1)
			m.t.spans_from_ns = BEGIN + 900 * MS;
		analyse(&m);
		waitfor_init(&again, &m.g, &m.t);
		assert_int_equal(again.chains.n, m.w.chains.n);
		for (size_t i = 0; i < again.chains.n; i++) {
			assert_int_equal(again.chains.v[i].role, m.w.chains.v[i].role);
			assert_int_equal(again.chains.v[i].parts.n, m.w.chains.v[i].parts.n);
			for (size_t k = 0; k < again.chains.v[i].parts.n; k++)
				assert_int_equal(again.chains.v[i].parts.v[k].ns, m.w.chains.v[i].parts.v[k].ns);
		}
		assert_int_equal(again.patterns.n, m.w.patterns.n);
		for (size_t i = 0; i < again.patterns.n; i++)
			assert_string_equal(again.patterns.v[i].why, m.w.patterns.v[i].why);
		assert_true(m.w.chains.n > 0);
		waitfor_done(&again);
		unmake(&m);
	}
}

/* An end of a connection between two hosts, @own belongs to @process, which sent so much. */
static void connects(struct made *m, uint32_t own, uint32_t other, uint32_t of, uint64_t sent)
{
	struct edge *d = graph_new_edge(&m->g, &connection_type, own, other);

	SET(connection, d, process, of);
	SET(connection, d, bytes_sent, sent);
	graph_add_edge(&m->g, d);
}

static uint32_t on_host(struct made *m, uint32_t node, const char *host)
{
	m->g.nodes.v[node]->ns = graph_str(&m->g, host);
	return node;
}

static uint32_t endpoint(struct made *m, const char *host, const char *addr, uint64_t port)
{
	struct node *n = graph_new_node(&m->g, &socket_type);

	n->ns = graph_str(&m->g, host);
	SET(socket, n, socket_type, graph_str(&m->g, "TCP"));
	SET(socket, n, socket_addr, graph_str(&m->g, addr));
	SET(socket, n, socket_port, port);
	return graph_add_node(&m->g, n)->index;
}

/* alpha waits for the network, that is for a thread of beta, which computes, and not for the other one, which sleeps. */
static void a_wait_for_the_network_goes_on_at_the_other_host(void **state)
{
	uint32_t p, q, a, busy, idle, here, there, net;
	const struct wait_part *part;
	struct made m;

	make(&m, 1000);
	p = on_host(&m, process(&m, 10, 1, "trainer"), "alpha");
	q = on_host(&m, process(&m, 20, 1, "server"), "beta");
	a = on_host(&m, thread(&m, p, 11, "worker"), "alpha");
	busy = on_host(&m, thread(&m, q, 21, "compute"), "beta");
	idle = on_host(&m, thread(&m, q, 22, "spare"), "beta");
	here = endpoint(&m, "alpha", "10.0.0.1", 5000);
	there = endpoint(&m, "beta", "10.0.0.2", 6000);
	net = on_host(&m, object(&m, "network", NULL), "alpha");
	connects(&m, here, there, p, 10);
	connects(&m, there, here, q, 4000);
	put_edges(&m, a, 600 * MS, net, "socket", here);
	ran(&m, a, 400000, 0);
	ran(&m, busy, 990000, 10000);
	ran(&m, idle, 0, 0);
	waitfor_init(&m.w, &m.g, NULL);
	m.analysed = true;
	assert_int_equal(m.w.chains.n, 1);
	part = &m.w.chains.v[0].parts.v[0];
	assert_int_equal(part->thread, busy);
	assert_int_equal(part->state, STATE_RUN);
	assert_false(part->idle);
	assert_int_equal(part->ns, 594 * MS);
	assert_int_equal(m.w.chains.v[0].waited_ns, 600 * MS);
	unmake(&m);
}

/* With the other end elsewhere it stays a wait for the network, which makes nobody late. */
static void a_wait_for_the_network_ends_where_nobody_is_known(void **state)
{
	uint32_t p, a, here, there, net;
	struct made m;

	make(&m, 1000);
	p = on_host(&m, process(&m, 10, 1, "trainer"), "alpha");
	a = on_host(&m, thread(&m, p, 11, "worker"), "alpha");
	here = endpoint(&m, "alpha", "10.0.0.1", 5000);
	there = endpoint(&m, "alpha", "10.0.0.2", 6000);
	net = on_host(&m, object(&m, "network", NULL), "alpha");
	connects(&m, here, there, p, 10);
	put_edges(&m, a, 600 * MS, net, "socket", here);
	ran(&m, a, 400000, 0);
	waitfor_init(&m.w, &m.g, NULL);
	m.analysed = true;
	assert_int_equal(m.w.chains.n, 1);
	assert_int_equal(m.w.chains.v[0].parts.v[0].state, STATE_NETWORK);
	assert_int_equal(m.w.chains.v[0].late_ns, 0);
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(a_wait_is_for_what_the_last_of_the_chain_does),
		cmocka_unit_test(who_sleeps_makes_nobody_late_but_with_a_lock),
		cmocka_unit_test(who_waits_for_a_person_makes_nobody_late),
		cmocka_unit_test(totals_alone_go_by_what_wakers_did),
		cmocka_unit_test(a_lock_is_with_who_had_it_first),
		cmocka_unit_test(who_has_a_lock_and_no_cpu_is_an_inversion),
		cmocka_unit_test(priorities_tell_what_is_an_inversion),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(a_path_of_a_chosen_interval_has_its_length),
		cmocka_unit_test(random_waits_add_up_and_repeat),
		cmocka_unit_test(a_wait_for_the_network_goes_on_at_the_other_host),
		cmocka_unit_test(a_wait_for_the_network_ends_where_nobody_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
