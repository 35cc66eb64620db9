/* What is kept of a control group and of an environment. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "proc_details.h"

static void check_cgroup(const char *text, const char *want)
{
	char *got = proc_details_cgroup(text);

	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	free(got);
}

TEST(the_group_of_a_container_is_preferred)
{
	check_cgroup("12:memory:/docker/0123abc\n1:name=systemd:/init.scope\n0::/\n", "/docker/0123abc");
	check_cgroup("0::/system.slice/ssh.service\n", "/system.slice/ssh.service");
	check_cgroup("3:cpu,cpuacct:/\n0::/user.slice/session-1.scope\n", "/user.slice/session-1.scope");
	check_cgroup("3:cpu,cpuacct:/a\n2:memory:/b", "/a");
	/* Quotas are in the hierarchy of the CPU where version 1 has it. */
	check_cgroup("4:memory:/b\n3:cpuacct,cpu:/a\n0::/user.slice\n", "/a");
	check_cgroup("4:cpuset:/b\n0::/user.slice\n", "/user.slice");
	check_cgroup("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-9.scope\n",
		     "/kubepods.slice/kubepods-pod1.slice/cri-containerd-9.scope");
}

TEST(a_path_may_hold_colons)
{
	check_cgroup("0::/a:b\n", "/a:b");
}

TEST(what_is_no_group_gives_none)
{
	check_cgroup("", NULL);
	check_cgroup("no group\n:\n", NULL);
}

static void check_environment(const char *env, size_t n, const char *want)
{
	char *got = proc_details_environment(env, n);

	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	free(got);
}

#define ENV(s, want) check_environment(s, sizeof(s) - 1, want)

TEST(only_chosen_variables_are_kept)
{
	ENV("HOME=/root\0RANK=3\0AWS_SECRET_ACCESS_KEY=x\0WORLD_SIZE=8\0", "{\"RANK\":\"3\",\"WORLD_SIZE\":\"8\"}");
	ENV("XRANK=1\0RANKX=2\0", NULL);
	ENV("", NULL);
}

TEST(the_first_of_two_counts_and_the_end_may_be_missing)
{
	ENV("RANK=1\0RANK=2\0LOCAL_RANK=\"q\\", "{\"RANK\":\"1\",\"LOCAL_RANK\":\"\\\"q\\\\\"}");
	ENV("RANK", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_group_of_a_container_is_preferred),
		cmocka_unit_test(a_path_may_hold_colons),
		cmocka_unit_test(what_is_no_group_gives_none),
		cmocka_unit_test(only_chosen_variables_are_kept),
		cmocka_unit_test(the_first_of_two_counts_and_the_end_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
