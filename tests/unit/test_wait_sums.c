/* Waits are reported as differences: nothing twice, nothing lost, whatever comes in which reading. */
#include "unit.h"

#include "wait_sums.h"

static const struct task_ident waiter = {.tid = 7, .tgid = 5, .start_ns = 70};
static const struct task_ident waker = {.tid = 8, .tgid = 5, .start_ns = 80};

/* What was reported so far, all readings together. */
struct seen {
	uint64_t waits, waited_ns, longest_ns; /* what was waited for */
	uint64_t ended, ended_ns;	       /* by whom */
	const struct task_ident *waker;
	unsigned calls;
};

static const struct task_ident *find(void *ctx, uint32_t tid, uint64_t start_ns)
{
	const struct task_ident *gone = ctx;

	if (gone && gone->tid == tid)
		return NULL;
	if (tid == waiter.tid && start_ns == waiter.start_ns)
		return &waiter;
	return tid == waker.tid && start_ns == waker.start_ns ? &waker : NULL;
}

static int on_wait(void *ctx, const struct wait_sample *s)
{
	struct seen *seen = ctx;

	assert_int_equal(s->task.tid, waiter.tid);
	seen->calls++;
	if (s->ended) {
		seen->ended += s->waits;
		seen->ended_ns += s->waited_ns;
		seen->waker = s->waker;
		return 0;
	}
	seen->waits += s->waits;
	seen->waited_ns += s->waited_ns;
	if (s->longest_ns > seen->longest_ns)
		seen->longest_ns = s->longest_ns;
	return 0;
}

static void report(struct wait_sums *w, struct seen *seen)
{
	struct wait_names names = {.find = find};

	assert_int_equal(wait_sums_report(w, &names, on_wait, seen), 0);
}

static struct sched_totals record_of(uint64_t count, uint64_t ns, uint64_t open_ns)
{
	struct sched_totals t = {.id = waiter, .open_ns = open_ns};

	t.on = (struct wait_on){.a = 1, .cause = WAIT_PIPE, .kind = WAIT_ON_PIPE};
	t.sum.on = t.on;
	t.sum.by = (struct waker){.tid = waker.tid, .start_ns = waker.start_ns, .class = WAKER_THREAD};
	t.sum.times = (struct wait_times){count, ns, count ? ns / count : 0};
	return t;
}

static void flush(struct wait_sums *w, uint64_t count, uint64_t ns)
{
	struct wait_key k = {.a = 1,
			     .start_ns = waiter.start_ns,
			     .waker_start_ns = waker.start_ns,
			     .tid = waiter.tid,
			     .waker_tid = waker.tid,
			     .cause = WAIT_PIPE,
			     .kind = WAIT_ON_PIPE,
			     .waker_class = WAKER_THREAD};
	struct wait_value v = {.times = {count, ns, ns / count}};

	wait_sums_flushed(w, &k, &v);
}

TEST(a_sum_that_grows_is_reported_by_what_it_gained)
{
	struct sched_totals t = record_of(2, 200, 0);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 2);
	t = record_of(5, 900, 0);
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 5);
	assert_int_equal(seen.waited_ns, 900);
	assert_int_equal(seen.ended, 5);
	assert_ptr_equal(seen.waker, &waker);
	wait_sums_done(&w);
}

TEST(what_comes_through_the_map_later_is_not_counted_twice)
{
	struct sched_totals t = record_of(2, 200, 0);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	report(&w, &seen);
	flush(&w, 3, 350); /* those two and one more */
	report(&w, &seen);
	assert_int_equal(seen.waits, 3);
	assert_int_equal(seen.ended_ns, 350);
	assert_int_equal(w.by[0].n, 0); /* settled: nothing is kept */
	assert_int_equal(w.on[0].n, 0);
	wait_sums_done(&w);
}

