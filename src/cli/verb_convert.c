/* witty-profiler convert: from any graph file to any other. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "graph_json.h"
#include "graph_text.h"
#include "load.h"
#include "numa_score.h"
#include "options.h"
#include "recording.h"

/* A number that no option was given for. */
#define NOT_GIVEN UINT64_MAX

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

struct convert_args {
	const char *in, *out;
	const char *format; /* suffix of the output without the dot; NULL: its own */
	bool force, old_only;
	bool has_top, has_picture; /* options of pictures were given */
	struct picture_options picture;
};

static int export(const struct convert_args *a, const struct export_format *f, struct graph *g,
		  const struct timeline *time, struct err *e)
{
	struct export_input in = {.g = g, .time = time};
	struct picture_options o = a->picture;
	struct strbuf b = {0};
	struct topology t;
	struct picture p;
	int rc;

	if (!a->has_top)
		o.top = f->whole ? 0 : EXPORT_TOP;
	o.alone = f->whole;
	if (f->draws) {
		topology_init(&t, g);
		picture_init(&p, &t, &o);
		in.picture = &p;
	}
	rc = f->write(&in, &b, e);
	rc = rc < 0 ? err_ctx(e, "'%s'", a->out) : write_output(a->out, a->force, &b, e);
	if (f->draws && !rc && p.left_out)
		fprintf(stderr, "note: %s\n", p.left_out);
	if (f->note && !rc)
		fprintf(stderr, "note: %s\n", f->note);
	if (f->draws) {
		picture_done(&p);
		topology_done(&t);
	}
	strbuf_done(&b);
	return rc;
}

bool can_write_graph(const char *path)
{
	const char *to = suffix(path);

	return !strcmp(to, ".wpdb") || !strcmp(to, ".json") || !strcmp(to, ".txt");
}

int write_graph(struct graph *g, const char *path, bool force, struct err *e)
{
	const char *to = suffix(path);

	return !strcmp(to, ".wpdb")  ? to_recording(g, path, force, e)
	       : !strcmp(to, ".txt") ? to_text(g, path, force, e)
				     : to_json(g, path, force, false, e);
}

static int write_as(const struct convert_args *a, const char *to, struct graph *g, const struct timeline *time,
		    struct err *e)
{
	const struct export_format *f = export_find(to);

	if (f)
		return export(a, f, g, time, e);
	if (!strcmp(to, ".wpdb"))
		return to_recording(g, a->out, a->force, e);
	if (!strcmp(to, ".txt"))
		return to_text(g, a->out, a->force, e);
	return to_json(g, a->out, a->force, a->old_only, e);
}

/* ".json", or NULL: there is no such format. */
static const char *target(const struct convert_args *a)
{
	static const char *const own[] = {".json", ".txt", ".wpdb"};
	char with_dot[32];
	const struct export_format *f;
	const char *to = a->format ? with_dot : !strcmp(a->out, "-") ? ".json" : suffix(a->out);

	if (a->format)
		snprintf(with_dot, sizeof(with_dot), "%s%s", *a->format == '.' ? "" : ".", a->format);
	/* First, as ".trace.json" ends in ".json". */
	f = export_find(a->format ? with_dot : a->out);
	if (f)
		return f->suffix;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(to, own[i]))
			return own[i];
	return NULL;
}

static int convert(const struct convert_args *a)
{
	const char *to = target(a);
	const struct export_format *f = to ? export_find(to) : NULL;
	struct timeline time = {0};
	struct graph g;
	struct err e;
	int rc;

	if (!to)
		return usage_error(&verb_convert, "'%s': no format has that name; the help lists them",
				   a->format ? a->format : a->out);
	if (a->has_picture && !(f && f->draws))
		return usage_error(&verb_convert, "--level, --min-rate and --top are for pictures, not for '%s'", to);
	if (!strcmp(to, ".wpdb") && !strcmp(a->out, "-"))
		return usage_error(&verb_convert, "a recording cannot be written to a pipe");
	graph_init(&g);
	rc = f && !f->draws ? graph_load_timed(&g, &time, a->in, &e) : graph_load(&g, a->in, &e);
	if (!rc) {
		derive_numa(&g);
		rc = write_as(a, to, &g, &time, &e);
	}
	timeline_done(&time);
	graph_done(&g);
	return rc < 0 ? fail(&e) : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct convert_args a = {0};
	uint64_t min_rate_bps = NOT_GIVEN, top = NOT_GIVEN;
	const char *level = NULL;
	const struct verb_option options[] = {
		{"force", 0, OPTION_FLAG, &a.force},
		{"format", 'f', OPTION_TEXT, &a.format},
		{"openeuler", 0, OPTION_FLAG, &a.old_only},
		{"level", 0, OPTION_CHOICE, &level, "process, container or host"},
		{"min-rate", 0, OPTION_NUMBER, &min_rate_bps},
		{"top", 'n', OPTION_NUMBER, &top},
		{0}};
	int first;

	if (parse_options(&verb_convert, options, argc, argv, &first))
		return EXIT_USAGE;
	if (first + 2 != argc)
		return usage_error(&verb_convert, "an input and an output are needed");
	a.in = argv[first];
	a.out = argv[first + 1];
	if (level)
		picture_level_find(level, &a.picture.level);
	if (min_rate_bps != NOT_GIVEN)
		a.picture.min_rate_bps = (double)min_rate_bps;
	a.has_top = top != NOT_GIVEN;
	if (a.has_top)
		a.picture.top = top;
	a.has_picture = level || min_rate_bps != NOT_GIVEN || a.has_top;
	return convert(&a);
}

static void more_help(void)
{
	printf("\nformats, by the end of the output's name:\n"
	       "  %-13s recording\n  %-13s graph of all entities and relations\n"
	       "  %-13s the same as compact text\n", ".wpdb", ".json", ".txt");
	for (size_t i = 0; i < n_export_formats; i++)
		printf("  %-13s %s\n", export_formats[i].suffix, export_formats[i].doc);
}

const struct verb verb_convert = {
	.name = "convert",
	.usage = "IN OUT [OPTION]...",
	.summary = "Convert between recordings, graphs and compact text, and to files of other programs",
	.help = "  The input's format is told by its content, the output's by its suffix; - is a pipe, of JSON\n"
		"  unless --format says otherwise.\n"
		"  -f, --format SUFFIX   format of the output, whatever its name: json, dot, ...\n"
		"      --force           replace OUT if it exists\n"
		"      --openeuler       JSON with nothing that openEuler's tool does not know\n"
		"Pictures and graphs of other programs (.dot to .graphml):\n"
		"      --level LEVEL     a box for each process (default), container or host\n"
		"      --min-rate N      only links of N bytes a second or more\n"
		"  -n, --top N           at most N boxes, those of the largest links; 0: all (default 50;\n"
		"                        .gexf and .graphml: all)\n",
	.more_help = more_help,
	.run = run,
};
