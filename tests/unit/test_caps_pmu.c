/* What PMUs of other machines allow, as doctor tells it. */
#include "unit.h"

#include <zlib.h>

#include "caps_pmu.h"
#include "tree.h"

#define PMUS "/sys/bus/event_source/devices"

static char why[300];

static int samples(void)
{
	why[0] = '\0';
	return pmu_samples_memory(&root, why, sizeof(why));
}

static int counts(void)
{
	why[0] = '\0';
	return pmu_counts_uncore(&root, why, sizeof(why));
}

TEST(a_machine_without_such_pmus_says_not_available)
{
	assert_int_equal(samples(), 0);
	assert_non_null(strstr(why, "not available: no mem-loads, ibs_op, arm_spe_0"));
	put(PMUS "/cpu/type", "4");
	put(PMUS "/uncore_cbox_0/type", "12");
	assert_int_equal(samples(), 0);
	assert_int_equal(counts(), 0);
	assert_non_null(strstr(why, "not available: no hisi_sccl*"));
}

static void put_packed(const char *path, const char *text)
{
	char full[300];
	gzFile f;

	put(path, "");
	snprintf(full, sizeof(full), "%s%s", folder, path);
	f = gzopen(full, "wb");
	assert_non_null(f);
	for (unsigned i = 0; i < 5000; i++)
		gzprintf(f, "CONFIG_OTHER_%u=m\n", i);
	gzputs(f, text);
	assert_int_equal(gzclose(f), Z_OK);
}

static void assert_no_pids(void)
{
	assert_int_equal(samples(), 0);
	assert_non_null(strstr(why, "CONFIG_PID_IN_CONTEXTIDR is not set"));
}

TEST(spe_needs_a_kernel_that_tells_the_cpu_who_runs)
{
	put(PMUS "/arm_spe_0/type", "9");
	put("/proc/sys/kernel/osrelease", "6.6.0-7.aarch64\n");
	/* Told nowhere: samples will show. */
	assert_int_equal(samples(), 1);
	put("/lib/modules/6.6.0-7.aarch64/config", "\nCONFIG_PID_IN_CONTEXTIDR=y\n");
	assert_int_equal(samples(), 1);
	put("/boot/config-6.6.0-7.aarch64", "CONFIG_A=y\n# CONFIG_PID_IN_CONTEXTIDR is not set\n");
	assert_no_pids();
	put_packed("/proc/config.gz", "CONFIG_PID_IN_CONTEXTIDR=y\nCONFIG_LAST=y\n");
	assert_int_equal(samples(), 1);
	put_packed("/proc/config.gz", "# CONFIG_PID_IN_CONTEXTIDR is not set\n");
	assert_no_pids();
	/* What is no archive tells nothing: the next source does. */
	put("/proc/config.gz", "\nCONFIG_PID_IN_CONTEXTIDR=y\n");
	assert_no_pids();
}

TEST(other_ways_of_sampling_do_not)
{
	put(PMUS "/ibs_op/type", "11");
	assert_int_equal(samples(), 1);
	put(PMUS "/amd_df/type", "12");
	assert_int_equal(counts(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_machine_without_such_pmus_says_not_available),
	    cmocka_unit_test(spe_needs_a_kernel_that_tells_the_cpu_who_runs),
	    cmocka_unit_test(other_ways_of_sampling_do_not),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
