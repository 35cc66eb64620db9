/* The JSON reader: what it accepts and refuses, in windows of any size, and its limits. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "json_echo.h"
#include "json_scan.h"
#include "utf8.h"

static const size_t windows[] = {16, 17, 64, 300, 4096, 0};

struct document {
	const char *text;
	size_t n; /* 0: strlen */
	const char *expect; /* compact form, or part of the message */
};

/* Texts with a NUL inside. */
#define BYTES(s) s, sizeof(s) - 1

static const struct document good[] = {
	{"0", 0, "0"},
	{" \t\r\n 1 \n", 0, "1"},
	{"-0", 0, "-0"},
	{"-0.0e-0", 0, "-0.0e-0"},
	{"123456789012345678901234567890.5E+300", 0, "123456789012345678901234567890.5E+300"},
	{"1e5", 0, "1e5"},
	{"true", 0, "true"},
	{"false ", 0, "false"},
	{"null", 0, "null"},
	{"\"\"", 0, "\"\""},
	{"{}", 0, "{}"},
	{"[]", 0, "[]"},
	{"[ ]", 0, "[]"},
	{"{ \"a\" : 1 }", 0, "{\"a\":1}"},
	{"{\"a\":{\"b\":[{},[],{}]},\"c\":null}", 0, "{\"a\":{\"b\":[{},[],{}]},\"c\":null}"},
	{"{\"\":[],\"\":0}", 0, "{\"\":[],\"\":0}"},
	{"[1,-2,3.5,true,false,null,\"x\"]", 0, "[1,-2,3.5,true,false,null,\"x\"]"},
	{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 0, "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
	{"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", 0, "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
	{"\"\\u0000\"", 0, "\"\\u0000\""},
	{"\"\x7f\"", 0, "\"\x7f\""},
	{"\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"", 0,
	 "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\""},
	{"\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"", 0, "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""},
	{"\xef\xbb\xbf[1]", 0, "[1]"},
	{"\"a long plain text that crosses every small window, twice or more often\"", 0,
	 "\"a long plain text that crosses every small window, twice or more often\""},
	{"[\"ends at the \\\\\",\n\n\n\"edge of sixteen\",       \"\xe4\xbd\xa0\xe5\xa5\xbd\"]", 0,
	 "[\"ends at the \\\\\",\"edge of sixteen\",\"\xe4\xbd\xa0\xe5\xa5\xbd\"]"},
};

static const struct document bad[] = {
	{"", 0, "1: the input holds no JSON value"},
	{" \n ", 0, "2: the input holds no JSON value"},
	{"\xef\xbb\xbf", 0, "1: the input holds no JSON value"},
	{"\xff\xfe[\0]\0", 6, "1: expected a value"},
	{"\xef\xbb[1]", 0, "1: expected a value"},
	{"[1]\xef\xbb\xbf", 0, "expected nothing after the document"},
	{"[1] x", 0, "1: expected nothing after the document"},
	{"[1]\n[2]", 0, "2: expected nothing after the document"},
	{"1,", 0, "expected nothing after the document"},
	{"1 2", 0, "expected nothing after the document"},
	{"{}}", 0, "expected nothing after the document"},
	{BYTES("1\0"), "expected nothing after the document"},
	{BYTES("\0001"), "expected a value"},
	{"[", 0, "the input ends in the middle of an array"},
	{"[1", 0, "the input ends in the middle of an array"},
	{"[1,", 0, "the input ends in the middle of an array"},
	{"{", 0, "the input ends in the middle of an object"},
	{"{\"a\"", 0, "the input ends in the middle of an object"},
	{"{\"a\":", 0, "the input ends in the middle of an object"},
	{"{\"a\":1", 0, "the input ends in the middle of an object"},
	{"{\"a\":1,", 0, "the input ends in the middle of an object"},
	{"[[]\n\n", 0, "3: the input ends in the middle of an array"},
	{"\"abc", 0, "the input ends in the middle of a string"},
	{"\"abc\\", 0, "the input ends in the middle of a string"},
	{"\"abc\\u12", 0, "the input ends in the middle of a string"},
	{"\"\\ud800", 0, "the input ends in the middle of a string"},
	{"\"\\ud800\\", 0, "the input ends in the middle of a string"},
	{"\"\xe4\xbd", 0, "the input ends in the middle of a string"},
	{"tru", 0, "the input ends in the middle of a literal"},
	{"[1 2]", 0, "1: expected ',' or ']' after an item"},
	{"[1}", 0, "expected ',' or ']' after an item"},
	{"[1,]", 0, "expected a value"},
	{"[,1]", 0, "expected a value"},
	{"[}", 0, "expected a value"},
	{"]", 0, "expected a value"},
	{"{\"a\":1\n\"b\":2}", 0, "2: expected ',' or '}' after a member"},
	{"{\"a\":1]", 0, "expected ',' or '}' after a member"},
	{"{\"a\":1,}", 0, "expected a member name in quotes after ','"},
	{"{,}", 0, "expected a member name in quotes or '}'"},
	{"{a:1}", 0, "expected a member name in quotes or '}'"},
	{"{1:1}", 0, "expected a member name in quotes or '}'"},
	{"{'a':1}", 0, "expected a member name in quotes or '}'"},
	{"{\"a\" 1}", 0, "expected ':' after a member name"},
	{"{\"a\",1}", 0, "expected ':' after a member name"},
	{"{\"a\":}", 0, "expected a value"},
	{"{\"a\"::1}", 0, "expected a value"},
	{"[1]//x", 0, "expected nothing after the document"},
	{"/*x*/1", 0, "expected a value"},
	{"[\v1]", 0, "expected a value"},
	{"[\f1]", 0, "expected a value"},
	{"[\xc2\xa0" "1]", 0, "expected a value"},
	{"True", 0, "expected a value"},
	{"nul1", 0, "expected a value (is 'null' meant?)"},
	{"truee", 0, "expected nothing after the document"},
	{"NaN", 0, "expected a value"},
	{"Infinity", 0, "expected a value"},
	{"-Infinity", 0, "'-' is no number"},
	{"-", 0, "'-' is no number"},
	{"+1", 0, "expected a value"},
	{".5", 0, "expected a value"},
	{"01", 0, "'01' is no number"},
	{"-01", 0, "'-01' is no number"},
	{"1.", 0, "'1.' is no number"},
	{"1.e5", 0, "'1.e5' is no number"},
	{"1e", 0, "'1e' is no number"},
	{"1e+", 0, "'1e+' is no number"},
	{"1e5.0", 0, "'1e5.0' is no number"},
	{"1-2", 0, "'1-2' is no number"},
	{"1.2.3", 0, "'1.2.3' is no number"},
	{"[1.,2]", 0, "'1.' is no number"},
	{"0x10", 0, "expected nothing after the document"},
	{"\"\\x41\"", 0, "unknown escape after '\\' in a string"},
	{"\"\\'\"", 0, "unknown escape after '\\' in a string"},
	{BYTES("\"\\\0\""), "unknown escape after '\\' in a string"},
	{"\"\\u12g4\"", 0, "expected four hexadecimal digits after '\\u'"},
	{"\"\\u 123\"", 0, "expected four hexadecimal digits after '\\u'"},
	{"\"\\ud800\"", 0, "no low surrogate follows the high surrogate \\ud800"},
	{"\"\\ud800x\"", 0, "no low surrogate follows the high surrogate \\ud800"},
	{"\"\\udbff\\n\"", 0, "no low surrogate follows the high surrogate \\udbff"},
	{"\"\\ud800\\u0041\"", 0, "no low surrogate follows the high surrogate \\ud800"},
	{"\"\\ud800\\ud800\"", 0, "no low surrogate follows the high surrogate \\ud800"},
	{"\"\\udc00\"", 0, "the low surrogate \\udc00 follows no high surrogate"},
	{"\"a\nb\"", 0, "1: control character 0x0a in a string, write it as \\u000a"},
	{"\"\t\"", 0, "control character 0x09 in a string"},
	{BYTES("\"\0\""), "control character 0x00 in a string"},
	{"\"\x1f\"", 0, "control character 0x1f in a string"},
	{"\"\x80\"", 0, "invalid UTF-8 in a string"},
	{"\"\xbf\"", 0, "invalid UTF-8 in a string"},
	{"\"\xc0\x80\"", 0, "invalid UTF-8 in a string"},
	{"\"\xc1\xbf\"", 0, "invalid UTF-8 in a string"},
	{"\"\xc2\"", 0, "invalid UTF-8 in a string"},
	{"\"\xe0\x9f\xbf\"", 0, "invalid UTF-8 in a string"},
	{"\"\xed\xa0\x80\"", 0, "invalid UTF-8 in a string"},
	{"\"\xe4\xbd\"", 0, "invalid UTF-8 in a string"},
	{"\"\xf0\x8f\xbf\xbf\"", 0, "invalid UTF-8 in a string"},
	{"\"\xf4\x90\x80\x80\"", 0, "invalid UTF-8 in a string"},
	{"\"\xf5\x80\x80\x80\"", 0, "invalid UTF-8 in a string"},
	{"\"\xff\"", 0, "invalid UTF-8 in a string"},
	{"{\"\xff\":1}", 0, "invalid UTF-8 in a string"},
};

static size_t length(const struct document *d)
{
	return d->n ? d->n : strlen(d->text);
}

static struct json_reader *open_text(const char *s, size_t n, size_t window)
{
	struct json_limits l = JSON_LIMITS_DEFAULT;

	l.window_bytes = window;
	return json_reader_new_mem(s, n, "FILE", &l);
}

TEST(valid_documents_are_read_in_any_window)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
			struct json_reader *r = open_text(good[i].text, length(&good[i]), windows[w]);
			struct strbuf out = {0};
			struct err e = {0};

			if (json_echo(r, &out, 0, &e))
				fail_msg("'%s': %s", good[i].text, e.msg);
			assert_string_equal(strbuf_str(&out), good[i].expect);
			assert_int_equal(json_next(r, &e), JSON_EOF);
			assert_int_equal(json_offset(r), length(&good[i]));
			strbuf_done(&out);
			json_reader_free(r);
		}
}

