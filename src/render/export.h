#pragma once

#include "err.h"
#include "graph.h"
#include "picture.h"
#include "strbuf.h"

/*
 * Files for other programs: pictures, graphs of other tools, times of threads. One table says which there
 * are; each function writes the same bytes for the same input.
 */

struct timeline; /* timeline.h */

struct export_input {
	struct graph *g;
	const struct picture *picture; /**< NULL for formats that draw none */
	const struct timeline *time;   /**< NULL: the file has none */
};

struct export_format {
	const char *suffix; /**< ".dot": of the file's name */
	const char *doc;    /**< for the help, one line */
	bool draws;	    /**< needs a picture: --level, --min-rate and --top apply */
	bool whole;	    /**< for programs rather than eyes: nothing is left out unless asked for */
	const char *note;   /**< what it does not hold although one may think so; NULL: nothing */
	/** @return 0 or -errno; what was appended to @p b is then to be dropped */
	int (*write)(const struct export_input *in, struct strbuf *b, struct err *e);
};

extern const struct export_format export_formats[];
extern const size_t n_export_formats;

/** By the end of a file's name; NULL: none of these. */
const struct export_format *export_find(const char *path);

/** Boxes of a picture unless --top says otherwise: more are no picture. */
#define EXPORT_TOP 50

int export_dot(const struct export_input *in, struct strbuf *b, struct err *e);
/** By Graphviz's program `dot`, which has a minute. */
int export_svg(const struct export_input *in, struct strbuf *b, struct err *e);
int export_mermaid(const struct export_input *in, struct strbuf *b, struct err *e);
int export_drawio(const struct export_input *in, struct strbuf *b, struct err *e);
int export_gexf(const struct export_input *in, struct strbuf *b, struct err *e);
int export_graphml(const struct export_input *in, struct strbuf *b, struct err *e);
/** -ENODATA: no thread has times. */
int export_folded(const struct export_input *in, struct strbuf *b, struct err *e);
/** -ENODATA: neither single waits nor intervals. */
int export_trace(const struct export_input *in, struct strbuf *b, struct err *e);
