/* Containers by the paths of their control groups, and what state files tell of them. */
#include "tree.h"

#include <errno.h>

#include "cgroup_path.h"
#include "cgroup_stats.h"
#include "container_names.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "3f1c2a00-1111-2222-3333-444455556666"
#define POD_ "3f1c2a00_1111_2222_3333_444455556666"

static const struct {
	const char *path, *runtime, *id, *pod, *qos;
} cases[] = {
	{"/docker/" ID, "docker", ID, "", NULL},
	{"/system.slice/docker-" ID ".scope", "docker", ID, "", NULL},
	{"/docker/" ID "/docker/" ID2, "docker", ID2, "", NULL},
	{"/../" "docker-" ID ".scope", "docker", ID, "", NULL},
	{"/kubepods/burstable/pod" POD "/" ID, "unknown", ID, POD, "burstable"},
	{"/kubepods/pod" POD "/" ID, "unknown", ID, POD, "guaranteed"},
	{"/kubepods/besteffort/pod" POD "/crio-" ID, "crio", ID, POD, "besteffort"},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope",
	 "containerd", ID, POD, "burstable"},
	{"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope", "crio", ID, POD, "guaranteed"},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/docker-" ID ".scope",
	 "docker", ID, POD, "besteffort"},
	{"/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID, "containerd", ID,
	 POD, "burstable"},
	{"/../../kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" ID ".scope", "containerd", ID, POD, "besteffort"},
	{"/../" ID, "unknown", ID, "", NULL},
	{"/../../pod" POD "/" ID, "unknown", ID, POD, NULL},
	{"/../../" ID "/init.scope", "unknown", ID, "", NULL},
	{"/kubelet.slice/kubelet-kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope", "containerd",
	 ID, POD, "guaranteed"},
	{"/k8s.io/" ID, "containerd", ID, "", NULL},
	{"/system.slice/nerdctl-" ID ".scope", "containerd", ID, "", NULL},
	{"/machine.slice/libpod-" ID ".scope/container", "podman", ID, "", NULL},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman", ID, "", NULL},
	{"/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", "podman", ID, ID2, NULL},
	{"/libpod_parent/libpod-" ID, "podman", ID, "", NULL},
	{"/isulad/" ID, "isulad", ID, "", NULL},
	{"/system.slice/isulad-" ID ".scope", "isulad", ID, "", NULL},
	{"/lxc/web", "lxc", "web", "", NULL},
	{"/lxc.payload.web", "lxc", "web", "", NULL},
	{"/lxc.payload/web/system.slice/cron.service", "lxc", "web", "", NULL},
	{"/machine.slice/systemd-nspawn@box.service/payload", "nspawn", "box", "", NULL},
	{"/", NULL, NULL, NULL, NULL},
	{"/init.scope", NULL, NULL, NULL, NULL},
	{"/system.slice/docker.service", NULL, NULL, NULL, NULL},
	{"/system.slice/containerd.service", NULL, NULL, NULL, NULL},
	{"/machine.slice/libpod-conmon-" ID ".scope", NULL, NULL, NULL, NULL},
	{"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope", NULL, NULL, NULL, NULL},
	{"/lxc.monitor.web", NULL, NULL, NULL, NULL},
	{"/user.slice/user-0.slice/session-1.scope", NULL, NULL, NULL, NULL},
	{"/system.slice/docker-proxy.service", NULL, NULL, NULL, NULL},
	{"/kubepods/burstable/pod" POD, NULL, NULL, NULL, NULL},
	{"//::/:", NULL, NULL, NULL, NULL},
	{"", NULL, NULL, NULL, NULL},
};

