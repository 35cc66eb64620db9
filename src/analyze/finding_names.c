/* Names of severities, layers and verdicts, as reports print them. */
#include <errno.h>
#include <string.h>

#include "finding.h"

static const char *const severities[] = {"info", "notice", "warning", "critical"};

const char *severity_name(enum severity s)
{
	return severities[s];
}

const char *severity_priority(enum severity s)
{
	static const char *const names[] = {"-", "P2", "P1", "P0"};

	return names[s];
}

int severity_find(const char *name, enum severity *ret)
{
	for (int i = 0; i < SEVERITY_COUNT; i++)
		if (!strcmp(name, severities[i])) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

const char *layer_name(enum layer l)
{
	static const char *const names[] = {"compute", "memory",        "interconnect", "network",
					    "storage", "control plane", "data plane"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == LAYER_COUNT, "a layer without a name");

	return names[l];
}

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {"clear", "fired", "not evaluated"};

	return names[v];
}
