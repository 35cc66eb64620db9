/* witty-profiler convert: from any graph file to any other. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "graph_json.h"
#include "graph_text.h"
#include "load.h"
#include "numa_score.h"
#include "recording.h"
#include "verb.h"

static const char *suffix(const char *path)
{
	const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');

	return dot && (!slash || dot > slash) ? dot : "";
}

static int to_recording(struct graph *g, const char *path, bool force, struct err *e)
{
	struct recording *r;
	int rc = recording_create(&r, path, force, e);

	if (rc < 0)
		return rc;
	rc = recording_add(r, g, g->meta.start_ns, g->meta.start_ns + g->meta.window_ns, e);
	rc = rc ?: recording_describe(r, g, e);
	if (rc) {
		recording_drop(r);
		unlink(path);
		return rc;
	}
	return recording_close(r, e);
}

static int to_json(struct graph *g, const char *path, bool force, bool old_only, struct err *e)
{
	struct graph_json_style style = {.old_only = old_only};
	uint64_t left_out;
	bool stdout_too = !strcmp(path, "-");
	int fd = stdout_too ? dup(STDOUT_FILENO)
			    : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);
	int rc;

	if (fd < 0) {
		rc = err_set(e, -errno, "create '%s'", path);
		return rc == -EEXIST ? err_hint(e, "use --force to replace it") : rc;
	}
	rc = graph_write_json(g, fd, &style, &left_out, e);
	if (close(fd) < 0 && !rc)
		rc = err_set(e, -errno, "write '%s'", path);
	if (rc < 0)
		return err_ctx(e, "'%s'", path);
	if (left_out)
		fprintf(stderr, "left out %" PRIu64 " items that openEuler's tool does not know\n", left_out);
	return 0;
}

static int to_text(struct graph *g, const char *path, bool force, struct err *e)
{
	struct strbuf b = {0};
	int rc;

	numa_forget_scores(g);
	graph_write_text(g, &b);
	rc = write_output(path, force, &b, e);
	strbuf_done(&b);
	return rc;
}

static int convert(const char *in, const char *out, bool force, bool old_only)
{
	const char *to = suffix(out);
	struct graph g;
	struct err e;
	int rc;

	if (strcmp(out, "-") && strcmp(to, ".json") && strcmp(to, ".wpdb") && strcmp(to, ".txt"))
		return usage_error(&verb_convert, "'%s': the suffix must be .json, .txt or .wpdb", out);
	graph_init(&g);
	rc = graph_load(&g, in, &e);
	if (!rc)
		derive_numa(&g);
	if (!rc && !strcmp(to, ".wpdb"))
		rc = to_recording(&g, out, force, &e);
	else if (!rc && !strcmp(to, ".txt"))
		rc = to_text(&g, out, force, &e);
	else if (!rc)
		rc = to_json(&g, out, force, old_only, &e);
	graph_done(&g);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"force", no_argument, NULL, 'F'},
						{"openeuler", no_argument, NULL, 'O'},
						{0}};
	bool force = false, old_only = false;
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == '?')
			return usage_error(&verb_convert, "wrong option '%s'", argv[optind - 1]);
		force |= opt == 'F';
		old_only |= opt == 'O';
	}
	if (optind + 2 != argc)
		return usage_error(&verb_convert, "an input and an output are needed");
	return convert(argv[optind], argv[optind + 1], force, old_only);
}

const struct verb verb_convert = {
	.name = "convert",
	.usage = "IN OUT [--force] [--openeuler]",
	.summary = "Convert between recordings (.wpdb), graph JSON (.json) and compact text (.txt)",
	.help = "  The input's format is told by its content, the output's by its suffix; - is JSON on a pipe.\n"
		"      --force       replace OUT if it exists\n"
		"      --openeuler   JSON with nothing that openEuler's tool does not know\n",
	.run = run,
};
