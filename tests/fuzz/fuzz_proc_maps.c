/* Fuzz target of the reader of memory maps: no line may crash it, and what it hands out lies in the line. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proc_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);
	struct maps_line l;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (maps_line_parse(line, &l) &&
	    (l.path < line || l.path + l.path_bytes > line + size || l.path[l.path_bytes] || l.end <= l.start))
		abort();
	free(line);
	return 0;
}
