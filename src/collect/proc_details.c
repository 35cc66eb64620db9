/* Program file, control group and chosen environment variables of a process. */
#include "proc_details.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "json.h"
#include "strbuf.h"

/* An environment may hold anything: only these, which carry no secrets, are ever kept. */
static const char *const kept[] = {
	"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
	"MASTER_PORT", "TORCHELASTIC_RUN_ID", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
	"ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "ASCEND_DEVICE_ID", "RANK_ID", "RANK_SIZE",
	"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "OMP_NUM_THREADS",
	"OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
	"MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CPU_AFFINITY_CONF", "NCCL_SOCKET_IFNAME",
	"NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET",
	"GLOO_SOCKET_IFNAME", "HCCL_IF_IP", "HCCL_SOCKET_IFNAME", "OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_JOB_ID",
	"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "VLLM_DP_RANK", "VLLM_WORKER_MULTIPROC_METHOD",
	"RAY_NODE_IP_ADDRESS", "TP_SIZE", "PP_SIZE", "DP_SIZE",
};

static const char *const container_marks[] = {
	"docker", "cri-containerd", "containerd", "crio", "libpod", "kubepods", "isulad", "lxc", "machine.slice",
};

/* An environment may be large, and its end is as good as its beginning. */
#define ENVIRON_MAX (1 << 18)

static ssize_t read_some(struct strbuf *b, uint32_t pid, const char *name, size_t most)
{
	char path[64], chunk[4096];
	CLEANUP_CLOSE int fd = -1;
	ssize_t n = 0;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (b->n < most && (n = read(fd, chunk, sizeof(chunk))) > 0)
		strbuf_addn(b, chunk, (size_t)n);
	return n < 0 ? -errno : 0;
}

/* The process's own memory is read, for which the lock of its memory map is needed. */
static ssize_t read_environ(struct strbuf *b, uint32_t pid, struct slow_reader *r)
{
	char path[64], chunk[SLOW_READ_BYTES];
	ssize_t n = 0;

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	while (b->n < ENVIRON_MAX && (n = slow_read(r, path, b->n, chunk, sizeof(chunk))) > 0)
		strbuf_addn(b, chunk, (size_t)n);
	return n < 0 ? n : 0;
}

static bool is_gone(ssize_t rc)
{
	return rc == -ENOENT || rc == -ESRCH;
}

static bool has_mark(const char *path, size_t n)
{
	for (size_t i = 0; i < sizeof(container_marks) / sizeof(*container_marks); i++)
		if (memmem(path, n, container_marks[i], strlen(container_marks[i])))
			return true;
	return false;
}

/* Whether "cpu" is among the controllers, separated by commas, of a hierarchy of version 1. */
static bool limits_cpu(const char *s, const char *end)
{
	for (const char *comma; s < end; s = comma + 1) {
		comma = memchr(s, ',', (size_t)(end - s)) ?: end;
		if (comma - s == 3 && !memcmp(s, "cpu", 3))
			return true;
	}
	return false;
}

/*
 * A line is NUMBER:CONTROLLERS:PATH. What counts is the container, else what limits CPU time: with version 1 that
 * hierarchy may have other groups than the unified one.
 */
char *proc_details_cgroup(const char *text)
{
	const char *best = NULL;
	size_t best_n = 0;
	int best_rank = 0;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *controllers = strchr(line, ':'), *path;
		int rank;
		bool root;

		end = strchrnul(line, '\n');
		path = controllers && controllers < end ? memchr(controllers + 1, ':',
								 (size_t)(end - controllers - 1))
							: NULL;
		if (!path)
			continue;
		path++;
		root = end - path < 2;
		rank = has_mark(path, (size_t)(end - path))			       ? 5
		       : !root && limits_cpu(controllers + 1, path - 1) ? 4
		       : !root && path == controllers + 2			       ? 3
		       : !root						       ? 2
									       : 1;
		if (rank <= best_rank)
			continue;
		best_rank = rank;
		best = path;
		best_n = (size_t)(end - path);
	}
	return best ? strndup(best, best_n) : NULL;
}

#define N_KEPT (sizeof(kept) / sizeof(*kept))

/* @return its number in kept, N_KEPT: it is not kept */
static size_t find_kept(const char *name, size_t n)
{
	size_t i = 0;

	while (i < N_KEPT && (strlen(kept[i]) != n || memcmp(kept[i], name, n)))
		i++;
	return i;
}

char *proc_details_environment(const char *text, size_t n)
{
	struct json_writer w;
	struct strbuf b = {0};
	struct err e;
	bool has[N_KEPT + 1] = {[N_KEPT] = true}, any = false;

	json_writer_init_strbuf(&w, &b, 0);
	json_write_object(&w);
	for (const char *s = text, *end; s < text + n; s = end + 1) {
		const char *equals;
		size_t i;

		end = memchr(s, '\0', n - (size_t)(s - text)) ?: text + n;
		equals = memchr(s, '=', (size_t)(end - s));
		i = equals ? find_kept(s, (size_t)(equals - s)) : N_KEPT;
		/* Of a variable that is there twice getenv(3) gives the first. */
		if (has[i])
			continue;
		has[i] = any = true;
		json_write_key(&w, kept[i]);
		json_write_strn(&w, equals + 1, (size_t)(end - equals - 1));
	}
	json_write_object_end(&w);
	if (json_writer_finish(&w, &e) < 0 || !any) {
		strbuf_done(&b);
		return NULL;
	}
	return b.s;
}

static void read_exe(struct proc *x)
{
	char path[64], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", x->pid);
	n = readlink(path, target, sizeof(target));
	free(x->exe);
	x->exe = n > 0 && (size_t)n < sizeof(target) ? strndup(target, (size_t)n) : NULL;
}

void proc_details_read(struct proc *x, struct slow_reader *r, uint64_t *unreadable)
{
	struct strbuf b = {0};
	ssize_t rc;

	if (x->has_details || x->kthread || x->end_ns)
		return;
	x->has_details = true;
	read_exe(x);
	rc = read_some(&b, x->pid, "cgroup", 1 << 16);
	free(x->cgroup);
	x->cgroup = rc ? NULL : proc_details_cgroup(strbuf_str(&b));
	*unreadable += rc && !is_gone(rc);
	strbuf_clear(&b);
	rc = read_environ(&b, x->pid, r);
	/* Another time. */
	if (rc == -ETIMEDOUT)
		x->has_details = false;
	free(x->environment);
	x->environment = rc ? NULL : proc_details_environment(strbuf_str(&b), b.n);
	*unreadable += rc && rc != -ETIMEDOUT && !is_gone(rc);
	strbuf_done(&b);
}