TEST(a_flush_that_comes_a_reading_late_is_waited_for)
{
	struct sched_totals t = record_of(4, 400, 0);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	report(&w, &seen);
	t = record_of(1, 10, 0); /* a new sum of the same kind; the flushed one is under way */
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 4);
	flush(&w, 4, 400);
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 5);
	assert_int_equal(seen.waited_ns, 410);
	assert_int_equal(seen.ended_ns, 410);
	wait_sums_done(&w);
}

TEST(an_open_wait_is_reported_as_it_goes_on_and_once_when_it_ends)
{
	struct sched_totals t = record_of(0, 0, 1000);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 1);
	assert_int_equal(seen.waited_ns, 1000);
	assert_int_equal(seen.ended, 0); /* nobody has ended it */
	report(&w, &seen); /* not read: it has not changed */
	assert_int_equal(seen.waited_ns, 1000);
	t = record_of(1, 1500, 300); /* it ended, and the next is under way */
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 2);
	assert_int_equal(seen.waited_ns, 1800);
	assert_int_equal(seen.longest_ns, 1500);
	assert_int_equal(seen.ended_ns, 1500);
	wait_sums_done(&w);
}

TEST(the_last_record_settles_everything)
{
	struct sched_totals t = record_of(3, 30, 0);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	report(&w, &seen);
	t = record_of(4, 40, 0);
	t.flags = SCHED_EXITED;
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 4);
	assert_int_equal(w.by[0].n + w.on[0].n, 0);
	wait_sums_done(&w);
}

/* The iterator met the thread, in its fourth wait; then it ended, and its last record is in the same reading. */
TEST(a_thread_that_ends_during_a_reading_is_counted_once)
{
	struct sched_totals t = record_of(3, 30, 7);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	t = record_of(4, 40, 0);
	t.flags = SCHED_EXITED;
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.waits, 4);
	assert_int_equal(seen.waited_ns, 40);
	assert_int_equal(seen.ended, 4);
	wait_sums_done(&w);
}

TEST(threads_of_the_kernel_have_no_waits)
{
	struct sched_totals t = record_of(3, 30, 100);
	struct wait_sums w = {0};
	struct seen seen = {0};

	t.flags = SCHED_KTHREAD;
	wait_sums_record(&w, &t);
	report(&w, &seen);
	assert_int_equal(seen.calls, 0);
	wait_sums_done(&w);
}

TEST(a_thread_that_is_gone_is_forgotten_when_all_are_known)
{
	struct task_ident gone = waiter;
	struct wait_names names = {.find = find, .ctx = &gone, .complete = true};
	struct sched_totals t = record_of(3, 30, 100);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	assert_int_equal(wait_sums_report(&w, &names, on_wait, &seen), 0);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(w.by[0].n + w.on[0].n, 0);
	wait_sums_done(&w);
}

TEST(a_waker_that_nobody_knows_any_more_is_no_thread)
{
	struct task_ident gone = waker;
	struct wait_names names = {.find = find, .ctx = &gone};
	struct sched_totals t = record_of(1, 10, 0);
	struct wait_sums w = {0};
	struct seen seen = {0};

	wait_sums_record(&w, &t);
	assert_int_equal(wait_sums_report(&w, &names, on_wait, &seen), 0);
	assert_int_equal(seen.ended, 1);
	assert_null(seen.waker);
	wait_sums_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sum_that_grows_is_reported_by_what_it_gained),
		cmocka_unit_test(what_comes_through_the_map_later_is_not_counted_twice),
		cmocka_unit_test(a_flush_that_comes_a_reading_late_is_waited_for),
		cmocka_unit_test(an_open_wait_is_reported_as_it_goes_on_and_once_when_it_ends),
		cmocka_unit_test(the_last_record_settles_everything),
		cmocka_unit_test(a_thread_that_ends_during_a_reading_is_counted_once),
		cmocka_unit_test(threads_of_the_kernel_have_no_waits),
		cmocka_unit_test(a_thread_that_is_gone_is_forgotten_when_all_are_known),
		cmocka_unit_test(a_waker_that_nobody_knows_any_more_is_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
