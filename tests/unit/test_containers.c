/* Hash map, interned strings and sets of ids. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "idrange.h"
#include "map.h"
#include "strtab.h"

static uint64_t one_bucket(uint64_t key)
{
	return key % 3;
}

MAP_DEFINE(good_map, uint64_t, int, hash_u64, map_equal)
MAP_DEFINE(bad_map, uint64_t, int, one_bucket, map_equal)

/* The same random steps against a plain array; with the bad hash everything collides. */
#define MODEL_TEST(map, keys, steps)                                                               \
	do {                                                                                       \
		int model[keys] = {0}; /* 0: absent */                                             \
		struct map m = {0};                                                                \
		uint64_t seed = 5;                                                                 \
		size_t n = 0;                                                                      \
                                                                                                   \
		for (int i = 1; i <= (steps); i++) {                                               \
			uint64_t key = unit_random(&seed) % (keys);                                \
			bool is_new;                                                               \
                                                                                                   \
			if (unit_random(&seed) % 2) {                                              \
				*map##_put(&m, key, &is_new) = i;                                  \
				assert_int_equal(is_new, !model[key]);                             \
				n += !model[key];                                                  \
				model[key] = i;                                                    \
			} else {                                                                   \
				assert_int_equal(map##_del(&m, key), !!model[key]);                \
				n -= !!model[key];                                                 \
				model[key] = 0;                                                    \
			}                                                                          \
			assert_int_equal(m.n, n);                                                  \
		}                                                                                  \
		for (uint64_t key = 0; key < (keys); key++) {                                      \
			int *v = map##_get(&m, key);                                               \
                                                                                                   \
			assert_int_equal(v ? *v : 0, model[key]);                                  \
		}                                                                                  \
		for (size_t at = 0; map##_next(&m, &at);)                                          \
			n--;                                                                       \
		assert_int_equal(n, 0);                                                            \
		map##_clear(&m);                                                                   \
		assert_null(map##_get(&m, 1));                                                     \
		map##_done(&m);                                                                    \
	} while (0)

TEST(a_map_holds_what_was_put_and_not_deleted)
{
	MODEL_TEST(good_map, 1000, 100000);
	MODEL_TEST(bad_map, 40, 20000);
}

TEST(a_map_is_empty_at_first_and_zeroes_new_values)
{
	struct good_map m = {0};
	size_t at = 0;

	assert_null(good_map_get(&m, 0));
	assert_false(good_map_del(&m, 0));
	assert_null(good_map_next(&m, &at));
	*good_map_put(&m, 0, NULL) = 7;
	assert_true(good_map_del(&m, 0));
	assert_int_equal(*good_map_put(&m, 0, NULL), 0);
	good_map_done(&m);
}

TEST(a_map_iterates_over_each_entry_once)
{
	struct good_map m = {0};
	struct good_map_slot *s;
	uint64_t sum = 0;

	for (uint64_t i = 1; i <= 5000; i++)
		*good_map_put(&m, i << 32, NULL) = (int)i;
	for (size_t at = 0; (s = good_map_next(&m, &at));) {
		assert_int_equal(s->key >> 32, s->value);
		sum += (uint64_t)s->value;
	}
	assert_int_equal(sum, 5000 * 5001 / 2);
	good_map_done(&m);
}

TEST(a_hash_changes_half_of_its_bits)
{
	uint64_t seed = 9, changed = 0;
	const int rounds = 2000;

	for (int i = 0; i < rounds; i++) {
		uint64_t v = unit_random(&seed);

		changed += (uint64_t)__builtin_popcountll(hash_u64(v) ^
							  hash_u64(v ^ 1ULL << i % 64));
	}
	assert_in_range(changed, (uint64_t)rounds * 31, (uint64_t)rounds * 33);
	assert_true(hash_pair(1, 2) != hash_pair(2, 1));
}

TEST(equal_strings_have_one_address)
{
	struct arena a;
	struct strtab t;
	const char *first;

	arena_init(&a);
	strtab_init(&t, &a);
	assert_null(strtab_find(&t, "x", 1));
	first = strtab_intern(&t, "text", 4);
	assert_string_equal(first, "text");
	assert_ptr_equal(strtab_intern(&t, "text and more", 4), first);
	assert_ptr_equal(strtab_add(&t, "text"), first);
	assert_ptr_equal(strtab_find(&t, "text", 4), first);
	assert_ptr_not_equal(strtab_intern(&t, "te\0t", 4), strtab_intern(&t, "te\0s", 4));
	assert_string_equal(strtab_intern(&t, "", 0), "");
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 10000; i++) {
			char text[16];
			int n = snprintf(text, sizeof(text), "s%d", i);

			assert_string_equal(strtab_intern(&t, text, (size_t)n), text);
		}
	assert_int_equal(t.n, 10000 + 4);
	assert_ptr_equal(strtab_add(&t, "text"), first);
	strtab_done(&t);
	arena_done(&a);
}

TEST(id_lists_are_parsed_and_formatted)
{
	static const struct {
		const char *text, *form;
		size_t count;
	} cases[] = {
		{"", "", 0},
		{"\n", "", 0},
		{"0", "0", 1},
		{"0-3,8\n", "0-3,8", 5},
		{"8,0-3", "0-3,8", 5},
		{"1,2,3", "1-3", 3},
		{"5-5", "5", 1},
		{"0-9,5-20", "0-20", 21},
		{"63,64,127-128", "63-64,127-128", 4},
		{"144-167,1048575", "144-167,1048575", 25},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct idrange r = {0}, again = {0};
		struct strbuf out = {0};
		struct err e;
		size_t n = 0;

		assert_int_equal(idrange_parse(cases[i].text, &r, &e), 0);
		assert_int_equal(idrange_count(&r), cases[i].count);
		idrange_format(&r, &out);
		assert_string_equal(strbuf_str(&out), cases[i].form);
		for (int64_t id = -1; (id = idrange_next(&r, id + 1)) >= 0; n++)
			assert_true(idrange_has(&r, (uint32_t)id));
		assert_int_equal(n, cases[i].count);
		assert_int_equal(idrange_parse(strbuf_str(&out), &again, &e), 0);
		assert_true(idrange_equal(&r, &again));
		idrange_add(&again, 500);
		assert_false(idrange_equal(&r, &again));
		idrange_done(&r);
		idrange_done(&again);
		strbuf_done(&out);
	}
}

TEST(wrong_id_lists_are_refused)
{
	static const struct {
		const char *text;
		int rc;
	} cases[] = {
		{"a", -EINVAL},	   {"1,", -EINVAL},  {",1", -EINVAL},	  {"3-1", -EINVAL},
		{"1-", -EINVAL},   {"-1", -EINVAL},  {"1--2", -EINVAL},	  {"1 2", -EINVAL},
		{" 1", -EINVAL},   {"0x1", -EINVAL}, {"1048576", -ERANGE}, {"0-4294967296", -ERANGE},
		{"1-2-3", -EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct idrange r = {0};
		struct err e = {0};

		assert_int_equal(idrange_parse(cases[i].text, &r, &e), cases[i].rc);
		assert_non_null(strstr(e.msg, cases[i].text));
		assert_int_equal(idrange_count(&r), 0);
		assert_null(r.bits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_holds_what_was_put_and_not_deleted),
		cmocka_unit_test(a_map_is_empty_at_first_and_zeroes_new_values),
		cmocka_unit_test(a_map_iterates_over_each_entry_once),
		cmocka_unit_test(a_hash_changes_half_of_its_bits),
		cmocka_unit_test(equal_strings_have_one_address),
		cmocka_unit_test(id_lists_are_parsed_and_formatted),
		cmocka_unit_test(wrong_id_lists_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
