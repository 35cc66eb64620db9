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

/* A large one is kept packed, and comes as it is asked for; what was unpacked is forgotten when nobody holds it. */
TEST(large_texts_of_an_analysis_are_kept_packed)
{
	struct board *b = board_new(&(struct board_limits){.keep_ns = 1000 * SECOND, .keep_bytes = 64 << 20, .spacing_ns = SECOND});
	struct strbuf text = {0}, same = {0};
	struct snapshot *s = snapshot_new();
	const struct strbuf *got;
	enum encoding as;
	size_t packed;

	(void)state;
	for (unsigned i = 0; text.n < 3 << 20; i++)
		strbuf_addf(&text, "{\"place\":%u},", i % 7777);
	strbuf_addn(&same, text.s, text.n);
	s->end_ns = 100 * SECOND;
	snapshot_seal(s);
	snapshot_keep_text(s, RENDER_TOPOLOGY, &text);
	assert_int_equal(text.n, 0);
	packed = atomic_load(&s->bytes);
	assert_true(packed < same.n / 4);
	got = snapshot_text(s, RENDER_TOPOLOGY, NULL, NULL, ENCODING_ZSTD, &as);
	assert_int_equal(as, ENCODING_ZSTD);
	encoding_unpack_zstd(got, &text);
	assert_int_equal(text.n, same.n);
	assert_memory_equal(text.s, same.s, same.n);
	assert_int_equal(atomic_load(&s->bytes), packed);
	got = snapshot_text(s, RENDER_TOPOLOGY, NULL, NULL, ENCODING_GZIP, &as);
	assert_int_equal(as, ENCODING_GZIP);
	got = snapshot_text(s, RENDER_TOPOLOGY, NULL, NULL, ENCODING_PLAIN, &as);
	assert_int_equal(as, ENCODING_PLAIN);
	assert_string_equal(got->s, same.s);
	assert_true(atomic_load(&s->bytes) > same.n);
	/* Only the board holds it: by the next one but one it is small again, and as whole as before. */
	board_put(b, s);
	snapshot_unref(s);
	put(b, 101, true);
	put(b, 102, false);
	s = board_find(b, 1);
	assert_true(atomic_load(&s->bytes) < same.n / 2);
	got = snapshot_text(s, RENDER_TOPOLOGY, NULL, NULL, ENCODING_PLAIN, &as);
	assert_string_equal(got->s, same.s);
	snapshot_unref(s);
	strbuf_done(&text);
	strbuf_done(&same);
	board_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_that_was_analysed_stays_however_old),
		cmocka_unit_test(texts_of_older_ones_are_forgotten_and_made_again),
		cmocka_unit_test(large_texts_of_an_analysis_are_kept_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