TEST(invalid_documents_are_refused_with_line_and_reason)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
			struct json_reader *r = open_text(bad[i].text, length(&bad[i]), windows[w]);
			struct strbuf out = {0};
			struct err e = {0}, again = {0};

			assert_int_equal(json_echo(r, &out, 0, &e), -EBADMSG);
			if (strncmp(e.msg, "FILE:", 5) || !strstr(e.msg, bad[i].expect))
				fail_msg("'%s' window %zu: %s", bad[i].text, windows[w], e.msg);
			assert_int_equal(json_next(r, &again), -EBADMSG);
			assert_string_equal(again.msg, e.msg);
			strbuf_done(&out);
			json_reader_free(r);
		}
}

TEST(line_and_offset_follow_the_tokens)
{
	static const char text[] = "{\n\"a\": [1,\n\n 22],\r\n\"b\": \"x\"}\n";
	static const struct {
		int token;
		unsigned line, offset;
	} expect[] = {
		{JSON_OBJECT, 1, 1}, {JSON_KEY, 2, 5},	     {JSON_ARRAY, 2, 8},
		{JSON_NUMBER, 2, 9}, {JSON_NUMBER, 4, 15},   {JSON_ARRAY_END, 4, 16},
		{JSON_KEY, 5, 22},   {JSON_STRING, 5, 27},   {JSON_OBJECT_END, 5, 28},
		{JSON_EOF, 6, 29},
	};

	for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
		struct json_reader *r = open_text(text, sizeof(text) - 1, windows[w]);
		struct err e;

		for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
			assert_int_equal(json_next(r, &e), expect[i].token);
			assert_int_equal(json_line(r), expect[i].line);
			assert_int_equal(json_offset(r), expect[i].offset);
		}
		json_reader_free(r);
	}
}