TEST(a_path_tells_runtime_container_and_pod)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup_name c;
		bool found = cgroup_parse(cases[i].path, &c);

		if (found != (cases[i].id != NULL))
			fail_msg("%s: %s", cases[i].path, found ? c.id : "no container");
		if (!found)
			continue;
		if (strcmp(c.runtime, cases[i].runtime) || strcmp(c.id, cases[i].id) || strcmp(c.pod, cases[i].pod))
			fail_msg("%s: %s %s %s", cases[i].path, c.runtime, c.id, c.pod);
		if (cases[i].qos ? !c.qos || strcmp(c.qos, cases[i].qos) : c.qos != NULL)
			fail_msg("%s: %s", cases[i].path, c.qos);
	}
}

static void check(const char *runtime, const char *id, const char *pod, const char *name, const char *image,
		  const char *pod_name, const char *pod_namespace)
{
	struct container_facts f;

	container_facts_read(&root, runtime, id, pod, &f);
	assert_string_equal(f.name, name);
	assert_string_equal(f.image, image);
	assert_string_equal(f.pod_name, pod_name);
	assert_string_equal(f.pod_namespace, pod_namespace);
}

TEST(docker_names_its_containers)
{
	put("/var/lib/docker/containers/" ID "/config.v2.json",
	    "{\"State\":{\"Name\":\"no\"},\"ID\":\"" ID "\",\"Config\":{\"Image\":\"vllm:1\",\"Env\":[\"Name=no\"]},"
	    "\"Name\":\"/llm\"}");
	check("docker", ID, "", "llm", "vllm:1", "", "");
	check("docker", ID2, "", "", "", "", "");
}

TEST(containerd_names_container_and_pod)
{
	put("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID2 "/config.json",
	    "{\"process\":{\"args\":[]},\"annotations\":{\"io.kubernetes.cri.container-name\":\"worker\","
	    "\"io.kubernetes.cri.container-type\":\"container\",\"io.kubernetes.cri.image-name\":\"reg/w:2\","
	    "\"io.kubernetes.cri.sandbox-name\":\"job-0\",\"io.kubernetes.cri.sandbox-namespace\":\"ml\","
	    "\"io.kubernetes.cri.sandbox-uid\":\"" POD "\"}}");
	check("containerd", ID2, POD, "worker", "reg/w:2", "job-0", "ml");
	/* A path of a pod that does not name the runtime. */
	check("unknown", ID2, POD, "worker", "reg/w:2", "job-0", "ml");
}

TEST(docker_and_cri_o_name_pods_by_labels_and_annotations)
{
	put("/var/lib/docker/containers/bbbb" ID "/config.v2.json",
	    "{\"Name\":\"/k8s_worker_job-1_ml\",\"Config\":{\"Image\":\"sha256:1\",\"Labels\":{"
	    "\"io.kubernetes.container.name\":\"worker\",\"io.kubernetes.pod.name\":\"job-1\","
	    "\"io.kubernetes.pod.namespace\":\"ml\",\"io.kubernetes.pod.uid\":\"" POD "\"}}}");
	check("docker", "bbbb" ID, POD, "k8s_worker_job-1_ml", "sha256:1", "job-1", "ml");
	put("/run/containers/storage/overlay-containers/cccc" ID "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.container.name\":\"trainer\","
	    "\"io.kubernetes.cri-o.ImageName\":\"reg/t:3\",\"io.kubernetes.cri-o.ContainerType\":\"container\","
	    "\"io.kubernetes.pod.name\":\"job-2\",\"io.kubernetes.pod.namespace\":\"dl\","
	    "\"io.kubernetes.pod.uid\":\"" POD "\"},\"process\":{}}");
	check("crio", "cccc" ID, POD, "trainer", "reg/t:3", "job-2", "dl");
	/* Where the path names no runtime, any of them may know it. */
	check("unknown", "cccc" ID, "", "trainer", "reg/t:3", "job-2", "dl");
}

