#pragma once

#include "json.h"

/** Write the next token of the reader. @return as json_next() */
static inline int json_echo_token(struct json_reader *r, struct json_writer *w, struct err *e)
{
	int token = json_next(r, e);
	size_t n;
	const char *s = json_text(r, &n);

	if (token == JSON_OBJECT)
		json_write_object(w);
	else if (token == JSON_OBJECT_END)
		json_write_object_end(w);
	else if (token == JSON_ARRAY)
		json_write_array(w);
	else if (token == JSON_ARRAY_END)
		json_write_array_end(w);
	else if (token == JSON_KEY)
		json_write_keyn(w, s, n);
	else if (token == JSON_STRING)
		json_write_strn(w, s, n);
	else if (token == JSON_NUMBER)
		json_write_raw(w, s, n);
	else if (token == JSON_TRUE || token == JSON_FALSE)
		json_write_bool(w, token == JSON_TRUE);
	else if (token == JSON_NULL)
		json_write_null(w);
	return token;
}

/** Read a document and write it again. @return 0 or as json_next(); @p out then holds a part */
static inline int json_echo(struct json_reader *r, struct strbuf *out, unsigned flags, struct err *e)
{
	struct json_writer w;
	int rc;

	json_writer_init_strbuf(&w, out, flags);
	do
		rc = json_echo_token(r, &w, e);
	while (rc > 0);
	if (rc < 0) {
		json_writer_drop(&w);
		return rc;
	}
	return json_writer_finish(&w, e);
}
