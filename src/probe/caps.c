/* What this host and these privileges allow: asked once each, and explained by `doctor`. */
#include "caps.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "caps_pmu.h"
#include "cgroup_root.h"
#include "cleanup.h"
#include "libbpf_log.h"

static int because(char *why, size_t size, const char *what, int error)
{
	snprintf(why, size, "%s: %s", what, strerror(error));
	return 0;
}

static int probe_btf(char *why, size_t size)
{
	const char *path = "/sys/kernel/btf/vmlinux";

	return access(path, R_OK) ? because(why, size, path, errno) : 1;
}

static int has_capability(unsigned bit, char *why, size_t size)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {};

	if (syscall(SYS_capget, &head, data))
		return because(why, size, "capget", errno);
	if (data[bit / 32].effective & 1u << bit % 32)
		return 1;
	snprintf(why, size, "not among the effective capabilities of this process");
	return 0;
}

static int probe_cap_bpf(char *why, size_t size)
{
	return has_capability(CAP_BPF, why, size) || has_capability(CAP_SYS_ADMIN, why, size);
}

static int probe_cap_perfmon(char *why, size_t size)
{
	return has_capability(CAP_PERFMON, why, size) || has_capability(CAP_SYS_ADMIN, why, size);
}

static int probe_cap_sys_admin(char *why, size_t size)
{
	return has_capability(CAP_SYS_ADMIN, why, size);
}

static int has_btf_id(const char *name, enum bpf_attach_type type, char *why, size_t size)
{
	int rc = libbpf_find_vmlinux_btf_id(name, type);

	return rc > 0 ? 1 : because(why, size, name, -rc);
}

/* Loads and attaches an empty program of type tracing to @name, then takes it away. */
static int try_tracing(const char *name, enum bpf_attach_type type, char *why, size_t size)
{
	static const struct bpf_insn insns[] = {
		{.code = 0xb7}, /* r0 = 0 */
		{.code = 0x95}, /* exit */
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	int id = libbpf_find_vmlinux_btf_id(name, type);

	if (id < 0)
		return because(why, size, name, -id);
	opts.attach_btf_id = id;
	CLEANUP_CLOSE int prog =
		bpf_prog_load(BPF_PROG_TYPE_TRACING, "witty_try", "GPL", insns, 2, &opts);
	if (prog < 0)
		return because(why, size, "load", errno);
	CLEANUP_CLOSE int link = bpf_raw_tracepoint_open(NULL, prog);
	return link < 0 ? because(why, size, "attach", errno) : 1;
}

static int probe_tp_btf(char *why, size_t size)
{
	return try_tracing("sched_switch", BPF_TRACE_RAW_TP, why, size);
}

static int probe_fentry(char *why, size_t size)
{
	return try_tracing("bpf_fentry_test1", BPF_TRACE_FENTRY, why, size);
}

static int probe_kprobe(char *why, size_t size)
{
	const char *path = "/sys/bus/event_source/devices/kprobe/type";

	return access(path, R_OK) ? because(why, size, path, errno) : 1;
}

static int probe_sock_length(char *why, size_t size)
{
	return has_btf_id("sock_send_length", BPF_TRACE_RAW_TP, why, size);
}

static int probe_iter(char *why, size_t size)
{
	return has_btf_id("task_file", BPF_TRACE_ITER, why, size);
}

static int probe_iter_vma(char *why, size_t size)
{
	return has_btf_id("task_vma", BPF_TRACE_ITER, why, size);
}

static int has_map_type(enum bpf_map_type type, char *why, size_t size)
{
	int rc = libbpf_probe_bpf_map_type(type, NULL);

	if (rc > 0)
		return 1;
	return rc ? because(why, size, "create map", -rc)
		  : (snprintf(why, size, "map type not supported by this kernel"), 0);
}

static int probe_task_storage(char *why, size_t size)
{
	/* For tracing programs since v5.12 (a10787e6d58c). */
	return has_map_type(BPF_MAP_TYPE_TASK_STORAGE, why, size);
}

/* BTF lists the helpers by name. */
static int probe_task_pt_regs(char *why, size_t size)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	int id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -ENOENT;
	int found = 0;

	t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off),
			    "BPF_FUNC_task_pt_regs"))
			found = 1;
	btf__free(btf);
	if (!found)
		snprintf(why, size, "helper not in this kernel");
	return found;
}

