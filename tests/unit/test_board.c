/* Snapshots that are kept: what is asked for stays, and what can be made again is forgotten. */
#include "unit.h"

#include <string.h>

#include "board.h"

#define SECOND 1000000000ull

/* One that ends at that second, put on the board. */
static struct snapshot *put(struct board *b, uint64_t at_s, bool analysed)
{
	struct snapshot *s = snapshot_new();
	struct strbuf text = {0};

	s->end_ns = at_s * SECOND;
	s->start_ns = s->end_ns - SECOND;
	snapshot_seal(s);
	if (analysed) {
		strbuf_add(&text, "[]");
		snapshot_keep_text(s, RENDER_FINDINGS, &text);
		atomic_store(&s->analysed, true);
	}
	board_put(b, s);
	snapshot_unref(s);
	return s;
}

static void make(void *ctx, struct snapshot *s, struct strbuf *b)
{
	(void)s;
	++*(int *)ctx;
	for (int i = 0; i < 1000; i++)
		strbuf_add(b, "{\"nodes\":[]}");
}

TEST(the_newest_that_was_analysed_stays_however_old)
{
	struct board *b = board_new(&(struct board_limits){.keep_ns = 10 * SECOND, .keep_bytes = 1, .spacing_ns = SECOND});
	struct snapshot *s;

	(void)state;
	put(b, 100, true);
	for (uint64_t at = 101; at < 150; at++)
		put(b, at, false);
	s = board_analysed(b);
	assert_non_null(s);
	assert_int_equal(s->end_ns, 100 * SECOND);
	snapshot_unref(s);
	/* As soon as there is a newer one, the older one goes. */
	put(b, 150, true);
	put(b, 151, false);
	s = board_analysed(b);
	assert_int_equal(s->end_ns, 150 * SECOND);
	snapshot_unref(s);
	s = board_find(b, 1);
	assert_null(s);
	board_free(b);
}

TEST(texts_of_older_ones_are_forgotten_and_made_again)
{
	struct board *b = board_new(&(struct board_limits){.keep_ns = 100 * SECOND, .keep_bytes = 1 << 30, .spacing_ns = 1000 * SECOND});
	struct snapshot *s = put(b, 100, true), *held;
	enum encoding got;
	size_t bytes;
	int made = 0;

	(void)state;
	bytes = s->bytes;
	assert_true(snapshot_text(s, RENDER_GRAPH, make, &made, ENCODING_GZIP, &got)->n > 0);
	assert_int_equal(got, ENCODING_GZIP);
	assert_true(s->bytes > bytes + 12000);
	/* Somebody reads it: nothing is taken away. */
	held = board_find(b, 1);
	put(b, 101, true);
	put(b, 102, true);
	assert_true(s->bytes > bytes + 12000);
	snapshot_text(s, RENDER_GRAPH, make, &made, ENCODING_PLAIN, &got);
	assert_int_equal(made, 1);
	snapshot_unref(held);
	put(b, 103, true);
	assert_int_equal(s->bytes, bytes);
	/* What only the analysis can tell is still there. */
	assert_string_equal(snapshot_text(s, RENDER_FINDINGS, NULL, NULL, ENCODING_PLAIN, &got)->s, "[]");
	assert_int_equal(snapshot_text(s, RENDER_GRAPH, make, &made, ENCODING_PLAIN, &got)->n, 12000);
	assert_int_equal(made, 2);
	board_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_that_was_analysed_stays_however_old),
		cmocka_unit_test(texts_of_older_ones_are_forgotten_and_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
