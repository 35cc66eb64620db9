#pragma once

#include "strbuf.h"

/* Clean text (clean.h) as data of a format: no text can end the place that it stands in. */

/** Content or attribute value of XML. */
void escape_xml(struct strbuf *b, const char *s);
/** Between double quotes in DOT, where Graphviz knows entities and backslashes. */
void escape_dot(struct strbuf *b, const char *s);
/** Between double quotes in Mermaid, which has no escapes but its own kind of entities. */
void escape_mermaid(struct strbuf *b, const char *s);
