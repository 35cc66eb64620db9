/* Counts events with perf_event_open(2): see perf_count.h. */
#include "perf_count.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int count_open(uint32_t type, const uint64_t config[3], pid_t pid, int cpu, bool inherit, struct err *e)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config[0],
		.config1 = config[1],
		.config2 = config[2],
		.inherit = inherit,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		return fd;
	err_set(e, -errno, "count event 0x%llx of PMU type %u", (unsigned long long)config[0], type);
	if (e->code == -EACCES || e->code == -EPERM)
		err_hint(e, "needs CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1");
	return e->code;
}

int count_read(int fd, struct count *ret)
{
	uint64_t v[3];
	ssize_t n = read(fd, v, sizeof(v));

	if (n != (ssize_t)sizeof(v))
		return n < 0 ? -errno : -EIO;
	*ret = (struct count){v[0], v[1], v[2]};
	return 0;
}

bool count_scaled(uint64_t raw, uint64_t enabled_ns, uint64_t running_ns, uint64_t *ret)
{
	__extension__ unsigned __int128 scaled;

	/* A task that did not run had no need of a counter. */
	if (!enabled_ns && !raw) {
		*ret = 0;
		return true;
	}
	if (!running_ns || running_ns > enabled_ns)
		return false;
	scaled = (__extension__ (unsigned __int128)raw * enabled_ns + running_ns / 2) / running_ns;
	if (scaled > INT64_MAX)
		return false;
	*ret = (uint64_t)scaled;
	return true;
}

bool count_between(const struct count *before, const struct count *after, uint64_t *ret)
{
	if (after->enabled_ns < before->enabled_ns || after->running_ns < before->running_ns)
		return false;
	return count_scaled(after->raw - before->raw, after->enabled_ns - before->enabled_ns,
			    after->running_ns - before->running_ns, ret);
}
