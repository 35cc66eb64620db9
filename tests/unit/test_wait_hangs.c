/* No progress: lost wake-ups, deadlocks, who is stopped, the rank that does not wait like the others. */
#include "unit.h"

#include <stdio.h>

#include "waits_made.h"

/* Two players, and since a third of the time nobody moves. */
static void play(struct made *m, uint32_t *t, uint32_t on)
{
	for (unsigned i = 0; i < 100; i++)
		waited(m, t[i % 2], 1 + i * 10000ull, 10000 + i * 10000ull, 10000 + i * 10000ull, t[!(i % 2)], "futex", on);
}

TEST(a_lost_wake_up_is_a_hang)
{
	for (int asleep = 0; asleep < 2; asleep++) {
		struct made m;
		uint32_t p, t[2], on, other;

		make(&m, 4000);
		p = process(&m, 10, 1, "job");
		t[0] = thread(&m, p, 11, "player");
		t[1] = thread(&m, p, 12, "player");
		on = word(&m, "10:0x100", 0);
		other = word(&m, "10:0x140", 0);
		play(&m, t, on);
		waits_still(&m, t[0], 1001000, "futex", on);
		/* One that sleeps will be back. */
		waits_still(&m, t[1], 1002000, asleep ? "sleep" : "futex", other);
		analyse(&m);
		assert_int_equal(m.w.hangs.n, !asleep);
		if (!asleep) {
			assert_int_equal(m.w.hangs.v[0].kind, HANG_LOST_WAKEUP);
			assert_int_equal(m.w.hangs.v[0].threads.n, 2);
			assert_int_equal(m.w.hangs.v[0].thread, t[1]);
			assert_true(m.w.hangs.v[0].since_ns > 2900 * MS);
		}
		unmake(&m);
	}
}

/* Beside them one waits for events from outside, which may bring them work: then it is not certain. */
TEST(who_waits_beside_an_event_loop_may_have_nothing_to_do)
{
	struct made m;
	uint32_t p, t[2], on, loop;

	make(&m, 4000);
	p = process(&m, 10, 1, "browser");
	t[0] = thread(&m, p, 11, "player");
	t[1] = thread(&m, p, 12, "player");
	loop = thread(&m, p, 13, "loop");
	on = word(&m, "10:0x100", 0);
	play(&m, t, on);
	waits_still(&m, t[0], 1001000, "futex", on);
	waits_still(&m, t[1], 1002000, "futex", on);
	waits_still(&m, loop, 1000, "poll", object(&m, "poll", "epoll 10:3"));
	analyse(&m);
	assert_int_equal(m.w.hangs.n, 1);
	assert_in_range(m.w.hangs.v[0].confidence_pct, 1, 49);
	unmake(&m);
}

TEST(locks_in_two_orders_are_a_deadlock)
{
	for (int before = 0; before < 2; before++) {
		struct made m;
		uint32_t p, t[2], lock[2];

		make(&m, 4000);
		p = process(&m, 10, 1, "job");
		t[0] = thread(&m, p, 11, "taker");
		t[1] = thread(&m, p, 12, "taker");
		lock[0] = word(&m, "10:0x100", 1000);
		lock[1] = word(&m, "10:0x140", 1000);
		if (before)
			play(&m, t, lock[0]);
		else
			waited(&m, thread(&m, p, 13, "other"), 1000, 5000, 5000, t[0], "pipe", object(&m, "other", NULL));
		for (unsigned i = 0; i < 2; i++)
			waits_still(&m, t[i], 1001000, "futex", lock[i]);
		analyse(&m);
		assert_int_equal(m.w.hangs.n, 1);
		assert_int_equal(m.w.hangs.v[0].kind, HANG_CYCLE);
		assert_int_equal(m.w.hangs.v[0].threads.n, 2);
		unmake(&m);
	}
}

TEST(who_is_stopped_is_told_with_who_waits)
{
	struct made m;
	uint32_t rank[4], on, stop;
	char name[16];

	make(&m, 4000);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "train-%u", i);
		rank[i] = thread(&m, process(&m, 10 + i, 5, name), 10 + i, name);
	}
	on = word(&m, "0:5:77:0", 0);
	stop = object(&m, "signal", "stopped");
	meet(&m, rank, 4, -1, on);
	for (unsigned i = 0; i < 4; i++)
		waits_still(&m, rank[i], 1100000, i == 2 ? "signal" : "futex", i == 2 ? stop : on);
	analyse(&m);
	assert_int_equal(m.w.hangs.n, 1);
	assert_int_equal(m.w.hangs.v[0].kind, HANG_STOPPED);
	assert_int_equal(m.w.hangs.v[0].thread, rank[2]);
	assert_int_equal(m.w.hangs.v[0].threads.n, 3);
	unmake(&m);
}

TEST(the_rank_that_does_not_wait_like_the_others_is_odd)
{
	struct made m;
	uint32_t rank[4], on;
	char name[16];

	make(&m, 4000);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "train-%u", i);
		rank[i] = thread(&m, process(&m, 10 + i, 5, name), 10 + i, name);
	}
	on = word(&m, "0:5:77:0", 0);
	meet(&m, rank, 4, -1, on);
	for (unsigned i = 0; i < 4; i++)
		if (i != 1)
			waits_still(&m, rank[i], 1100000, "futex", on);
	ran(&m, rank[1], 3500000, 0);
	analyse(&m);
	assert_int_equal(m.w.hangs.n, 1);
	assert_int_equal(m.w.hangs.v[0].kind, HANG_ODD_ONE);
	assert_int_equal(m.w.hangs.v[0].thread, rank[1]);
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_wake_up_is_a_hang),
		cmocka_unit_test(who_waits_beside_an_event_loop_may_have_nothing_to_do),
		cmocka_unit_test(locks_in_two_orders_are_a_deadlock),
		cmocka_unit_test(who_is_stopped_is_told_with_who_waits),
		cmocka_unit_test(the_rank_that_does_not_wait_like_the_others_is_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
