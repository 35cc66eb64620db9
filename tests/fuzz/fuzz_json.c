/*
 * Fuzz target of the JSON reader and writer: no input may crash them, the size of the window may not
 * matter, and what was accepted is accepted again, unchanged, after it was copied.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "json.h"

/* Read all tokens, then the document as compact JSON. @return 0 or < 0 */
static int copy(const char *text, size_t n, size_t window, struct strbuf *out, struct err *e)
{
	struct json_limits l = {.depth = 64, .string_bytes = 1 << 20, .window_bytes = window};
	struct json_reader *r = json_reader_new_mem(text, n, "FILE", &l);
	int rc = json_next(r, e);

	if (rc >= 0)
		rc = json_copy(r, rc, out, e);
	if (rc >= 0)
		rc = json_next(r, e);
	if (json_offset(r) > n || json_line(r) > n + 1)
		abort();
	json_reader_free(r);
	return rc;
}

static void numbers(const char *text, size_t n)
{
	struct json_reader *r = json_reader_new_mem(text, n, "FILE", NULL);
	struct err e;
	int64_t i64;
	uint64_t u64;
	double f64;

	while (json_next(r, &e) > 0)
		if (!json_get_i64(r, &i64) && i64 >= 0 && (json_get_u64(r, &u64) || u64 != (uint64_t)i64))
			abort();
		else if (!json_get_u64(r, &u64) && json_get_f64(r, &f64))
			abort();
	json_reader_free(r);
}

static void must_equal(const struct strbuf *a, const struct strbuf *b)
{
	if (a->n != b->n || memcmp(strbuf_str(a), strbuf_str(b), a->n))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct strbuf wide = {0}, narrow = {0}, again = {0};
	struct err e = {0}, e_narrow = {0};
	int rc = copy(text, size, 0, &wide, &e);

	if (copy(text, size, 16, &narrow, &e_narrow) != rc || strcmp(e.msg, e_narrow.msg))
		abort();
	must_equal(&wide, &narrow);
	if (!rc && copy(wide.s, wide.n, 0, &again, &e))
		abort();
	if (!rc)
		must_equal(&wide, &again);
	numbers(text, size);
	strbuf_done(&wide);
	strbuf_done(&narrow);
	strbuf_done(&again);
	return 0;
}
