#pragma once

#include "err.h"
#include "graph.h"
#include "strbuf.h"

/*
 * Compact text: what graph JSON says in a fortieth of its size, for people and language models.
 *
 *   # witty-text 1
 *   @process 2 pid ppid name cmdline uid=0		type, first number, columns, a constant
 *   6808 1 dockerd "/usr/bin/dockerd --live-restore"	an entity a line, numbered from there
 *   @@own						relations without values: FROM TO
 *   12 13,20..25
 *   @@send_to_socket from=12 to=20+ data_size		relations with values: FROM TO VALUES
 *   30006
 *
 * Columns. `name` has a value a row. `name=VALUE` has the same in all. `name+BASE` holds
 * differences to BASE. `name{KEY,…}` is a map whose keys stand there, see text_group.h. Of
 * relations, `from=12` is the same source in all rows, `to=20+` a target that goes up by one from
 * row to row; an end that is not there stands in the row. Relations without columns of their own
 * are told by runs, see text_ends.h.
 *
 * Values. `-` was not measured, `'` equals the one above, `=` follows from others (text_derive.h);
 * `=*3` is three of these. `^N~text~M` begins with the first N bytes of the text above and ends
 * with its last M. As FROM or TO `+` is the number after the one above. Texts are bare where that
 * is unambiguous, else quoted as in JSON; maps and lists are JSON without needless quotes, and a
 * map without its braces; a number that ends in a dot is one with .0. Units: `schema` tells those
 * of fields.
 *
 * Lines that begin with `=`: `=order` keeps the order of relations of different types, as runs of
 * types by letter; `=env` and `=witty` hold JSON about the observation. `@@type ==`: all relations
 * of the type follow from the entities.
 */
void graph_write_text(struct graph *g, struct strbuf *b);

/** Read it back. @return 0, or -EBADMSG with the line */
int graph_read_text(struct graph *g, const char *text, size_t n, const char *name, struct err *e);
