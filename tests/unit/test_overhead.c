/* What hooks may cost: when calls are watched in turns, and how what went by unwatched is split. */
#include "unit.h"

#include "governor.h"
#include "ipc_spread.h"
#include "wait_plain.h"

#define SECOND 1000000000ull

static enum governor_change step(struct governor *g, double pct, uint64_t ns)
{
	struct governor_load l = {.pct = pct, .length_ns = ns};

	return governor_step(g, &l);
}

TEST(a_burst_is_watched_in_full)
{
	struct governor g;

	governor_init(&g, 5);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&g, 8, SECOND / 5), GOVERNOR_STAYS);
	/* One quiet moment, and it counts anew. */
	assert_int_equal(step(&g, 4.9, SECOND / 5), GOVERNOR_STAYS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&g, 8, SECOND / 5), GOVERNOR_STAYS);
	assert_false(g.in_turns);
	/* Barely above the bound it takes a second, too. */
	assert_int_equal(step(&g, 4.9, SECOND / 5), GOVERNOR_STAYS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&g, 5.1, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 5.1, SECOND / 5), GOVERNOR_TURNS_BEGIN);
}

TEST(a_burst_may_cost_what_half_a_second_at_twice_the_bound_does)
{
	struct governor g;

	/* Two and a half times the bound, one and a half above it: a third of a second, asked in fifths. */
	governor_init(&g, 5);
	assert_int_equal(step(&g, 12.5, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 12.5, SECOND / 5), GOVERNOR_TURNS_BEGIN);
	/* Far above it: at the first question. */
	governor_init(&g, 5);
	assert_int_equal(step(&g, 31, SECOND / 5), GOVERNOR_TURNS_BEGIN);
	/* What it had used up is forgotten when it is cheap. */
	governor_init(&g, 5);
	assert_int_equal(step(&g, 15, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 5, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 15, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 15, SECOND / 5), GOVERNOR_TURNS_BEGIN);
	/* A question that is late counts for all the time before it. */
	governor_init(&g, 5);
	assert_int_equal(step(&g, 10, SECOND), GOVERNOR_TURNS_BEGIN);
	/* What was above the bound before does not shorten the calm that ends turns. */
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&g, 1, SECOND), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 1, SECOND), GOVERNOR_TURNS_END);
}

TEST(what_lasts_is_watched_in_turns_until_it_is_cheap_for_some_time)
{
	struct governor g;

	governor_init(&g, 5);
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(&g, 6, SECOND / 5), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 6, SECOND / 5), GOVERNOR_TURNS_BEGIN);
	assert_true(g.in_turns);
	/* Below the bound, but not by much: it would begin again at once. */
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(&g, 2.6, SECOND / 2), GOVERNOR_STAYS);
	for (int i = 0; i < 9; i++)
		assert_int_equal(step(&g, 2.4, SECOND / 2), GOVERNOR_STAYS);
	assert_int_equal(step(&g, 2.4, SECOND / 2), GOVERNOR_TURNS_END);
	assert_false(g.in_turns);
	assert_int_equal(step(&g, 2.4, SECOND), GOVERNOR_STAYS);
}

TEST(calls_that_are_watched_for_nothing_may_take_a_tenth)
{
	struct governor_load l = {.pct = 1.2, .uncounted_pct = 0.9, .length_ns = SECOND / 5};
	struct governor g;

	governor_init(&g, 10);
	for (int i = 0; i < 20; i++)
		assert_int_equal(governor_step(&g, &l), GOVERNOR_STAYS);
	l.uncounted_pct = 1.1;
	for (int i = 0; i < 4; i++)
		assert_int_equal(governor_step(&g, &l), GOVERNOR_STAYS);
	assert_int_equal(governor_step(&g, &l), GOVERNOR_TURNS_BEGIN);
	assert_true(governor_excess(&g, &l) > 1.09 && governor_excess(&g, &l) < 1.11);
	/* A tenth of what is useful, and a tenth of the tenth. */
	l.uncounted_pct = 4;
	assert_true(governor_look_ns(governor_excess(&g, &l)) < GOVERNOR_TURN_NS * 26 / 1000);
	l.uncounted_pct = 0.4;
	for (int i = 0; i < 24; i++)
		assert_int_equal(governor_step(&g, &l), GOVERNOR_STAYS);
	assert_int_equal(governor_step(&g, &l), GOVERNOR_TURNS_END);
}

