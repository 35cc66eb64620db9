#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "strbuf.h"

/**
 * Append a command line with blanks between its arguments. With @p mask, what looks like a secret
 * becomes "***": the value of an option or assignment whose name speaks of a token, password, secret,
 * key or credential; what follows "Authorization:"; the password in a URL; tokens that start with sk-.
 *
 * @param args arguments, each ended by NUL but for the last; @p n bytes
 */
void redact_cmdline(struct strbuf *out, const char *args, size_t n, bool mask);
