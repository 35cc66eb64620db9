/* Limits and use of a control group, of either version. */
#include "cgroup_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What version 1 writes for no limit: the largest number of whole pages. */
#define V1_NO_LIMIT (UINT64_MAX / 4)
#define CGROUP_PATH_BYTES 4096

static bool read_file(const struct sysroot *root, struct strbuf *b, const char *mount, const char *path,
		      const char *file)
{
	strbuf_clear(b);
	return sysroot_read(root, b, "/sys/fs/cgroup%s%s/%s", mount, path, file) > 0;
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t v = strtoull(s, &end, 10);

	return end == s ? CGROUP_UNKNOWN : v;
}

/* "NAME VALUE" in a file of such lines. */
static uint64_t line_value(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = text; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
		if (!strncmp(s, name, n) && s[n] == ' ')
			return number(s + n + 1);
	return CGROUP_UNKNOWN;
}

static uint64_t scaled(uint64_t v, uint64_t by)
{
	return v == CGROUP_UNKNOWN || v > UINT64_MAX / by ? CGROUP_UNKNOWN : v * by;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234": microseconds */
static uint64_t pressure(const struct sysroot *root, struct strbuf *b, const char *mount, const char *path,
			 const char *file)
{
	const char *total = read_file(root, b, mount, path, file) ? strstr(b->s, "total=") : NULL;

	return total ? scaled(number(total + 6), 1000) : CGROUP_UNKNOWN;
}

static void copy_line(char *ret, size_t size, const char *s)
{
	size_t n = strcspn(s, "\n");

	snprintf(ret, size, "%.*s", (int)(n < size ? n : 0), s);
}

/* @return CPUs that it is worth, 0: none */
static double quota_v2(const struct sysroot *root, struct strbuf *b, const char *mount, const char *path)
{
	double quota, period;

	if (!read_file(root, b, mount, path, "cpu.max") || sscanf(b->s, "%lf %lf", &quota, &period) != 2 || period <= 0)
		return 0;
	return quota / period;
}

static void read_v2(const struct sysroot *root, struct strbuf *b, const char *mount, const char *path,
		    struct cgroup_stats *s)
{
	if (read_file(root, b, mount, path, "cpu.stat")) {
		s->cpu_ns = scaled(line_value(b->s, "usage_usec"), 1000);
		s->throttled_ns = scaled(line_value(b->s, "throttled_usec"), 1000);
		s->throttled_periods = line_value(b->s, "nr_throttled");
	}
	s->cpu_limit_cores = quota_v2(root, b, mount, path);
	if (read_file(root, b, mount, path, "memory.max"))
		s->memory_limit_bytes = number(b->s);
	if (read_file(root, b, mount, path, "memory.current"))
		s->memory_bytes = number(b->s);
	if (read_file(root, b, mount, path, "memory.stat")) {
		s->page_cache_bytes = line_value(b->s, "file");
		s->dirty_bytes = line_value(b->s, "file_dirty");
		s->writeback_bytes = line_value(b->s, "file_writeback");
	}
	if (read_file(root, b, mount, path, "cpuset.cpus.effective"))
		copy_line(s->cpuset, sizeof(s->cpuset), b->s);
	s->cpu_stalled_ns = pressure(root, b, mount, path, "cpu.pressure");
	s->memory_stalled_ns = pressure(root, b, mount, path, "memory.pressure");
	s->io_stalled_ns = pressure(root, b, mount, path, "io.pressure");
}

static bool read_v1_file(const struct sysroot *root, struct strbuf *b, const char *const *mounts, const char *path,
			 const char *file)
{
	for (; *mounts; mounts++)
		if (read_file(root, b, *mounts, path, file))
			return true;
	return false;
}

static const char *const v1_cpu[] = {"/cpu,cpuacct", "/cpu", NULL};
static const char *const v1_memory[] = {"/memory", NULL};

static double quota_v1(const struct sysroot *root, struct strbuf *b, const char *path)
{
	double quota = 0;

	if (read_v1_file(root, b, v1_cpu, path, "cpu.cfs_quota_us"))
		quota = strtod(b->s, NULL);
	if (quota <= 0 || !read_v1_file(root, b, v1_cpu, path, "cpu.cfs_period_us") || strtod(b->s, NULL) <= 0)
		return 0;
	return quota / strtod(b->s, NULL);
}

static uint64_t memory_limit_v1(const struct sysroot *root, struct strbuf *b, const char *path)
{
	uint64_t v = read_v1_file(root, b, v1_memory, path, "memory.limit_in_bytes") ? number(b->s) : CGROUP_UNKNOWN;

	return v > V1_NO_LIMIT ? CGROUP_UNKNOWN : v;
}

static void read_v1(const struct sysroot *root, struct strbuf *b, const char *path, struct cgroup_stats *s)
{
	static const char *const acct[] = {"/cpu,cpuacct", "/cpuacct", NULL};
	static const char *const cpuset[] = {"/cpuset", NULL};

	if (read_v1_file(root, b, acct, path, "cpuacct.usage"))
		s->cpu_ns = number(b->s);
	if (read_v1_file(root, b, v1_cpu, path, "cpu.stat")) {
		s->throttled_ns = line_value(b->s, "throttled_time");
		s->throttled_periods = line_value(b->s, "nr_throttled");
	}
	s->cpu_limit_cores = quota_v1(root, b, path);
	s->memory_limit_bytes = memory_limit_v1(root, b, path);
	if (read_v1_file(root, b, v1_memory, path, "memory.usage_in_bytes"))
		s->memory_bytes = number(b->s);
	if (read_v1_file(root, b, v1_memory, path, "memory.stat")) {
		s->page_cache_bytes = line_value(b->s, "total_cache");
		s->dirty_bytes = line_value(b->s, "total_dirty");
		s->writeback_bytes = line_value(b->s, "total_writeback");
	}
	if (read_v1_file(root, b, cpuset, path, "cpuset.effective_cpus") ||
	    read_v1_file(root, b, cpuset, path, "cpuset.cpus"))
		copy_line(s->cpuset, sizeof(s->cpuset), b->s);
}

static bool is_v2(const struct sysroot *root, const char *path)
{
	return sysroot_has(root, "/sys/fs/cgroup%s/cgroup.procs", path) &&
	       sysroot_has(root, "/sys/fs/cgroup/cgroup.controllers");
}

/* As another namespace names it, its files are not found from here. */
static bool is_of_here(const char *path)
{
	return path[0] == '/' && !strstr(path, "/..") && strlen(path) < CGROUP_PATH_BYTES;
}

static void add(uint64_t *sum, uint64_t v)
{
	if (v != CGROUP_UNKNOWN)
		*sum = *sum == CGROUP_UNKNOWN ? v : *sum + v;
}

/* What the quotas of the groups above it hold back. They are in no count of its own. */
static void read_above(const struct sysroot *root, struct strbuf *b, const char *path, bool v2, struct cgroup_stats *s)
{
	char above[CGROUP_PATH_BYTES];
	char *slash;

	snprintf(above, sizeof(above), "%s", path);
	while ((slash = strrchr(above, '/')) && slash != above) {
		double cores;

		*slash = '\0';
		cores = v2 ? quota_v2(root, b, "", above) : quota_v1(root, b, above);
		if (cores <= 0)
			continue;
		if (!s->cpu_limit_cores || cores < s->cpu_limit_cores)
			s->cpu_limit_cores = cores;
		if (v2 ? !read_file(root, b, "", above, "cpu.stat") : !read_v1_file(root, b, v1_cpu, above, "cpu.stat"))
			continue;
		add(&s->throttled_ns, v2 ? scaled(line_value(b->s, "throttled_usec"), 1000)
					 : line_value(b->s, "throttled_time"));
		add(&s->throttled_periods, line_value(b->s, "nr_throttled"));
	}
}

bool cgroup_has_limit(const struct sysroot *root, const char *path)
{
	struct strbuf b = {0};
	bool ret = false;

	if (!is_of_here(path) || !path[1])
		return false;
	if (is_v2(root, path))
		ret = quota_v2(root, &b, "", path) > 0 ||
		      (read_file(root, &b, "", path, "memory.max") && number(b.s) != CGROUP_UNKNOWN);
	else
		ret = quota_v1(root, &b, path) > 0 || memory_limit_v1(root, &b, path) != CGROUP_UNKNOWN;
	strbuf_done(&b);
	return ret;
}

void cgroup_stats_read(const struct sysroot *root, const char *path, struct cgroup_stats *ret)
{
	struct strbuf b = {0};

	memset(ret, 0, sizeof(*ret));
	ret->memory_limit_bytes = ret->memory_bytes = ret->cpu_ns = CGROUP_UNKNOWN;
	ret->page_cache_bytes = ret->dirty_bytes = ret->writeback_bytes = CGROUP_UNKNOWN;
	ret->throttled_ns = ret->throttled_periods = CGROUP_UNKNOWN;
	ret->cpu_stalled_ns = ret->memory_stalled_ns = ret->io_stalled_ns = CGROUP_UNKNOWN;
	if (!is_of_here(path))
		return;
	if (is_v2(root, path))
		read_v2(root, &b, "", path, ret);
	else
		read_v1(root, &b, path, ret);
	read_above(root, &b, path, is_v2(root, path), ret);
	strbuf_done(&b);
}
