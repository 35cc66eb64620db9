/*
 * Fuzz target of the graph JSON reader and writer: no input may crash them, and what was accepted is
 * written as a document that holds the same graph and is written the same again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "graph_json.h"

static int read_text(struct graph *g, const char *s, size_t n)
{
	struct json_limits l = JSON_LIMITS_DEFAULT;
	struct json_reader *r = json_reader_new_mem(s, n, "FILE", &l);
	struct err e;
	int rc = graph_read_json(g, r, &e);

	if (rc && (!e.msg[0] || strchr(e.msg, '\n')))
		abort();
	json_reader_free(r);
	return rc;
}

static void write_text(struct graph *g, bool old_only, struct strbuf *out)
{
	struct graph_json_style style = {.old_only = old_only, .compact = true};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct err e;
	off_t n;

	if (fd < 0 || graph_write_json(g, fd, &style, NULL, &e))
		abort();
	n = lseek(fd, 0, SEEK_END);
	strbuf_clear(out);
	strbuf_reserve(out, (size_t)n + 1);
	if (pread(fd, out->s, (size_t)n, 0) != n)
		abort();
	out->n = (size_t)n;
	close(fd);
}

static void use(struct graph *g)
{
	struct graph merged;

	graph_init(&merged);
	graph_merge(&merged, g, NULL, NULL);
	graph_merge(&merged, g, NULL, NULL);
	if (merged.nodes.n != g->nodes.n || merged.edges.n != g->edges.n)
		abort();
	for (uint32_t i = 0; i < g->nodes.n; i++)
		if (graph_find(g, graph_node_id(g, i)) != i)
			abort();
	graph_done(&merged);
}

/* Read @p text, which holds @p g, and write it again. */
static void copy(const struct strbuf *text, const struct graph *g, struct strbuf *ret)
{
	struct graph again;

	graph_init(&again);
	if (read_text(&again, text->s, text->n) || again.nodes.n != g->nodes.n ||
	    again.edges.n != g->edges.n)
		abort();
	write_text(&again, false, ret);
	graph_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf one = {0}, two = {0};
	struct graph g;

	graph_init(&g);
	if (!read_text(&g, (const char *)data, size)) {
		use(&g);
		write_text(&g, true, &one);
		write_text(&g, false, &one);
		/* The first copy puts entities that others refer to in front of them. */
		copy(&one, &g, &two);
		copy(&two, &g, &one);
		if (one.n != two.n || memcmp(one.s, two.s, one.n))
			abort();
	}
	graph_done(&g);
	strbuf_done(&one);
	strbuf_done(&two);
	return 0;
}
