/* The JSON writer: layout, escapes, numbers, and what it reads back as. */
#include "unit.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_echo.h"

static void echo(const char *text, unsigned flags, struct strbuf *out)
{
	struct json_reader *r = json_reader_new_mem(text, strlen(text), "FILE", NULL);
	struct err e = {0};

	if (json_echo(r, out, flags, &e))
		fail_msg("%s", e.msg);
	json_reader_free(r);
}

TEST(layout_is_the_one_of_python)
{
	static const struct {
		const char *text, *compact, *indented;
	} cases[] = {
		{"{}", "{}", "{}"},
		{"[ ]", "[]", "[]"},
		{"7", "7", "7"},
		{"[1,[2],[],{}]", "[1,[2],[],{}]",
		 "[\n  1,\n  [\n    2\n  ],\n  [],\n  {}\n]"},
		{"{\"a\":{\"b\":null,\"c\":[]},\"d\":\"x\"}",
		 "{\"a\":{\"b\":null,\"c\":[]},\"d\":\"x\"}",
		 "{\n  \"a\": {\n    \"b\": null,\n    \"c\": []\n  },\n  \"d\": \"x\"\n}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = {0};

		echo(cases[i].text, 0, &out);
		assert_string_equal(strbuf_str(&out), cases[i].compact);
		strbuf_clear(&out);
		echo(cases[i].text, JSON_INDENT, &out);
		assert_string_equal(strbuf_str(&out), cases[i].indented);
		strbuf_done(&out);
	}
}

TEST(strings_are_escaped_and_always_valid)
{
	static const struct {
		const char *s;
		size_t n;
		const char *utf8, *ascii;
	} cases[] = {
		{"", 0, "\"\"", "\"\""},
		{"plain text, longer than sixteen bytes", 37,
		 "\"plain text, longer than sixteen bytes\"",
		 "\"plain text, longer than sixteen bytes\""},
		{"\"\\/\b\f\n\r\t\x01\x1f", 10, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\"",
		 "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\""},
		{"a\0b", 3, "\"a\\u0000b\"", "\"a\\u0000b\""},
		{"a\x7f", 2, "\"a\x7f\"", "\"a\\u007f\""},
		{"\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"",
		 "\"\\u00e9\\ud83d\\ude00\""},
		{"a\xff\xe4\xbdz", 5, "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"",
		 "\"a\\ufffd\\ufffd\\ufffdz\""},
		{"\xe4\xbd", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\"\\ufffd\\ufffd\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = {0};

		json_quote(&out, cases[i].s, cases[i].n, 0);
		assert_string_equal(strbuf_str(&out), cases[i].utf8);
		strbuf_clear(&out);
		json_quote(&out, cases[i].s, cases[i].n, JSON_ASCII);
		assert_string_equal(strbuf_str(&out), cases[i].ascii);
		strbuf_done(&out);
	}
}

TEST(any_bytes_become_a_string_that_reads_back)
{
	uint64_t seed = 7;

	for (int round = 0; round < 3000; round++) {
		char bytes[100];
		size_t n = unit_random(&seed) % sizeof(bytes), got;
		struct strbuf out = {0}, again = {0};
		struct json_reader *r;
		const char *text;
		struct err e;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)(unit_random(&seed) % 4 ? 'a' : unit_random(&seed));
		json_quote(&out, bytes, n, round & 1 ? JSON_ASCII : 0);
		r = json_reader_new_mem(out.s, out.n, "FILE", NULL);
		assert_int_equal(json_next(r, &e), JSON_STRING);
		/* What was invalid is replaced by now, so that the second time is exact. */
		text = json_text(r, &got);
		json_quote(&again, text, got, round & 1 ? JSON_ASCII : 0);
		assert_string_equal(strbuf_str(&again), strbuf_str(&out));
		assert_int_equal(json_next(r, &e), JSON_EOF);
		json_reader_free(r);
		strbuf_done(&out);
		strbuf_done(&again);
	}
}

TEST(scalars_are_written)
{
	struct strbuf out = {0};
	struct json_writer w;
	struct err e;

	json_writer_init_strbuf(&w, &out, 0);
	json_write_array(&w);
	json_write_i64(&w, INT64_MIN);
	json_write_i64(&w, 0);
	json_write_u64(&w, UINT64_MAX);
	json_write_bool(&w, true);
	json_write_bool(&w, false);
	json_write_null(&w);
	json_write_str(&w, NULL);
	json_write_str(&w, "s");
	json_write_strn(&w, "xyz", 2);
	json_write_f64(&w, NAN);
	json_write_f64(&w, -INFINITY);
	json_write_raw(&w, "{\"r\":1}", 7);
	json_write_array_end(&w);
	assert_int_equal(json_writer_finish(&w, &e), 0);
	assert_string_equal(strbuf_str(&out),
			    "[-9223372036854775808,0,18446744073709551615,true,false,null,null,"
			    "\"s\",\"xy\",null,null,{\"r\":1}]");
	strbuf_done(&out);
}

static const char *f64_text(struct strbuf *out, double v)
{
	strbuf_clear(out);
	strbuf_add_f64(out, v);
	return strbuf_str(out);
}

TEST(doubles_are_short_and_exact)
{
	struct strbuf out = {0};
	uint64_t seed = 3;

	assert_string_equal(f64_text(&out, 0.1), "0.1");
	assert_string_equal(f64_text(&out, 3), "3.0");
	assert_string_equal(f64_text(&out, -0.0), "-0.0");
	assert_string_equal(f64_text(&out, 1e22), "1e+22");
	assert_string_equal(f64_text(&out, 5e-324), "5e-324");
	assert_string_equal(f64_text(&out, 1.0 / 3), "0.3333333333333333");
	assert_string_equal(f64_text(&out, 0.1 + 0.2), "0.30000000000000004");
	assert_string_equal(f64_text(&out, DBL_MAX), "1.7976931348623157e+308");
	for (int i = 0; i < 50000; i++) {
		uint64_t bits = unit_random(&seed);
		double v;

		memcpy(&v, &bits, sizeof(v));
		if (isfinite(v))
			assert_true(strtod(f64_text(&out, v), NULL) == v);
	}
	strbuf_done(&out);
}

struct sink {
	size_t calls, bytes, room;
	uint64_t sum;
};

static int sink_write(void *ctx, const void *p, size_t n)
{
	struct sink *s = ctx;

	s->calls++;
	if (n > s->room)
		return -ENOSPC;
	s->room -= n;
	s->bytes += n;
	for (size_t i = 0; i < n; i++)
		s->sum += ((const unsigned char *)p)[i];
	return 0;
}

static int write_many(struct sink *s, struct err *e)
{
	struct json_writer w;

	json_writer_init(&w, sink_write, s, 0);
	json_write_array(&w);
	for (int i = 0; i < 100000; i++)
		json_write_str(&w, "a");
	json_write_array_end(&w);
	return json_writer_finish(&w, e);
}

TEST(a_sink_gets_everything_in_large_pieces)
{
	struct sink s = {.room = SIZE_MAX};
	struct err e;

	assert_int_equal(write_many(&s, &e), 0);
	assert_int_equal(s.bytes, 100000 * 4 + 1);
	assert_int_equal(s.sum, 100000 * ('"' + 'a' + '"') + 99999 * ',' + '[' + ']');
	assert_true(s.calls <= 7);
}

TEST(the_first_error_of_a_sink_is_kept)
{
	struct sink s = {.room = 100000};
	struct err e;

	assert_int_equal(write_many(&s, &e), -ENOSPC);
	assert_string_equal(e.msg, "write JSON: No space left on device");
	assert_int_equal(s.calls, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_is_the_one_of_python),
		cmocka_unit_test(strings_are_escaped_and_always_valid),
		cmocka_unit_test(any_bytes_become_a_string_that_reads_back),
		cmocka_unit_test(scalars_are_written),
		cmocka_unit_test(doubles_are_short_and_exact),
		cmocka_unit_test(a_sink_gets_everything_in_large_pieces),
		cmocka_unit_test(the_first_error_of_a_sink_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
