#pragma once

#include "err.h"
#include "graph.h"
#include "strbuf.h"

/*
 * Compact text: what graph JSON says in a fortieth of its size, for people and language models.
 *
 *   # witty-text 1
 *   @process 2 | pid ppid name cmdline entity_namespace=local     type, first number, columns, constants
 *   6808 1 dockerd "/usr/bin/dockerd --live-restore"              an entity a line, numbered from there
 *   @@own                                                         relations of a type: FROM TO VALUES
 *   12 13
 *
 * A value is `-` when it was not measured, `'` when it equals the one above, `^N~` and the rest when it
 * begins with the first N characters of the one above, `=` when it follows from others (text_derive.h).
 * As FROM or TO `+` is the number after the one above. Texts are bare where that is unambiguous, else quoted as in JSON; maps and lists are JSON without needless quotes. A column
 * `name+BASE` holds differences to BASE; a number that ends in a dot is one with .0. `=order` keeps the order of relations of different types.
 */
void graph_write_text(struct graph *g, struct strbuf *b);

/** Read it back. @return 0, or -EBADMSG with the line */
int graph_read_text(struct graph *g, const char *text, size_t n, const char *name, struct err *e);
