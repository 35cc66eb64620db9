/*
 * Fuzz target of the compact text reader and writer: no input may crash them, and what was accepted
 * is written as a text that holds the same graph and is written the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "graph_text.h"

static int read_text(struct graph *g, const char *s, size_t n)
{
	struct err e;
	int rc = graph_read_text(g, s, n, "FILE", &e);

	if (rc && (!e.msg[0] || strchr(e.msg, '\n')))
		abort();
	return rc;
}

/* Read @p text, which holds @p g, and write it again. */
static void copy(const struct strbuf *text, const struct graph *g, struct strbuf *ret)
{
	struct graph again;

	graph_init(&again);
	if (read_text(&again, text->s, text->n) || again.nodes.n != g->nodes.n ||
	    again.edges.n != g->edges.n)
		abort();
	strbuf_clear(ret);
	graph_write_text(&again, ret);
	graph_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf one = {0}, two = {0};
	struct graph g;

	graph_init(&g);
	if (!read_text(&g, (const char *)data, size)) {
		graph_write_text(&g, &one);
		/* The first copy orders entities by type. */
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
