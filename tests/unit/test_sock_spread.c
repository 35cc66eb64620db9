/* Who moved what went through TCP connections that were watched in turns. */
#include "unit.h"

#include <string.h>

#include "sock_spread.h"

#define TOLD_MOST 8

struct told {
	struct sock_sample v[TOLD_MOST];
	unsigned n;
	uint64_t bytes, estimated;
};

static int on_told(void *ctx, const struct sock_sample *s)
{
	struct told *x = ctx;

	assert_int_equal(s->what, SOCK_MOVED);
	assert_true(x->n < TOLD_MOST);
	x->v[x->n++] = *s;
	x->bytes += s->v.bytes;
	x->estimated += s->estimated_bytes;
	return 0;
}

static void seen(struct sock_spread *s, uint64_t id, enum sock_dir dir, uint32_t tid, uint64_t bytes, uint64_t msgs)
{
	struct sock_sample x = {.dir = dir, .what = SOCK_SEEN, .v = {.bytes = bytes, .msgs = msgs}};

	x.v.sock.sk_id = id;
	x.v.task.tid = x.v.task.tgid = tid;
	sock_spread_add(s, &x);
}

static void total(struct sock_spread *s, uint64_t id, enum sock_dir dir, uint32_t closed_by, uint64_t bytes)
{
	struct sock_sample x = {.dir = dir, .what = SOCK_TOTAL, .v = {.bytes = bytes, .last_ns = bytes}};

	x.v.sock.sk_id = id;
	x.v.task.tid = closed_by;
	sock_spread_add(s, &x);
}

static struct told settle(struct sock_spread *s, bool held)
{
	struct told x = {0};

	assert_int_equal(sock_spread_settle(s, held, on_told, &x), 0);
	return x;
}

TEST(what_was_seen_stays_and_the_rest_is_like_it)
{
	struct sock_spread s = {0};
	struct told x;

	/* The other direction and another connection have no part in it. */
	seen(&s, 7, SOCK_SENT, 2, 100, 1);
	seen(&s, 7, SOCK_RECEIVED, 2, 999, 9);
	seen(&s, 7, SOCK_SENT, 1, 300, 1);
	seen(&s, 6, SOCK_SENT, 1, 50, 5);
	total(&s, 7, SOCK_SENT, 0, 4003);
	total(&s, 7, SOCK_RECEIVED, 0, 999);
	total(&s, 6, SOCK_SENT, 0, 50);
	x = settle(&s, true);
	assert_int_equal(x.n, 4);
	assert_int_equal(x.bytes, 4003 + 999 + 50);
	assert_int_equal(x.estimated, 3603);
	for (unsigned i = 0; i < x.n; i++) {
		const struct sock_sample *one = &x.v[i];

		if (one->v.sock.sk_id != 7 || one->dir != SOCK_SENT) {
			assert_int_equal(one->estimated_bytes, 0);
			continue;
		}
		assert_in_range(one->v.bytes, one->v.task.tid == 1 ? 3002 : 1000, one->v.task.tid == 1 ? 3003 : 1001);
		assert_int_equal(one->v.msgs, 10);
	}
	sock_spread_done(&s);
}

TEST(a_call_told_of_as_it_went_on_is_not_told_of_again_when_it_ends)
{
	struct sock_spread s = {0};
	struct told x;

	total(&s, 7, SOCK_SENT, 3, 600);
	x = settle(&s, false);
	assert_int_equal(x.bytes, 600);
	/* It ends, as 1000, of which 400 are new. */
	seen(&s, 7, SOCK_SENT, 3, 1000, 1);
	total(&s, 7, SOCK_SENT, 0, 400);
	x = settle(&s, true);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.bytes, 400);
	assert_int_equal(x.v[0].v.msgs, 1);
	assert_int_equal(x.estimated, 0);
	/* All of it was told of before: a message it was. */
	seen(&s, 7, SOCK_SENT, 3, 200, 1);
	x = settle(&s, true);
	assert_int_equal(x.n, 1);
	assert_int_equal(x.bytes, 0);
	assert_int_equal(x.v[0].v.msgs, 1);
	sock_spread_done(&s);
}

TEST(what_no_look_saw_is_as_an_earlier_one_did)
{
	struct sock_spread s = {0};
	struct told x;

	seen(&s, 7, SOCK_SENT, 3, 100, 10);
	seen(&s, 7, SOCK_SENT, 4, 300, 10);
	total(&s, 7, SOCK_SENT, 0, 400);
	settle(&s, true);
	settle(&s, true); /* a reading without it */
	total(&s, 7, SOCK_SENT, 0, 4000);
	x = settle(&s, true);
	assert_int_equal(x.n, 2);
	assert_int_equal(x.bytes, 4000);
	assert_int_equal(x.estimated, 4000);
	assert_int_equal(x.v[0].v.task.tid, 3);
	assert_int_equal(x.v[0].v.bytes, 1000);
	assert_int_equal(x.v[0].v.msgs, 100);
	assert_int_equal(x.v[1].v.msgs, 100);
	sock_spread_done(&s);
}

TEST(a_connection_that_was_never_seen_is_its_closer_s_or_nobody_s)
{
	struct sock_spread s = {0};
	struct told x;

	total(&s, 7, SOCK_SENT, 0, 10);
	total(&s, 7, SOCK_SENT, 5, 20); /* the last of it: as it was closed */
	total(&s, 8, SOCK_RECEIVED, 0, 40);
	x = settle(&s, true);
	assert_int_equal(x.n, 2);
	assert_int_equal(x.v[0].v.bytes, 30);
	assert_int_equal(x.v[0].v.task.tid, 5);
	assert_int_equal(x.v[1].v.bytes, 40);
	assert_int_equal(x.v[1].v.task.tid, 0);
	assert_int_equal(x.estimated, 70);
	assert_int_equal(x.v[1].v.msgs, 1);
	sock_spread_done(&s);
}

TEST(while_all_is_watched_nothing_is_estimated)
{
	struct sock_spread s = {0};
	struct told x;

	/* A call that had ended when the total was read, and was not counted yet. */
	seen(&s, 7, SOCK_SENT, 3, 100, 1);
	total(&s, 7, SOCK_SENT, 0, 150);
	x = settle(&s, false);
	assert_int_equal(x.bytes, 150);
	assert_int_equal(x.v[0].v.msgs, 1);
	assert_int_equal(x.estimated, 0);
	sock_spread_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_stays_and_the_rest_is_like_it),
		cmocka_unit_test(a_call_told_of_as_it_went_on_is_not_told_of_again_when_it_ends),
		cmocka_unit_test(what_no_look_saw_is_as_an_earlier_one_did),
		cmocka_unit_test(a_connection_that_was_never_seen_is_its_closer_s_or_nobody_s),
		cmocka_unit_test(while_all_is_watched_nothing_is_estimated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