TEST(text_is_decoded_terminated_and_counted)
{
	struct json_reader *r = open_text("{\"k\\u0000y\":\"v\",\"n\":12}", 23, 16);
	struct err e;
	size_t n;

	assert_int_equal(json_next(r, &e), JSON_OBJECT);
	assert_string_equal(json_text(r, &n), "");
	assert_int_equal(n, 0);
	assert_int_equal(json_next(r, &e), JSON_KEY);
	assert_memory_equal(json_text(r, &n), "k\0y", 4);
	assert_int_equal(n, 3);
	assert_false(json_is(r, "k"));
	assert_int_equal(json_next(r, &e), JSON_STRING);
	assert_true(json_is(r, "v"));
	assert_int_equal(json_next(r, &e), JSON_KEY);
	assert_int_equal(json_next(r, &e), JSON_NUMBER);
	assert_string_equal(json_text(r, &n), "12");
	assert_int_equal(n, 2);
	assert_false(json_is(r, "12"));
	json_reader_free(r);
}

static struct json_reader *number(const char *text)
{
	struct json_reader *r = open_text(text, strlen(text), 0);
	struct err e;

	json_next(r, &e);
	return r;
}

TEST(integers_are_exact_or_refused)
{
	static const struct {
		const char *text;
		int rc_i64, rc_u64;
		int64_t i64;
		uint64_t u64;
	} cases[] = {
		{"0", 0, 0, 0, 0},
		{"-0", 0, 0, 0, 0},
		{"-0.0e9", 0, 0, 0, 0},
		{"0e99999999999999999999", 0, 0, 0, 0},
		{"42", 0, 0, 42, 42},
		{"-42", 0, -ERANGE, -42, 0},
		{"2.0", 0, 0, 2, 2},
		{"1e3", 0, 0, 1000, 1000},
		{"1500e-2", 0, 0, 15, 15},
		{"0.0012e4", 0, 0, 12, 12},
		{"1.5", -EINVAL, -EINVAL, 0, 0},
		{"15e-1", -EINVAL, -EINVAL, 0, 0},
		{"1e-99999999999999999999", -EINVAL, -EINVAL, 0, 0},
		{"9223372036854775807", 0, 0, INT64_MAX, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0, 0, 9223372036854775808U},
		{"-9223372036854775808", 0, -ERANGE, INT64_MIN, 0},
		{"-9223372036854775809", -ERANGE, -ERANGE, 0, 0},
		{"18446744073709551615", -ERANGE, 0, 0, UINT64_MAX},
		{"1844674407370955161500e-2", -ERANGE, 0, 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, -ERANGE, 0, 0},
		{"1e20", -ERANGE, -ERANGE, 0, 0},
		{"1e99999999999999999999", -ERANGE, -ERANGE, 0, 0},
		{"\"1\"", -EINVAL, -EINVAL, 0, 0},
		{"true", -EINVAL, -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_reader *r = number(cases[i].text);
		int64_t i64 = 0;
		uint64_t u64 = 0;

		assert_int_equal(json_get_i64(r, &i64), cases[i].rc_i64);
		assert_int_equal(json_get_u64(r, &u64), cases[i].rc_u64);
		assert_true(i64 == cases[i].i64);
		assert_true(u64 == cases[i].u64);
		json_reader_free(r);
	}
}

TEST(doubles_are_read_unless_they_overflow)
{
	static const struct {
		const char *text;
		int rc;
		double v;
	} cases[] = {
		{"0.1", 0, 0.1},	   {"-2.5e-3", 0, -0.0025}, {"1e400", -ERANGE, 0},
		{"-1e400", -ERANGE, 0},	   {"1e-400", 0, 0},	    {"5e-324", 0, 5e-324},
		{"9007199254740993", 0, 9007199254740992.0},	    {"null", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_reader *r = number(cases[i].text);
		double v = 0;

		assert_int_equal(json_get_f64(r, &v), cases[i].rc);
		assert_true(v == cases[i].v);
		json_reader_free(r);
	}
}

TEST(a_number_does_not_eat_the_byte_behind_it)
{
	struct json_reader *r = open_text("[1,2]\n", 6, 0);
	struct err e;
	int64_t v;

	assert_int_equal(json_next(r, &e), JSON_ARRAY);
	assert_int_equal(json_next(r, &e), JSON_NUMBER);
	assert_int_equal(json_get_i64(r, &v), 0);
	assert_string_equal(json_text(r, NULL), "1");
	assert_int_equal(json_next(r, &e), JSON_NUMBER);
	assert_string_equal(json_text(r, NULL), "2");
	assert_int_equal(json_next(r, &e), JSON_ARRAY_END);
	assert_int_equal(json_next(r, &e), JSON_EOF);
	json_reader_free(r);
}

TEST(skip_and_copy_stop_behind_the_value)
{
	static const char text[] = "{\"a\":{\"x\":[1, 2.50 ,{}]},\"b\":[ ],\"c\":7,\"d\":\"\\u0022\"}";

	for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
		struct json_reader *r = open_text(text, sizeof(text) - 1, windows[w]);
		struct strbuf out = {0};
		struct err e;

		assert_int_equal(json_next(r, &e), JSON_OBJECT);
		assert_int_equal(json_next(r, &e), JSON_KEY);
		assert_int_equal(json_copy(r, JSON_KEY, &out, &e), 0);
		assert_string_equal(strbuf_str(&out), "{\"x\":[1,2.50,{}]}");
		assert_int_equal(json_next(r, &e), JSON_KEY);
		assert_true(json_is(r, "b"));
		assert_int_equal(json_skip(r, json_next(r, &e), &e), 0);
		assert_int_equal(json_next(r, &e), JSON_KEY);
		assert_true(json_is(r, "c"));
		assert_int_equal(json_skip(r, JSON_KEY, &e), 0);
		assert_int_equal(json_next(r, &e), JSON_KEY);
		strbuf_clear(&out);
		assert_int_equal(json_copy(r, json_next(r, &e), &out, &e), 0);
		assert_string_equal(strbuf_str(&out), "\"\\\"\"");
		assert_int_equal(json_next(r, &e), JSON_OBJECT_END);
		assert_int_equal(json_next(r, &e), JSON_EOF);
		strbuf_done(&out);
		json_reader_free(r);
	}
}

TEST(skip_checks_the_grammar)
{
	struct json_reader *r = open_text("[[1,]]", 6, 0);
	struct err e;

	assert_int_equal(json_skip(r, json_next(r, &e), &e), -EBADMSG);
	assert_int_equal(json_next(r, &e), -EBADMSG);
	json_reader_free(r);
}

TEST(depth_is_limited)
{
	enum { LEVELS = 10000 };
	char text[2 * LEVELS];
	struct json_limits deep = {.depth = LEVELS, .string_bytes = 100};
	struct json_reader *r;
	struct err e;

	memset(text, '[', LEVELS);
	memset(text + LEVELS, ']', LEVELS);
	r = json_reader_new_mem(text, sizeof(text), "FILE", NULL);
	assert_int_equal(json_skip(r, json_next(r, &e), &e), -EBADMSG);
	assert_string_equal(e.msg, "FILE:1: nested deeper than 64 levels");
	json_reader_free(r);

	r = json_reader_new_mem(text, sizeof(text), "FILE", &deep);
	assert_int_equal(json_skip(r, json_next(r, &e), &e), 0);
	assert_int_equal(json_next(r, &e), JSON_EOF);
	json_reader_free(r);

	deep.depth--;
	r = json_reader_new_mem(text, sizeof(text), "FILE", &deep);
	assert_int_equal(json_skip(r, json_next(r, &e), &e), -EBADMSG);
	assert_string_equal(e.msg, "FILE:1: nested deeper than 9999 levels");
	json_reader_free(r);
}

TEST(strings_numbers_and_copies_are_limited)
{
	static const struct {
		const char *text, *msg; /* NULL: just within the limit */
	} cases[] = {
		{"\"0123456789012345678\"", NULL},
		{"\"01234567890123456789\"", NULL},
		{"\"012345678901234567890\"", "FILE:1: string longer than 20 bytes"},
		{"\"\\t12345678901234567890\"", "FILE:1: string longer than 20 bytes"},
		{"{\"012345678901234567890\":1}", "FILE:1: string longer than 20 bytes"},
		{"12345678901234567890", NULL},
		{"123456789012345678901", "FILE:1: number longer than 20 bytes"},
		{"[123456789012345678901]", "FILE:1: number longer than 20 bytes"},
		{"[1,2,3,4,5,6,7,8,9]", NULL},
		{"[1,2,3,4,5,6,7,8,9,0]", "FILE:1: value longer than 20 bytes"},
	};

	for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct json_limits l = {4, 20, windows[w]};
			struct json_reader *r = json_reader_new_mem(
				cases[i].text, strlen(cases[i].text), "FILE", &l);
			struct strbuf out = {0};
			struct err e = {0};
			int rc = json_next(r, &e);

			/* With its quotes a string is two bytes longer than its limit. */
			if (rc != JSON_STRING)
				rc = json_copy(r, rc, &out, &e);
			assert_int_equal(rc < 0, !!cases[i].msg);
			assert_string_equal(e.msg, cases[i].msg ? cases[i].msg : "");
			strbuf_done(&out);
			json_reader_free(r);
		}
}