TEST(containerd_names_containers_of_nerdctl_and_sandboxes)
{
	struct container_facts f;

	put("/run/containerd/io.containerd.runtime.v2.task/default/dddd" ID "/config.json",
	    "{\"annotations\":{\"nerdctl/name\":\"llm\"}}");
	check("containerd", "dddd" ID, "", "llm", "", "", "");
	put("/run/containerd/io.containerd.runtime.v1.linux/k8s.io/eeee" ID "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
	    "\"io.kubernetes.cri.sandbox-name\":\"job-3\",\"io.kubernetes.cri.sandbox-namespace\":\"ml\"}}");
	container_facts_read(&root, "containerd", "eeee" ID, POD, &f);
	assert_true(f.sandbox);
	assert_string_equal(f.pod_name, "job-3");
}

TEST(podman_lists_its_containers)
{
	put("/var/lib/containers/storage/overlay-containers/containers.json",
	    "[{\"id\":\"" ID2 "\",\"names\":[\"other\"],\"layer\":\"x\"},"
	    "{\"id\":\"" ID "\",\"names\":[\"redis\",\"second\"],\"flags\":{\"a\":1}}]");
	check("podman", ID, "", "redis", "", "", "");
	check("podman", ID2, "", "other", "", "", "");
}

TEST(folders_of_logs_name_pods_of_any_runtime)
{
	put("/var/log/pods/prod_web-7d9_" POD "/c/0.log", "");
	put("/var/log/containers/web-7d9_prod_nginx-aaaa" ID ".log", "");
	check("crio", "aaaa" ID, POD, "nginx", "", "web-7d9", "prod");
	check("crio", ID, "another", "", "", "", "");
}

TEST(a_broken_state_file_tells_nothing)
{
	put("/var/lib/isulad/engines/lcr/" ID "/config.v2.json", "{\"CommonConfig\":{\"Name\":\"x\",");
	put("/var/lib/isulad/engines/lcr/" ID2 "/config.v2.json", "{\"CommonConfig\":{\"Name\":\"y\",\"Image\":\"z\"}}");
	check("isulad", ID, "", "x", "", "", "");
	check("isulad", ID2, "", "y", "z", "", "");
}

TEST(runc_names_the_group_of_a_container)
{
	char id[64];

	put("/run/runc/box1/state.json", "{\"cgroup_paths\":{\"memory\":\"/sys/fs/cgroup/memory/my/box\","
					 "\"cpu\":\"/sys/fs/cgroup/cpu,cpuacct/my/box\"}}");
	put("/run/crun/box2/state.json", "{\"cgroup_paths\":{\"\":\"/sys/fs/cgroup/user.slice/b2\"}}");
	assert_true(container_by_state(&root, "/my/box", id, sizeof(id)));
	assert_string_equal(id, "box1");
	assert_true(container_by_state(&root, "/user.slice/b2", id, sizeof(id)));
	assert_string_equal(id, "box2");
	assert_false(container_by_state(&root, "/b2", id, sizeof(id)));
	assert_false(container_by_state(&root, "/", id, sizeof(id)));
}

TEST(limits_and_pressure_of_version_2)
{
	struct cgroup_stats s;

	put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
	put("/sys/fs/cgroup/a/cgroup.procs", "");
	put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
	put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 10\nuser_usec 4\nnr_periods 9\nnr_throttled 3\nthrottled_usec 7\n");
	put("/sys/fs/cgroup/a/memory.max", "max\n");
	put("/sys/fs/cgroup/a/memory.current", "4096\n");
	put("/sys/fs/cgroup/a/cpuset.cpus.effective", "0-3,8\n");
	put("/sys/fs/cgroup/a/cpu.pressure", "some avg10=1.00 avg60=0.00 avg300=0.00 total=55\n");
	cgroup_stats_read(&root, "/a", &s);
	assert_true(s.cpu_limit_cores > 2.49 && s.cpu_limit_cores < 2.51);
	assert_int_equal(s.cpu_ns, 10000);
	assert_int_equal(s.throttled_ns, 7000);
	assert_int_equal(s.throttled_periods, 3);
	assert_true(s.memory_limit_bytes == CGROUP_UNKNOWN);
	assert_int_equal(s.memory_bytes, 4096);
	assert_string_equal(s.cpuset, "0-3,8");
	assert_int_equal(s.cpu_stalled_ns, 55000);
	assert_true(s.io_stalled_ns == CGROUP_UNKNOWN);
}

