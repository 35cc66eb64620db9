/* Limits: presets, files that replace some, and files that are wrong. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "limit.h"

static int read_text(struct limits *l, const char *text, struct err *e)
{
	return limits_read(l, text, strlen(text), "my.limits", e);
}

TEST(presets_change_what_they_say)
{
	struct limits l;
	struct err e;

	limits_init(&l);
	assert_true(l.v[LIMIT_hot_cpu] == 80 && l.v[LIMIT_hot_llc_miss] == 2 &&
		    l.v[LIMIT_hot_remote] == 20);
	assert_int_equal(limits_preset(&l, "hpc", &e), 0);
	assert_true(l.v[LIMIT_hot_cpu] == 90 && l.v[LIMIT_hot_llc_miss] == 3 &&
		    l.v[LIMIT_hot_remote] == 20);
	assert_int_equal(limits_preset(&l, "server", &e), 0);
	assert_true(l.v[LIMIT_hot_cpu] == 80 && l.v[LIMIT_hot_switches] == 10000 &&
		    l.v[LIMIT_hot_remote] == 30);
	assert_int_equal(limits_preset(&l, "fast", &e), -EINVAL);
	assert_string_equal(e.msg, "no preset 'fast': default, hpc or server");
	assert_string_equal(l.preset, "server");
}

TEST(every_limit_has_a_name_of_its_own_and_a_reason)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_type *t = &limit_types[i];

		assert_true(strchr(t->name, '.') && t->doc[0] && t->why[0]);
		assert_true(isfinite(t->usual) && t->usual >= 0 && isfinite(t->hpc) &&
			    isfinite(t->server));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(t->name, limit_types[k].name);
	}
}

TEST(a_file_replaces_some)
{
	struct limits l;
	struct err e;

	limits_init(&l);
	assert_int_equal(read_text(&l,
				   "# mine\n\nhot.cpu = 70 %  # of one\r\nclass.transfer=2 MiB/s\n"
				   "hot.switches = 1e3 /s\np1-2.similarity = .25",
				   &e),
			 0);
	assert_true(l.v[LIMIT_hot_cpu] == 70 && l.v[LIMIT_class_transfer] == 2097152);
	assert_true(l.v[LIMIT_hot_switches] == 1000 && l.v[LIMIT_p1_2_similarity] == 0.25);
	assert_true(l.v[LIMIT_hot_llc_miss] == 2);
	assert_int_equal(l.changed, 4);
}

TEST(a_wrong_file_changes_nothing_and_says_where)
{
	static const struct {
		const char *text, *msg;
	} wrong[] = {
	    {"hot.cpu = 70\nhot.cqu = 1\n", "limits 'my.limits' line 2: no limit 'hot.cqu'"},
	    {"hot.cpu = 70\nhot.cpu = 71\n", "limits 'my.limits' line 2: 'hot.cpu' was set before"},
	    {"hot.cpu 70\n", "limits 'my.limits' line 1: not NAME = VALUE"},
	    {"hot.cpu =\n", "limits 'my.limits' line 1: '' is no number >= 0"},
	    {"hot.cpu = -1\n", "limits 'my.limits' line 1: '-1' is no number >= 0"},
	    {"hot.cpu = nan\n", "limits 'my.limits' line 1: 'nan' is no number >= 0"},
	    {"hot.cpu = 0x10\n", "limits 'my.limits' line 1: '0x10' is no number >= 0"},
	    {"hot.cpu = 1e999\n", "limits 'my.limits' line 1: '1e999' is too large"},
	    {"hot.cpu = 10 /s\n", "limits 'my.limits' line 1: 'hot.cpu' is in %, not in '/s'"},
	    {"numa.good = 1 %\n", "limits 'my.limits' line 1: 'numa.good' is in ratio, not in '%'"},
	};
	struct limits l, before;
	struct err e;

	limits_init(&before);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		l = before;
		assert_int_equal(read_text(&l, wrong[i].text, &e), -EBADMSG);
		assert_string_equal(e.msg, wrong[i].msg);
		assert_memory_equal(l.v, before.v, sizeof(l.v));
	}
	l = before;
	assert_int_equal(limits_read(&l, "hot\0cpu", 7, "my.limits", &e), -EBADMSG);
}

TEST(what_is_written_reads_back)
{
	struct strbuf b = {0};
	struct limits l, again;
	struct err e;

	assert_int_equal(limits_preset(&l, "hpc", &e), 0);
	l.v[LIMIT_hot_cpu] = 33.25;
	l.v[LIMIT_class_transfer] = 1536;
	limits_write(&l, &b);
	assert_non_null(strstr(b.s, "hot.cpu = 33.25 %\n"));
	assert_non_null(strstr(b.s, "class.transfer = 1536 B/s\n"));
	limits_init(&again);
	assert_int_equal(limits_read(&again, b.s, b.n, "written", &e), 0);
	assert_memory_equal(l.v, again.v, sizeof(l.v));
	strbuf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(presets_change_what_they_say),
	    cmocka_unit_test(every_limit_has_a_name_of_its_own_and_a_reason),
	    cmocka_unit_test(a_file_replaces_some),
	    cmocka_unit_test(a_wrong_file_changes_nothing_and_says_where),
	    cmocka_unit_test(what_is_written_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
