/* Options that all probes share, and the sizes that follow from the host. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "ladder.h"

bool probe_refused(const struct probe_options *o, const char *probe, const char *name)
{
	size_t n = strlen(probe);

	for (size_t i = 0; o && i < o->nrefuse; i++) {
		const char *r = o->refuse[i];

		if (!*name ? !strcmp(r, probe) : !strcmp(r, name))
			return true;
		if (*name && !strncmp(r, probe, n) && r[n] == '.' && !strcmp(r + n + 1, name))
			return true;
	}
	return false;
}

static unsigned read_number(const char *path, const char *format, unsigned otherwise)
{
	CLEANUP_FCLOSE FILE *f = fopen(path, "re");
	unsigned n;

	return f && fscanf(f, format, &n) == 1 ? n : otherwise;
}

uint32_t probe_max_tasks(const struct probe_options *o)
{
	unsigned now = read_number("/proc/loadavg", "%*f %*f %*f %*u/%u", 4096);
	unsigned most = read_number("/proc/sys/kernel/pid_max", "%u", 32768);
	unsigned want = o && o->max_tasks ? o->max_tasks : now * 2 + 2048;

	return want < most ? want : most;
}
