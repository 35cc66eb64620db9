/* The map from 128-bit keys to numbers. */
#include "unit.h"

#include "idmap.h"

TEST(an_empty_map_knows_nothing)
{
	struct idmap m = {0};

	assert_int_equal(idmap_get(&m, 0, 0), IDMAP_NONE);
	idmap_clear(&m);
	idmap_done(&m);
	idmap_done(&m);
}

TEST(both_halves_of_the_key_count)
{
	struct idmap m = {0};

	idmap_put(&m, 1, 2, 10);
	idmap_put(&m, 2, 1, 20);
	idmap_put(&m, 0, 0, 0);
	assert_int_equal(idmap_get(&m, 1, 2), 10);
	assert_int_equal(idmap_get(&m, 2, 1), 20);
	assert_int_equal(idmap_get(&m, 0, 0), 0);
	assert_int_equal(idmap_get(&m, 1, 1), IDMAP_NONE);
	assert_int_equal(idmap_get(&m, 1, UINT64_MAX), IDMAP_NONE);
	assert_int_equal(m.n, 3);
	idmap_done(&m);
}

TEST(a_new_value_replaces)
{
	struct idmap m = {0};

	for (uint32_t v = 0; v < 1000; v++)
		idmap_put(&m, 5, 5, v);
	assert_int_equal(idmap_get(&m, 5, 5), 999);
	assert_int_equal(m.n, 1);
	idmap_put(&m, 5, 5, IDMAP_NONE - 1);
	assert_true(idmap_get(&m, 5, 5) == IDMAP_NONE - 1);
	idmap_done(&m);
}

TEST(keys_survive_growth)
{
	struct idmap m = {0};

	for (uint32_t i = 0; i < 100000; i++)
		idmap_put(&m, i % 300, (uint64_t)i << 32, i);
	assert_int_equal(m.n, 100000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(idmap_get(&m, i % 300, (uint64_t)i << 32), i);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(idmap_get(&m, i, ((uint64_t)i << 32) + 1), IDMAP_NONE);
	idmap_done(&m);
}

TEST(a_cleared_map_is_usable)
{
	struct idmap m = {0};

	for (uint32_t i = 0; i < 100; i++)
		idmap_put(&m, i, 0, i);
	idmap_clear(&m);
	assert_int_equal(m.n, 0);
	assert_int_equal(idmap_get(&m, 7, 0), IDMAP_NONE);
	idmap_put(&m, 7, 0, 70);
	assert_int_equal(idmap_get(&m, 7, 0), 70);
	assert_int_equal(idmap_get(&m, 8, 0), IDMAP_NONE);
	idmap_done(&m);
}

TEST(a_hash_sees_each_byte_the_length_and_the_seed)
{
	unsigned char data[40] = {0};
	uint64_t all = hash_bytes(data, sizeof(data), 1);

	for (size_t i = 0; i < sizeof(data); i++) {
		data[i] = 1;
		assert_true(hash_bytes(data, sizeof(data), 1) != all);
		data[i] = 0;
		assert_true(hash_bytes(data, i, 1) != all);
	}
	assert_true(hash_bytes(data, sizeof(data), 1) == all);
	assert_true(hash_bytes(data, sizeof(data), 2) != all);
	assert_true(hash_bytes(NULL, 0, 1) == hash_bytes(data, 0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_knows_nothing),
		cmocka_unit_test(both_halves_of_the_key_count),
		cmocka_unit_test(a_new_value_replaces),
		cmocka_unit_test(keys_survive_growth),
		cmocka_unit_test(a_cleared_map_is_usable),
		cmocka_unit_test(a_hash_sees_each_byte_the_length_and_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
