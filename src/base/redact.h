#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "strbuf.h"

/**
 * Append a command line with blanks between its arguments. With @p mask, what looks like a secret
 * becomes "***", rather once too often than once too seldom:
 * - the value of an option, variable, header or JSON member whose name speaks of a token, password,
 *   secret, API key, credential or authorization: "--api-key V", "HF_TOKEN=V", "Authorization: Bearer V";
 * - the password in a URL, and tokens with a form of their own: "sk-…", "hf_…", "ghp_…", "eyJ…";
 * - -p of mysql and sshpass, -a of redis-cli, -u of curl.
 *
 * @param args arguments, each ended by NUL but for the last, or words with blanks; @p n bytes
 */
void redact_cmdline(struct strbuf *out, const char *args, size_t n, bool mask);
