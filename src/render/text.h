#pragma once

#include "graph.h"
#include "json.h"
#include "strbuf.h"

/* Private to the layer: pieces that several renderers are made of. */

void text_bytes(struct strbuf *b, double bytes);
void text_time(struct strbuf *b, double ns);
/** At most @p most bytes of a name from the host, which may hold anything: a report has one line a row. */
void text_clean(struct strbuf *b, const char *s, size_t most);
/** Likewise all lines that were added since @p start. */
void text_finish(struct strbuf *b, size_t start);
/** Fill up what was added since @p start to @p width, by at least one blank. */
void text_pad(struct strbuf *b, size_t start, size_t width);
/** NAME[PID] of a process, else the printed id. */
void text_end(struct graph *g, struct strbuf *b, uint32_t node);
/** Likewise, and "worker[4712] of python3[4711]" of a thread, names of containers, disks and adapters. */
void text_party(struct graph *g, struct strbuf *b, uint32_t node);
/** What a limit left out, if anything. */
void text_omitted(struct strbuf *b, uint64_t shown, uint64_t all);

/** {"id", "pid", "name"} of a process, or of an endpoint outside. */
void json_end(struct graph *g, uint32_t node, struct json_writer *w);
/** One member for each field of the type; null when it is not measured. */
void json_fields(struct graph *g, const struct type *t, uint64_t measured, const uint64_t *data,
		 struct json_writer *w);
/** An entity with its id and all its fields. */
void json_entity(struct graph *g, const struct node *n, struct json_writer *w);
