#pragma once

#include <stddef.h>
#include <stdint.h>

#include "strbuf.h"

/*
 * Names come from the host and may hold anything. What is shown beside other text becomes one line that
 * cannot move, hide or reorder what stands around it.
 */

/**
 * Append @p s as valid UTF-8 of one line: control characters, white space of any kind and marks that change
 * the direction of text become a blank or U+FFFD, and so do invalid bytes and code points that XML has no
 * place for. Runs of blanks become one, blanks around it none. Of more than @p most code points the last
 * one is "…".
 *
 * @param s    NULL is ""
 * @param most > 0
 */
void clean_add(struct strbuf *b, const char *s, size_t most);

/** As clean_add(), for lines of columns: whole, and with all blanks. */
void clean_line(struct strbuf *b, const char *s);

/** Whether the code point draws something by itself and leaves its neighbours alone. */
int clean_is_plain(uint32_t c);