TEST(limits_of_version_1)
{
	struct cgroup_stats s;

	put("/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "150000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/b/cpuacct.usage", "123\n");
	put("/sys/fs/cgroup/cpu,cpuacct/b/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 99\n");
	put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1048576\n");
	put("/sys/fs/cgroup/memory/b/memory.usage_in_bytes", "8192\n");
	put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
	cgroup_stats_read(&root, "/b", &s);
	assert_true(s.cpu_limit_cores > 1.49 && s.cpu_limit_cores < 1.51);
	assert_int_equal(s.cpu_ns, 123);
	assert_int_equal(s.throttled_ns, 99);
	assert_int_equal(s.memory_limit_bytes, 1048576);
	assert_int_equal(s.memory_bytes, 8192);
	cgroup_stats_read(&root, "/c", &s);
	assert_true(s.memory_limit_bytes == CGROUP_UNKNOWN);
	cgroup_stats_read(&root, "/../b", &s);
	assert_true(s.cpu_ns == CGROUP_UNKNOWN);
}

TEST(limits_of_the_groups_above_hold_too)
{
	struct cgroup_stats s;

	put("/sys/fs/cgroup/p/cgroup.procs", "");
	put("/sys/fs/cgroup/p/cpu.max", "50000 100000\n");
	put("/sys/fs/cgroup/p/cpu.stat", "usage_usec 90\nnr_throttled 2\nthrottled_usec 5\n");
	put("/sys/fs/cgroup/p/q/cgroup.procs", "");
	put("/sys/fs/cgroup/p/q/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/p/q/cpu.stat", "usage_usec 10\nnr_throttled 0\nthrottled_usec 0\n");
	put("/sys/fs/cgroup/p/q/r/cgroup.procs", "");
	put("/sys/fs/cgroup/p/q/r/cpu.max", "200000 100000\n");
	put("/sys/fs/cgroup/p/q/r/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 3\n");
	put("/sys/fs/cgroup/p/q/r/memory.stat", "anon 1\nfile 8192\nfile_mapped 3\nfile_dirty 4096\nfile_writeback 0\n");
	cgroup_stats_read(&root, "/p/q/r", &s);
	assert_true(s.cpu_limit_cores > 0.49 && s.cpu_limit_cores < 0.51);
	assert_int_equal(s.cpu_ns, 9000);
	assert_int_equal(s.throttled_ns, 8000);
	assert_int_equal(s.throttled_periods, 3);
	assert_int_equal(s.page_cache_bytes, 8192);
	assert_int_equal(s.dirty_bytes, 4096);
	assert_int_equal(s.writeback_bytes, 0);
	assert_true(cgroup_has_limit(&root, "/p"));
	assert_false(cgroup_has_limit(&root, "/p/q"));
	assert_true(cgroup_has_limit(&root, "/p/q/r"));
	assert_false(cgroup_has_limit(&root, "/"));
	assert_false(cgroup_has_limit(&root, "/../p"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_tells_runtime_container_and_pod),
		cmocka_unit_test(docker_names_its_containers),
		cmocka_unit_test(containerd_names_container_and_pod),
		cmocka_unit_test(docker_and_cri_o_name_pods_by_labels_and_annotations),
		cmocka_unit_test(containerd_names_containers_of_nerdctl_and_sandboxes),
		cmocka_unit_test(podman_lists_its_containers),
		cmocka_unit_test(folders_of_logs_name_pods_of_any_runtime),
		cmocka_unit_test(a_broken_state_file_tells_nothing),
		cmocka_unit_test(runc_names_the_group_of_a_container),
		cmocka_unit_test(limits_and_pressure_of_version_2),
		cmocka_unit_test(limits_of_version_1),
		cmocka_unit_test(limits_of_the_groups_above_hold_too),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
