/*
 * Fuzz target of the reader of recordings: no file may crash it, and what it accepts is a graph like
 * any other, which can be merged and written, and whose waits add up.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "graph_json.h"
#include "recording.h"
#include "waitfor.h"

static void check(int rc, const struct err *e)
{
	if (rc && (!e->msg[0] || strchr(e->msg, '\n')))
		abort();
}

static void use(struct graph *g)
{
	struct graph_json_style style = {.compact = true};
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct graph merged;
	struct err e;

	graph_init(&merged);
	graph_merge(&merged, g, NULL, NULL);
	for (uint32_t i = 0; i < g->nodes.n; i++)
		if (graph_find(g, graph_node_id(g, i)) != i)
			abort();
	check(graph_write_json(g, fd, &style, NULL, &e), &e);
	graph_done(&merged);
	close(fd);
}

static void follow_waits(struct stored *s, struct graph *g)
{
	struct timeline t = {0};
	struct waitfor w;
	struct err e;
	int rc = stored_load_timeline(s, g, &t, &e);

	check(rc, &e);
	if (rc)
		return;
	waitfor_init(&w, g, &t);
	vec_for(&w.chains, c) {
		uint64_t sum = 0;

		vec_for(&c->parts, p)
			sum += p->ns;
		if (sum != c->waited_ns)
			abort();
	}
	vec_for(&w.paths, p)
		if (p->steps.v[0].from_ns != p->from_ns || p->steps.v[p->steps.n - 1].to_ns != p->to_ns)
			abort();
	waitfor_done(&w);
	timeline_done(&t);
}

static void read_amounts(struct stored *s, struct graph *g)
{
	struct interval_amounts a = {0};
	struct err e;

	check(stored_load_amounts(s, g, &a, &e), &e);
	vec_for(&a.v, it)
		if (it->node != NODE_NONE && it->node >= g->nodes.n)
			abort();
	vec_done(&a.v);
}

static void read_recording(const char *path)
{
	struct stored *s;
	struct graph g;
	struct err e;
	int rc = stored_open(&s, path, &e);

	check(rc, &e);
	if (rc)
		return;
	for (size_t i = 0; i < n_entity_types; i++)
		stored_count(s, entity_types[i]);
	graph_init(&g);
	rc = stored_load(s, &g, &e);
	check(rc, &e);
	if (!rc) {
		follow_waits(s, &g);
		read_amounts(s, &g);
		use(&g);
	}
	graph_done(&g);
	graph_init(&g);
	check(stored_load_around(s, &g, "process:7", 2, 100, &e), &e);
	graph_done(&g);
	stored_close(s);
}

/* SQLite wants a name, so that a file without one will not do; made once, removed at the end. */
static char path[] = "/tmp/fuzz-recording-XXXXXX";

static void remove_file(void)
{
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0) {
		fd = mkstemp(path);
		atexit(remove_file);
	}
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	read_recording(path);
	return 0;
}
