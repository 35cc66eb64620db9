/* Dates, durations and numbers with units; debug topics. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "units.h"

TEST(dates_are_utc_with_milliseconds)
{
	char out[CLOCK_UTC_BYTES];

	clock_format_utc(0, out);
	assert_string_equal(out, "1970-01-01T00:00:00.000Z");
	clock_format_utc(951827696789999999ULL, out);
	assert_string_equal(out, "2000-02-29T12:34:56.789Z");
}

TEST(clocks_advance_and_agree)
{
	uint64_t mono = clock_mono_ns(), boot = clock_boot_ns(), real = clock_real_ns();
	int64_t off = clock_boot_to_real_ns();
	uint64_t guess = clock_boot_ns() + (uint64_t)off, now = clock_real_ns();

	assert_true(clock_mono_ns() >= mono);
	assert_true(boot >= mono);
	assert_true(clock_mono_to_boot_ns() >= -1000000);
	assert_true(now >= real);
	/* Read one after the other; a second is far more than any delay that leaves a host usable. */
	assert_true(guess <= now + NS_PER_SEC && now <= guess + NS_PER_SEC);
}

TEST(durations_are_parsed_exactly)
{
	static const struct {
		const char *text;
		uint64_t ns;
		const char *form;
	} cases[] = {
		{"0s", 0, "0s"},
		{"10s", 10 * NS_PER_SEC, "10s"},
		{"500ms", 500 * NS_PER_MS, "500ms"},
		{"1m30s", 90 * NS_PER_SEC, "1m30s"},
		{"2min", 120 * NS_PER_SEC, "2m"},
		{"1.5s", 1500 * NS_PER_MS, "1s500ms"},
		{"0.1us", 100, "100ns"},
		{"1h2m3s4ms5us6ns", 3723004005006ULL, "1h2m3s4ms5us6ns"},
		{"36h", 36 * 3600 * NS_PER_SEC, "36h"},
		{"9223372036854775807ns", INT64_MAX, "2562047h47m16s854ms775us807ns"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = {0};
		uint64_t ns = 1;
		struct err e;

		assert_int_equal(duration_parse(cases[i].text, &ns, &e), 0);
		assert_true(ns == cases[i].ns);
		duration_format(&out, ns);
		assert_string_equal(strbuf_str(&out), cases[i].form);
		assert_int_equal(duration_parse(strbuf_str(&out), &ns, &e), 0);
		assert_true(ns == cases[i].ns);
		strbuf_done(&out);
	}
}

TEST(wrong_durations_are_refused)
{
	static const char *const wrong[] = {"",	    "10",    "s",     "-1s",   "+1s",	"1 s",
					    " 1s",  "1s ",   "1s1m",  "1s1s",  "1x",	"1.s",
					    ".5s",  "1e3s",  "0.5ns", "1m2min", "0x1s", "1.2.3s"};
	uint64_t ns = 77;
	struct err e;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(duration_parse(wrong[i], &ns, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "is no duration"));
		assert_string_equal(e.hint, "write it as 10s, 500ms or 1m30s");
	}
	assert_int_equal(duration_parse("9223372036854775808ns", &ns, &e), -ERANGE);
	assert_int_equal(duration_parse("99999999999999999999h", &ns, &e), -ERANGE);
	assert_int_equal(duration_parse("2562047h60m", &ns, &e), -ERANGE);
	assert_int_equal(ns, 77);
}

#define EXPECT(call, text)                                                                         \
	do {                                                                                       \
		struct strbuf out = {0};                                                           \
		call;                                                                              \
		assert_string_equal(strbuf_str(&out), text);                                       \
		strbuf_done(&out);                                                                 \
	} while (0)

TEST(bytes_and_rates_have_units)
{
	EXPECT(units_add_bytes(&out, 0), "0 B");
	EXPECT(units_add_bytes(&out, 1023), "1023 B");
	EXPECT(units_add_bytes(&out, 1024), "1.0 KiB");
	EXPECT(units_add_bytes(&out, 12897485), "12.3 MiB");
	EXPECT(units_add_bytes(&out, 1048575), "1.0 MiB");
	EXPECT(units_add_bytes(&out, UINT64_MAX), "16.0 EiB");
	EXPECT(units_add_rate(&out, 0), "0 B/s");
	EXPECT(units_add_rate(&out, 999.4), "999 B/s");
	EXPECT(units_add_rate(&out, 1.24e9), "1.2 GiB/s");
	EXPECT(units_add_rate(&out, 1048540), "1.0 MiB/s");
	EXPECT(units_add_rate(&out, 1e18), "909494.7 TiB/s");
}

TEST(counts_times_and_shares_have_units)
{
	EXPECT(units_add_count(&out, 0), "0");
	EXPECT(units_add_count(&out, 9999), "9999");
	EXPECT(units_add_count(&out, 12345), "12.3 k");
	EXPECT(units_add_count(&out, 4500000), "4.5 M");
	EXPECT(units_add_ns(&out, 999), "999 ns");
	EXPECT(units_add_ns(&out, 1000), "1.0 us");
	EXPECT(units_add_ns(&out, 3249999), "3.2 ms");
	EXPECT(units_add_ns(&out, 3250000), "3.3 ms");
	EXPECT(units_add_ns(&out, 59960000000), "1.0 min");
	EXPECT(units_add_ns(&out, 90 * NS_PER_SEC), "1.5 min");
	EXPECT(units_add_ns(&out, 3 * 3600 * NS_PER_SEC), "3.0 h");
	EXPECT(units_add_pct(&out, 12.34), "12.3 %");
	EXPECT(units_add_pct(&out, 0), "0.0 %");
	EXPECT(units_add_pct(&out, -0.04), "0.0 %");
	EXPECT(units_add_pct(&out, -1.25), "-1.3 %");
	EXPECT(units_add_pct(&out, 1e300), "1000000000000000.0 %");
}

/* What log_debug() writes to standard error, in @p out of 200 bytes. */
static void log_both(char *out)
{
	int fd[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	dup2(fd[1], STDERR_FILENO);
	errno = ENOENT;
	log_debug(GRAPH, "%d nodes", 7);
	log_debug(PROBE, "%s", "loaded");
	assert_int_equal(errno, ENOENT);
	dup2(saved, STDERR_FILENO);
	n = read(fd[0], out, 199);
	out[n > 0 ? n : 0] = '\0';
	close(fd[0]);
	close(fd[1]);
	close(saved);
}

TEST(topics_choose_the_debug_messages)
{
	char out[200];
	struct err e;

	log_both(out);
	assert_string_equal(out, "");
	assert_int_equal(log_init("graph,store", &e), 0);
	log_both(out);
	assert_string_equal(out, "graph: 7 nodes\n");
	assert_int_equal(log_init("all", &e), 0);
	log_both(out);
	assert_string_equal(out, "graph: 7 nodes\nprobe: loaded\n");
	assert_int_equal(log_init("graph,nonsense", &e), -EINVAL);
	assert_string_equal(e.msg, "unknown debug topic 'nonsense'");
	assert_non_null(strstr(e.hint, "all, collect, "));
	assert_int_equal(log_init(NULL, &e), 0);
	log_both(out);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_are_utc_with_milliseconds),
		cmocka_unit_test(clocks_advance_and_agree),
		cmocka_unit_test(durations_are_parsed_exactly),
		cmocka_unit_test(wrong_durations_are_refused),
		cmocka_unit_test(bytes_and_rates_have_units),
		cmocka_unit_test(counts_times_and_shares_have_units),
		cmocka_unit_test(topics_choose_the_debug_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
