/* Picks single members out of small JSON objects. */
#include "fleet/fleet_json.h"

#include <stdio.h>
#include <string.h>

#include "json.h"

/* The reader stands at the value of @p path. @return its token; JSON_EOF: there is none */
static int find(struct json_reader *r, const char *path)
{
	struct err e;
	int t = json_next(r, &e);

	while (t == JSON_OBJECT) {
		const char *dot = strchr(path, '.');
		size_t n = dot ? (size_t)(dot - path) : strlen(path), got;

		for (;;) {
			const char *key;

			if (json_next(r, &e) != JSON_KEY)
				return JSON_EOF;
			key = json_text(r, &got);
			if (got == n && !memcmp(key, path, n))
				break;
			if (json_skip(r, JSON_KEY, &e) < 0)
				return JSON_EOF;
		}
		t = json_next(r, &e);
		if (!dot)
			return t < 0 ? JSON_EOF : t;
		path = dot + 1;
	}
	return JSON_EOF;
}

uint64_t fleet_json_u64(const char *json, const char *path, uint64_t absent)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "answer", NULL);
	uint64_t v = absent;

	if (find(r, path) != JSON_NUMBER || json_get_u64(r, &v))
		v = absent;
	json_reader_free(r);
	return v;
}

bool fleet_json_bool(const char *json, const char *path)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "answer", NULL);
	bool v = find(r, path) == JSON_TRUE;

	json_reader_free(r);
	return v;
}

bool fleet_json_text(const char *json, const char *path, char *ret, size_t size)
{
	struct json_reader *r = json_reader_new_mem(json, strlen(json), "answer", NULL);
	bool found = find(r, path) == JSON_STRING;

	snprintf(ret, size, "%s", found ? json_text(r, NULL) : "");
	json_reader_free(r);
	return found;
}
