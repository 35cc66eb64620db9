/* The parts of probe_dump that print sockets, processes, open files and capabilities. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "caps.h"
#include "err.h"
#include "probe_dump.h"

static int dump_caps(void)
{
	for (size_t i = 0; i < ncaps; i++) {
		const char *why;
		bool has = cap_check(i, &why) == CAP_PRESENT;

		printf("cap %s %s %s\n", caps[i].name, has ? "yes" : "no", why);
	}
	return 0;
}

int dump_other(const char *what, double seconds, const struct probe_options *o, struct err *e)
{
	if (!strcmp(what, "caps"))
		return dump_caps();
	return err_msg(e, -EINVAL, "no probe '%s'", what);
}