static int probe_io_accounting(char *why, size_t size)
{
	if (!access("/proc/self/io", F_OK))
		return 1;
	snprintf(why, size, "no /proc/self/io");
	return 0;
}

static int probe_ringbuf(char *why, size_t size)
{
	return has_map_type(BPF_MAP_TYPE_RINGBUF, why, size);
}

static int probe_cgroup_sock_addr(char *why, size_t size)
{
	CLEANUP_CLOSE int fd = cgroup_root_open();

	return fd < 0 ? because(why, size, "mount point of cgroup2", -fd) : 1;
}

static int probe_pmu(char *why, size_t size)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_CPU_CYCLES};
	CLEANUP_CLOSE int fd =
		(int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? because(why, size, "not available: perf_event_open of CPU cycles", errno) : 1;
}

static int ask_pmus(int (*ask)(const struct sysroot *r, char *why, size_t size), char *why, size_t size)
{
	struct sysroot r;
	struct err e;
	int rc = sysroot_open("/", &r, &e);

	if (rc < 0)
		return because(why, size, "/", -rc);
	rc = ask(&r, why, size);
	sysroot_close(&r);
	return rc;
}

static int probe_uncore(char *why, size_t size)
{
	return ask_pmus(pmu_counts_uncore, why, size);
}

static int probe_memory_samples(char *why, size_t size)
{
	return ask_pmus(pmu_samples_memory, why, size);
}

static int probe_bpf_stats(char *why, size_t size)
{
	const char *path = "/proc/sys/kernel/bpf_stats_enabled";
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	int on = 0;

	if (!f || fscanf(f, "%d", &on) != 1)
		return because(why, size, path, errno);
	if (!on)
		snprintf(why, size, "off");
	return on;
}

static int probe_kptr(char *why, size_t size)
{
	const char *path = "/proc/sys/kernel/kptr_restrict";
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	int level = 0;

	if (!f || fscanf(f, "%d", &level) != 1)
		return because(why, size, path, errno);
	if (level < 2)
		return 1;
	snprintf(why, size, "kernel.kptr_restrict is %d", level);
	return 0;
}

static int probe_task_io(char *why, size_t size)
{
	const char *path = "/proc/self/io";

	return access(path, R_OK) ? because(why, size, path, errno) : 1;
}

static int probe_rdma_netlink(char *why, size_t size)
{
	CLEANUP_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	return fd < 0 ? because(why, size, "netlink family RDMA", errno) : 1;
}

