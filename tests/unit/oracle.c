/* What jansson thinks of a document: see oracle.h. */
#include "oracle.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FLAGS (JSON_DECODE_ANY | JSON_ALLOW_NUL)

enum verdict oracle_reads(const char *text, size_t n, char *reason, size_t size)
{
	enum json_error_code code;
	json_error_t e;
	json_t *doc = json_loadb(text, n, FLAGS, &e);

	if (doc) {
		json_decref(doc);
		return ACCEPTED;
	}
	snprintf(reason, size, "%s", e.text);
	code = json_error_code(&e);
	if (code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
	    (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)))
		return REFUSED_BY_INTENT;
	return REFUSED;
}

bool oracle_equal(const char *a, size_t na, const char *b, size_t nb)
{
	json_error_t e;
	json_t *first = json_loadb(a, na, FLAGS, &e), *second = json_loadb(b, nb, FLAGS, &e);
	bool same = first && second && json_equal(first, second);

	json_decref(first);
	json_decref(second);
	return same;
}
