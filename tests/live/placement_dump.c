/* placement_dump PID [exact] - where a process has its memory, and what it cost to find out, as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement.h"

int main(int argc, char **argv)
{
	struct placement_options o = {.proc = "/proc", .pages = 4096};
	static struct placement p;

	if (argc < 2)
		return 2;
	o.exact = argc > 2 && !strcmp(argv[2], "exact");
	if (placement_sample(&o, (uint32_t)strtoul(argv[1], NULL, 10), 1, &p) < 0) {
		fprintf(stderr, "error: process %s: %s\n", argv[1], strerror(-p.error));
		return 1;
	}
	printf("{\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"pages\":%" PRIu64 ",\"share_error\":%g,\"bytes\":{",
	       p.cpu_ns, p.wall_ns, p.sampled, p.share_error);
	for (uint32_t i = 0; i < p.nnodes; i++) {
		uint64_t all = 0;

		for (unsigned c = 0; c < PAGE_CLASSES; c++)
			all += p.nodes[i].bytes[c];
		printf("%s\"%u\":%" PRIu64, i ? "," : "", p.nodes[i].node, all);
	}
	printf("}}\n");
	return 0;
}
