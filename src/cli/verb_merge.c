/* witty-profiler merge: the recordings of several hosts become one graph. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts.h"
#include "load.h"
#include "options.h"
#include "stitch.h"

#define HOST_NAME_BYTES 80

struct input {
	const char *path;
	char name[HOST_NAME_BYTES]; /* of its host; empty: as the file says */
	struct graph g;
	struct host_identity id;
};

struct merge_args {
	const char *output;
	uint64_t clock_ns;
	bool force;
	VEC(struct input) inputs;
};

/* [NAME=]FILE; a file whose own name has a "=" goes by that. */
static int add_input(struct merge_args *a, const char *word)
{
	const char *sign = strchr(word, '=');
	struct input *in = vec_add(&a->inputs);

	in->path = word;
	if (!sign || !access(word, F_OK))
		return 0;
	in->path = sign + 1;
	if (sign == word || (size_t)(sign - word) >= sizeof(in->name))
		return usage_error(&verb_merge, "'%s': a name has 1 to 64 characters", word);
	memcpy(in->name, word, (size_t)(sign - word));
	if (!is_host_name(in->name))
		return usage_error(&verb_merge,
				   "'%s' is no name of a host: letters, digits, . _ - : only",
				   in->name);
	return 0;
}

static int load(struct merge_args *a, struct err *e)
{
	vec_for(&a->inputs, in)
		graph_init(&in->g);
	vec_for(&a->inputs, in) {
		int rc = graph_load(&in->g, in->path, e);

		if (rc < 0)
			return rc;
		in->id = host_identity_of(&in->g);
	}
	return 0;
}

/* A file that does not tell is called as the file is. */
static void name_of(struct input *in)
{
	const char *name = in->id.host_id ?: in->id.hostname, *slash = strrchr(in->path, '/');
	size_t n;

	if (in->name[0])
		return;
	if (!name)
		name = slash ? slash + 1 : in->path;
	n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");
	snprintf(in->name, sizeof(in->name), "%.*s", n && n <= 64 ? (int)n : 4, n ? name : "host");
}

static struct input *same_name(struct merge_args *a, const struct input *in)
{
	vec_for(&a->inputs, x)
		if (x < in && !strcmp(x->name, in->name))
			return x;
	return NULL;
}

/* A graph that was merged before has hosts of its own. */
static bool has_host(const struct graph *g, const char *name)
{
	vec_for(&g->nodes, n)
		if (!strcmp((*n)->ns, name))
			return true;
	return false;
}

static int check_inside(struct merge_args *a, struct err *e)
{
	vec_for(&a->inputs, in)
		vec_for(&a->inputs, x)
			if (has_host(&x->g, in->name)) {
				err_msg(e, -EINVAL, "'%s' has a host '%s' of its own", x->path,
					in->name);
				return err_hint(e, "name the other one: NAME=%.200s", in->path);
			}
	return 0;
}

static int check_hosts(struct merge_args *a, struct err *e)
{
	vec_for(&a->inputs, in) {
		bool named = in->name[0] != '\0';

		vec_for(&a->inputs, x)
			if (x < in && !named && host_is_same(&x->id, &in->id)) {
				err_msg(e, -EINVAL, "'%s' and '%s' are of the same host '%s'",
					x->path, in->path, x->name);
				return err_hint(e, "merge is for different hosts; containers and "
						   "copies are told apart by "
						   "NAME=FILE, or by record --host-id");
			}
		name_of(in);
		/* Two hosts of one name: the boot tells them apart, and stays the same from file to
		 * file. */
		if (same_name(a, in) && !named && in->id.boot_id && strlen(in->name) < 64) {
			size_t n = strlen(in->name);

			snprintf(in->name + n, sizeof(in->name) - n, "-%.8s", in->id.boot_id);
		}
		if (same_name(a, in)) {
			err_msg(e, -EINVAL, "two hosts are called '%s'", in->name);
			return err_hint(e, "name them: NAME=FILE");
		}
	}
	return check_inside(a, e);
}

static void tell(const struct merge_args *a, const struct stitched *s)
{
	fprintf(stderr, "%zu hosts:", a->inputs.n);
	vec_for(&a->inputs, in)
		fprintf(stderr, " %s", in->name);
	fprintf(stderr,
		"\n%zu connections between them, %zu flows; %zu ends with the other end elsewhere, "
		"%zu ambiguous\n",
		s->joined / 2, s->flows, s->alone, s->ambiguous);
	if (s->queue_pairs || s->queue_pairs_ambiguous)
		fprintf(stderr, "%zu connected queue pairs, %zu ambiguous\n", s->queue_pairs / 2,
			s->queue_pairs_ambiguous);
}

static int merge(struct merge_args *a, struct err *e)
{
	struct stitched found;
	struct graph all, joined;
	int rc = load(a, e);

	rc = rc ?: check_hosts(a, e);
	if (rc)
		return rc;
	graph_init(&all);
	graph_init(&joined);
	vec_for(&a->inputs, in) {
		hosts_add(&all, &in->g, in->name);
		graph_done(&in->g);
	}
	stitch(&joined, &all, a->clock_ns, &found);
	hosts_copy_about(&joined, &all);
	rc = write_graph(&joined, a->output, a->force, e);
	if (!rc)
		tell(a, &found);
	graph_done(&joined);
	graph_done(&all);
	return rc;
}

static int run(int argc, char **argv)
{
	struct merge_args a = {.clock_ns = STITCH_CLOCK_NS};
	const struct verb_option options[] = {
	    {"output", 'o', OPTION_TEXT, &a.output},
	    {"clock", 0, OPTION_TIME, &a.clock_ns},
	    {"force", 0, OPTION_FLAG, &a.force},
	    {0}};
	struct err e;
	int at, rc = parse_options(&verb_merge, options, argc, argv, &at);

	while (!rc && at < argc)
		rc = add_input(&a, argv[at++]);
	if (!rc && a.inputs.n < 2)
		rc = usage_error(&verb_merge, "two files or more are needed");
	if (!rc && (!a.output || !can_write_graph(a.output)))
		rc = usage_error(&verb_merge,
				 "-o with a file whose suffix is .json, .txt or .wpdb is needed");
	if (!rc && merge(&a, &e) < 0)
		rc = fail(&e);
	vec_for(&a.inputs, in)
		if (in->g.priv)
			graph_done(&in->g);
	vec_done(&a.inputs);
	return rc;
}

const struct verb verb_merge = {
    .name = "merge",
    .usage = "[NAME=]FILE... -o OUT [OPTION]...",
    .summary = "Join the recordings of several hosts into one graph",
    .help =
	"  -o, --output FILE     .wpdb, .json or .txt\n"
	"      --clock TIME      the clocks of the hosts differ by less than this (default 2s)\n"
	"      --force           replace FILE if it exists\n"
	"A host is called as record --host-id said, else by its host name; NAME= names it here.\n"
	"Connections between the hosts become flows from process to process: docs/fleet.md.\n",
    .run = run,
};