TEST(without_a_bound_nothing_changes)
{
	struct governor g;

	governor_init(&g, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(step(&g, 100, SECOND), GOVERNOR_STAYS);
}

TEST(looks_take_a_small_part_of_the_bound)
{
	struct governor g;

	governor_init(&g, 5);
	for (double excess = 0.2; excess < 200; excess *= 2) {
		double share = (double)governor_look_ns(excess) / (double)GOVERNOR_TURN_NS;

		assert_true(share >= 0.0199 && share <= 0.1001);
		/* Unless that were too little to see anything. */
		assert_true(share * excess <= 0.05001 || share < 0.0201);
	}
	for (int i = 0; i < 1000; i++) {
		uint64_t ns = governor_turn_ns(&g);

		assert_true(ns >= GOVERNOR_TURN_NS * 3 / 4 && ns < GOVERNOR_TURN_NS * 5 / 4);
	}
}

TEST(a_look_that_ended_late_is_made_up_for)
{
	struct governor g;
	uint64_t usual, late;

	governor_init(&g, 5);
	usual = governor_look_ns(4);
	late = governor_gap_ns(&g, 4, usual * 4);
	assert_true(late >= (GOVERNOR_TURN_NS - usual) * 4 - 4);
	assert_true(governor_gap_ns(&g, 4, 100 * SECOND) <= 4 * SECOND);
	assert_true(governor_gap_ns(&g, 4, usual) >= GOVERNOR_TURN_NS * 3 / 4 - usual);
}

/* Estimated in all, by direction, and of one object. */
struct sums {
	uint64_t bytes[2], calls[2], object_bytes, object_calls, object;
	unsigned n;
};

static void on_estimate(void *ctx, const struct ipc_sample *s)
{
	struct sums *x = ctx;

	assert_true(s->estimated);
	x->n++;
	x->bytes[s->key.dir] += s->v.bytes;
	x->calls[s->key.dir] += s->v.calls;
	if (s->key.id == x->object) {
		x->object_bytes += s->v.bytes;
		x->object_calls += s->v.calls;
	}
}

static struct ipc_sample moved(uint32_t tid, unsigned kind, unsigned dir, uint64_t id, uint64_t bytes, uint64_t calls)
{
	struct ipc_sample s = {.key = {.tid = tid, .start_ns = tid, .kind = (uint8_t)kind, .dir = (uint8_t)dir, .id = id}};

	s.v.bytes = bytes;
	s.v.calls = calls;
	return s;
}

static void thread(struct ipc_spread *s, uint32_t tid, uint64_t unwatched, uint64_t seen)
{
	struct ipc_unwatched u = {.task = {.tid = tid, .start_ns = tid}};

	u.unwatched[IPC_WRITE] = unwatched;
	u.seen[IPC_WRITE] = seen;
	vec_push(&s->threads, u);
}

static struct sums add(struct ipc_spread *s, const struct ipc_sample *v, size_t n, uint64_t object)
{
	struct sums x = {.object = object};

	ipc_spread_add(s, v, n, 19, on_estimate, &x);
	return x;
}

TEST(a_thread_s_sum_is_split_as_it_was_seen)
{
	/* Another thread's rows and the other direction have no part in it. */
	struct ipc_sample v[] = {moved(3, IPC_PIPE, IPC_WRITE, 10, 100, 25), moved(2, IPC_PIPE, IPC_WRITE, 12, 700, 7),
				 moved(3, IPC_FILE, IPC_WRITE, 11, 200, 2), moved(3, IPC_PIPE, IPC_READ, 13, 900, 9)};
	struct ipc_spread s = {0};
	struct sums x;

	thread(&s, 3, 1000001, 300);
	x = add(&s, v, 4, 10);
	assert_int_equal(x.n, 2);
	assert_int_equal(x.bytes[IPC_WRITE], 1000001);
	assert_int_equal(x.bytes[IPC_READ], 0);
	assert_in_range(x.object_bytes, 333333, 333334);
	assert_in_range(x.object_calls, 83333, 83334);
	assert_int_equal(s.threads.n, 0);
	ipc_spread_done(&s);
}

TEST(what_was_about_sockets_is_not_of_pipes)
{
	struct ipc_sample v[] = {moved(3, IPC_PIPE, IPC_WRITE, 10, 100, 1)};
	struct ipc_spread s = {0};
	struct sums x;

	thread(&s, 3, 40000, 400); /* 300 of them went to what has no row */
	x = add(&s, v, 1, 10);
	assert_int_equal(x.bytes[IPC_WRITE], 10000);
	/* All that it was seen to write went to sockets. */
	thread(&s, 4, 40000, 400);
	x = add(&s, NULL, 0, 10);
	assert_int_equal(x.n, 0);
	assert_int_equal(s.unassigned, 0);
	ipc_spread_done(&s);
}

TEST(a_thread_that_no_look_met_is_split_as_before_or_told_as_unknown)
{
	struct ipc_sample v[] = {moved(3, IPC_PIPE, IPC_WRITE, 10, 100, 1)};
	struct ipc_spread s = {0};
	struct sums x;

	thread(&s, 3, 0, 100);
	x = add(&s, v, 1, 10);
	assert_int_equal(x.n, 0);
	x = add(&s, NULL, 0, 10); /* an interval without it */
	thread(&s, 3, 5000, 0);
	thread(&s, 4, 600, 0);
	x = add(&s, NULL, 0, 10);
	assert_int_equal(x.object_bytes, 5000);
	assert_int_equal(x.object_calls, 50);
	assert_int_equal(s.unassigned, 600);
	ipc_spread_clear(&s);
	thread(&s, 3, 5000, 0);
	x = add(&s, NULL, 0, 10);
	assert_int_equal(x.n, 0);
	assert_int_equal(s.unassigned, 5600);
	ipc_spread_done(&s);
}

TEST(what_the_kernel_does_not_count_goes_on_as_in_the_looks)
{
	struct ipc_sample v[] = {moved(3, IPC_SYSV_SEM, IPC_ZERO_WAIT, 10, 0, 3),
				 moved(3, IPC_POSIX_QUEUE, IPC_WRITE, 11, 100, 2)};
	struct ipc_spread s = {0};
	struct sums x;

	thread(&s, 3, 1 << 20, 1 << 10);
	x = add(&s, v, 1, 10);
	assert_int_equal(x.object_calls, 3 * 19);
	x = add(&s, v + 1, 1, 11);
	assert_int_equal(x.object_bytes, 100 * 19);
	assert_int_equal(x.object_calls, 2 * 19);
	ipc_spread_done(&s);
}

/* Waits, estimated ones included, by cause. */
struct waited {
	uint64_t waits[WAIT_CAUSES], ns[WAIT_CAUSES], estimated_ns;
	uint64_t ended, ended_ns;
	unsigned n;
};

static int on_wait(void *ctx, const struct wait_sample *s)
{
	struct waited *x = ctx;

	x->n++;
	if (s->ended) {
		x->ended += s->waits;
		x->ended_ns += s->waited_ns;
		return 0;
	}
	x->waits[s->on.cause] += s->waits;
	x->ns[s->on.cause] += s->waited_ns;
	x->estimated_ns += s->estimated_ns;
	return 0;
}

static void waited(struct wait_plain *p, uint32_t tid, uint16_t cause, bool ended, uint64_t n, uint64_t ns)
{
	struct wait_sample s = {.task = {.tid = tid, .start_ns = tid}, .ended = ended, .waits = n, .waited_ns = ns};

	s.on.cause = cause;
	assert_int_equal(wait_plain_sample(p, &s), 0);
}

TEST(waits_that_nobody_looked_at_are_like_those_that_were)
{
	struct task_ident id = {.tid = 7, .start_ns = 7}, other = {.tid = 8, .start_ns = 8};
	struct wait_plain p = {0};
	struct waited x = {0};

	wait_plain_thread(&p, &id, 1001, 5003);
	wait_plain_thread(&p, &other, 5, 50);
	waited(&p, 7, WAIT_PIPE, false, 3, 12);
	waited(&p, 7, WAIT_SLEEP, false, 1, SECOND);
	waited(&p, 7, WAIT_PIPE, true, 4, 12);
	waited(&p, 9, WAIT_FUTEX, false, 2, 20);
	assert_int_equal(wait_plain_report(&p, on_wait, &x), 0);
	assert_int_equal(x.waits[WAIT_PIPE] + x.waits[WAIT_SLEEP], 1001 + 4);
	assert_int_equal(x.ns[WAIT_PIPE] + x.ns[WAIT_SLEEP], 5003 + 12 + SECOND);
	assert_in_range(x.waits[WAIT_PIPE], 750, 754);
	assert_int_equal(x.ended, 1001 + 4);
	assert_int_equal(x.ended_ns, 5003 + 12);
	/* Others are untouched; who was never looked at waited for nobody knows what. */
	assert_int_equal(x.waits[WAIT_FUTEX], 2);
	assert_int_equal(x.ns[WAIT_FUTEX], 20);
	assert_int_equal(x.waits[WAIT_OTHER], 5);
	assert_int_equal(x.ns[WAIT_OTHER], 50);
	assert_int_equal(x.estimated_ns, 5003 + 50);
	assert_int_equal(x.n, 5);
	wait_plain_done(&p);
}

/* Waits of thread 7 that ended, by the class of who ended them. */
static int on_ended(void *ctx, const struct wait_sample *s)
{
	uint64_t *waits = ctx;

	if (s->ended)
		waits[s->waker_class] += s->waits;
	return 0;
}

static void ended_by(struct wait_plain *p, uint32_t tid, enum waker_class by, uint64_t n)
{
	struct wait_sample s = {.task = {.tid = tid, .start_ns = tid}, .ended = true, .waker_class = by, .waits = n, .waited_ns = n};

	assert_int_equal(wait_plain_sample(p, &s), 0);
}

TEST(who_ended_a_wait_while_nobody_watched_is_whoever_ended_others)
{
	for (int unwatched = 0; unwatched < 2; unwatched++) {
		struct wait_plain p = {.unwatched = unwatched};
		uint64_t waits[4] = {0};

		ended_by(&p, 7, WAKER_THREAD, 3);
		ended_by(&p, 7, WAKER_NONE, 40);
		ended_by(&p, 7, WAKER_HARDIRQ, 1);
		ended_by(&p, 8, WAKER_THREAD, 5);
		assert_int_equal(wait_plain_report(&p, on_ended, waits), 0);
		assert_int_equal(waits[WAKER_THREAD], 3 + 5 + unwatched * 30);
		assert_int_equal(waits[WAKER_HARDIRQ], 1 + unwatched * 10);
		assert_int_equal(waits[WAKER_NONE], unwatched ? 0 : 40);
		wait_plain_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_watched_in_full),
		cmocka_unit_test(a_burst_may_cost_what_half_a_second_at_twice_the_bound_does),
		cmocka_unit_test(what_lasts_is_watched_in_turns_until_it_is_cheap_for_some_time),
		cmocka_unit_test(calls_that_are_watched_for_nothing_may_take_a_tenth),
		cmocka_unit_test(without_a_bound_nothing_changes),
		cmocka_unit_test(looks_take_a_small_part_of_the_bound),
		cmocka_unit_test(a_look_that_ended_late_is_made_up_for),
		cmocka_unit_test(a_thread_s_sum_is_split_as_it_was_seen),
		cmocka_unit_test(what_was_about_sockets_is_not_of_pipes),
		cmocka_unit_test(a_thread_that_no_look_met_is_split_as_before_or_told_as_unknown),
		cmocka_unit_test(what_the_kernel_does_not_count_goes_on_as_in_the_looks),
		cmocka_unit_test(waits_that_nobody_looked_at_are_like_those_that_were),
		cmocka_unit_test(who_ended_a_wait_while_nobody_watched_is_whoever_ended_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