const struct cap caps[] = {
	{"btf", "types of the running kernel, which all BPF programs need",
	 "no BPF probe works: only /proc and /sys are read",
	 "a kernel with CONFIG_DEBUG_INFO_BTF=y", probe_btf},
	{"cap_bpf", "loading BPF programs and maps", "no BPF probe works",
	 "run as root, or setcap cap_bpf,cap_perfmon+ep", probe_cap_bpf},
	{"cap_perfmon", "attaching BPF programs to tracepoints and functions", "no BPF probe works",
	 "run as root, or setcap cap_bpf,cap_perfmon+ep", probe_cap_perfmon},
	{"cap_sys_admin", "iterators over all tasks and files, destination of unconnected UDP",
	 "open files come from /proc, some UDP peers stay unknown", "run as root",
	 probe_cap_sys_admin},
	{"tp_btf", "scheduler and socket hooks at the lowest cost",
	 "scheduling is measured at about three times the cost; no bytes of sockets", "kernel 5.5",
	 probe_tp_btf},
	{"fentry", "hooks on functions where there is no tracepoint",
	 "on kernels before 6.3 socket bytes come from kprobes, at a higher cost",
	 "a kernel with CONFIG_FUNCTION_TRACER=y and BPF trampolines", probe_fentry},
	{"kprobe", "hooks on functions where neither tracepoint nor fentry works",
	 "nothing, unless sock_length and fentry are missing too", "a kernel with CONFIG_KPROBES=y",
	 probe_kprobe},
	{"sock_length", "bytes of every socket from one tracepoint",
	 "socket bytes need fentry or kprobe", "kernel 6.3", probe_sock_length},
	{"iter", "all tasks and open files of all namespaces in one pass",
	 "/proc is read instead, slower, and other network namespaces only in part",
	 "kernel 5.8 and CAP_SYS_ADMIN", probe_iter},
	{"iter_vma", "shared memory of all processes in one pass",
	 "memory maps are read from /proc instead, at about three times the cost",
	 "kernel 5.12 and CAP_SYS_ADMIN", probe_iter_vma},
	{"task_storage", "state of a thread without a hash map",
	 "scheduling is measured at more cost", "kernel 5.12", probe_task_storage},
	{"task_pt_regs", "what a thread waits for, from its system call",
	 "only how long threads are blocked", "kernel 5.15", probe_task_pt_regs},
	{"io_accounting", "what threads read and wrote while calls are watched in turns",
	 "hooks on system calls have no bound on what they cost the observed", "CONFIG_TASK_IO_ACCOUNTING",
	 probe_io_accounting},
	{"ringbuf", "events of processes and connections", "short-lived processes may be missed",
	 "kernel 5.8", probe_ringbuf},
	{"cgroup_sock_addr", "the peer of unconnected UDP messages",
	 "peers of unconnected UDP sockets are unknown",
	 "mount -t cgroup2 none /sys/fs/cgroup/unified", probe_cgroup_sock_addr},
	{"pmu", "cycles, instructions and cache misses of each thread and NUMA node", "no hardware counters",
	 "a machine, or a virtual machine with a PMU (QEMU: -cpu host,pmu=on)", probe_pmu},
	{"uncore", "memory bandwidth and links of each NUMA node", "no bandwidth of memory and links",
	 "a machine, not a virtual one, with the driver of its uncore PMU (hisi_uncore_pmu, intel_uncore, amd_uncore)",
	 probe_uncore},
	{"memory_samples", "which accesses to memory another node answers, and how long memory takes (record --sample-memory)",
	 "remote accesses are expected by placement, not measured; latency of memory is not known",
	 "a machine, not a virtual one, whose CPUs sample by PEBS (Intel), IBS (AMD, kernel 6.1) or SPE (Arm: boot with "
	 "kpti=off, and a kernel with CONFIG_ARM_SPE_PMU and CONFIG_PID_IN_CONTEXTIDR=y)", probe_memory_samples},
	{"bpf_stats", "run time of the probes themselves", "the cost of the probes is not shown",
	 "sysctl kernel.bpf_stats_enabled=1", probe_bpf_stats},
	{"task_io", "bytes from and to storage of each process", "how much of what is read was in the page cache is not known",
	 "a kernel with CONFIG_TASK_IO_ACCOUNTING and CONFIG_TASK_XACCT", probe_task_io},
	{"rdma_netlink", "queue pairs and memory regions of RDMA from the kernel",
	 "where there is RDMA, rdma -j of iproute2 is asked instead", "modprobe ib_core, where the host has RDMA devices",
	 probe_rdma_netlink},
	{"kptr", "names of kernel functions in stacks", "kernel stacks show numbers",
	 "sysctl kernel.kptr_restrict=1", probe_kptr},
};

const size_t ncaps = sizeof(caps) / sizeof(caps[0]);

enum cap_state cap_check(size_t i, const char **ret_why)
{
	/* Facts of the host, asked once for the process. */
	static enum cap_state states[sizeof(caps) / sizeof(caps[0])];
	static char whys[sizeof(caps) / sizeof(caps[0])][160];

	assert(i < ncaps);
	if (states[i] == CAP_NOT_ASKED) {
		libbpf_log_init();
		states[i] = caps[i].probe(whys[i], sizeof(whys[i])) > 0 ? CAP_PRESENT : CAP_ABSENT;
		if (states[i] == CAP_PRESENT)
			whys[i][0] = '\0';
	}
	if (ret_why)
		*ret_why = whys[i];
	return states[i];
}

enum cap_state cap_check_name(const char *name, const char **ret_why)
{
	size_t i = 0;

	while (i < ncaps && strcmp(caps[i].name, name))
		i++;
	return cap_check(i, ret_why);
}

bool cap_has(const char *name)
{
	return cap_check_name(name, NULL) == CAP_PRESENT;
}
