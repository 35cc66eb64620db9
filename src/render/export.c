/* The formats of other programs that files can be converted to. */
#include "export.h"

#include <string.h>

const struct export_format export_formats[] = {
	{".dot", "Graphviz", true, false, NULL, export_dot},
	{".svg", "picture, drawn by Graphviz's program dot", true, false, NULL, export_svg},
	{".mmd", "Mermaid flowchart, for Markdown", true, false, NULL, export_mermaid},
	{".drawio", "draw.io, boxes within boxes", true, false, NULL, export_drawio},
	{".gexf", "Gephi", true, true, NULL, export_gexf},
	{".graphml", "yEd, networkx, igraph and others", true, true, NULL, export_graphml},
	{".folded", "where the time of threads went, by state, for flamegraph.pl and speedscope", false, true,
	 "Frames are states of threads (on CPU, waits for a CPU, blocked and on what), not functions: call stacks are "
	 "not recorded",
	 export_folded},
	{".trace.json", "single waits and intervals over time, for Perfetto and chrome://tracing", false, true,
	 NULL, export_trace},
};
const size_t n_export_formats = sizeof(export_formats) / sizeof(export_formats[0]);

const struct export_format *export_find(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < n_export_formats; i++) {
		size_t k = strlen(export_formats[i].suffix);

		if (n >= k && !strcmp(path + n - k, export_formats[i].suffix))
			return &export_formats[i];
	}
	return NULL;
}
