/* witty-profiler schema: the registry as a document. */
#include "render.h"
#include "verb.h"

static int run(int argc, char **argv)
{
	struct strbuf b = {0};
	struct err e;
	int rc;

	if (argc > 1)
		return usage_error(&verb_schema, "too much: '%s'", argv[1]);
	render_schema_md(&b);
	rc = write_output(NULL, false, &b, &e);
	strbuf_done(&b);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

const struct verb verb_schema = {
	.name = "schema",
	.usage = "",
	.summary = "Print every entity and relation type with its fields",
	.help = "  Markdown; docs/schema.md is made so.\n",
	.run = run,
};
