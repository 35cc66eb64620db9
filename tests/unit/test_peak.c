/* The most that memory can move: by memory modules, and by the firmware's table. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "peak_bandwidth.h"

/* A memory device of SMBIOS at @p at. @return where the next structure goes */
static uint8_t *put_module(uint8_t *at, unsigned mts, unsigned width, unsigned size, const char *locator, const char *bank)
{
	size_t n = strlen(locator) + 1;

	memset(at, 0, 0x28);
	at[0] = 17;
	at[1] = 0x28;
	at[0xa] = (uint8_t)width;
	at[0xc] = (uint8_t)(size & 0xff);
	at[0xd] = (uint8_t)(size >> 8);
	at[0x10] = 1;
	at[0x11] = *bank ? 2 : 0;
	at[0x15] = 0xff;
	at[0x16] = 0x7f; /* faster than it is run at */
	at[0x20] = (uint8_t)(mts & 0xff);
	at[0x21] = (uint8_t)(mts >> 8);
	memcpy(at + 0x28, locator, n);
	at += 0x28 + n;
	if (*bank) {
		memcpy(at, bank, strlen(bank) + 1);
		at += strlen(bank) + 1;
	}
	*at = 0;
	return at + 1;
}

static uint8_t table[4096];

TEST(modules_tell_the_peak_of_each_socket)
{
	struct peak_sockets s;
	uint8_t *at = table;

	/* Two modules on one channel take turns. */
	at = put_module(at, 3200, 64, 32768, "DIMM000", "SOCKET 0 CHANNEL 0 DIMM 0");
	at = put_module(at, 2933, 64, 32768, "DIMM001", "SOCKET 0 CHANNEL 0 DIMM 1");
	at = put_module(at, 3200, 64, 32768, "DIMM010", "SOCKET 0 CHANNEL 1 DIMM 0");
	at = put_module(at, 3200, 64, 0, "DIMM020", "SOCKET 0 CHANNEL 2 DIMM 0"); /* none there */
	at = put_module(at, 4800, 64, 32768, "DIMM100", "SOCKET 1 CHANNEL 0 DIMM 0");
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.bytes_s[0], 2 * 3200000000ull * 8);
	assert_int_equal(s.bytes_s[1], 4800000000ull * 8);
}

TEST(channels_go_by_number_or_letter)
{
	struct peak_sockets s;
	uint8_t *at;

	at = put_module(table, 4800, 64, 32768, "CPU1_DIMM_A1", "");
	at = put_module(at, 4800, 64, 32768, "CPU1_DIMM_A2", "");
	at = put_module(at, 4800, 64, 32768, "CPU1_DIMM_B1", "");
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.bytes_s[1], 2 * 4800000000ull * 8);
	at = put_module(table, 5600, 64, 32768, "P1-DIMMC1", "P1_Node0_Channel2_Dimm0");
	at = put_module(at, 5600, 64, 32768, "P1-DIMMK1", "P1_Node0_Channel10_Dimm0");
	at = put_module(at, 5600, 64, 32768, "P1-DIMML1", "P1_Node0_Channel1_Dimm0");
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.bytes_s[0] + s.bytes_s[1], 3 * 5600000000ull * 8);
}

TEST(what_is_not_clear_is_not_known)
{
	struct peak_sockets s;
	uint8_t *at;

	/* No place, or no speed: half of what there is would look like a peak. */
	at = put_module(table, 5600, 64, 32768, "CPU0_DIMM_A1", "");
	at = put_module(at, 5600, 64, 32768, "DIMM 0", "BANK 0");
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), -ENODATA);
	at = put_module(table, 0xffff, 64, 32768, "CPU0_DIMM_A1", "");
	table[0x15] = table[0x16] = 0;
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), -ENODATA);
	at = put_module(table, 3200, 64, 0, "CPU0_DIMM_A1", "");
	assert_int_equal(peak_from_dmi(table, (size_t)(at - table), &s), -ENODATA);
}

/* Each length has a block of its own, so that reading past its end is found. */
TEST(a_table_that_is_cut_off_ends)
{
	struct peak_sockets s;
	uint8_t *at = put_module(table, 3200, 64, 32768, "DIMM000", "SOCKET 0 CHANNEL 0 DIMM 0");

	for (size_t n = 0; n < (size_t)(at - table); n++) {
		uint8_t *cut = malloc(n ? n : 1);

		assert_non_null(cut);
		memcpy(cut, table, n);
		peak_from_dmi(cut, n, &s);
		assert_int_equal(s.n, 0);
		if (n > 4) {
			cut[n - 1] = cut[n - 2] = 0;
			peak_from_dmi(cut, n, &s);
		}
		free(cut);
	}
}

static void put_file(const char *root, const char *name, const char *text)
{
	char path[300], *s;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (s = path + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		mkdir(path, 0755);
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

TEST(firmware_tells_the_peak_of_each_node)
{
	char root[] = "/tmp/test_peak.XXXXXX", command[64];
	struct topo t = {0};
	struct sysroot r;
	struct peak peak;
	struct err e;

	assert_non_null(mkdtemp(root));
	put_file(root, "sys/devices/system/node/node2/access0/initiators/read_bandwidth", "204800");
	put_file(root, "sys/devices/system/node/node2/access0/initiators/write_bandwidth", "102400");
	put_file(root, "sys/devices/system/node/node2/access0/initiators/read_latency", "113");
	put_file(root, "sys/devices/system/node/node3/access0/initiators/read_latency", "4294967295");
	assert_int_equal(sysroot_open(root, &r, &e), 0);
	peak_bandwidth(&r, &t, 2, &peak);
	assert_int_equal(peak.bytes_s, 200ull << 30);
	assert_string_equal(peak.source, "hmat");
	peak_bandwidth(&r, &t, 1, &peak);
	assert_int_equal(peak.bytes_s, 0);
	assert_int_equal(idle_latency_ns(&r, 2), 113);
	assert_int_equal(idle_latency_ns(&r, 3), 0);
	assert_int_equal(idle_latency_ns(&r, 1), 0);
	sysroot_close(&r);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_tell_the_peak_of_each_socket),
		cmocka_unit_test(channels_go_by_number_or_letter),
		cmocka_unit_test(what_is_not_clear_is_not_known),
		cmocka_unit_test(a_table_that_is_cut_off_ends),
		cmocka_unit_test(firmware_tells_the_peak_of_each_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