TEST(a_huge_string_is_refused_at_the_limit)
{
	int fd[2], status;
	struct json_reader *r;
	struct err e;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		static char block[1 << 16];
		int blocks = (1 << 30) / (int)sizeof(block);

		signal(SIGPIPE, SIG_IGN);
		close(fd[0]);
		memset(block, 'a', sizeof(block));
		block[0] = '"';
		while (blocks-- && write(fd[1], block, sizeof(block)) > 0)
			block[0] = 'a';
		_exit(blocks > 0 ? 3 : 0);
	}
	close(fd[1]);
	r = json_reader_new_fd(fd[0], "FILE", NULL);
	assert_int_equal(json_next(r, &e), -EBADMSG);
	assert_string_equal(e.msg, "FILE:1: string longer than 16777216 bytes");
	assert_true(json_offset(r) <= (16U << 20) + (256U << 10) + 1);
	json_reader_free(r);
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
}

TEST(bytes_may_come_one_by_one)
{
	static const char text[] = "\xef\xbb\xbf{\"k\": [1.5, true, \"\xe4\xbd\xa0\\n\"]}";
	struct strbuf out = {0};
	struct json_reader *r;
	struct err e;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			usleep(200);
			if (write(fd[1], text + i, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(fd[1]);
	r = json_reader_new_fd(fd[0], "FILE", NULL);
	assert_int_equal(json_echo(r, &out, 0, &e), 0);
	assert_string_equal(strbuf_str(&out), "{\"k\":[1.5,true,\"\xe4\xbd\xa0\\n\"]}");
	strbuf_done(&out);
	json_reader_free(r);
	close(fd[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(a_failed_read_is_no_end_of_the_input)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY);
	struct json_reader *r = json_reader_new_fd(fd, "FILE", NULL);
	struct err e;

	assert_int_equal(json_next(r, &e), -EISDIR);
	assert_string_equal(e.msg, "read 'FILE': Is a directory");
	assert_int_equal(json_next(r, &e), -EISDIR);
	json_reader_free(r);
	close(fd);
}

TEST(a_caller_can_refuse_what_is_valid)
{
	struct json_reader *r = open_text("[\n1]", 4, 0);
	struct err e;

	json_next(r, &e);
	json_next(r, &e);
	assert_int_equal(json_refuse(r, &e, "%d is no name", 1), -EBADMSG);
	assert_string_equal(e.msg, "FILE:2: 1 is no name");
	assert_int_equal(json_next(r, &e), -EBADMSG);
	json_reader_free(r);
}

TEST(scans_of_8_and_16_bytes_agree_with_the_definition)
{
	unsigned char text[64 + JSON_SCAN_PAD];
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t start = unit_random(&seed) % 16, plain, white, i;

		memset(text, round & 1 ? ' ' : 'x', sizeof(text));
		for (i = 0; i < sizeof(text); i++)
			if (unit_random(&seed) % 24 == 0)
				text[i] = (unsigned char)unit_random(&seed);
		text[63] = 0;
		for (plain = start; !json_is_special(text[plain]); plain++)
			;
		for (white = start; json_is_white(text[white]); white++)
			;
		assert_ptr_equal(json_plain_end(text + start), text + plain);
		assert_ptr_equal(json_plain_end_8(text + start), text + plain);
		assert_ptr_equal(json_white_end(text + start), text + white);
		assert_ptr_equal(json_white_end_8(text + start), text + white);
		assert_int_equal(json_plain_len(text + start, 64 - start), plain - start);
	}
}

/* What json_braces_end() says, byte by byte. */
static size_t braces_end(const unsigned char *p, size_t n)
{
	size_t depth = 1;

	for (size_t i = 0; i < n; i++) {
		depth += p[i] == '{';
		depth -= p[i] == '}';
		if (!depth)
			return i + 1;
	}
	return 0;
}

TEST(braces_are_counted_8_and_16_bytes_at_a_time)
{
	static const char some[] = "{}}{z|\xfb\xfd}[]~\x7b\x5d";
	unsigned char text[80 + JSON_SCAN_PAD] = {0};
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t start = unit_random(&seed) % 16, n = unit_random(&seed) % 64, expect;

		memset(text, 'x', 80);
		for (size_t i = 0; i < 80; i++)
			if (unit_random(&seed) % 12 == 0)
				text[i] = (unsigned char)some[unit_random(&seed) % (sizeof(some) - 1)];
		expect = braces_end(text + start, n);
		assert_int_equal(json_braces_end(text + start, n), expect);
		assert_int_equal(json_braces_end_8(text + start, n), expect);
	}
}

TEST(an_object_can_be_passed_over)
{
	static const char text[] = "[{\"a\":{\"b\":1}},\n{},{\"s\":\"}\"}, 7]";
	struct json_reader *r = json_reader_new_mem(text, strlen(text), "FILE", NULL);
	struct err e;
	size_t n;

	assert_int_equal(json_next(r, &e), JSON_ARRAY);
	assert_int_equal(json_next(r, &e), JSON_OBJECT);
	assert_int_equal(json_depth(r), 2);
	assert_memory_equal(json_peek_object(r, 100, &n), "\"a\":{\"b\":1}}", 12);
	assert_int_equal(n, 12);
	assert_null(json_peek_object(r, 11, &n));
	json_pass_object(r, 12);
	assert_int_equal(json_token(r), JSON_OBJECT_END);
	assert_int_equal(json_offset(r), 14);
	assert_int_equal(json_depth(r), 1);
	assert_int_equal(json_next(r, &e), JSON_OBJECT);
	assert_int_equal(json_line(r), 2);
	assert_non_null(json_peek_object(r, 100, &n));
	assert_int_equal(n, 1);
	json_pass_object(r, 1);
	/* A guess: the brace of the string ends it. The reader itself is not misled. */
	assert_int_equal(json_next(r, &e), JSON_OBJECT);
	assert_memory_equal(json_peek_object(r, 100, &n), "\"s\":\"}", 6);
	assert_int_equal(n, 6);
	assert_int_equal(json_skip(r, JSON_OBJECT, &e), 0);
	assert_int_equal(json_next(r, &e), JSON_NUMBER);
	assert_int_equal(json_next(r, &e), JSON_ARRAY_END);
	assert_int_equal(json_next(r, &e), JSON_EOF);
	json_reader_free(r);
}

TEST(utf8_is_exactly_the_scalar_values)
{
	for (uint32_t c = 0; c < 0x110000; c++) {
		char out[4];
		int len = utf8_encode(c, out);

		if (c >= 0xd800 && c <= 0xdfff) {
			assert_int_equal(utf8_seq((unsigned char *)out, (size_t)len), 0);
			continue;
		}
		assert_int_equal(utf8_seq((unsigned char *)out, (size_t)len), len);
		assert_int_equal(utf8_decode((unsigned char *)out, len), c);
		if (len > 1)
			assert_int_equal(utf8_seq((unsigned char *)out, (size_t)len - 1), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_documents_are_read_in_any_window),
		cmocka_unit_test(invalid_documents_are_refused_with_line_and_reason),
		cmocka_unit_test(line_and_offset_follow_the_tokens),
		cmocka_unit_test(text_is_decoded_terminated_and_counted),
		cmocka_unit_test(integers_are_exact_or_refused),
		cmocka_unit_test(doubles_are_read_unless_they_overflow),
		cmocka_unit_test(a_number_does_not_eat_the_byte_behind_it),
		cmocka_unit_test(skip_and_copy_stop_behind_the_value),
		cmocka_unit_test(skip_checks_the_grammar),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(strings_numbers_and_copies_are_limited),
		cmocka_unit_test(a_huge_string_is_refused_at_the_limit),
		cmocka_unit_test(bytes_may_come_one_by_one),
		cmocka_unit_test(a_failed_read_is_no_end_of_the_input),
		cmocka_unit_test(a_caller_can_refuse_what_is_valid),
		cmocka_unit_test(scans_of_8_and_16_bytes_agree_with_the_definition),
		cmocka_unit_test(braces_are_counted_8_and_16_bytes_at_a_time),
		cmocka_unit_test(an_object_can_be_passed_over),
		cmocka_unit_test(utf8_is_exactly_the_scalar_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
